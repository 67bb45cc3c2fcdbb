// The unsent text and files of each conversation. They survive a reload.

import * as storage from "./storage.js";

const TEXT = "oa-draft-";
const FILES = "oa-files-";
/** Longer texts and larger sets of files do not survive a reload, because browser storage is small. */
const LONGEST = 200000;
const LARGEST = 4 << 20;

/** The drafts in memory: drafts that browser storage has no room for are kept until a reload. */
const drafts = new Map();

const key = (id) => id ?? "";

export function read(id) {
  const known = drafts.get(key(id));
  if (known) return known;
  const draft = { text: stored(TEXT + key(id)) ?? "", files: filesIn(stored(FILES + key(id))) };
  drafts.set(key(id), draft);
  return draft;
}

export function writeText(id, text) {
  drafts.set(key(id), { ...read(id), text });
  store(TEXT + key(id), text.trim() === "" || text.length > LONGEST ? null : text);
}

/** Files are {name, url}, as in the attachments. */
export function writeFiles(id, files) {
  drafts.set(key(id), { ...read(id), files });
  const text = files.length ? JSON.stringify(files) : null;
  store(FILES + key(id), text !== null && text.length > LARGEST ? null : text);
}

/** Puts a text before the draft of a conversation that is not shown. */
export function putBack(id, text) {
  writeText(id, joined(text, read(id).text));
}

export const joined = (...texts) => texts.filter((text) => text.trim() !== "").join("\n\n");

/** Moves a draft into that of another conversation, before what is there. */
export function move(from, to) {
  const { text, files } = read(from);
  putBack(to, text);
  writeFiles(to, [...files, ...read(to).files]);
  remove(from);
}

export function remove(id) {
  writeText(id, "");
  writeFiles(id, []);
  drafts.delete(key(id));
}

function filesIn(text) {
  try {
    const files = JSON.parse(text ?? "[]");
    return Array.isArray(files) ? files.filter((one) => typeof one?.name === "string" && typeof one?.url === "string") : [];
  } catch {
    return [];
  }
}

const stored = (name) => storage.read("sessionStorage", name);

function store(name, text) {
  // If there is no room, remove the stored version, which is out of date.
  if (!storage.write("sessionStorage", name, text)) storage.write("sessionStorage", name, null);
}
