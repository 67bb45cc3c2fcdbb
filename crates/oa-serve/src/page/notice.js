// Notices about an answer. Pure.

const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en-US")} ${number === 1 ? one : many}`;

const FINISHES = {
  content_filter: ["warn", "The server filtered the answer."],
  interrupted: ["info", "Stopped."],
  length: ["warn", "The answer reached the length limit."],
  max_run_cost: ["warn", "The cost limit of this run is reached."],
  max_run_time: ["warn", "The time limit of this run is reached."],
  max_run_tokens: ["warn", "The token limit of this run is reached."],
  max_tool_calls: ["warn", "The limit of tool calls is reached."],
  max_tool_iterations: ["warn", "The limit of tool rounds is reached."],
  refusal: ["warn", "The model refused to answer."],
  repeated_tool_call: ["warn", "The model repeated the same call, so the run ended."],
  unspecified: ["warn", "The answer ended early."],
};

/** The notice about the end of a turn, or null if it ended normally. */
export function noticeOfFinish(reason) {
  // A server may send any word, also one that every object has.
  if (!Object.hasOwn(FINISHES, reason)) return null;
  const [level, text] = FINISHES[reason];
  return { kind: "notice", level, text };
}

function shortened({ before, after, how }) {
  const parts = [];
  if (how.results_cleared) parts.push(`${count(how.results_cleared, "old result")} cleared`);
  if (how.messages_summarized) parts.push(`${count(how.messages_summarized, "message")} summarized`);
  if (how.messages_dropped) parts.push(`${count(how.messages_dropped, "message")} dropped`);
  const what = parts.length ? `: ${parts.join(", ")}` : "";
  return `Context shortened from ${before.toLocaleString("en-US")} to ${count(after, "token")}${what}.`;
}

function problem(data) {
  switch (data.type) {
    case "server":
      return `The server reported an error: ${data.data.message}`;
    case "unclean_end":
      return "The server ended the answer without marking it as complete.";
    case "unreadable":
      return "Part of the answer could not be read.";
    default:
      return "Part of the answer was malformed.";
  }
}

/** The notice about an event that is neither text nor a call, or null if users need not see it. */
export function noticeOf({ type, data }) {
  const notice = (level, text) => ({ kind: "notice", level, text });
  switch (type) {
    case "answer_retry":
      return notice("warn", `The answer was refused, and the model is trying again: ${data}`);
    case "cache_miss":
      return notice("info", `The server reprocessed ${count(data.cached_before - data.cached_now, "token")} that had been in its cache.`);
    case "context_shortened":
      return notice("info", shortened(data));
    case "format_refused":
      return notice("info", `The server does not support the response format: ${data}`);
    case "problem":
      return notice("warn", problem(data));
    case "prompt_cut":
      return notice("warn", `The server seems to have truncated the prompt: about ${count(data.estimated, "token")} sent, ${data.reported.toLocaleString("en-US")} read.`);
    case "steer_blocked":
      return notice("warn", `Your message was not passed on: ${data}`);
    case "thinking_refused":
      return notice("info", `The amount of thinking cannot be set for this model: ${data}`);
    case "tools_refused":
      return notice("info", `The model does not support tools, so it writes its calls as text: ${data}`);
    default:
      return null;
  }
}
