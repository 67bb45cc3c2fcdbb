// Reads the server's JSON. Numbers in the inputs and results of calls keep all of their digits: an id of 64 bits must
// not be shown, or sent back, as another one. Pure.

/** Members with data of calls. All others are the protocol's own, whose numbers are small. */
const DATA = new Set(["content", "input", "result"]);

/** Wraps integers that a number cannot hold, so that `JSON.stringify` writes them as they were. */
function exact(_, value, context) {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  return /^-?\d+$/.test(context?.source ?? "") ? JSON.rawJSON(context.source) : value;
}

export function parse(text) {
  const value = JSON.parse(text);
  // Browsers before 2025 have no `rawJSON` and round such numbers.
  if (!/\d{16}/.test(text) || !JSON.rawJSON) return value;
  return withData(value, JSON.parse(text, exact));
}

/** The value with the data of calls from the exact one. */
function withData(value, exactly) {
  if (typeof value !== "object" || value === null) return value;
  for (const name of Object.keys(value)) {
    value[name] = DATA.has(name) && !Array.isArray(value) ? exactly[name] : withData(value[name], exactly[name]);
  }
  return value;
}
