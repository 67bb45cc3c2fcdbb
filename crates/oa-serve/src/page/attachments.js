// Images and recordings attached to the next prompt. Large images are scaled down, so that a prompt fits into a request.

import { element, icon } from "./element.js";
import { isRecording } from "./picture.js";

const MOST = 6;
const MOST_BYTES = 3 << 20; // all files of a prompt, as data URLs, which are a third longer than the files
const TOO_LARGE = "is too large: the files of a prompt can have 2.3 MB in all.";
const LARGE = 600 << 10; // larger images are scaled down
const EDGE = 1568; // pixels; vision models use no more
/** Why a file cannot be read, for the names of errors. */
const REASONS = {
  NotFoundError: "cannot be read: it was moved or deleted.",
  NotReadableError: "cannot be read: it may not be opened, or has changed.",
  InvalidStateError: "cannot be read: it is damaged, or another kind of file.",
};
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const AUDIO = /^audio\/(?:x-|vnd\.)?(?:mp3|mpeg|wav|wave)$/;

export class Attachments {
  #files = []; // {name, url}
  #handlers;

  /** Handlers: `rejected(reason)` for a file, `changed()` when the files change, `emptied()` when the user removes the last. */
  constructor(list, handlers) {
    this.list = list;
    this.#handlers = handlers;
  }

  get files() {
    return this.#files;
  }

  set files(files) {
    this.#files = files;
    this.#show();
  }

  get urls() {
    return this.#files.map((file) => file.url);
  }

  clear() {
    this.files = [];
    this.#handlers.changed();
  }

  /** Reads files. After each read, which takes time, `isWanted` returns true if the file still belongs here. */
  async add(files, isWanted) {
    for (const file of files) {
      const problem = await this.#take(file, isWanted);
      if (!isWanted()) return;
      if (problem) this.#handlers.rejected(problem);
    }
    this.#show();
    this.#handlers.changed();
  }

  async #take(file, isWanted) {
    const name = file.name || "file";
    const isAudio = AUDIO.test(file.type);
    if (!isAudio && !IMAGES.includes(file.type)) return `${name} is not a PNG, JPEG, GIF or WebP image, or a WAV or MP3 recording.`;
    if (this.#files.length >= MOST) return `A prompt can have at most ${MOST} files.`;
    if (isAudio && file.size > MOST_BYTES) return `${name} ${TOO_LARGE}`;
    let url;
    try {
      url = await dataUrl(!isAudio && file.size > LARGE ? await shrink(file) : file);
    } catch (error) {
      return `${name} ${REASONS[error?.name] ?? "cannot be read."}`;
    }
    if (!isWanted()) return null;
    // Not before it is read: a file that was deleted has no size either.
    if (!file.size) return `${name} is empty.`;
    const total = this.#files.reduce((sum, one) => sum + one.url.length, url.length);
    if (total > MOST_BYTES) return `${name} ${TOO_LARGE}`;
    this.#files = [...this.#files, { name, url }];
    return null;
  }

  /** Keeps the focus of a removed file in the list. */
  #focusNear(index) {
    const buttons = this.list.querySelectorAll("button");
    if (buttons.length) buttons[Math.min(index, buttons.length - 1)].focus();
    else this.#handlers.emptied();
  }

  #show() {
    this.list.hidden = this.#files.length === 0;
    this.list.replaceChildren(...this.#files.map((file, index) => element(
      "li", {},
      isRecording(file.url) ? element("span", { class: "file", title: file.name, text: file.name }) : element("img", { src: file.url, alt: file.name }),
      element("button", {
        type: "button", class: "icon-button remove", "aria-label": `Remove ${file.name}`, title: `Remove ${file.name}`,
        on: {
          click: () => {
            this.files = this.#files.filter((_, place) => place !== index);
            this.#handlers.changed();
            this.#focusNear(index);
          },
        },
      }, icon("close")),
    )));
  }
}

function dataUrl(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

async function shrink(file) {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, EDGE / Math.max(bitmap.width, bitmap.height));
  const canvas = element("canvas", { width: Math.round(bitmap.width * scale), height: Math.round(bitmap.height * scale) });
  const context = canvas.getContext("2d");
  // JPEG has no transparency.
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.85));
  if (!blob) throw new Error("the image cannot be written");
  return blob;
}
