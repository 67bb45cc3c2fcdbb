// The composer, where the user writes prompts: it sends, steers and stops.

import { Attachments } from "./attachments.js";
import * as draft from "./draft.js";
import { setAttribute, setText } from "./element.js";

const TALLEST = 240;

export class Composer {
  #form;
  #input;
  #send;
  #stop;
  #hint;
  #file;
  #attach;
  #problem;
  #attachments;
  #actions;
  #isPassing = false; // of the problem shown
  #isRunning = false;
  #isWaiting = false;
  /** The message being sent: `{id}`, its conversation. */
  #sending = null;
  #id = null;

  /** Actions: `prompt(text, urls)`, `steer(text)`, `stop()`; each returns a promise. */
  constructor(root, actions) {
    // The error line is below the form.
    const find = (selector) => root.parentElement.querySelector(selector);
    this.#actions = actions;
    this.#form = root;
    this.#input = find("#prompt");
    this.#send = find("#send");
    this.#stop = find("#stop");
    this.#hint = find("#composer-hint");
    this.#file = find("#file");
    this.#attach = find("#attach");
    this.#problem = find("#composer-problem");
    this.#attachments = new Attachments(find("#attachments"), {
      rejected: (problem) => this.report(problem),
      changed: () => {
        draft.writeFiles(this.#id, this.#attachments.files);
        this.#showSend();
      },
      emptied: () => this.focus(),
    });
    this.#listen();
  }

  focus() {
    this.#input.focus();
  }

  /** Shows a problem; an empty one hides the last. One that `isPassing` is over once the server is reached again. */
  report(problem, { isPassing = false } = {}) {
    setText(this.#problem, problem);
    this.#problem.hidden = !problem;
    this.#isPassing = isPassing;
  }

  reconnected() {
    if (this.#isPassing) this.report("");
  }

  /** Updates the controls to show the effect of sending. */
  update({ isRunning, isWaiting }) {
    this.#isRunning = isRunning;
    this.#isWaiting = isWaiting;
    const label = isRunning ? "Steer" : "Send";
    setAttribute(this.#send, "aria-label", label);
    setAttribute(this.#send, "title", `${label} (Enter)`);
    const hadFocus = document.activeElement === this.#stop;
    this.#stop.hidden = !isRunning;
    if (hadFocus && !isRunning) this.focus();
    this.#attach.disabled = isRunning;
    setText(this.#hint, this.#hintText());
    this.#showSend();
  }

  /** Shows the draft of a conversation; null is the new one. */
  open(id) {
    this.#id = id;
    const { text, files } = draft.read(id);
    // What is shown already keeps its cursor and its focus.
    if (this.#input.value !== text) this.#input.value = text;
    if (this.#attachments.files !== files) this.#attachments.files = files;
    this.#fit();
    this.#showSend();
  }

  /** Sets the id of the new conversation, once it is created. */
  begin(id) {
    draft.remove(null);
    this.#id = id;
    if (this.#sending) this.#sending.id = id;
    draft.writeText(id, this.#input.value);
    draft.writeFiles(id, this.#attachments.files);
  }

  /** Puts a text before the current draft. */
  putBack(text) {
    this.#input.value = draft.joined(text, this.#input.value);
    draft.writeText(this.#id, this.#input.value);
    this.#fit();
    this.#showSend();
    this.focus();
  }

  #hintText() {
    if (this.#isRunning) return "Enter steers the agent · Esc stops it";
    if (this.#isWaiting) return "Calls above wait for you · a new prompt cancels them";
    return "Enter sends · Shift+Enter makes a new line · Ctrl+/ lists shortcuts";
  }

  #listen() {
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#input.addEventListener("input", () => {
      draft.writeText(this.#id, this.#input.value);
      this.#fit();
      this.#showSend();
    });
    this.#input.addEventListener("keydown", (event) => {
      // While an IME composes text, such as Japanese or Chinese, Enter ends the composition and must not send.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      this.#submit();
    });
    this.#input.addEventListener("paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (!files.length || this.#isRunning) return;
      event.preventDefault();
      this.#add(files);
    });
    this.#stop.addEventListener("click", () => this.#actions.stop());
    this.#attach.addEventListener("click", () => this.#file.click());
    this.#file.addEventListener("change", () => {
      this.#add([...this.#file.files]);
      this.#file.value = "";
      this.focus();
    });
    const box = this.#form.parentElement.parentElement;
    box.addEventListener("dragover", (event) => {
      if ([...event.dataTransfer.types].includes("Files")) event.preventDefault();
    });
    box.addEventListener("drop", (event) => {
      if (!event.dataTransfer.files.length) return;
      event.preventDefault();
      if (!this.#isRunning) this.#add([...event.dataTransfer.files]);
    });
  }

  async #add(files) {
    this.report("");
    const id = this.#id;
    await this.#attachments.add(files, () => id === this.#id);
  }

  async #submit() {
    const text = this.#input.value.trim();
    const files = this.#attachments.files;
    const isSteering = this.#isRunning;
    if (this.#sending || (!text && (!files.length || isSteering))) return;
    // An object, because `begin` sets the id of a conversation that this message creates.
    const sending = { id: this.#id };
    this.#sending = sending;
    this.report("");
    this.#showSend();
    try {
      if (isSteering) await this.#actions.steer(text);
      else await this.#actions.prompt(text, files.map((file) => file.url));
      this.#forget(sending.id, text, isSteering ? [] : files);
    } catch (error) {
      this.report(error.message);
    } finally {
      this.#sending = null;
      this.#showSend();
    }
  }

  /** Removes the sent text and files from the draft. Later changes and drafts of other conversations are kept. */
  #forget(id, text, files) {
    const rest = (list) => list.filter((file) => !files.includes(file));
    if (id !== this.#id) {
      const draftOf = draft.read(id);
      if (draftOf.text.trim() === text) draft.writeText(id, "");
      draft.writeFiles(id, rest(draftOf.files));
      return;
    }
    if (this.#input.value.trim() === text) this.#input.value = "";
    draft.writeText(id, this.#input.value);
    this.#attachments.files = rest(this.#attachments.files);
    draft.writeFiles(id, this.#attachments.files);
    this.#fit();
  }

  #showSend() {
    const isEmpty = this.#input.value.trim() === "" && (this.#isRunning || !this.#attachments.urls.length);
    this.#send.disabled = isEmpty || this.#sending !== null;
  }

  #fit() {
    this.#input.style.height = "auto";
    this.#input.style.height = `${Math.min(this.#input.scrollHeight, TALLEST)}px`;
  }
}
