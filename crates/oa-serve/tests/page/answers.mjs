// Prompts and answers: Markdown, thinking, images, meters, themes, long texts.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { image, open } from "./driver.mjs";

async function welcome(window) {
  const { page } = window;
  await page.getByRole("heading", { name: "Ask Helper" }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "prompt");
  assert.ok(!page.url().includes("token"), "the token is not in the address");
  assert.match(await page.getByRole("list", { name: "Tools" }).innerText(), /search/);
  await window.check("welcome");
}

async function markdown(window) {
  const { page } = window;
  await window.ask("[markdown] please");
  const answer = page.getByRole("article", { name: "Agent" });
  await answer.getByRole("heading", { name: "A short tour", level: 3 }).waitFor();
  assert.equal(await answer.locator("strong").first().innerText(), "bold");
  assert.equal(await answer.locator("ol > li").count(), 3);
  assert.equal(await answer.locator("ol ul > li").count(), 2);
  assert.deepEqual(await answer.getByRole("checkbox").evaluateAll((boxes) => boxes.map((box) => box.checked)), [true, false]);
  assert.equal(await answer.getByRole("row").count(), 4);
  assert.equal(await answer.getByRole("link").getAttribute("rel"), "noopener noreferrer nofollow");
  assert.deepEqual(await answer.locator(".language").allInnerTexts(), ["rust", "python"]);
  assert.ok((await answer.locator(".token-word").count()) > 3);
  // Screen readers are told the answer once, when it is complete, and without its markup.
  assert.match(await page.locator("#announcer").textContent(), /Answer: A short tour Here is bold, italic, code.*Code block\. Code block\. That is all/);
  await answer.getByRole("button", { name: "Copy rust" }).click();
  await answer.getByText("Copied").waitFor();
  const code = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(code, /^\/\/\/ Returns the mean[\s\S]*\n}$/);
  await page.getByRole("button", { name: "Copy answer" }).click();
  await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith("## A short tour"));
  assert.match(await page.locator("#announcer").textContent(), /^Copied/);
  await page.locator("#scroll").evaluate((box) => { box.scrollTop = 0; });
  await page.getByRole("button", { name: "Go to the end" }).waitFor();
  await window.check("markdown-top");
  await page.getByRole("button", { name: "Go to the end" }).click();
  await window.check("markdown-end");
}

async function thinking(window) {
  const { page } = window;
  await window.send("[think] of a number");
  await window.text("Thinking", { exact: true }).first().waitFor();
  await window.text("Seven.").waitFor({ state: "detached" });
  await window.check("thinking");
  await open();
  await window.text("Seven.").waitFor();
  await window.idle();
  const thoughts = page.locator("details.thinking");
  assert.equal(await thoughts.evaluate((one) => one.open), false, "thinking is folded");
  assert.equal(await window.text("I take").count(), 0);
  await thoughts.locator("summary").focus();
  await page.keyboard.press("Enter");
  await window.text("I take seven.").waitFor();
  assert.equal(await thoughts.locator("em").innerText(), "seven");
  await window.check("thoughts");
}

async function meters(window) {
  const { page } = window;
  await window.send("[progress] please");
  const bar = page.getByRole("progressbar", { name: "Reading the prompt" });
  await page.waitForFunction(() => document.getElementById("prompt-progress").getAttribute("aria-valuenow") === "4096");
  assert.equal(await bar.getAttribute("aria-valuetext"), "4,096 of 9,000 tokens");
  await window.check("prompt-progress");
  await open();
  await window.text("I have read it all.").waitFor();
  await window.idle();
  assert.equal(await bar.count(), 0);
  await window.ask("[markdown] please");
  const meter = page.getByRole("meter", { name: "Context used" });
  assert.equal(await meter.getAttribute("aria-valuenow"), "730");
  assert.match(await page.locator("#context-text").innerText(), /730 of 8\.2k/);
}

