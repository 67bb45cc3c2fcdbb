// Images attached to the next prompt. Large ones are scaled down, so that a prompt fits into a request.

import { element, icon } from "./element.js";

const MOST = 6;
const MOST_BYTES = 3 << 20; // all images of a prompt, as data URLs
const LARGE = 600 << 10; // larger files are scaled down
const EDGE = 1568; // pixels; vision models use no more
/** Why a file cannot be read, for the names of errors. */
const REASONS = {
  NotFoundError: "cannot be read: it was moved or deleted.",
  NotReadableError: "cannot be read: it may not be opened, or has changed.",
  InvalidStateError: "cannot be read: it is damaged, or another kind of file.",
};
const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export class Attachments {
  #images = []; // {name, url}
  #handlers;

  /** Handlers: `rejected(reason)` for a file, `changed()` when the images change, `emptied()` when the user removes the last. */
  constructor(list, handlers) {
    this.list = list;
    this.#handlers = handlers;
  }

  get images() {
    return this.#images;
  }

  set images(images) {
    this.#images = images;
    this.#show();
  }

  get urls() {
    return this.#images.map((image) => image.url);
  }

  clear() {
    this.images = [];
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
    const name = file.name || "image";
    if (!TYPES.includes(file.type)) return `${name} is not a PNG, JPEG, GIF or WebP image.`;
    if (this.#images.length >= MOST) return `A prompt can have at most ${MOST} images.`;
    let url;
    try {
      url = await dataUrl(file.size > LARGE ? await shrink(file) : file);
    } catch (error) {
      return `${name} ${REASONS[error?.name] ?? "cannot be read."}`;
    }
    if (!isWanted()) return null;
    const total = this.#images.reduce((sum, image) => sum + image.url.length, url.length);
    if (total > MOST_BYTES) return `${name} is too large.`;
    this.#images = [...this.#images, { name, url }];
    return null;
  }

  /** Keeps the focus of a removed image in the list. */
  #focusNear(index) {
    const buttons = this.list.querySelectorAll("button");
    if (buttons.length) buttons[Math.min(index, buttons.length - 1)].focus();
    else this.#handlers.emptied();
  }

  #show() {
    this.list.hidden = this.#images.length === 0;
    this.list.replaceChildren(...this.#images.map((image, index) => element(
      "li", {},
      element("img", { src: image.url, alt: image.name }),
      element("button", {
        type: "button", class: "icon-button remove", "aria-label": `Remove ${image.name}`, title: `Remove ${image.name}`,
        on: {
          click: () => {
            this.images = this.#images.filter((_, place) => place !== index);
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
