// A thread of entries: the texts and calls of one agent, in order. Pure: `follow` returns a new thread that shares
// unchanged entries, so a view can compare entries by identity.
//
// Entries: prompt, text, thinking, call, notice, end. `open` is the growing text or thinking; it comes after all
// `entries`.

import * as calls from "./call.js";
import { noticeOf, noticeOfFinish } from "./notice.js";
import * as text from "./text.js";

export const EMPTY = Object.freeze({
  entries: Object.freeze([]),
  open: null,
  places: Object.freeze({}), // call id -> index in `entries`, of the last call of this id
  written: Object.freeze([]), // call ids of the answer in progress, by their index in it
  next: 1,
  phase: "idle", // idle, waiting, reading, thinking, writing, calling
  progress: null,
  answerFrom: null, // index of the first entry of the answer in progress
  partFrom: null, // the same if its start was missed: what is shown is only a part
  lastAnswer: 0, // the same for the last answer, even if it has ended
});

const MAX_DEPTH = 8;

export function push(thread, entry) {
  const closed = close(thread);
  const id = closed.next;
  return { ...closed, entries: [...closed.entries, { id, ...entry }], next: id + 1 };
}

/** Ends the growing text. */
export function close(thread) {
  if (!thread.open) return thread;
  return { ...thread, entries: [...thread.entries, { ...thread.open, isDone: true }], open: null };
}

export function say(thread, kind, piece, at) {
  if (piece === "") return thread;
  if (thread.open?.kind === kind) {
    return { ...thread, open: { ...thread.open, text: text.append(thread.open.text, piece), lastAt: at } };
  }
  const closed = close(thread);
  const id = closed.next;
  const open = { id, kind, text: text.of(piece), isDone: false, firstAt: at, lastAt: at };
  return { ...closed, open, next: id + 1 };
}

/** Changes a call, adding it if it is new. */
export function changeCall(thread, callId, name, change) {
  const place = Object.hasOwn(thread.places, callId) ? thread.places[callId] : undefined;
  if (place === undefined) {
    const closed = close(thread);
    const call = change(calls.create(closed.next, callId, name));
    const entries = [...closed.entries, call];
    const places = { ...closed.places, [callId]: closed.entries.length };
    return { ...closed, entries, places, next: closed.next + 1 };
  }
  // An unchanged call leaves the thread as it is, so nothing is drawn again.
  const changed = change(thread.entries[place]);
  if (changed === thread.entries[place]) return thread;
  const entries = thread.entries.slice();
  entries[place] = changed;
  return { ...thread, entries };
}

/** Ids are unique only within one answer: an ended call of another answer is not the one that begins. */
function beginCall(thread, callId) {
  const place = Object.hasOwn(thread.places, callId) ? thread.places[callId] : undefined;
  if (place === undefined || place >= thread.lastAnswer || !calls.hasEnded(thread.entries[place])) return thread;
  // The ended call keeps its entry, but its id now leads to the new call.
  const { [callId]: _, ...places } = thread.places;
  return { ...thread, places };
}

export function changeCalls(thread, change) {
  const entries = thread.entries.map((entry) => (entry.kind === "call" ? change(entry) : entry));
  return { ...thread, entries };
}

/** Ends the turn: closes the growing text and stops unfinished calls. */
export function end(thread) {
  const abandon = (call) => {
    const next = calls.abandon(call);
    return next.thread ? { ...next, thread: end(next.thread) } : next;
  };
  return { ...changeCalls(close(thread), abandon), phase: "idle", progress: null, written: [], answerFrom: null, partFrom: null };
}

function writeCall(thread, delta) {
  if (delta.id !== undefined) {
    const written = thread.written.slice();
    written[delta.call] = delta.id;
    const named = changeCall(beginCall({ ...thread, written }, delta.id), delta.id, delta.name, (call) => calls.write(call, delta.arguments));
    return { ...named, phase: "calling" };
  }
  const callId = thread.written[delta.call];
  if (callId === undefined) return thread;
  return changeCall(thread, callId, undefined, (call) => calls.write(call, delta.arguments));
}

/** Adds a block of an answer or of a message. */
export function addBlock(thread, block, at) {
  switch (block.type) {
    case "text":
      return { ...say(thread, "text", block.text, at), phase: "writing" };
    case "thinking":
      return { ...say(thread, "thinking", block.thinking, at), phase: "thinking" };
    case "image":
      return push(thread, { kind: "image", url: block.url });
    case "tool_use":
      return changeCall(beginCall(thread, block.id), block.id, block.name, (call) => calls.complete(call, block));
    case "tool_use_error": {
      const callId = block.id ?? `unnamed-${thread.next}`;
      // A denied call of another answer also gets an error.
      return changeCall(thread, callId, block.name, (call) => calls.fail(call, block));
    }
    case "tool_result":
      return changeCall(thread, block.tool_use_id, block.name, (call) => calls.result(call, block));
    default:
      return thread;
  }
}

const isText = (kind) => kind === "text" || kind === "thinking";

/** Shows an answer whose start was not received, as in history. */
function addUnseen(thread, message, at) {
  return message.content.filter((block) => isText(block.type)).reduce((to, block) => addBlock(to, block, at), thread);
}

