// All elements are built here, and never from markup, so text stays text.

const SVG = "http://www.w3.org/2000/svg";

/** Makes an element. Attributes: `on` has listeners, `text` sets the text; true is an empty attribute, null is none. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [type, listener] of Object.entries(value)) made.addEventListener(type, listener);
    else if (name === "text") made.textContent = value;
    else setAttribute(made, name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function setAttribute(target, name, value) {
  if (value === null || value === undefined || value === false) target.removeAttribute(name);
  else if (target.getAttribute(name) !== String(value === true ? "" : value)) target.setAttribute(name, value === true ? "" : value);
}

/** Sets text only if it differs, so that it is not announced again and a selection is kept. */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** True for the second half of a surrogate pair, before which text must not be cut. */
export const isInCharacter = (text, at) => (text.charCodeAt(at) & 0xfc00) === 0xdc00;

const PATHS = {
  check: "M5 12.5l4.5 4.5L19 7.5",
  chevron: "M9 6l6 6-6 6",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  down: "M12 5v14M6 13l6 6 6-6",
  edit: "M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4",
  question: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18M9.7 9.3a2.4 2.4 0 1 1 3.5 2.2c-.8.4-1.2.9-1.2 1.7M12 16.6h.01",
  keyboard: "M3 6h18v12H3zM7 10h.01M11 10h.01M15 10h.01M8 14h8",
  menu: "M4 6h16M4 12h16M4 18h16",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
  plus: "M12 5v14M5 12h14",
  send: "M12 19V5M5.5 11.5L12 5l6.5 6.5",
  stop: "M7 7h10v10H7z",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  warning: "M12 4l9 16H3zM12 10v4M12 17h.01",
};

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true", focusable: "false" })) {
    svg.setAttribute(key, value);
  }
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/** A button with an icon, whose name is also its tooltip. */
export function iconButton(name, label, onClick, attributes = {}) {
  return element(
    "button",
    { type: "button", class: "icon-button", "aria-label": label, title: label, on: { click: onClick }, ...attributes },
    icon(name),
  );
}
