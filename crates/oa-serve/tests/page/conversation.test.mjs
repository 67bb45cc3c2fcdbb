// Laws of the state of a conversation. Run: node --test crates/oa-serve/tests/page/*.test.mjs

import assert from "node:assert/strict";
import test from "node:test";
import { STATES, hasEnded, isWaiting } from "../../src/page/call.js";
import { callsWithoutResult, contextUsed, empty, load, reduce, waitingCalls } from "../../src/page/conversation.js";
import { duration } from "../../src/page/figure.js";
import { parse } from "../../src/page/json.js";
import { append, EMPTY, of, read } from "../../src/page/text.js";
import { EVERYTHING } from "./stream.mjs";

/** A state as plain data: texts are read. */
function plain(value) {
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value.list)) return read(value);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}

function checkThread(thread, isRunning) {
  const all = thread.open ? [...thread.entries, thread.open] : thread.entries;
  const ids = all.map((entry) => entry.id);
  assert.deepEqual(ids, [...new Set(ids)], "ids of entries are unique");
  assert.ok(ids.every((id) => id < thread.next));
  const calls = all.filter((entry) => entry.kind === "call");
  // Of calls with the same id the last one is meant, and the others are over.
  const last = new Map(calls.map((call) => [call.callId, call]));
  assert.equal(last.size, Object.keys(thread.places).length, "each call is known");
  for (const call of calls) {
    assert.ok(STATES.includes(call.state));
    if (last.get(call.callId) === call) assert.equal(thread.entries[thread.places[call.callId]], call);
    else assert.ok(hasEnded(call), `${call.callId} is over`);
    if (!isRunning) assert.ok(hasEnded(call) || isWaiting(call) || call.state === "ready", `${call.callId} is ${call.state}`);
    if (call.state === "done") assert.equal(call.isError, false);
    assert.ok(call.lines.length <= 200);
    if (call.thread) checkThread(call.thread, isRunning);
  }
  for (const entry of thread.entries) if (entry.kind === "text" || entry.kind === "thinking") assert.equal(entry.isDone, true);
  if (!isRunning) {
    assert.equal(thread.open, null);
    assert.equal(thread.progress, null);
    assert.equal(thread.phase, "idle");
  }
}

function check(state) {
  checkThread(state.thread, state.run !== null);
  assert.ok(state.speed === null || (Number.isFinite(state.speed) && state.speed >= 0));
}

function* shuffles(seed, count) {
  let random = seed;
  const next = (below) => {
    random = (Math.imul(random, 1103515245) + 12345) >>> 0;
    return Math.floor((random / 2 ** 32) * below);
  };
  for (let round = 0; round < count; round += 1) {
    const inputs = [];
    for (let length = next(120); length > 0; length -= 1) inputs.push(EVERYTHING[next(EVERYTHING.length)]);
    yield inputs;
  }
}

test("every prefix of a stream gives a valid state", () => {
  let state = empty("a");
  check(state);
  for (const input of EVERYTHING) {
    // An agent works only in a run: the first input begins one.
    state = reduce(state, input);
    if (state.run !== null) check(state);
    else checkThread({ ...state.thread, phase: "idle" }, false);
  }
});

test("replay gives the same state", () => {
  const whole = EVERYTHING.reduce(reduce, empty("a"));
  for (let cut = 0; cut <= EVERYTHING.length; cut += 1) {
    const head = EVERYTHING.slice(0, cut).reduce(reduce, empty("a"));
    const before = JSON.stringify(plain(head));
    assert.deepEqual(plain(EVERYTHING.slice(cut).reduce(reduce, head)), plain(whole));
    assert.equal(JSON.stringify(plain(head)), before, "an older state does not change");
  }
});

