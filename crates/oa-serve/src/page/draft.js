// What was written and not sent, for each conversation: text and images. A reload loses none of it.

const TEXT = "oa-draft-";
const IMAGES = "oa-images-";
/** Longer texts and larger sets of images are not kept over a reload: the browser's room is small. */
const LONGEST = 200000;
const LARGEST = 4 << 20;

/** Those of this page: whatever the browser has no room for is at least kept until a reload. */
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

/** Images are {name, url}, as the attachments have them. */
export function writeImages(id, images) {
  drafts.set(key(id), { ...read(id), images });
  const text = images.length ? JSON.stringify(images) : null;
  store(IMAGES + key(id), text !== null && text.length > LARGEST ? null : text);
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

function stored(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

function store(name, text) {
  try {
    if (text === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, text);
  } catch {
    // There is no room. What was kept before would be out of date.
    if (text !== null) store(name, null);
  }
}