async function speed(window) {
  const { page } = window;
  await window.send("[gate] please");
  await window.text("The first half").waitFor();
  // Time that passes between two pieces is what is measured here.
  await page.waitForTimeout(300);
  await open();
  await window.idle();
  assert.match(await page.locator("#speed").innerText(), /^[\d.]+ tokens\/s$/);
  assert.match(await page.locator(".end").innerText(), /tokens\/s/);
}

async function images(window) {
  const { page } = window;
  const data = Buffer.from((await image()).split(",")[1], "base64");
  const pick = (...files) => page.locator("#file").setInputFiles(files.map(([name, mimeType, buffer]) => ({ name, mimeType, buffer })));
  const list = page.getByRole("list", { name: "Attached files" });
  // Why a file is not taken.
  for (const [name, type, bytes, reason] of [
    ["note.txt", "text/plain", 1, "is not a PNG"],
    ["none.wav", "audio/wav", 0, "is empty."],
    ["long.wav", "audio/wav", 3 << 20, "is too large"],
    ["broken.png", "image/png", 700 << 10, "cannot be read: it is damaged, or another kind of file."],
  ]) {
    await pick([name, type, Buffer.alloc(bytes)]);
    await window.text(`${name} ${reason}`).waitFor();
  }
  for (const [change, reason] of [[unlinkSync, "it was moved or deleted."], [(path) => writeFileSync(path, "other"), "it may not be opened, or has changed."]]) {
    const folder = await pasteChanged(page, change);
    await window.text(`late.png cannot be read: ${reason}`).waitFor();
    rmSync(folder, { recursive: true });
  }
  assert.equal(await list.count(), 0);
  await pick(["hill.png", "image/png", data], ["rain.wav", "audio/wav", wav()]);
  await list.getByRole("img", { name: "hill.png" }).waitFor();
  await list.getByText("rain.wav").waitFor();
  await window.box.fill("[image] what is this?");
  await window.check("attachment");
  await window.box.press("Enter");
  await window.text("I see an image.").waitFor();
  await window.idle();
  assert.equal(await page.getByRole("list", { name: "Attached files" }).count(), 0);
  const recording = page.getByRole("article", { name: "You" }).getByLabel("Attached recording", { exact: true });
  const seconds = () => recording.evaluate(async (one) => {
    if (!one.duration) await new Promise((resolve) => one.addEventListener("loadedmetadata", resolve));
    return one.duration;
  });
  assert.equal(await seconds(), 0.5);
  const sent = page.getByRole("article", { name: "You" }).getByRole("button", { name: "Enlarge: Attached image" });
  await sent.click();
  const viewer = page.getByRole("dialog", { name: "Attached image" });
  await viewer.waitFor();
  await page.keyboard.press("Escape");
  await viewer.waitFor({ state: "detached" });
  await window.ask("[draw] a hill");
  const drawn = page.getByRole("list", { name: "Images of draw" }).getByRole("img");
  assert.ok(await drawn.evaluate(async (one) => (await one.decode(), one.naturalWidth === 320)));
  await window.check("images");
  await page.reload();
  await page.getByRole("list", { name: "Images of draw" }).getByRole("img").waitFor();
  await page.getByRole("button", { name: "Enlarge: Attached image" }).waitFor();
  // Stored, with its data.
  assert.equal(await seconds(), 0.5);
}

/** Half a second of silence: 16 bits, 8 kHz. */
function wav() {
  const header = Buffer.from("524946460000000057415645666d74201000000001000100401f0000803e00000200100064617461", "hex");
  const [bytes, all] = [8000, header.length + 4 + 8000 - 8].map((size) => Buffer.from(Uint32Array.of(size).buffer));
  all.copy(header, 4);
  return Buffer.concat([header, bytes, Buffer.alloc(8000)]);
}

