// The line above the composer: the agent's activity, its speed, and the use of its context.

import { contextUsed } from "./conversation.js";
import { setAttribute, setText } from "./element.js";
import { duration, short, speed, whole } from "./figure.js";

const PHASES = { waiting: "Waiting for the model", reading: "Reading the prompt", thinking: "Thinking", writing: "Writing", calling: "Using tools" };

/** The number of characters shown of unread messages: more than there is room for. */
const SHOWN = 2000;

export class Meters {
  #find;

  constructor(root) {
    this.#find = (name) => root.querySelector(`#${name}`);
  }

  update(state, contextWindow, link) {
    const phase = state.run ? (PHASES[state.thread.phase] ?? "Working") : "";
    const activity = link === "lost" ? "Connection lost. Reconnecting…" : phase;
    setText(this.#find("activity-text"), activity);
    this.#find("activity").hidden = activity === "";
    setAttribute(this.#find("activity"), "data-link", link);
    this.#showProgress(state);
    const perSecond = state.speed && (state.run || state.usage) ? speed(state.speed) : "";
    setText(this.#find("speed"), perSecond);
    this.#showContext(contextUsed(state), contextWindow);
    const when = state.run ? "Will be read at the next step" : "Will be read with your next message";
    setText(this.#find("steering-text"), state.steering.length ? `${when}: ${state.steering.join(" · ").slice(0, SHOWN)}` : "");
    this.#find("steering").hidden = state.steering.length === 0;
    // While the agent works, the model may read the message at any moment.
    this.#find("take-back").hidden = state.run !== null || state.steering.length === 0;
  }

  #showProgress(state) {
    const bar = this.#find("prompt-progress");
    const progress = state.run ? state.thread.progress : null;
    bar.hidden = !progress?.total;
    if (bar.hidden) return;
    const { total, processed, cached, elapsed_ms: elapsed } = progress;
    const done = Math.min(processed, total);
    setAttribute(bar, "aria-valuemax", total);
    setAttribute(bar, "aria-valuenow", done);
    bar.style.setProperty("--share", done / total);
    const fresh = done - cached;
    const left = fresh > 0 && elapsed > 500 ? `, ${duration(((total - done) * elapsed) / fresh)} left` : "";
    setText(this.#find("activity-text"), `Reading the prompt: ${whole(done)} of ${whole(total)}${left}`);
    setAttribute(bar, "aria-valuetext", `${whole(done)} of ${whole(total)} tokens`);
  }

  #showContext(used, contextWindow) {
    const meter = this.#find("context");
    meter.hidden = used === null;
    if (used === null) return;
    const text = contextWindow ? `${short(used)} of ${short(contextWindow)} tokens` : `${short(used)} tokens`;
    setText(this.#find("context-text"), text);
    const ring = this.#find("context-ring");
    ring.hidden = !contextWindow;
    if (!contextWindow) return;
    const share = Math.min(1, used / contextWindow);
    setAttribute(ring, "aria-valuemax", contextWindow);
    setAttribute(ring, "aria-valuenow", Math.min(used, contextWindow));
    setAttribute(ring, "aria-valuetext", `${whole(used)} of ${whole(contextWindow)} tokens`);
    ring.style.setProperty("--share", share);
    setAttribute(meter, "data-level", share > 0.9 ? "full" : share > 0.75 ? "high" : "fine");
    meter.title = `Context: ${whole(used)} of ${whole(contextWindow)} tokens (${Math.round(share * 100)}%)`;
  }
}
