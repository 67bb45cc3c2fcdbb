// What was typed and not sent, for each conversation: a reload loses none of it.

const PREFIX = "oa-draft-";
/** Longer ones are not kept: the browser's room is small. */
const LONGEST = 200000;

const key = (id) => `${PREFIX}${id ?? ""}`;

export function read(id) {
  try {
    return sessionStorage.getItem(key(id)) ?? "";
  } catch {
    return "";
  }
}

export function write(id, text) {
  try {
    if (text.trim() === "" || text.length > LONGEST) sessionStorage.removeItem(key(id));
    else sessionStorage.setItem(key(id), text);
  } catch {
    // Without room, a draft lives as long as the page.
  }
}
