// The card of a tool call.

import { hasEnded, isWaiting } from "./call.js";
import { element, icon, setAttribute, setText } from "./element.js";
import { duration } from "./figure.js";
import { imageList } from "./picture.js";
import { approvalForm, resultForm } from "./question.js";
import { read } from "./text.js";
import { summary, valueBox } from "./value.js";

const STATES = {
  writing: ["Preparing", "spinner"],
  ready: ["Waiting to start", "spinner"],
  approval: ["Needs your approval", "question"],
  answer: ["Needs a result", "question"],
  running: ["Running", "spinner"],
  done: ["Done", "check"],
  failed: ["Failed", "warning"],
  denied: ["Denied", "close"],
  invalid: ["Invalid call", "warning"],
  stopped: ["Not finished", "stop"],
};
const OUTCOMES = {
  invalid_input: "Invalid input",
  panicked: "Crashed",
  timed_out: "Timed out",
  unknown_tool: "No such tool",
  not_run: "Not run",
  cancelled: "Canceled",
};

/** Cards of running calls, whose elapsed time is shown. */
const running = new Set();
let timer = null;

function follow(card, isRunning) {
  if (isRunning) running.add(card);
  else running.delete(card);
  if (running.size && timer === null) timer = setInterval(() => running.forEach((one) => one.tick()), 1000);
  if (!running.size && timer !== null) {
    clearInterval(timer);
    timer = null;
  }
}

export class Card {
  #call = null;
  #startedAt = null;
  #actions;
  #makeThread;
  #thread = null;
  #lines = 0;
  #written = 0;

  #symbol = element("span", { class: "card-icon" });
  #name = element("span", { class: "card-name" });
  #summary = element("span", { class: "card-summary" });
  #state = element("span", { class: "card-state" });
  #arguments = element("div", { class: "card-part" });
  #log = element("ol", { class: "log", tabindex: "0" });
  #logPart = element("div", { class: "card-part", hidden: true }, element("h3", { text: "Log" }), this.#log);
  #result = element("div", { class: "card-part" });
  #nested = element("div", { class: "nested", role: "group" });
  #status = element("p", { class: "card-status", hidden: true });
  #bar = element("div", { class: "bar", role: "progressbar", hidden: true }, element("span"));
  #images = element("div", { hidden: true });
  #form = element("div");
  #reason = element("p", { class: "card-reason", hidden: true });