test("events in any order and number give a valid thread", () => {
  for (const inputs of shuffles(7, 400)) {
    let state = reduce(empty("a"), { event: "run", data: { run: 1, state: "started" } });
    for (const input of inputs) {
      state = reduce(state, input);
      const { entries, places, next } = state.thread;
      for (const [callId, place] of Object.entries(places)) assert.equal(entries[place].callId, callId);
      assert.ok(entries.every((entry) => entry.id < next));
    }
    check(reduce(state, { event: "run", data: { run: 1, state: "ended" } }));
  }
});

test("pieces of text that arrive joined give the same text", () => {
  const say = (words) => ({ event: "agent", data: { type: "block", data: { type: "text", text: words } }, at: 1 });
  const apart = ["a", "bc", "", "d"].map(say).reduce(reduce, empty());
  const joined = reduce(empty(), say("abcd"));
  assert.equal(read(apart.thread.open.text), read(joined.thread.open.text));
});

test("a stream shows what happened", () => {
  const at = (label, upTo) => {
    const index = EVERYTHING.findIndex(upTo);
    assert.ok(index >= 0, label);
    return EVERYTHING.slice(0, index + 1).reduce(reduce, empty("a"));
  };
  const call = (state, id) => state.thread.entries[state.thread.places[id]];
  const waiting = at("waiting", ({ data }) => data.waiting);
  assert.deepEqual(waitingCalls(waiting).map((one) => [one.callId, one.state, one.input]), [["d1", "approval", { path: "b" }], ["d2", "answer", { question: "?" }]]);
  const whole = EVERYTHING.reduce(reduce, empty("a"));
  assert.equal(call(whole, "c1").state, "done");
  assert.equal(read(call(whole, "c1").written), '{"q": 1}');
  assert.deepEqual(call(whole, "c1").lines.map((line) => line.level), ["warn", "warn", "info"]);
  assert.equal(call(whole, "c1").images.length, 1);
  assert.equal(call(whole, "c2").state, "denied");
  assert.equal(call(whole, "c3").state, "failed");
  assert.equal(call(whole, "c4").state, "invalid");
  assert.equal(call(whole, "d1").state, "stopped");
  const inner = call(whole, "c3").thread;
  assert.equal(read(inner.entries[0].text), "I found ");
  assert.equal(read(inner.entries[1].thread.entries[0].text), "deep");
  assert.equal(inner.entries[1].state, "stopped");
  assert.equal(whole.speed === null || whole.speed > 0, true);
  assert.equal(contextUsed(whole), 160);
  assert.equal(whole.isStale, true);
  assert.equal(whole.run, null);
  const texts = whole.thread.entries.filter((entry) => entry.kind === "notice").map((entry) => entry.text);
  assert.ok(texts.includes("Stopped."));
  assert.ok(texts.includes("the connection broke"));
});

test("tokens per second come from the server's time if it tells", () => {
  const end = EVERYTHING.findIndex(({ data }) => data.data?.usage?.generation_time_us);
  assert.equal(EVERYTHING.slice(0, end + 1).reduce(reduce, empty()).speed, 20);
});

test("a stored conversation shows the same as its events", () => {
  const messages = [
    { role: "system", content: [{ type: "text", text: "no" }] },
    { role: "user", content: [{ type: "text", text: "Hi" }, { type: "image", url: "data:image/png;base64,aGk=" }] },
    { role: "assistant", content: [{ type: "thinking", thinking: "Hm" }, { type: "text", text: "Yes" }, { type: "tool_use", id: "1", name: "add", input: { a: 1 } }] },
    { role: "tool", content: [{ type: "tool_result", tool_use_id: "1", content: 3 }] },
    { role: "assistant", content: [{ type: "text", text: "3" }] },
  ];
  const state = load({ id: "x", title: "T", messages, running: false, waiting: [], last_event: "5-9" });
  check(state);
  assert.deepEqual(state.thread.entries.map((entry) => entry.kind), ["prompt", "thinking", "text", "call", "text", "end"]);
  assert.deepEqual(state.thread.entries[3].result, 3);
  assert.equal(state.lastEvent, "5-9");
});

