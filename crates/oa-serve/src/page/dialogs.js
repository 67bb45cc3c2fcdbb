// Questions and lists in the browser's dialogs, which keep the focus and close with Esc.

import { element } from "./element.js";

function show(label, ...children) {
  const dialog = element("dialog", { class: "dialog", "aria-label": label }, ...children);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Asks yes or no; resolves to true for yes. */
export function confirm(question, yes) {
  return new Promise((resolve) => {
    let answer = false;
    const end = (value) => {
      answer = value;
      dialog.close();
    };
    const cancel = element("button", { type: "button", class: "quiet", text: "Cancel", on: { click: () => end(false) } });
    const dialog = show(
      question,
      element("p", { text: question }),
      element("div", { class: "buttons" }, element("button", { type: "button", class: "danger", text: yes, on: { click: () => end(true) } }), cancel),
    );
    dialog.addEventListener("close", () => resolve(answer));
    cancel.focus();
  });
}

/** Asks for the token of the server; resolves to it. */
export function askToken(message) {
  return new Promise((resolve) => {
    const input = element("input", { id: "token", type: "password", required: true, autocomplete: "current-password" });
    const form = element(
      "form",
      {
        "aria-label": "Access token",
        on: {
          submit: (event) => {
            event.preventDefault();
            isAnswered = true;
            dialog.close();
            resolve(input.value);
          },
        },
      },
      element("label", { for: "token", text: message }),
      input,
      element("div", { class: "buttons" }, element("button", { type: "submit", class: "primary", text: "Connect" })),
    );
    let isAnswered = false;
    const dialog = show("Access token", form);
    // There is nothing to go back to.
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    // A browser lets nobody keep a dialog open that the user wants to close twice.
    dialog.addEventListener("close", () => {
      if (isAnswered) return;
      document.body.append(dialog);
      dialog.showModal();
    });
  });
}

const SHORTCUTS = [
  ["Enter", "Send, or steer while the agent works"],
  ["Shift+Enter", "New line"],
  ["Esc", "Stop the agent"],
  ["Ctrl+Enter", "Allow a call, or send its result"],
  ["Ctrl+.", "Go to the next call that waits for you"],
  ["Shift+Esc", "Go to the message box"],
  ["Ctrl+Shift+O", "New conversation"],
  ["Ctrl+Shift+S", "Show or hide the conversations"],
  ["Ctrl+/", "This list"],
];

export function showShortcuts() {
  const rows = SHORTCUTS.map(([keys, what]) => element(
    "div", {},
    element("dt", {}, ...keys.split("+").map((key) => element("kbd", { text: key }))),
    element("dd", { text: what }),
  ));
  const close = element("button", { type: "button", class: "quiet", text: "Close", on: { click: () => dialog.close() } });
  const dialog = show("Keyboard shortcuts", element("h2", { text: "Keyboard shortcuts" }), element("dl", { class: "shortcuts" }, ...rows), element("div", { class: "buttons" }, close));
  close.focus();
}
