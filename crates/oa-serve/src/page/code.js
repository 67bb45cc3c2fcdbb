// A growing block of code. Lines are colored when complete, and grouped so that the browser lays out only the last
// group again.

import { element, icon, setText } from "./element.js";
import { highlight } from "./syntax.js";

const GROUP_LINES = 64;
const GROUP_CHARACTERS = 4096;

export class CodeBlock {
  #language;
  #code = element("code");
  #group = null;
  #groupLines = 0;
  #partial = null; // the text node of the growing line
  #state = null;

  constructor(language) {
    this.#language = language;
    const button = element(
      "button",
      { type: "button", class: "copy", on: { click: () => copy(button, this.#code.textContent) } },
      icon("copy"),
      element("span", { text: "Copy" }),
      element("span", { class: "visually-hidden", text: language || "code" }),
    );
    const caption = element("figcaption", {}, element("span", { class: "language", text: language || "code" }), button);
    const pre = element("pre", { tabindex: "0", role: "region", "aria-label": language ? `Code, ${language}` : "Code" }, this.#code);
    this.element = element("figure", { class: "code" }, caption, pre);
  }

  append(text) {
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      this.#grow(text.slice(from, end));
      this.#endLine();
      from = end + 1;
    }
    this.#grow(text.slice(from));
  }

  close() {
    if (this.#partial) this.#color();
  }

  #grow(text) {
    if (text === "") return;
    if (!this.#group) {
      this.#group = element("span", { class: "lines" });
      this.#groupLines = 0;
      this.#code.append(this.#group);
    }
    // Appending copies the whole text node, so a long line is split into several.
    if (!this.#partial || this.#partial.length + text.length > GROUP_CHARACTERS) {
      this.#partial = document.createTextNode("");
      this.#group.append(this.#partial);
    }
    this.#partial.appendData(text);
  }

  #color() {
    const { tokens, state } = highlight(this.#partial.data, this.#language, this.#state);
    this.#state = state;
    const colored = tokens.map(([kind, text]) => (kind ? element("span", { class: `token-${kind}`, text }) : text));
    this.#partial.replaceWith(...colored);
    this.#partial = null;
  }

  #endLine() {
    if (this.#partial) this.#color();
    this.#grow("\n");
    this.#partial = null;
    this.#groupLines += 1;
    if (this.#groupLines >= GROUP_LINES) this.#group = null;
  }
}

/** Copies text and shows the outcome on the button for a moment. */
export async function copy(button, text) {
  const label = button.querySelector("span");
  const before = "Copy";
  try {
    await writeClipboard(text);
    setText(label, "Copied");
    button.dispatchEvent(new CustomEvent("announce", { bubbles: true, detail: "Copied" }));
  } catch {
    setText(label, "Not copied");
    button.dispatchEvent(new CustomEvent("announce", { bubbles: true, detail: "The browser did not allow copying" }));
  }
  clearTimeout(Number(button.dataset.timer));
  button.dataset.timer = setTimeout(() => setText(label, before), 1600);
}

async function writeClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Pages without TLS on another host have no clipboard API.
  const area = element("textarea", { class: "visually-hidden", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  const focused = document.activeElement;
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  if (!isCopied) throw new Error("not copied");
  return undefined;
}