/** Pastes a file that changes on the disk before the page reads it, and returns its folder. */
async function pasteChanged(page, change) {
  const folder = mkdtempSync(join(tmpdir(), "page-"));
  const path = join(folder, "late.png");
  writeFileSync(path, "a file");
  await page.evaluate(() => document.body.append(Object.assign(document.createElement("input"), { type: "file", id: "late", hidden: true })));
  await page.locator("#late").setInputFiles(path);
  change(path);
  await page.evaluate(() => {
    const late = document.getElementById("late");
    const transfer = new DataTransfer();
    transfer.items.add(late.files[0]);
    document.getElementById("prompt").dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true }));
    late.remove();
  });
  return folder;
}

/** A photo is made smaller, and images can be pasted. */
async function photos(window) {
  const { page } = window;
  const photo = await page.evaluate(async () => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 2000, height: 1000 });
    const context = canvas.getContext("2d");
    for (let row = 0; row < 1000; row += 2) {
      for (let column = 0; column < 2000; column += 8) {
        context.fillStyle = `hsl(${(row * 7919 + column * 104729) % 360} 60% ${(row * column) % 90}%)`;
        context.fillRect(column, row, 8, 2);
      }
    }
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    const bytes = new Uint8Array(await blob.arrayBuffer());
    // Trailing bytes make it as large as a photo; readers of PNG ignore them.
    const file = new File([bytes, new Uint8Array(1 << 20)], "photo.png", { type: "image/png" });
    const transfer = new DataTransfer();
    transfer.items.add(file);
    document.getElementById("prompt").dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true }));
    return file.size;
  });
  assert.ok(photo > 1 << 20);
  const attached = page.getByRole("list", { name: "Attached files" }).getByRole("img", { name: "photo.png" });
  await attached.waitFor();
  const shown = await attached.evaluate(async (one) => (await one.decode(), { width: one.naturalWidth, height: one.naturalHeight, url: one.src.slice(0, 16), size: one.src.length }));
  assert.deepEqual([shown.width, shown.height, shown.url], [1568, 784, "data:image/jpeg;"]);
  await window.ask("[image] what is this?");
  await page.getByRole("article", { name: "You" }).getByRole("img").waitFor();
}

/** Nothing is cut off or overlaps at widths in between. */
async function widths(window) {
  const { page } = window;
  await window.ask("[markdown] please");
  await window.send("[delete] the notes");
  await window.state(window.card("delete_file"), "approval");
  await window.idle();
  for (const width of [1600, 1280, 1024, 861, 859, 768, 600, 559, 480, 412, 360, 320]) {
    await page.setViewportSize({ width, height: 740 });
    // The list becomes a drawer, which is closed.
    await page.waitForFunction((isClosed) => (document.body.dataset.drawer === "closed") === isClosed, width < 860);
    await window.checkLayout(`everything at ${width}`);
    await page.locator("#scroll").evaluate((box) => { box.scrollTop = 0; });
    await window.checkLayout(`everything at ${width}, from the top`);
  }
}

async function failure(window) {
  const { page } = window;
  await window.send("[fail] please");
  await window.text("the model is not loaded").waitFor();
  await window.idle();
  await window.check("failure");
  await window.ask("Hello again");
  await window.text("You said: Hello again").waitFor();
}

async function themes(window) {
  const { page } = window;
  const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await background();
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await background();
  assert.notEqual(light, dark, "follows the system");
  const button = page.getByRole("button", { name: /^Colors/ });
  await button.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Colors: light" }).waitFor();
  assert.equal(await background(), light);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Colors: dark" }).waitFor();
  await page.emulateMedia({ colorScheme: "light" });
  assert.equal(await background(), dark);
  await page.reload();
  await page.getByRole("button", { name: "Colors: dark" }).waitFor();
  assert.equal(await background(), dark, "the choice is kept");
}

