// The light or dark theme: that of the system, or the user's choice.

import { icon, setAttribute } from "./element.js";
import * as storage from "./storage.js";

const KEY = "oa-theme";
const CHOICES = ["system", "light", "dark"];
const ICONS = { system: "system", light: "sun", dark: "moon" };

function stored() {
  const choice = storage.read("localStorage", KEY);
  return CHOICES.includes(choice) ? choice : "system";
}

function apply(choice, button) {
  setAttribute(document.documentElement, "data-theme", choice === "system" ? null : choice);
  const label = `Colors: ${choice}`;
  setAttribute(button, "aria-label", label);
  setAttribute(button, "title", label);
  button.replaceChildren(icon(ICONS[choice]));
}

/** Makes the button cycle through the choices. */
export function attach(button) {
  let choice = stored();
  apply(choice, button);
  button.addEventListener("click", () => {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
    storage.write("localStorage", KEY, choice);
    apply(choice, button);
  });
}
