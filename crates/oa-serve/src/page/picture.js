// Images in prompts and results, and recordings in prompts.

import { element } from "./element.js";

const INLINE = /^(?:data:image\/(?:png|jpeg|gif|webp|bmp);base64,|blob:)/i;

/** True for the URL of a recording, of which it has the data. */
export const isRecording = (url) => /^data:audio\//i.test(url);

/** An image with its data in the URL is shown. Any other is a link: loading it would reveal the reader to its server. */
export function picture(url, alt) {
  if (INLINE.test(url)) {
    const image = element("img", { src: url, alt });
    const button = element("button", { type: "button", class: "picture", "aria-label": `Enlarge: ${alt}` }, image);
    button.addEventListener("click", () => enlarge(url, alt));
    return button;
  }
  if (/^https?:\/\//i.test(url) && URL.canParse(url)) {
    return element("a", { class: "picture-link", href: url, target: "_blank", rel: "noopener noreferrer nofollow", text: `Image at ${new URL(url).host}` });
  }
  return element("span", { class: "hint", text: "This image cannot be shown" });
}

export function imageList(urls, label) {
  const items = urls.map((url, index) => element("li", {}, picture(url, urls.length > 1 ? `${label}, ${index + 1} of ${urls.length}` : label)));
  return element("ul", { class: "pictures", "aria-label": label }, ...items);
}

export function recordingList(urls) {
  const items = urls.map((url, index) => {
    const label = urls.length > 1 ? `Attached recording, ${index + 1} of ${urls.length}` : "Attached recording";
    const shown = isRecording(url)
      ? element("audio", { controls: true, preload: "metadata", src: url, "aria-label": label })
      : element("span", { class: "hint", text: "This recording cannot be played" });
    return element("li", {}, shown);
  });
  return element("ul", { class: "pictures", "aria-label": "Attached recordings" }, ...items);
}

function enlarge(url, alt) {
  const close = element("button", { type: "button", class: "quiet", text: "Close", on: { click: () => dialog.close() } });
  const dialog = element("dialog", { class: "viewer", "aria-label": alt }, element("img", { src: url, alt }), close);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
}