test("a conversation loaded in mid-run goes on with the events that follow", () => {
  const user = { role: "user", content: [{ type: "text", text: "Hi" }] };
  const calls = { role: "assistant", content: [{ type: "tool_use", id: "1", name: "add", input: {} }] };
  const loaded = load({ id: "x", title: "", messages: [user, calls], running: true, waiting: [], last_event: "5-3" });
  check(loaded);
  assert.equal(loaded.thread.entries[1].state, "ready");
  const next = [
    { event: "agent", id: "5-4", at: 5, data: { type: "tool", data: { type: "tool_call_start", call_id: "1", tool_name: "add", input: {} } } },
    { event: "agent", id: "5-5", at: 6, data: { type: "answer_start" } },
    { event: "agent", id: "5-6", at: 7, data: { type: "block", data: { type: "text", text: "So" } } },
  ].reduce(reduce, loaded);
  check(next);
  assert.equal(next.thread.entries[1].state, "running");
  assert.equal(next.lastEvent, "5-6");
});

test("a stored conversation that waits can be answered", () => {
  const messages = [{ role: "user", content: [] }, { role: "assistant", content: [{ type: "tool_use", id: "1", name: "rm", input: { a: 1 } }] }];
  const state = load({ id: "x", messages, running: false, waiting: [{ call_id: "1", name: "rm", input: { a: 1 }, kind: "approval" }] });
  check(state);
  assert.equal(waitingCalls(state).length, 1);
  const answered = (data) => reduce(state, { event: "answered", data: { call_id: "1", ...data } });
  for (const [data, wanted] of [[{ answer: "denied" }, "denied"], [{ answer: "approved" }, "ready"], [{ answer: "result" }, "done"], [{ answer: "result", content: "x", is_error: true }, "failed"]]) {
    const next = answered(data);
    assert.equal(waitingCalls(next).length, 0);
    assert.equal(next.thread.entries[1].state, wanted);
    assert.deepEqual(reduce(next, { event: "answered", data: { call_id: "1", answer: data.answer } }), next, "twice is once");
  }
  assert.deepEqual(callsWithoutResult(answered({ answer: "result" })).map((call) => call.callId), ["1"]);
  assert.equal(callsWithoutResult(answered({ answer: "result", content: "x" })).length, 0);
  const refused = reduce(answered({ answer: "denied" }), {
    event: "agent", at: 1, data: { type: "block", data: { type: "tool_use_error", id: "1", name: "rm", error: "permission denied: no", raw_data: "" } },
  });
  assert.equal(refused.thread.entries[1].state, "denied", "the error of a denied call changes nothing");
});

test("an answer of which only the end was seen is shown whole", () => {
  const loaded = load({ id: "x", messages: [], running: true, waiting: [], last_event: null });
  const content = [{ type: "text", text: "All of it" }];
  const state = reduce(loaded, { event: "agent", at: 1, data: { type: "answer_end", data: { content, finish_reason: "stop" } } });
  assert.equal(read(state.thread.open.text), "All of it");
});

test("an answer whose start was missed is shown once", () => {
  const loaded = load({ id: "x", messages: [], running: true, waiting: [], last_event: null });
  const block = (data) => ({ event: "agent", at: 1, data: { type: "block", data } });
  const call = { type: "tool_use", id: "1", name: "rm", input: {} };
  const content = [{ type: "thinking", thinking: "Well now" }, { type: "text", text: "All of it" }, call];
  const inputs = [
    block({ type: "thinking", thinking: "now" }), block({ type: "text", text: "of it" }), block(call),
    { event: "agent", at: 1, data: { type: "answer_end", data: { content, finish_reason: "tool_calls" } } },
    block({ type: "tool_result", tool_use_id: "1", name: "rm", content: "gone" }),
  ];
  const { thread } = inputs.reduce((state, input) => {
    const next = reduce(state, input);
    check(next);
    return next;
  }, loaded);
  const all = thread.open ? [...thread.entries, thread.open] : thread.entries;
  const texts = all.filter((entry) => entry.kind !== "call").map((entry) => read(entry.text));
  assert.deepEqual(texts, ["Well now", "All of it"]);
  const [only, ...more] = all.filter((entry) => entry.kind === "call");
  assert.deepEqual([only.result, more], ["gone", []]);
});

