// Several conversations, the keyboard alone, and names for screen readers.

import assert from "node:assert/strict";
import { api, open, url } from "./driver.mjs";

async function clear() {
  const { body } = await api("GET", "conversations?limit=100");
  for (const { id } of body.conversations) await api("DELETE", `conversations/${id}`);
}

async function conversations(window) {
  const { page } = window;
  await clear();
  await page.reload();
  await window.ask("The first one");
  await window.newConversation();
  await window.ask("The second one");
  await window.showList();
  const list = page.getByRole("navigation", { name: "Conversations" });
  // The list is read again when a run begins and when it ends.
  for (const title of [/The first one/, /The second one/]) await list.getByRole("link", { name: title }).waitFor();
  assert.equal(await list.getByRole("listitem").count(), 2);
  assert.equal(await list.getByRole("link", { name: /The second one/ }).getAttribute("aria-current"), "page");
  await window.check("list");
  await list.getByRole("link", { name: /The first one/ }).click();
  await window.text("You said: The first one").waitFor();
  await window.showList();
  // Rename by keyboard.
  await list.getByRole("button", { name: "Rename The first one" }).press("Enter");
  const title = list.getByRole("textbox", { name: "Title" });
  await title.waitFor();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("Brooks and rills");
  await window.check("rename");
  await page.keyboard.press("Enter");
  await list.getByRole("link", { name: /Brooks and rills/ }).waitFor();
  assert.equal(await page.locator("#title").innerText(), "Brooks and rills");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Rename Brooks and rills");
  // Delete, first not, then really.
  await list.getByRole("button", { name: "Delete The second one" }).press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await window.check("delete");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  assert.equal(await list.getByRole("listitem").count(), 2, "cancel is the first choice");
  await list.getByRole("button", { name: "Delete The second one" }).press("Enter");
  await dialog.getByRole("button", { name: "Delete" }).click();
  await list.getByRole("link", { name: /The second one/ }).waitFor({ state: "detached" });
  // The one that is open, too.
  await list.getByRole("button", { name: "Delete Brooks and rills" }).press("Enter");
  await dialog.getByRole("button", { name: "Delete" }).click();
  await page.locator(".welcome").waitFor();
  assert.equal(await list.getByRole("listitem").count(), 0);
  assert.equal((await api("GET", "conversations")).body.conversations.length, 0);
}

async function working(window) {
  const { page } = window;
  await window.send("[gate] in the background");
  await window.text("The first half").waitFor();
  await window.newConversation();
  await window.showList();
  const row = page.getByRole("navigation").getByRole("listitem").filter({ hasText: "working" });
  await row.waitFor();
  await window.hideList();
  await window.ask("Something else");
  await window.showList();
  await row.getByRole("link").click();
  await window.text("The first half").waitFor();
  await window.running();
  await open();
  await window.idle();
  await window.text("and the second half.").waitFor();
}

/** The list that is read when a run begins arrives after the one that is read at its end. */
async function late(window) {
  const { page } = window;
  await clear();
  await page.reload();
  await page.getByRole("heading", { name: "Ask Helper" }).waitFor();
  let read, release, isHeld = false;
  const wasRead = new Promise((resolve) => (read = resolve));
  const released = new Promise((resolve) => (release = resolve));
  await page.route(/\/api\/conversations(\?.*)?$/, async (route) => {
    if (route.request().method() !== "GET" || isHeld) return route.continue();
    const response = await route.fetch();
    const { conversations } = await response.json();
    if (isHeld || !conversations.some((one) => one.running)) return route.fulfill({ response });
    isHeld = true;
    read();
    await released;
    return route.fulfill({ response, headers: { ...response.headers(), "x-late": "yes" } });
  });
  await window.send("[gate] please");
  await wasRead;
  await open();
  await window.idle();
  await window.showList();
  const row = page.getByRole("navigation", { name: "Conversations" }).getByRole("listitem");
  await row.getByText("now").waitFor();
  const arrived = page.waitForResponse((response) => response.headers()["x-late"] === "yes");
  release();
  await (await arrived).finished();
  // The page has read it once a request that it sends now is answered.
  await page.evaluate(() => fetch("icon.svg").then((response) => response.text()));
  assert.equal(await row.getByText("working").count(), 0);
  assert.equal(await row.count(), 1);
}

