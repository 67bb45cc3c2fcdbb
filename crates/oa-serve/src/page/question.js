// The forms of a call that waits for the user: allow or deny it, or enter its result.

import { element } from "./element.js";
import { valueBox, written } from "./value.js";

let forms = 0;

/** Sends the form. A failure is shown in it, and the user can retry. */
async function send(form, error, action) {
  const controls = [...form.elements];
  for (const control of controls) control.disabled = true;
  error.textContent = "";
  try {
    await action();
  } catch (failed) {
    for (const control of controls) control.disabled = false;
    error.textContent = failed.message;
    controls[0]?.focus();
  }
}

/** Sends with Ctrl+Enter or Cmd+Enter from any field. */
const submitsByKey = (form) => ({
  keydown: (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form().requestSubmit();
    }
  },
});

function parseInput(text) {
  try {
    const input = JSON.parse(text);
    const isObject = typeof input === "object" && input !== null && !Array.isArray(input);
    return isObject ? {} : { error: "The input must be a JSON object." };
  } catch (error) {
    return { error: `Not valid JSON: ${error.message}` };
  }
}

const rowsFor = (text) => String(Math.min(14, Math.max(3, text.split("\n").length)));

/** A description as a sentence that others can follow. */
const sentence = (text) => (text ? `${text.trim().replace(/[.\s]+$/, "")}. ` : "");

export function approvalForm(call, actions) {
  forms += 1;
  const [inputId, reasonId, errorId] = [`input-${forms}`, `reason-${forms}`, `error-${forms}`];
  const text = written(call.input);
  const error = element("p", { id: errorId, class: "form-error", role: "alert" });
  const input = element("textarea", {
    id: inputId, class: "code-field", rows: rowsFor(text), spellcheck: "false", autocomplete: "off", "aria-describedby": errorId,
    "data-question": true,
    on: {
      input: () => {
        const parsed = parseInput(input.value);
        error.textContent = parsed.error ?? "";
        input.setAttribute("aria-invalid", String(Boolean(parsed.error)));
        allow.disabled = Boolean(parsed.error);
        allow.textContent = input.value === text ? "Allow" : "Allow with changes";
      },
    },
  });
  input.value = text;
  const reason = element("input", { id: reasonId, type: "text", autocomplete: "off", placeholder: "Optional. The model reads it." });
  const allow = element("button", { type: "submit", class: "primary", text: "Allow", title: "Ctrl+Enter", "aria-keyshortcuts": "Control+Enter" });
  const deny = element("button", {
    type: "button", class: "danger", text: "Deny",
    on: { click: () => send(form, error, () => actions.deny(call.callId, reason.value.trim())) },
  });
  const form = element(
    "form",
    {
      class: "question", "aria-label": `Allow ${call.name}?`, novalidate: true,
      on: {
        ...submitsByKey(() => form),
        submit: (event) => {
          event.preventDefault();
          const parsed = parseInput(input.value);
          if (parsed.error) return;
          const isChanged = input.value !== text;
          // The text itself, because reading it could round its numbers.
          send(form, error, () => actions.approve(call.callId, isChanged ? input.value : undefined));
        },
      },
    },
    element("p", { class: "question-text", text: `Allow ${call.name} to run?` }),
    element("p", { class: "question-note", text: `${sentence(call.question)}Nothing runs until you decide.` }),
    element("label", { for: inputId, text: "Input that will run" }),
    input,
    error,
    element("label", { for: reasonId, text: "Reason, if you deny" }),
    reason,
    element("div", { class: "buttons" }, allow, deny, element("span", { class: "hint", text: "Ctrl+Enter allows" })),
  );
  return form;
}

export function resultForm(call, actions) {
  forms += 1;
  const [resultId, failedId] = [`result-${forms}`, `failed-${forms}`];
  const error = element("p", { class: "form-error", role: "alert" });
  const content = element("textarea", { id: resultId, rows: "3", required: true, "data-question": true });
  const failed = element("input", { id: failedId, type: "checkbox" });
  const hasInput = call.input && Object.keys(call.input).length > 0;
  const form = element(
    "form",
    {
      class: "question", "aria-label": `Result of ${call.name}`, novalidate: true,
      on: {
        ...submitsByKey(() => form),
        submit: (event) => {
          event.preventDefault();
          if (content.value.trim() === "") {
            error.textContent = "Write a result first.";
            content.focus();
            return;
          }
          send(form, error, () => actions.result(call.callId, content.value, failed.checked));
        },
      },
    },
    element("p", { class: "question-text", text: `The agent waits for the result of ${call.name}.` }),
    call.question ? element("p", { class: "question-note", text: call.question }) : null,
    hasInput ? valueBox(call.input, "Arguments") : null,
    element("label", { for: resultId, text: "Result" }),
    content,
    error,
    element("label", { class: "check", for: failedId }, failed, element("span", { text: "This is an error" })),
    element(
      "div",
      { class: "buttons" },
      element("button", { type: "submit", class: "primary", text: "Send result", title: "Ctrl+Enter", "aria-keyshortcuts": "Control+Enter" }),
      element("span", { class: "hint", text: "Ctrl+Enter sends" }),
    ),
  );
  return form;
}