test("an append costs the piece and leaves older versions alone", () => {
  let text = EMPTY;
  for (let index = 0; index < 1000; index += 1) text = append(text, "ab");
  const [left, right] = [append(text, "x"), append(text, "y")];
  assert.equal(read(text).length, 2000);
  assert.equal(read(left).at(-1), "x");
  assert.equal(read(right).at(-1), "y");
  assert.equal(read(left, 1000), "x");
  assert.equal(left.list, text.list, "the newest version shares its list");
  assert.equal(read(of("q")), "q");
});

test("sub-agents of a stored conversation are shown in the calls that run them", () => {
  const call = { type: "tool_use", id: "c1", name: "researcher", input: { prompt: "x" } };
  const result = { type: "tool_result", tool_use_id: "c1", name: "researcher", content: "done" };
  const stored = {
    id: "a",
    running: false,
    messages: [
      { role: "user", content: [{ type: "text", text: "Find it" }] },
      { role: "assistant", content: [call] },
      { role: "tool", content: [result] },
    ],
    agents: [
      { call_id: "gone", agent: "nobody", parts: [{ type: "text", text: "x" }], is_done: true },
      {
        call_id: "c1", agent: "researcher", is_done: true,
        parts: [
          { type: "text", text: "I look." },
          { type: "call", call_id: "s1", name: "reader", state: "done", input: { page: 1 }, result: "text" },
          { type: "call", call_id: "s2", name: "lookup", state: "failed" },
          { type: "call", call_id: "s3", name: "lookup", state: "running" },
          { type: "call", call_id: "c1", name: "reader", state: "done" },
        ],
      },
      { call_id: "s1", above: ["c1"], agent: "reader", parts: [{ type: "text", text: "deep" }], is_done: true },
      { call_id: "d1", above: ["c1", "s1"], agent: "nobody", parts: [], is_done: true },
      { call_id: "c1", above: ["c1"], agent: "reader", parts: [{ type: "text", text: "same id" }], is_done: true },
    ],
    steering: ["Be brief."],
  };
  const before = JSON.stringify(stored);
  const state = load(stored);
  assert.equal(JSON.stringify(stored), before);
  check(state);
  assert.deepEqual(state.steering, ["Be brief."]);
  const calls = state.thread.entries.filter((entry) => entry.kind === "call");
  assert.deepEqual(calls.map((one) => [one.callId, one.state]), [["c1", "done"]], "calls that nobody knows are not added");
  const inner = plain(calls[0].thread).entries;
  assert.deepEqual(inner.map((entry) => entry.state ?? entry.text), ["I look.", "done", "failed", "stopped", "done"]);
  assert.deepEqual(inner[1].input, { page: 1 });
  assert.deepEqual(inner[1].thread.entries.map((entry) => entry.text), ["deep"]);
  assert.deepEqual(inner[4].thread.entries.map((entry) => entry.text), ["same id"]);
  // The same shape as that of events.
  checkThread(calls[0].thread, false);
});