/** The work of rendering is counted, not timed. */
async function large(window) {
  const { page } = window;
  for (const [prompt, mostNodes] of [["[big]", 40000], ["[long]", 2000]]) {
    await window.newConversation();
    await page.evaluate(async () => {
      globalThis.work = (await import(new URL("prose.js", document.baseURI))).work;
      Object.assign(globalThis.work, { characters: 0, nodes: 0, pieces: 0, mostInPiece: 0 });
      globalThis.mutations = 0;
      new MutationObserver((records) => { globalThis.mutations += records.length; })
        .observe(document.getElementById("transcript"), { childList: true, characterData: true, subtree: true });
    });
    await window.ask(`${prompt} please`);
    const work = await page.evaluate(() => ({ ...globalThis.work, mutations: globalThis.mutations }));
    const shown = await page.locator(".prose").last().evaluate((prose) => prose.textContent.length);
    console.log(`   ${prompt}: ${shown} characters shown, in ${work.pieces} frames; ${work.characters} read, ${work.nodes} nodes, ${work.mutations} mutations`);
    assert.ok(shown > 80000);
    assert.ok(work.characters <= 6 * shown + work.pieces * 20000);
    assert.ok(work.nodes <= mostNodes, `${work.nodes} nodes`);
    assert.ok(work.mutations <= work.nodes * 3 + shown / 100, `${work.mutations} mutations`);
  }
}

/** Each piece of four characters is rendered by itself: what is read again for it does not grow with the answer. */
async function pieces(window) {
  const { page } = window;
  await window.ask("[big] please");
  await page.getByRole("button", { name: "Copy answer" }).click();
  await window.text("Copied").waitFor();
  const source = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(source.length >= 100000);
  const measure = (text) => page.evaluate(async (whole) => {
    const { Prose, work } = await import(new URL("prose.js", document.baseURI));
    Object.assign(work, { characters: 0, nodes: 0, pieces: 0, mostInPiece: 0 });
    const prose = new Prose();
    document.getElementById("transcript").replaceChildren(prose.element);
    let mutations = 0;
    const observer = new MutationObserver(() => {});
    observer.observe(prose.element, { childList: true, characterData: true, subtree: true });
    for (let at = 0; at < whole.length; at += 4) {
      prose.write(whole.slice(at, at + 4));
      mutations += observer.takeRecords().length;
    }
    prose.end();
    observer.disconnect();
    return { ...work, mutations, shown: prose.element.textContent.length };
  }, text);
  const plain = "Some words in *one* paragraph, with `code` and no end. ".repeat(700);
  for (const [name, text] of [["markdown", source], ["one paragraph", plain], ["one line of code", `\`\`\`\n${"x = 1; ".repeat(7000)}`]]) {
    const [half, whole] = [await measure(text.slice(0, text.length / 2)), await measure(text)];
    console.log(`   ${name}: ${text.length} characters in ${whole.pieces} pieces: ${whole.characters} read, at most ${whole.mostInPiece} again for one; ${whole.nodes} nodes, ${whole.mutations} mutations; half of it: ${half.characters} read, ${half.mutations} mutations`);
    assert.ok(whole.mostInPiece <= 9000, `${name}: ${whole.mostInPiece} characters for one piece`);
    // Twice the text is twice the work.
    for (const key of ["characters", "nodes", "mutations"]) assert.ok(whole[key] <= half[key] * 2.2 + 100, `${name}: ${key}`);
  }
}

async function motion(window) {
  const { page } = window;
  const running = () => page.evaluate(() => document.getAnimations().filter((one) => one.playState === "running").length);
  await window.send("[gate] please");
  await window.text("The first half").waitFor();
  assert.equal(await running(), 0, "nothing moves for those who want no motion");
  await page.emulateMedia({ reducedMotion: "no-preference" });
  await page.waitForFunction(() => document.getAnimations().length > 0);
  await open();
  await window.idle();
}

export const scenarios = [
  ["welcome", welcome],
  ["markdown and copying", markdown],
  ["thinking is folded", thinking],
  ["prompt progress and context", meters],
  ["tokens per second", speed],
  ["images in prompts and results", images],
  ["photos", photos],
  ["every width", widths, { widths: [1600] }],
  ["a failed run", failure],
  ["light and dark", themes],
  ["large answers", large],
  ["large answers in small pieces", pieces, { widths: [1600] }],
  ["reduced motion", motion],
];
