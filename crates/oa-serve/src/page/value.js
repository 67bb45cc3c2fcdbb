// Readable JSON values: arguments and results of calls.

import { element } from "./element.js";

const SHOWN = 20000;

/** Invisible characters, some of which change the direction of the text around them. */
const HIDDEN = /[\p{Cf}\p{DI}\p{Zl}\p{Zp}\u007f-\u009f\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]/gu;
/** Those that change direction. The others are left in strings, where they join emoji and letters. */
const TURNING = /\p{Bidi_Control}/gu;

const escaped = (character) => [...Array(character.length).keys()].map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`).join("");

/** Text with its hidden characters as JSON escapes, which do not change the meaning of JSON. */
export const visible = (text) => text.replace(HIDDEN, escaped);

/** A string with direction changes escaped; anything else as indented JSON with all hidden characters escaped. */
export const written = (value) => (typeof value === "string" ? value.replace(TURNING, escaped) : visible(JSON.stringify(value, null, 2) ?? ""));

/** One short line of a call's input. */
export function summary(input) {
  if (input === undefined || input === null) return "";
  if (typeof input !== "object") return visible(String(input).slice(0, 160));
  const parts = Object.entries(input).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return `${name}: ${(text ?? "").slice(0, 80)}`;
  });
  return visible(parts.join(", ").replace(/\s+/g, " ").slice(0, 160));
}

/** The value in a scrolling box; a long one is shown in full only on request. */
export function valueBox(value, label) {
  const text = written(value);
  const box = element("pre", { class: "value", tabindex: "0", role: "region", "aria-label": label });
  if (text.length <= SHOWN) {
    box.textContent = text;
    return box;
  }
  box.textContent = `${text.slice(0, SHOWN)}…`;
  const more = element("button", {
    type: "button",
    class: "quiet",
    text: `Show all ${Math.ceil(text.length / 1000).toLocaleString("en-US")} kB`,
    on: {
      click: () => {
        box.textContent = text;
        more.remove();
        box.focus();
      },
    },
  });
  return element("div", {}, box, more);
}
