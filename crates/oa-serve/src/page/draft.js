// The unsent text and images of each conversation. They survive a reload.

import * as storage from "./storage.js";

const TEXT = "oa-draft-";
const IMAGES = "oa-images-";
/** Longer texts and larger sets of images do not survive a reload, because browser storage is small. */
const LONGEST = 200000;
const LARGEST = 4 << 20;

/** The drafts in memory: drafts that browser storage has no room for are kept until a reload. */
const drafts = new Map();

const key = (id) => id ?? "";

export function read(id) {
  const known = drafts.get(key(id));
  if (known) return known;
  const draft = { text: stored(TEXT + key(id)) ?? "", images: imagesIn(stored(IMAGES + key(id))) };
  drafts.set(key(id), draft);
  return draft;
}

export function writeText(id, text) {
  drafts.set(key(id), { ...read(id), text });
  store(TEXT + key(id), text.trim() === "" || text.length > LONGEST ? null : text);
}

/** Images are {name, url}, as in the attachments. */
export function writeImages(id, images) {
  drafts.set(key(id), { ...read(id), images });
  const text = images.length ? JSON.stringify(images) : null;
  store(IMAGES + key(id), text !== null && text.length > LARGEST ? null : text);
}

/** Puts a text before the draft of a conversation that is not shown. */
export function putBack(id, text) {
  writeText(id, joined(text, read(id).text));
}

export const joined = (...texts) => texts.filter((text) => text.trim() !== "").join("\n\n");

/** Moves a draft into that of another conversation, before what is there. */
export function move(from, to) {
  const { text, images } = read(from);
  putBack(to, text);
  writeImages(to, [...images, ...read(to).images]);
  remove(from);
}

export function remove(id) {
  writeText(id, "");
  writeImages(id, []);
  drafts.delete(key(id));
}

function imagesIn(text) {
  try {
    const images = JSON.parse(text ?? "[]");
    return Array.isArray(images) ? images.filter((one) => typeof one?.name === "string" && typeof one?.url === "string") : [];
  } catch {
    return [];
  }
}

const stored = (name) => storage.read("sessionStorage", name);

function store(name, text) {
  // If there is no room, remove the stored version, which is out of date.
  if (!storage.write("sessionStorage", name, text)) storage.write("sessionStorage", name, null);
}
