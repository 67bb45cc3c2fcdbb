// The state of one tool call. Pure: each function returns a new state.

import * as text from "./text.js";

/** A call is in exactly one of these states. */
export const STATES = Object.freeze([
  "writing", // its arguments arrive
  "ready", // complete, not started
  "approval", // waits for the user's approval
  "answer", // waits for the result of an external tool
  "running",
  "done",
  "failed",
  "denied",
  "invalid",
  "stopped",
]);
const ENDED = new Set(["done", "failed", "denied", "invalid", "stopped"]);
const MAX_LINES = 200;

export const hasEnded = (call) => ENDED.has(call.state);
export const isWaiting = (call) => call.state === "approval" || call.state === "answer";

export function create(id, callId, name) {
  return {
    id,
    kind: "call",
    callId,
    name: name ?? "tool",
    state: "writing",
    written: text.EMPTY,
    input: undefined,
    question: null,
    progress: null,
    status: null,
    lines: [],
    linesDropped: 0,
    result: undefined,
    isError: false,
    images: [],
    outcome: null,
    reason: null,
    durationMs: null,
    attempts: 0,
    truncated: false,
    cached: false,
    thread: null,
  };
}

export const write = (call, piece) =>
  call.state === "writing" ? { ...call, written: text.append(call.written, piece) } : call;

/** Restores a stored call of a sub-agent. */
export function recall(call, { state, input, result }) {
  return { ...call, state, input, result, isError: state === "failed" };
}

/** Completes a call: this input will run. */
export function complete(call, block) {
  const state = call.state === "writing" ? "ready" : call.state;
  return { ...call, name: block.name || call.name, input: call.input ?? block.input, state };
}

export function fail(call, block) {
  // A denied call also gets an error, but the first reason is kept.
  if (hasEnded(call)) return call;
  const written = call.written.size ? call.written : text.of(block.raw_data ?? "");
  return { ...call, name: block.name || call.name, state: "invalid", reason: block.error, written, isError: true };
}

export const deny = (call, denied) =>
  ({ ...call, state: "denied", input: denied.input, reason: denied.reason, question: null });

/** Marks a call as waiting for the user. */
export function wait(call, waiting) {
  const state = waiting.kind === "result" ? "answer" : "approval";
  return { ...call, state, name: waiting.name ?? call.name, input: waiting.input, question: waiting.prompt ?? null };
}

/**
 * Applies a user's answer: `answer` is `approved`, with the `input` if it was changed, `denied`, with the `reason` if
 * there is one, or `result`.
 */
export function answer(call, { answer: given, input, reason, content, is_error: isError = false } = {}) {
  const states = { denied: "denied", result: isError ? "failed" : "done" };
  const told = { ...(input === undefined ? {} : { input }), ...(reason === undefined ? {} : { reason }) };
  const next = isWaiting(call) ? { ...call, ...told, state: states[given] ?? "ready", question: null } : call;
  return content !== undefined && next.result === undefined ? { ...next, result: content, isError } : next;
}

export function result(call, block) {
  const images = block.images ?? [];
  const next = { ...call, result: block.content, isError: Boolean(block.is_error), images, question: null };
  const isDenied = block.is_error && block.content?.error === "permission denied";
  if (isDenied) next.reason = call.reason ?? block.content.reason ?? null;
  if (!hasEnded(call)) next.state = isDenied ? "denied" : block.is_error ? "failed" : "done";
  return next;
}

/** Stops an unfinished call, because the turn is over. A waiting call is unchanged. */
export const abandon = (call) =>
  hasEnded(call) || isWaiting(call) ? call : { ...call, state: "stopped", reason: call.reason };

function line(call, level, message) {
  const lines = [...call.lines, { level, message }];
  if (lines.length <= MAX_LINES) return { ...call, lines };
  return { ...call, lines: lines.slice(-MAX_LINES), linesDropped: call.linesDropped + lines.length - MAX_LINES };
}

function finish(call, event) {
  const outcomes = { ok: "done", cancelled: "stopped", not_run: "stopped", blocked: "denied", malformed: "invalid" };
  return {
    ...call,
    state: outcomes[event.outcome] ?? "failed",
    outcome: event.outcome,
    input: event.input,
    result: event.result,
    isError: event.outcome !== "ok",
    durationMs: event.duration_us / 1000,
    attempts: event.attempts,
    truncated: event.truncated,
    cached: event.cached,
    question: null,
  };
}

/** Applies an event of the running tool. */
export function follow(call, event) {
  switch (event.type) {
    case "tool_call_start":
      return { ...call, state: "running", name: event.tool_name, input: event.input, question: null };
    case "tool_progress":
      return { ...call, progress: { done: event.done, total: event.total ?? null, message: event.message ?? null } };
    case "tool_status":
      return { ...call, status: event.status };
    case "tool_log":
      return line(call, event.level, event.message);
    case "tool_retry":
      return line(call, "warn", `Attempt ${event.attempt} failed: ${event.error}. Trying again.`);
    case "tool_call_complete":
      return finish(call, event);
    default: {
      const data = typeof event.data === "string" ? event.data : JSON.stringify(event.data);
      return line(call, "info", `${event.type.slice("tool_".length)}: ${data}`);
    }
  }
}
