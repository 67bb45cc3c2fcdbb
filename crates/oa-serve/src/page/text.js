// Text that grows by pieces. Versions are immutable and share one list, so an append costs only its piece.

export const EMPTY = Object.freeze({ list: Object.freeze([]), length: 0, size: 0 });

export function append(text, piece) {
  if (piece === "") return text;
  // A longer list has the pieces of another version after this one, which must not change.
  const isNewest = text.list.length === text.length && !Object.isFrozen(text.list);
  const list = isNewest ? text.list : text.list.slice(0, text.length);
  list.push(piece);
  return { list, length: text.length + 1, size: text.size + piece.length };
}

export const of = (string) => append(EMPTY, string);

/** The text from the piece with this number on, 0 being the first. */
export const read = (text, from = 0) => text.list.slice(from, text.length).join("");
