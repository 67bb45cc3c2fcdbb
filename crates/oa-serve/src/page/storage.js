// The browser's storage, which may be blocked or full.

/** Returns a stored text, or null. The area is `localStorage` or `sessionStorage`. */
export function read(area, name) {
  try {
    return globalThis[area].getItem(name);
  } catch {
    return null;
  }
}

/** Stores a text, or removes it for null. Returns false if that is not possible. */
export function write(area, name, text) {
  try {
    if (text === null) globalThis[area].removeItem(name);
    else globalThis[area].setItem(name, text);
    return true;
  } catch {
    return false;
  }
}