  constructor(actions, makeThread) {
    this.#actions = actions;
    this.#makeThread = makeThread;
    this.details = element(
      "details",
      {},
      element("summary", {}, this.#symbol, this.#name, this.#summary, this.#state, icon("chevron")),
      element("div", { class: "card-body" }, this.#arguments, this.#logPart, this.#nested, this.#result),
    );
    this.element = element(
      "article", { class: "card" },
      this.details, this.#bar, this.#status, this.#reason, this.#form, this.#images,
    );
  }

  update(call, isLive) {
    const before = this.#call;
    this.#call = call;
    const hasChanged = before?.state !== call.state;
    if (hasChanged) this.#changeState(call, isLive);
    setText(this.#name, call.name);
    setText(this.#summary, summary(call.input));
    if (call.input !== before?.input || call.state === "writing" || call.state === "invalid") this.#showArguments(call);
    this.#showLog(call);
    this.#showProgress(call);
    this.#showReason(call);
    if (call.result !== before?.result) this.#showResult(call);
    if (call.images !== before?.images && call.images.length) {
      this.#images.replaceChildren(imageList(call.images.map((image) => image.url ?? image), `Images of ${call.name}`));
      this.#images.hidden = false;
    }
    if (call.thread && call.thread !== before?.thread) this.#showThread(call, isLive);
    this.tick();
  }

  /** The state in words, with the time. */
  tick() {
    const call = this.#call;
    let text = OUTCOMES[call.outcome] ?? STATES[call.state][0];
    if (call.state === "running" && call.progress?.total) text = `${call.progress.done.toLocaleString("en-US")} of ${call.progress.total.toLocaleString("en-US")}`;
    if (call.durationMs !== null) text = call.state === "done" ? duration(call.durationMs) : `${text}, ${duration(call.durationMs)}`;
    else if (this.#startedAt !== null && call.state === "running") {
      const elapsed = performance.now() - this.#startedAt;
      if (elapsed >= 1000) text = `${text}, ${duration(elapsed)}`;
    }
    setText(this.#state, text);
    this.#state.title = STATES[call.state][0];
  }

  #changeState(call, isLive) {
    const [label, symbol] = STATES[call.state];
    setAttribute(this.element, "data-state", call.state);
    setAttribute(this.element, "aria-label", `Tool call ${call.name}: ${label}`);
    this.#symbol.replaceChildren(symbol === "spinner" ? element("span", { class: "spinner", "aria-hidden": "true" }) : icon(symbol));
    if (call.state === "running" && isLive) this.#startedAt ??= performance.now();
    follow(this, call.state === "running" && isLive);
    const hadFocus = this.#form.contains(document.activeElement);
    if (call.state === "approval") this.#form.replaceChildren(approvalForm(call, this.#actions));
    else if (call.state === "answer") this.#form.replaceChildren(resultForm(call, this.#actions));
    else if (!isWaiting(call)) this.#form.replaceChildren();
    if (hadFocus && !isWaiting(call)) this.#actions.answered();
  }

  #showReason(call) {
    const reason = call.state === "denied" || call.state === "invalid" ? call.reason : null;
    this.#reason.hidden = !reason;
    setText(this.#reason, reason ?? "");
  }

  #showArguments(call) {
    if (call.input !== undefined) {
      this.#arguments.replaceChildren(element("h3", { text: "Arguments" }), valueBox(call.input, `Arguments of ${call.name}`));
      return;
    }
    let box = this.#arguments.querySelector("pre");
    if (!box && call.written.length) {
      box = element("pre", { class: "value", tabindex: "0", role: "region", "aria-label": `Arguments of ${call.name}` });
      this.#arguments.replaceChildren(element("h3", { text: "Arguments" }), box);
    }
    if (call.written.length > this.#written) box.append(read(call.written, this.#written));
    this.#written = call.written.length;
  }

  #showLog(call) {
    const total = call.lines.length + call.linesDropped;
    if (total === this.#lines) return;
    const fresh = call.lines.slice(Math.max(0, call.lines.length - (total - this.#lines)));
    this.#lines = total;
    const isAtEnd = this.#log.scrollHeight - this.#log.scrollTop - this.#log.clientHeight < 40;
    this.#log.append(...fresh.map(({ level, message }) =>
      element("li", { class: `log-${level}` }, element("span", { class: "log-level", text: level }), element("span", { text: message }))));
    while (this.#log.childElementCount > call.lines.length) this.#log.firstElementChild.remove();
    this.#logPart.hidden = false;
    setAttribute(this.#log, "aria-label", `Log of ${call.name}`);
    if (isAtEnd) this.#log.scrollTop = this.#log.scrollHeight;
  }

  #showProgress(call) {
    const { progress } = call;
    const isRunning = call.state === "running";
    this.#bar.hidden = !(isRunning && progress?.total);
    if (!this.#bar.hidden) {
      const done = Math.min(progress.done, progress.total);
      setAttribute(this.#bar, "aria-label", `Progress of ${call.name}`);
      setAttribute(this.#bar, "aria-valuemin", "0");
      setAttribute(this.#bar, "aria-valuemax", progress.total);
      setAttribute(this.#bar, "aria-valuenow", done);
      this.#bar.style.setProperty("--share", done / progress.total);
    }
    const last = call.lines.at(-1)?.message;
    const status = isRunning ? (call.status ?? progress?.message ?? last ?? null) : null;
    this.#status.hidden = !status;
    setText(this.#status, status ?? "");
  }

  #showResult(call) {
    const parts = [element("h3", { text: call.isError ? "Error" : "Result" }), valueBox(call.result, `Result of ${call.name}`)];
    const notes = [];
    if (call.truncated) notes.push("shortened for the model");
    if (call.cached) notes.push("from the cache");
    if (call.attempts > 1) notes.push(`${call.attempts} attempts`);
    if (notes.length) parts.push(element("p", { class: "hint", text: notes.join(", ") }));
    this.#result.replaceChildren(...parts);
  }

  #showThread(call, isLive) {
    if (!this.#thread) {
      this.#thread = this.#makeThread();
      setAttribute(this.#nested, "aria-label", `Agent ${call.agent}`);
      this.#nested.append(element("h3", { text: `Agent ${call.agent}` }), this.#thread.element);
      if (isLive && !hasEnded(call)) this.details.open = true;
    }
    this.#thread.update(call.thread, isLive);
  }
}