/** A conversation without a pointer, where each stop shows its focus. */
async function keyboard(window) {
  const { page } = window;
  const focused = () => page.evaluate(() => {
    const one = document.activeElement;
    const style = getComputedStyle(one.id === "prompt" ? one.closest("form") : one);
    const isVisible = style.outlineStyle !== "none" || style.boxShadow !== "none";
    const box = one.getBoundingClientRect();
    return { name: one.getAttribute("aria-label") || one.id || one.innerText.replace(/\s+/g, " "), tag: one.tagName, isVisible, isInView: box.bottom > 0 && box.top < innerHeight };
  });
  await page.getByRole("heading", { name: "Ask Helper" }).waitFor();
  await page.keyboard.type("[markdown] by keyboard");
  await page.keyboard.press("Enter");
  await page.locator(".end").waitFor();
  await window.idle();
  await page.keyboard.press("Control+/");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await window.check("shortcuts");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.evaluate(() => document.getElementById("skip").focus());
  const seen = ["skip"];
  for (let step = 0; step < 60; step += 1) {
    await page.keyboard.press("Tab");
    const stop = await focused();
    if (stop.tag === "BODY") break;
    assert.ok(stop.isVisible, `the focus on ${stop.tag} ${stop.name} is visible`);
    assert.ok(stop.isInView, `${stop.tag} ${stop.name} is in view`);
    seen.push(stop.name);
  }
  for (const name of ["skip", "Conversations", "Keyboard shortcuts", "Colors: system", "Messages", "Copy rust", "Copy answer", "prompt", "Attach images or audio"]) {
    assert.ok(seen.includes(name), `Tab reaches ${name}: ${seen.join(", ")}`);
  }
  await page.keyboard.press("Shift+Escape");
  assert.equal(await page.evaluate(() => document.activeElement.id), "prompt");
  await page.keyboard.type("one");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("two");
  assert.equal(await window.box.inputValue(), "one\ntwo");
  const drawer = () => page.evaluate(() => document.body.dataset.drawer);
  const before = await drawer();
  await page.keyboard.press("Control+Shift+S");
  assert.notEqual(await drawer(), before);
  await page.keyboard.press("Control+Shift+S");
  assert.equal(await drawer(), before);
  await page.keyboard.press("Control+Shift+O");
  await page.locator(".welcome").waitFor();
}

/** Where the focus goes when what has it is gone. */
async function focus(window) {
  const { page } = window;
  const focused = () => page.evaluate(() => {
    const one = document.activeElement;
    return one.getAttribute("aria-label") ?? one.id;
  });
  await clear();
  await page.reload();
  await window.ask("The only one");
  await window.newConversation();
  await window.showList();
  const list = page.getByRole("navigation", { name: "Conversations" });
  await list.getByRole("link", { name: /The only one/ }).press("Enter");
  await window.text("You said: The only one").waitFor();
  if (window.isNarrow) assert.equal(await focused(), "Conversations");
  await window.showList();
  await list.getByRole("button", { name: "Delete The only one" }).press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).press("Enter");
  await page.locator(".welcome").waitFor();
  assert.equal(await focused(), "new");
}

/** The page as screen readers have it. */
async function names(window) {
  const { page } = window;
  await open();
  await window.ask("[tools] please");
  const main = await page.getByRole("main").ariaSnapshot();
  for (const line of [
    "- button \"Conversations\"",
    "- heading \"[tools] please\" [level=1]",
    "- button \"Keyboard shortcuts\"",
    "- 'button \"Colors: system\"'",
    "- region \"Messages\"",
    "- article \"You\"",
    "- article \"Agent\"",
    "- paragraph: I search the notes and fetch the page.",
    "- 'article \"Tool call search: Done\"'",
    "- 'article \"Tool call fetch: Failed\"'",
    "- button \"Copy answer\"",
    "- meter \"Context used\"",
    "- form \"Message\"",
    "- textbox \"Message\"",
    "- button \"Attach images or audio\"",
    "- button \"Send\" [disabled]",
  ]) {
    assert.ok(main.includes(line), `${line} is in:\n${main}`);
  }
  // Telling each piece of an answer would be too much: the only live regions are the announcer and errors.
  const live = await page.locator("[aria-live], [role=status], [role=log], [role=alert]").evaluateAll((all) => all.filter((one) => !one.hidden).map((one) => one.id));
  assert.deepEqual(live, ["announcer"]);
}

async function older(window) {
  const { page } = window;
  for (let index = 0; index < 55; index += 1) await api("POST", "conversations");
  await page.reload();
  await window.showList();
  const list = page.getByRole("navigation", { name: "Conversations" });
  const more = list.getByRole("button", { name: "Show older" });
  await more.waitFor();
  assert.equal(await list.getByRole("listitem").count(), 50);
  await more.press("Enter");
  await more.waitFor({ state: "hidden" });
  assert.ok((await list.getByRole("listitem").count()) >= 55);
  await clear();
}

async function unknown(window) {
  const { page } = window;
  await window.text("This conversation no longer exists.").waitFor();
  await window.ask("Hello");
}

export const scenarios = [
  ["several conversations", conversations],
  ["another conversation works meanwhile", working],
  ["a late list", late],
  ["the keyboard alone", keyboard],
  ["the focus stays on the page", focus],
  ["names for screen readers", names],
  ["older conversations", older],
  ["a conversation that is gone", unknown, { address: `${url}?token=${encodeURIComponent(process.env.PAGE_TOKEN)}#nothing`, allowed: /404/ }],
];
