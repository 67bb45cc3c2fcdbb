// The events of one conversation. Reconnects after a lost connection and resumes after the last event.

import { eventsPath, failure, request } from "./api.js";
import { parse } from "./json.js";
import { EventParser } from "./sse.js";

const FIRST_DELAY = 500;
const LONGEST_DELAY = 5000;
/** The connection counts as lost after this time; the server sends comments more often. */
const SILENCE = 45000;
/** A page without a run that has been hidden for this time needs no events. Browsers open few connections to a host. */
const HIDDEN = 30000;

export class Feed {
  #id;
  #last;
  #handlers;
  #abort = null;
  #isClosed = false;
  #wake = null;
  #hiddenSince = performance.now();
  #retry = () => this.#wake?.();
  #look = () => {
    if (document.hidden) this.#hiddenSince = performance.now();
    else this.#wake?.();
  };

  /**
   * Handlers: `event({event, data, id, at})`, `state("connecting" | "open" | "lost")`, `refused(error)` for errors that
   * a retry cannot fix, and `isIdle()`, which is true while no run is in progress.
   */
  constructor(id, last, handlers) {
    this.#id = id;
    this.#last = last;
    this.#handlers = handlers;
    addEventListener("online", this.#retry);
    document.addEventListener("visibilitychange", this.#look);
    this.#run();
  }

  close() {
    this.#isClosed = true;
    removeEventListener("online", this.#retry);
    document.removeEventListener("visibilitychange", this.#look);
    this.#abort?.abort();
    this.#wake?.();
  }

  async #run() {
    let delay = FIRST_DELAY;
    this.#handlers.state("connecting");
    while (!this.#isClosed) {
      try {
        await this.#read(() => {
          delay = FIRST_DELAY;
          this.#handlers.state("open");
        });
      } catch (error) {
        if (this.#isClosed) return;
        // A lost or silent connection has no status.
        // 429 and 5xx are temporary; a wrong token and a deleted conversation are not.
        if (error.status >= 400 && error.status < 500 && error.status !== 408 && error.status !== 429) {
          this.close();
          this.#handlers.refused(error);
          return;
        }
      }
      if (this.#rests()) {
        while (this.#rests() && !this.#isClosed) await new Promise((resolve) => { this.#wake = resolve; });
        continue;
      }
      if (this.#isClosed) return;
      this.#handlers.state("lost");
      await this.#wait(delay);
      delay = Math.min(delay * 2, LONGEST_DELAY);
    }
  }

  #rests() {
    return document.hidden && performance.now() - this.#hiddenSince >= HIDDEN && this.#handlers.isIdle();
  }

  #wait(delay) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, delay);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #read(opened) {
    const abort = new AbortController();
    this.#abort = abort;
    let timer = setTimeout(() => abort.abort(), SILENCE);
    try {
      const headers = { accept: "text/event-stream" };
      if (this.#last) headers["last-event-id"] = this.#last;
      const response = await request(eventsPath(this.#id), { headers, signal: abort.signal });
      if (!response.ok) throw await failure(response);
      opened();
      const parser = new EventParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || this.#isClosed) return;
        clearTimeout(timer);
        timer = setTimeout(() => abort.abort(), SILENCE);
        for (const { event, data, id } of parser.push(value)) {
          // The event handler may have closed this feed.
          if (this.#isClosed) return;
          // Before the handler: an event that it cannot handle must not come again after each reconnect.
          if (id) this.#last = id;
          this.#handlers.event({ event, data: parse(data), id, at: performance.now() });
        }
        // The comments of an idle stream come here too.
        if (this.#rests()) return;
      }
    } finally {
      clearTimeout(timer);
      abort.abort();
    }
  }
}