/** Remembers where an answer whose start was missed begins. */
function beginPart(thread, block) {
  if (thread.answerFrom !== null || thread.partFrom !== null || !isText(block.type)) return thread;
  const closed = close(thread);
  return { ...closed, partFrom: closed.entries.length };
}

/** Removes the texts of an answer whose start was missed: its end brings all of them. */
function withoutPart(thread) {
  const from = thread.partFrom;
  if (from === null) return thread;
  const entries = thread.entries.filter((entry, place) => place < from || !isText(entry.kind));
  const moved = Object.entries(thread.places).map(([id, place]) => [id, entries.indexOf(thread.entries[place])]);
  return { ...thread, entries, places: Object.fromEntries(moved) };
}

export function addPrompt(thread, message, isSteered) {
  const content = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
  const words = content.filter((block) => block.type === "text").map((block) => block.text).join("\n");
  const images = content.filter((block) => block.type === "image").map((block) => block.url);
  const audio = content.filter((block) => block.type === "audio");
  const recordings = audio.map((block) => block.url ?? `data:audio/${block.format};base64,${block.data}`);
  return push(thread, { kind: "prompt", text: words, images, recordings, isSteered });
}

/** Applies an `AgentEvent`. `at` is its arrival time, in milliseconds. */
export function follow(thread, event, at, depth = 0) {
  const { data } = event;
  switch (event.type) {
    case "answer_start": {
      const closed = close(thread);
      const answerFrom = closed.entries.length;
      return { ...closed, phase: "waiting", progress: null, written: [], answerFrom, partFrom: null, lastAnswer: answerFrom };
    }
    case "prompt_progress":
      return { ...thread, phase: "reading", progress: data };
    case "block":
      return addBlock({ ...beginPart(thread, data), progress: null }, data, at);
    case "tool_use_delta":
      return writeCall({ ...thread, progress: null }, data);
    case "answer_end": {
      // The message repeats what the blocks have brought, so it is shown only if they were missed.
      const seen = thread.answerFrom === null ? addUnseen(withoutPart(close(thread)), data, at) : close(thread);
      return { ...seen, phase: "waiting", progress: null, answerFrom: null, partFrom: null };
    }
    case "call_denied":
      return changeCall(thread, data.call_id, data.tool_name, (call) => calls.deny(call, data));
    case "tool": {
      if (data.call_id === undefined) return thread;
      const changed = changeCall(thread, data.call_id, data.tool_name, (call) => calls.follow(call, data));
      const isCalling = changed.entries.some((entry) => entry.kind === "call" && entry.state === "running");
      return { ...changed, phase: isCalling ? "calling" : "waiting" };
    }
    case "nested":
      return depth >= MAX_DEPTH ? thread : followNested(thread, data, at, depth);
    case "steered":
      return addPrompt(thread, data, true);
    case "turn_end": {
      const notice = noticeOfFinish(data);
      const ended = end(thread);
      return notice ? push(ended, notice) : ended;
    }
    default: {
      const notice = noticeOf(event);
      return notice ? push(thread, notice) : thread;
    }
  }
}

function followNested(thread, nested, at, depth) {
  return changeCall(thread, nested.call_id, nested.agent, (call) => {
    const inner = follow(call.thread ?? EMPTY, nested.event, at, depth + 1);
    return inner === call.thread ? call : { ...call, agent: nested.agent, thread: inner };
  });
}

/** Applies a sub-agent of a stored conversation. Its call is in the messages or in the sub-agents above it. */
export function addAgent(thread, agent, depth = 0) {
  const [outer, ...above] = agent.above ?? [];
  if (outer !== undefined) {
    if (depth >= MAX_DEPTH || !Object.hasOwn(thread.places, outer)) return thread;
    return changeCall(thread, outer, undefined, (call) => {
      const before = call.thread ?? EMPTY;
      const inner = addAgent(before, { ...agent, above }, depth + 1);
      return inner === before ? call : { ...call, thread: inner };
    });
  }
  if (!Object.hasOwn(thread.places, agent.call_id)) return thread;
  const inner = agent.parts.reduce((to, part) => {
    if (part.type === "text") return close(say(to, "text", part.text, null));
    return changeCall(to, part.call_id, part.name, (call) => calls.recall(call, part));
  }, EMPTY);
  const shown = agent.is_done ? end(inner) : inner;
  return changeCall(thread, agent.call_id, agent.agent, (call) => ({ ...call, agent: agent.agent, thread: { ...shown, phase: "idle" } }));
}

/** Applies the messages of a stored conversation. */
export function addMessage(thread, message) {
  switch (message.role) {
    case "user":
      return addPrompt(thread, message, false);
    case "assistant":
    case "tool": {
      const content = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
      const begun = message.role === "assistant" ? { ...thread, lastAnswer: thread.entries.length } : thread;
      const added = close(content.reduce((to, block) => addBlock(to, block, null), begun));
      const idle = { ...added, phase: "idle" };
      if (message.interrupted) return push(idle, noticeOfFinish("interrupted"));
      const isLast = message.role === "assistant" && !content.some((block) => block.type.startsWith("tool_use"));
      return isLast ? push(idle, { kind: "end", tokens: null, speed: null }) : idle;
    }
    default:
      return thread;
  }
}
