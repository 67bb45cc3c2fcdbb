// Announcements for screen readers: a run began, a call waits for the user, and each answer once it is complete.

import { hasEnded, isWaiting } from "./call.js";
import { answerBefore } from "./transcript.js";

const LONGEST = 1200;

export class Announcer {
  #region;
  #waiting = new Set();
  #wasRunning = false;
  #ended = 0;

  constructor(region) {
    this.#region = region;
  }

  say(text) {
    // Screen readers announce a repeated sentence only if the region changes.
    this.#region.textContent = this.#region.textContent === text ? `${text}\u00a0` : text;
  }

  /** Starts over for an opened conversation, whose present content is not announced. */
  reset(state) {
    this.#wasRunning = state.run !== null;
    this.#ended = state.ended;
    this.#waiting = new Set(waitingIds(state));
  }

  update(state) {
    const isRunning = state.run !== null;
    const news = [];
    for (const call of state.thread.entries.filter((entry) => entry.kind === "call" && isWaiting(entry))) {
      if (this.#waiting.has(call.callId)) continue;
      news.push(call.state === "approval" ? `${call.name} needs your approval.` : `${call.name} needs a result from you.`);
    }
    this.#waiting = new Set(waitingIds(state));
    if (isRunning && !this.#wasRunning) news.push("The agent is working.");
    // A run may begin and end between two frames.
    if (!isRunning && this.#ended !== state.ended) news.push(...this.#answer(state));
    this.#ended = state.ended;
    this.#wasRunning = isRunning;
    if (news.length) this.say(news.join(" "));
  }

  #answer({ thread }) {
    const last = thread.entries.at(-1);
    if (!last) return [];
    const news = [];
    const text = answerBefore(thread.entries, last.kind === "end" ? last.id : -1).slice(0, LONGEST);
    const answer = thread.entries.slice(thread.entries.findLastIndex((entry) => entry.kind === "prompt") + 1);
    const failed = answer.slice(-20).filter((entry) => entry.kind === "call" && entry.state === "failed" && hasEnded(entry));
    if (failed.length) news.push(`${failed.length === 1 ? "One call" : `${failed.length} calls`} failed.`);
    if (text) news.push(`Answer: ${spoken(text)}`);
    const notice = answer.slice(-3).find((entry) => entry.kind === "notice");
    if (notice) news.push(notice.text);
    return news;
  }
}

/** Markdown as plain text to read aloud. */
const spoken = (text) => text.replace(/^(```|~~~)[^]*?(?:^\1|$(?![^]))/gm, "Code block.").replace(/[#*`>|~]+/g, "").replace(/\s+/g, " ").trim();

const waitingIds = (state) =>
  state.thread.entries.filter((entry) => entry.kind === "call" && isWaiting(entry)).map((call) => call.callId);
