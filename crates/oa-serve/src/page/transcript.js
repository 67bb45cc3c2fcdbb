// The entries of a thread as elements. Only changed entries are touched.

import { Card } from "./card.js";
import { copy } from "./code.js";
import { element, icon, setText } from "./element.js";
import { duration, speed, whole } from "./figure.js";
import { imageList, picture, recordingList } from "./picture.js";
import { Prose } from "./prose.js";
import { read } from "./text.js";

class Prompt {
  constructor(entry) {
    const label = entry.isSteered ? "You, while the agent worked" : "You";
    this.element = element(
      "article", { class: "prompt", "aria-label": label },
      element("h2", { class: "visually-hidden", text: label }),
      entry.images.length ? imageList(entry.images, "Attached image") : null,
      entry.recordings.length ? recordingList(entry.recordings) : null,
      entry.text ? element("p", { dir: "auto", text: entry.text }) : null,
      entry.isSteered ? element("span", { class: "hint", text: "sent while the agent worked" }) : null,
    );
  }

  update() {}
}

class Words {
  #prose = new Prose();
  #read = 0;
  #isDone = false;

  constructor() {
    this.element = element("article", { class: "answer", "aria-label": "Agent" }, this.#prose.element);
  }

  update(entry) {
    if (entry.text.length > this.#read) {
      this.#prose.write(read(entry.text, this.#read));
      this.#read = entry.text.length;
    }
    if (entry.isDone && !this.#isDone) {
      this.#isDone = true;
      this.#prose.end();
    }
  }
}

/** Thinking is collapsed, and not rendered until the user expands it. */
class Thinking {
  #label = element("span");
  #words = null;
  #entry = null;

  constructor() {
    const summary = element("summary", {}, icon("chevron"), this.#label);
    this.element = element("details", { class: "thinking", on: { toggle: () => this.#show() } }, summary);
  }

  update(entry) {
    this.#entry = entry;
    const time = entry.isDone && entry.firstAt !== null ? entry.lastAt - entry.firstAt : 0;
    const done = time >= 1000 ? `Thought for ${duration(time)}` : "Thought";
    setText(this.#label, entry.isDone ? done : "Thinking");
    this.element.classList.toggle("is-live", !entry.isDone);
    this.#show();
  }

  #show() {
    if (!this.element.open && !this.#words) return;
    if (!this.#words) {
      this.#words = new Words();
      this.#words.element.className = "thoughts";
      this.#words.element.setAttribute("aria-label", "Thoughts");
      this.element.append(this.#words.element);
    }
    this.#words.update(this.#entry);
  }
}

class Notice {
  constructor(entry) {
    const symbol = entry.level === "info" ? null : icon("warning");
    this.element = element("p", { class: `notice notice-${entry.level}` }, symbol, element("span", { text: entry.text }));
  }

  update() {}
}

class Picture {
  constructor(entry) {
    this.element = element("div", { class: "answer" }, picture(entry.url, "Image from the agent"));
  }

  update() {}
}

/** The line after an answer. */
class End {
  constructor(entry, answerBefore) {
    const button = element(
      "button",
      { type: "button", class: "copy", on: { click: () => copy(button, answerBefore()) } },
      icon("copy"), element("span", { text: "Copy" }), element("span", { class: "visually-hidden", text: "answer" }),
    );
    const figures = [];
    if (entry.tokens) figures.push(`${whole(entry.tokens)} tokens`);
    if (entry.speed) figures.push(speed(entry.speed));
    this.element = element("div", { class: "end" }, button, element("span", { class: "hint", text: figures.join(" · ") }));
  }

  update() {}
}

export class Transcript {
  #views = new Map();
  #seen = null;
  #open = null;
  #entries = [];
  #actions;

  constructor(actions) {
    this.#actions = actions;
    this.element = element("div", { class: "thread" });
  }

  /** Shows a thread. `isLive` is false for a stored one. */
  update(thread, isLive) {
    if (thread.entries !== this.#seen) {
      if (this.#entries.some((entry, index) => entry.id !== thread.entries[index]?.id)) this.#remove(thread);
      for (let index = 0; index < thread.entries.length; index += 1) {
        if (thread.entries[index] !== this.#entries[index]) this.#show(thread.entries[index], isLive);
      }
      this.#entries = thread.entries;
      this.#seen = thread.entries;
    }
    if (thread.open && thread.open !== this.#open) this.#show(thread.open, isLive);
    this.#open = thread.open;
  }

  /** Removes the entries that are no longer in the thread. */
  #remove(thread) {
    const ids = new Set([...thread.entries, thread.open].map((entry) => entry?.id));
    for (const [id, view] of this.#views) {
      if (ids.has(id)) continue;
      view.element.remove();
      this.#views.delete(id);
    }
  }

  #show(entry, isLive) {
    try {
      this.#draw(entry, isLive);
    } catch (error) {
      // One entry that cannot be shown must not hide the others.
      console.error(error);
      const notice = new Notice({ level: "error", text: "This entry cannot be shown." });
      const before = this.#views.get(entry.id)?.element;
      if (before) before.replaceWith(notice.element);
      else this.element.append(notice.element);
      this.#views.set(entry.id, notice);
    }
  }

  #draw(entry, isLive) {
    let view = this.#views.get(entry.id);
    if (!view) {
      view = this.#make(entry);
      this.#views.set(entry.id, view);
      this.element.append(view.element);
    }
    view.update(entry, isLive);
  }

  #make(entry) {
    switch (entry.kind) {
      case "prompt":
        return new Prompt(entry);
      case "text":
        return new Words();
      case "thinking":
        return new Thinking();
      case "call":
        return new Card(this.#actions, () => new Transcript(this.#actions));
      case "image":
        return new Picture(entry);
      case "end":
        return new End(entry, () => answerBefore(this.#entries, entry.id));
      default:
        return new Notice(entry);
    }
  }
}

/** The text of the answer that ends with this entry. */
export function answerBefore(entries, endId) {
  const end = entries.findIndex((entry) => entry.id === endId);
  const upTo = end < 0 ? entries : entries.slice(0, end);
  const from = upTo.findLastIndex((entry) => entry.kind === "prompt" || entry.kind === "end") + 1;
  return upTo.slice(from).filter((entry) => entry.kind === "text").map((entry) => read(entry.text)).join("\n\n");
}
