// Events of conversations for the tests of the pure modules, each in all its prefixes.

const agent = (type, data) => ({ event: "agent", data: data === undefined ? { type } : { type, data } });
const text = (words) => agent("block", { type: "text", text: words });
const thinking = (words) => agent("block", { type: "thinking", thinking: words });
const tool = (type, call_id, tool_name, rest) => agent("tool", { type, call_id, tool_name, ...rest });
const nested = (call_id, name, { data }) => agent("nested", { call_id, agent: name, event: data });

const complete = (call_id, tool_name, outcome, result) =>
  tool("tool_call_complete", call_id, tool_name, {
    input: { q: 1 }, outcome, result, truncated: true, duration_us: 1500, attempts: 2, cached: false, dropped_events: 0,
  });
const begin = (run, words) => [{ event: "prompt", data: { text: words, images: ["data:image/png;base64,aGk="] } }, { event: "run", data: { run, state: "started" } }];

/** One stream with every type of event, over several runs. */
export const EVERYTHING = [
  ...begin(1, "Find it"),
  agent("prompt_progress", { total: 9000, cached: 512, processed: 2560, elapsed_ms: 193 }),
  agent("answer_start"),
  thinking("Let me "), thinking("think."),
  text("I will "), text("search."),
  agent("tool_use_delta", { call: 0, id: "c1", name: "search", arguments: "" }),
  agent("tool_use_delta", { call: 0, arguments: '{"q"' }),
  agent("tool_use_delta", { call: 1, id: "c2", name: "delete", arguments: "" }),
  agent("tool_use_delta", { call: 1, arguments: "{}" }),
  agent("tool_use_delta", { call: 0, arguments: ": 1}" }),
  agent("answer_end", { content: [], finish_reason: "tool_calls", usage: { prompt_tokens: 90, completion_tokens: 21 } }),
  agent("call_denied", { call_id: "c2", tool_name: "delete", input: {}, reason: "the rules say no" }),
  agent("block", { type: "tool_use", id: "c1", name: "search", input: { q: 1 } }),
  agent("block", { type: "tool_use", id: "c3", name: "research", input: { topic: "x" } }),
  agent("block", { type: "tool_use_error", id: "c4", name: "broken", error: "not JSON", raw_data: "{" }),
  tool("tool_call_start", "c1", "search", { input: { q: 1 } }),
  tool("tool_call_start", "c3", "research", { input: { topic: "x" } }),
  tool("tool_progress", "c1", "search", { done: 1, total: 3, message: "one" }),
  tool("tool_status", "c1", "search", { status: "looking" }),
  tool("tool_log", "c1", "search", { level: "warn", message: "slow" }),
  tool("tool_retry", "c1", "search", { attempt: 1, error: "reset", delay_us: 10 }),
  tool("tool_found", "c1", "search", { data: { hits: 2 } }),
  nested("c3", "research", agent("answer_start")),
  nested("c3", "research", text("I found ")),
  nested("c3", "research", agent("tool_use_delta", { call: 0, id: "n1", name: "read", arguments: "" })),
  nested("c3", "research", tool("tool_call_start", "n1", "read", { input: {} })),
  nested("c3", "research", nested("n1", "reader", text("deep"))),
  agent("steered", { role: "user", content: [{ type: "text", text: "Be brief." }] }),
  complete("c1", "search", "ok", { hits: [] }),
  complete("c3", "research", "failed", "no"),
  agent("block", { type: "tool_result", tool_use_id: "c1", content: { hits: [] }, images: [{ url: "data:image/png;base64,aGk=" }] }),
  agent("block", { type: "tool_result", tool_use_id: "c3", content: "no", is_error: true }),
  agent("tool", { type: "tool_metrics", calls: 2 }),
  agent("tool", { type: "tools_end", tool_messages: [], execution_results: [] }),
  agent("context_shortened", { before: 6700, after: 3900, how: { results_cleared: 4, messages_dropped: 1, messages_summarized: 12 } }),
  agent("prompt_cut", { estimated: 9000, reported: 4096 }),
  agent("cache_miss", { cached_before: 8000, cached_now: 40 }),
  agent("problem", { type: "server", data: { message: "overloaded", raw: {} } }),
  agent("problem", { type: "unclean_end", data: "broken" }),
  agent("problem", { type: "unreadable", data: { payload: "x", position: 3 } }),
  agent("problem", { type: "late_name", data: { call: 0, piece: "_now" } }),
  agent("format_refused", "no"), agent("thinking_refused", "no"), agent("tools_refused", "no"),
  agent("steer_blocked", "no"),
  agent("answer_start"),
  text("Here "), text("it is."),
  agent("answer_end", {
    content: [{ type: "text", text: "Here it is." }], finish_reason: "stop",
    usage: { prompt_tokens: 120, completion_tokens: 40, generation_time_us: 2_000_000 },
  }),
  agent("answer_retry", "cite a source"),
  agent("turn_end", "stop"),
  { event: "run", data: { run: 1, state: "ended", finish_reason: "stop", usage: { prompt_tokens: 120, completion_tokens: 40 } } },
  ...begin(2, "Again"),
  agent("answer_start"),
  agent("block", { type: "tool_use", id: "d1", name: "write", input: { path: "a" } }),
  agent("block", { type: "tool_use", id: "d2", name: "ask_user", input: { question: "?" } }),
  agent("turn_end", "approval_pending"),
  {
    event: "run",
    data: {
      run: 2, state: "ended", finish_reason: "approval_pending",
      waiting: [
        { call_id: "d1", name: "write", input: { path: "b" }, kind: "approval", prompt: "May I?" },
        { call_id: "d2", name: "ask_user", input: { question: "?" }, kind: "result" },
      ],
    },
  },
  { event: "answered", data: { call_id: "d1", answer: "approved" } },
  { event: "answered", data: { call_id: "d2", answer: "result" } },
  { event: "run", data: { run: 3, state: "started" } },
  tool("tool_call_start", "d1", "write", { input: { path: "b" } }),
  { event: "steer", data: { text: "stop it" } },
  agent("turn_end", "interrupted"),
  { event: "run", data: { run: 3, state: "failed", error: "the connection broke" } },
  { event: "gap", data: {} },
].map((input, index) => ({ ...input, at: 1000 + index * 100, id: input.event === "steer" || input.event === "gap" ? undefined : `7-${index}` }));
