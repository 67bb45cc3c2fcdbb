// What is rare: little room, no storage, bad tokens and addresses, more events than are kept, large numbers.

import assert from "node:assert/strict";
import { api, open, token, url } from "./driver.mjs";

const ADDRESS = `${url}?token=${encodeURIComponent(token)}`;

/** More events of an unfinished step than the server keeps: loading again does not bring them. */
async function flood(window) {
  const { page } = window;
  await window.send("[flood] please");
  await window.text("word599").waitFor();
  const id = decodeURIComponent(new URL(page.url()).hash.slice(1));
  let loads = 0;
  page.on("request", (one) => { loads += one.method() === "GET" && one.url().endsWith(`conversations/${id}`); });
  await page.reload();
  await window.text("word599").waitFor();
  await page.waitForTimeout(300);
  assert.ok(loads <= 2, `${loads} loads`);
  await window.running();
  const ends = () => [...document.querySelectorAll(".answer p")].filter((one) => one.textContent.endsWith("End")).length;
  await page.evaluate(`{
    window.most = 0;
    const count = ${ends};
    new MutationObserver(() => { window.most = Math.max(window.most, count()); }).observe(document.body, { subtree: true, childList: true, characterData: true });
  }`);
  await open();
  await window.text(/word599.*End$/).first().waitFor();
  await window.idle();
  assert.equal(await page.evaluate("window.most"), 1, "no text is shown twice, not even until all is loaded");
  // Now all of it is stored.
  await window.text("word0 ").first().waitFor();
  const { body } = await api("GET", `conversations/${id}`);
  const whole = body.messages.at(-1).content.filter((block) => block.type === "text").map((block) => block.text).join("");
  const shown = (await page.locator(".answer").allInnerTexts()).join("");
  assert.equal(shown.replace(/\s/g, ""), whole.replace(/\s/g, ""));
}

/** The dialog stays, and asks for the token once for all requests. */
async function tokens(window) {
  const { page } = window;
  const dialog = page.getByRole("dialog", { name: "Access token" });
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await dialog.waitFor();
  let requests = 0;
  page.on("request", () => { requests += 1; });
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.waitForTimeout(300);
  assert.ok(requests <= 3, `${requests} requests`);
  // No header can carry it.
  await page.keyboard.type("\u201cabc\u201d");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#token")?.value === "");
  await page.locator("#token").fill(`${token} `);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Ask Helper" }).waitFor();
  await window.ask("Hello");
  assert.equal(await dialog.count(), 0);
}

async function blocked(window) {
  const { page } = window;
  await page.addInitScript(() => {
    for (const area of ["localStorage", "sessionStorage"]) {
      Object.defineProperty(globalThis, area, { get() { throw new DOMException("blocked", "SecurityError"); } });
    }
  });
  await page.goto(`${ADDRESS}#100%`);
  await window.text("no longer exists").waitFor();
  await page.getByRole("button", { name: /^Colors/ }).click();
  await window.ask("Hello");
}

/** An address that leads nowhere leaves no entry in the history. */
async function gone(window) {
  const { page } = window;
  await window.ask("Hello");
  const before = page.url();
  await page.evaluate(() => { location.hash = "gone"; });
  await window.text("no longer exists").waitFor();
  await page.goBack();
  await window.text("You said: Hello").waitFor();
  assert.equal(page.url(), before);
}

/** What is allowed is what is shown, digit for digit. */
async function numbers(window) {
  const { page } = window;
  for (const change of [false, true]) {
    await window.newConversation();
    await window.send("[ban] them");
    const card = window.card("delete_file");
    await window.state(card, "approval");
    await window.idle();
    const input = card.getByRole("textbox", { name: "Input that will run" });
    const text = await input.inputValue();
    assert.match(text, /"user": 1234567890123456789,/);
    if (change) await input.fill(text.replace("spam", "ham"));
    await input.press("Control+Enter");
    await window.text("The result is").waitFor();
    await window.idle();
    const { body } = await api("GET", `conversations/${decodeURIComponent(new URL(page.url()).hash.slice(1))}`);
    // The same number would be rounded here too, so its text is compared.
    assert.match(body.messages.at(-1).content[0].text, change ? /1234567890123456789.*ham/ : /1234567890123456789.*spam/);
    await card.locator("summary").press("Enter");
    assert.match(await card.getByRole("region", { name: "Arguments of delete_file" }).innerText(), /1234567890123456789/);
  }
}

async function image(window) {
  const { body: { id } } = await api("POST", "conversations");
  await api("POST", `conversations/${id}/prompt`, { text: "[image] see", images: ["https://"] });
  await window.page.evaluate((to) => { location.hash = to; }, id);
  await window.text("This image cannot be shown").waitFor();
  await window.text("I see an image.").waitFor();
}

/** As on a phone on its side, and at 400 percent. */
async function low(window) {
  const { page } = window;
  const check = async (name) => {
    await window.checkLayout(name);
    const [send, scroll] = await page.evaluate(() => ["send", "scroll"].map((id) => document.getElementById(id).getBoundingClientRect().toJSON()));
    assert.ok(scroll.height >= 60, `${name}: ${scroll.height} px for the messages`);
    const height = await page.evaluate(() => innerHeight);
    assert.ok(send.top >= 0 && send.bottom <= height, `${name}: Send ends at ${send.bottom} of ${height} px`);
  };
  await page.setViewportSize({ width: 320, height: 256 });
  await window.send("[tools] please");
  await window.state(window.card("search"), "running");
  await check("low");
  await window.steer("Be brief.");
  await window.text("Will be read at the next step").waitFor();
  await window.box.fill("1\n2\n3\n4\n5\n6");
  await check("low-draft");
  await page.keyboard.press("Escape");
  await window.idle();
}

/** A hidden page without a run leaves its connection to others. */
async function hidden(window) {
  const { page } = window;
  const hide = (isHidden) => page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);
  await window.ask("Hello");
  const id = decodeURIComponent(new URL(page.url()).hash.slice(1));
  const isEvents = (one) => one.url().endsWith("/events");
  // Time passes for the page alone.
  await page.evaluate(() => {
    const now = performance.now.bind(performance);
    performance.now = () => now() + (globalThis.passed ?? 0);
  });
  await hide(true);
  const closed = page.waitForEvent("requestfailed", isEvents);
  await page.evaluate(() => { globalThis.passed = 60000; });
  await closed;
  let opened = 0;
  page.on("request", (one) => { opened += isEvents(one); });
  await api("POST", `conversations/${id}/prompt`, { text: "While away" });
  await page.waitForTimeout(700);
  assert.equal(opened, 0);
  await hide(false);
  await window.text("You said: While away").waitFor();
}

/** An input method that composes text uses Esc itself. */
async function composing(window) {
  const { page } = window;
  await window.send("[gate] please");
  await window.text("The first half").waitFor();
  await window.running();
  await page.evaluate(() => document.getElementById("prompt").dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", isComposing: true, bubbles: true })));
  await open();
  await window.text("and the second half.").waitFor();
}

const wide = { widths: [1600] };

export const scenarios = [
  ["more events than are kept", flood, wide],
  ["a token is asked for once", tokens, { widths: [1600], address: url, allowed: /401/ }],
  ["storage is blocked", blocked, { widths: [1600], allowed: /404/ }],
  ["an address of nothing", gone, { widths: [1600], allowed: /404/ }],
  ["large numbers", numbers, wide],
  ["an image of nowhere", image, wide],
  ["a low window", low, { widths: [360] }],
  ["a hidden page", hidden, wide],
  ["an input method", composing, wide],
];
