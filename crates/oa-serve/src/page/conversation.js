// The state of a conversation on the page. Pure: no network, no clock, no DOM. `load` reads a stored conversation, and
// `reduce` applies the server's events; equal inputs give equal states.

import * as calls from "./call.js";
import * as threads from "./thread.js";

export function empty(id = null) {
  return {
    id,
    title: "",
    thread: threads.EMPTY,
    run: null, // {id} while the agent works
    ended: 0, // runs that have ended since the conversation was opened
    steering: [], // steered messages that the model has not read: a stopped run leaves them for the next one
    usage: null, // of the last answer
    meter: null, // of the answer in progress: {firstAt, lastAt, tokens}
    speed: null, // tokens per second
    lastEvent: null,
    isStale: false, // events were lost: load the conversation again
  };
}

/** Reads a conversation as `GET /api/conversations/{id}` returns it. */
export function load(stored) {
  const messages = stored.messages.reduce(threads.addMessage, threads.EMPTY);
  // The next event belongs to another answer.
  const begun = { ...messages, lastAnswer: messages.entries.length };
  const thread = (stored.agents ?? []).reduce((to, agent) => threads.addAgent(to, agent), begun);
  const state = {
    ...empty(stored.id),
    title: stored.title ?? "",
    // The waiting calls are marked first, because `end` stops all others that have no result.
    thread: stored.running ? { ...thread, phase: "waiting" } : threads.end(withWaiting(thread, stored.waiting)),
    run: stored.running ? { id: null } : null,
    usage: stored.usage ?? null,
    lastEvent: stored.last_event ?? null,
    steering: stored.steering ?? [],
  };
  return stored.running ? { ...state, thread: withWaiting(state.thread, stored.waiting) } : state;
}

const withWaiting = (thread, waiting = []) =>
  (waiting ?? []).reduce(
    (to, one) => threads.changeCall(to, one.call_id, one.name, (call) => calls.wait(call, one)),
    thread,
  );

/** The calls whose results another viewer entered; the stored conversation has the results. */
export const callsWithoutResult = (state) =>
  state.thread.entries.filter((entry) => entry.kind === "call" && entry.state === "done" && entry.result === undefined);

/** The calls that wait for the user, in order. */
export const waitingCalls = (state) =>
  state.thread.entries.filter((entry) => entry.kind === "call" && calls.isWaiting(entry));

/**
 * Applies an input: `{event, data, id, at}`. The events are those of the server (`agent`, `prompt`, `run`, `answered`,
 * `gap`), and three of this page: `steer`, when a message is sent to the running turn, `unsteer`, when that has failed,
 * and `taken`, when unread messages were taken back.
 */
export function reduce(state, input) {
  const next = apply(state, input);
  return input.id ? { ...next, lastEvent: input.id } : next;
}

function apply(state, { event, data, at = null }) {
  switch (event) {
    case "agent":
      return applyAgent(state, data, at);
    case "prompt": {
      const images = (data.images ?? []).map((url) => ({ type: "image", url }));
      const audio = (data.audio ?? []).map((url) => ({ type: "audio", url }));
      const content = [{ type: "text", text: data.text ?? "" }, ...images, ...audio];
      return { ...state, thread: threads.addPrompt(state.thread, { content }, false) };
    }
    case "run":
      return applyRun(state, data);
    case "steer":
      return { ...state, steering: [...state.steering, data.text] };
    case "unsteer": {
      const last = state.steering.lastIndexOf(data.text);
      return { ...state, steering: state.steering.filter((_, place) => place !== last) };
    }
    case "taken":
      return { ...state, steering: [] };
    case "answered":
      return { ...state, thread: threads.changeCall(state.thread, data.call_id, data.name, (call) => calls.answer(call, data)) };
    case "gap":
      return { ...state, isStale: true };
    default:
      return state;
  }
}

function applyRun(state, data) {
  if (data.state === "started") {
    // No call waits any more: the last one was answered, or a prompt came instead.
    const thread = { ...threads.changeCalls(state.thread, (call) => calls.answer(call)), phase: "waiting" };
    return { ...state, thread, run: { id: data.run ?? null }, speed: null, meter: null };
  }
  let thread = threads.end(withWaiting(state.thread, data.waiting));
  if (data.state === "failed") {
    const text = data.error?.message ?? data.error ?? "The run failed.";
    thread = threads.push(thread, { kind: "notice", level: "error", text: String(text) });
  } else if (data.error) {
    // The turn is complete, but could not be stored.
    thread = threads.push(thread, { kind: "notice", level: "warn", text: String(data.error) });
  }
  // No line of figures while a call waits: the turn continues after the answer.
  const summary = summarize(state, data);
  if (summary && !waits(thread)) thread = threads.push(thread, summary);
  return { ...state, thread, run: null, ended: state.ended + 1, meter: null, usage: data.usage && !state.usage ? data.usage : state.usage };
}

const waits = (thread) => thread.entries.some((entry) => entry.kind === "call" && calls.isWaiting(entry));

/** The last line of an answer: a copy button and the figures of the turn. */
function summarize(state, data) {
  const last = state.thread.open ?? state.thread.entries.at(-1);
  if (!last || last.kind === "prompt") return null;
  const tokens = data.usage?.completion_tokens ?? state.usage?.completion_tokens ?? null;
  return { kind: "end", tokens, speed: state.speed };
}

function applyAgent(state, event, at) {
  const next = { ...state, thread: threads.follow(state.thread, event, at) };
  switch (event.type) {
    case "answer_start":
      next.meter = null;
      break;
    case "block":
      if (event.data.type === "text") measure(next, event.data.text, at);
      if (event.data.type === "thinking") measure(next, event.data.thinking, at);
      break;
    case "tool_use_delta":
      measure(next, event.data.arguments, at);
      break;
    case "answer_end":
      conclude(next, event.data.usage);
      break;
    case "steered": {
      // Hooks may have changed the message, or another viewer may have sent it.
      const words = event.data.content.map((block) => block.text ?? "").join("");
      const index = state.steering.indexOf(words);
      if (index >= 0) next.steering = state.steering.filter((_, place) => place !== index);
      break;
    }
    case "steer_blocked":
      next.steering = state.steering.slice(1);
      break;
  }
  return next;
}

/** An estimate until usage is known: servers send a token per piece, and a viewer that is behind gets several as one. */
function measure(state, piece, at) {
  if (at === null || piece === "") return;
  const tokens = Math.max(1, Math.round(piece.length / 8));
  if (!state.meter) {
    // The time before the first piece is prompt processing.
    state.meter = { firstAt: at, lastAt: at, tokens: 0 };
    return;
  }
  state.meter = { firstAt: state.meter.firstAt, lastAt: at, tokens: state.meter.tokens + tokens };
  const seconds = (at - state.meter.firstAt) / 1000;
  if (seconds >= 0.25) state.speed = state.meter.tokens / seconds;
}

function conclude(state, usage) {
  if (!usage) return;
  state.usage = usage;
  const told = (usage.generation_time_us ?? 0) / 1e6;
  const seen = state.meter ? (state.meter.lastAt - state.meter.firstAt) / 1000 : 0;
  const seconds = told > 0 ? told : seen;
  if (usage.completion_tokens && seconds >= 0.05) state.speed = usage.completion_tokens / seconds;
}

/** The number of tokens in the model's context, if known. */
export function contextUsed(state) {
  if (!state.usage) return null;
  const { prompt_tokens: prompt = 0, completion_tokens: completion = 0 } = state.usage;
  return prompt + completion || state.usage.total_tokens || null;
}