test("a call of another answer with the same id is another call", () => {
  const agent = (type, data) => ({ event: "agent", data: { type, data } });
  const round = (number) => [
    agent("answer_start"),
    agent("tool_use_delta", { call: 0, id: "0", name: "add", arguments: `{"n":${number}}` }),
    agent("answer_end", { content: [], finish_reason: "tool_calls" }),
    agent("block", { type: "tool_use", id: "0", name: "add", input: { n: number } }),
    agent("tool", { type: "tool_call_start", call_id: "0", tool_name: "add", input: { n: number } }),
    agent("tool", { type: "tool_call_complete", call_id: "0", tool_name: "add", input: { n: number }, outcome: "ok", result: number, duration_us: 1 }),
    agent("block", { type: "tool_result", tool_use_id: "0", content: number }),
  ];
  const prompt = { role: "user", content: "Add." };
  const message = (number) => [
    { role: "assistant", content: [{ type: "tool_use", id: "0", name: "add", input: { n: number } }] },
    { role: "tool", content: [{ type: "tool_result", tool_use_id: "0", content: number }] },
  ];
  const live = [...round(1), ...round(2)].reduce(reduce, empty("a"));
  const stored = load({ id: "a", messages: [prompt, ...message(1), ...message(2)] });
  const mixed = round(2).reduce(reduce, load({ id: "a", messages: [prompt, ...message(1)] }));
  for (const state of [live, stored, mixed]) {
    const calls = state.thread.entries.filter((entry) => entry.kind === "call");
    assert.deepEqual(calls.map((call) => [call.input.n, call.result, call.state]), [[1, 1, "done"], [2, 2, "done"]]);
    checkThread(state.thread, true);
  }
});

test("a server may end a turn with any word", () => {
  for (const data of ["constructor", "__proto__", "toString", "eos"]) {
    const { entries } = reduce(empty("x"), { event: "agent", data: { type: "turn_end", data } }).thread;
    assert.deepEqual(entries, [], data);
  }
  const { entries } = reduce(empty("x"), { event: "agent", data: { type: "turn_end", data: "refusal" } }).thread;
  assert.equal(entries[0].text, "The model refused to answer.");
});

test("a turn that could not be stored says so", () => {
  const end = (more) => reduce(empty("x"), { event: "run", data: { run: 1, state: "ended", finish_reason: "stop", ...more } }).thread.entries;
  assert.deepEqual(end({}), []);
  const error = "the conversation could not be saved: no space";
  const [notice, ...rest] = end({ error });
  assert.deepEqual([notice.kind, notice.level, notice.text, rest.filter((entry) => entry.kind === "notice")], ["notice", "warn", error, []]);
});

test("a steered message is removed once", () => {
  const steer = (state, event, text) => reduce(state, { event, data: { text } });
  let state = ["a", "b", "a"].reduce((to, text) => steer(to, "steer", text), empty("c"));
  state = steer(state, "unsteer", "a");
  assert.deepEqual(state.steering, ["a", "b"]);
  assert.deepEqual(steer(state, "unsteer", "c").steering, ["a", "b"]);
});

// Node before version 21 has no `rawJSON`; the browser test has the same.
test("numbers of calls keep all digits", { skip: !JSON.rawJSON }, () => {
  const call = '{"type":"tool","data":{"duration_us":5,"total":18446744073709551615,"input":{"id":[1234567890123456789],"half":0.5},"result":-9223372036854775808}}';
  const { data } = parse(call);
  assert.equal(JSON.stringify(data.input), '{"id":[1234567890123456789],"half":0.5}');
  assert.equal(JSON.stringify(data.result), "-9223372036854775808");
  assert.ok(data.total > 1e19, "the protocol's own numbers are numbers");
  const list = parse('{"messages":[{"content":[{"input":{"id":1234567890123456789}}]}],"agents":[{"parts":[{"result":12345678901234567}]}]}');
  assert.equal(JSON.stringify(list.messages[0].content[0].input), '{"id":1234567890123456789}');
  assert.equal(JSON.stringify(list.agents[0].parts[0].result), "12345678901234567");
  assert.deepEqual(parse('{"input":1,"a":[null,"1234567890123456789"]}'), { input: 1, a: [null, "1234567890123456789"] });
});

test("times are rounded once", () => {
  const times = [[999.4, "999 ms"], [9949, "9.9 s"], [9960, "10 s"], [59600, "1 min 0 s"], [119700, "2 min 0 s"], [3599700, "1 h 0 min"]];
  for (const [time, text] of times) assert.equal(duration(time), text);
});
