// Answers that arrive late: another conversation is open meanwhile, an event was faster, or the page is used before it is ready.

import assert from "node:assert/strict";
import { api, open } from "./driver.mjs";

const json = (status, body) => ({ status, contentType: "application/json", body: JSON.stringify(body) });
const idOf = (window) => decodeURIComponent(new URL(window.page.url()).hash.slice(1));
const goTo = (window, id) => window.page.evaluate((to) => { location.hash = to; }, encodeURIComponent(id));

async function until(check) {
  for (let tries = 0; !(await check()); tries += 1) {
    assert.ok(tries < 1000, `in vain: ${check}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const load = async (id) => (await api("GET", `conversations/${id}`)).body;
const ended = (id) => until(async () => !(await load(id)).running);
const words = (stored) => stored.messages.map((message) => message.content.map((block) => block.text ?? "").join("")).join("\n");

/** Holds requests back. `asked` is the first of them; `go` answers them, or without an answer lets them through. */
async function hold(window, method, path) {
  const held = {};
  const allowed = new Promise((resolve) => { held.go = resolve; });
  held.asked = new Promise((resolve) => { held.see = resolve; });
  await window.page.route((url) => url.pathname.endsWith(path), async (route) => {
    if (route.request().method() !== method) return route.fallback();
    held.see();
    const answer = await allowed;
    return answer ? route.fulfill(answer) : route.continue();
  });
  return held;
}

/** Makes a conversation, and returns its id. */
async function talk(window, text) {
  await window.newConversation();
  await window.ask(text);
  return idOf(window);
}

async function steered(window) {
  const other = await talk(window, "Other");
  const id = await talk(window, "Mine");
  await window.send("[gate] please");
  await window.text("The first half").waitFor();
  await window.running();
  const held = await hold(window, "POST", "/steer");
  await window.send("Delete all of it");
  await held.asked;
  await goTo(window, other);
  await window.text("You said: Other").waitFor();
  await open();
  await ended(id);
  held.go(json(409, { error: { message: "no run is in progress" } }));
  await until(async () => words(await load(id)).includes("You said: Delete all of it"));
  assert.doesNotMatch(words(await load(other)), /Delete all of it/);
  assert.equal(idOf(window), other);
  assert.equal(await window.text("Will be read").count(), 0);
}

async function created(window) {
  const { page } = window;
  const other = await talk(window, "Other");
  await window.newConversation();
  const held = await hold(window, "POST", "/api/conversations");
  await window.send("A first message");
  await held.asked;
  await goTo(window, other);
  await window.text("You said: Other").waitFor();
  await window.box.fill("for the other");
  held.go();
  const made = async () => (await api("GET", "conversations")).body.conversations.find((one) => one.title === "A first message");
  await until(async () => (await made())?.running === false);
  await page.waitForFunction(() => document.getElementById("conversations").textContent.includes("A first message"));
  assert.equal(idOf(window), other);
  assert.equal(await window.box.inputValue(), "for the other");
  assert.equal(await window.text("You said: A first message").count(), 0);
  await window.box.fill("");
  await window.newConversation();
  assert.equal(await window.box.inputValue(), "");
}

async function answered(window) {
  const ids = [];
  for (const name of ["one", "two"]) {
    await window.newConversation();
    await window.send(`[same] ${name}`);
    await window.state(window.card("delete_file"), "approval");
    await window.idle();
    ids.push(idOf(window));
  }
  const [other, id] = ids;
  const held = await hold(window, "POST", "/approve");
  await window.card("delete_file").getByRole("button", { name: "Allow", exact: true }).click();
  await held.asked;
  await goTo(window, other);
  await window.card("delete_file").getByText("[same] one").first().waitFor();
  const response = window.page.waitForResponse((one) => one.url().endsWith("/approve"));
  held.go();
  await response;
  await until(async () => words(await load(id)).includes("The result is"));
  await window.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  assert.equal(await window.card("delete_file").getAttribute("data-state"), "approval");
}

/** Another server has answered the call: no event tells so. */
async function refused(window) {
  const { page } = window;
  await window.send("[delete] it");
  const card = window.card("delete_file");
  await window.state(card, "approval");
  await window.idle();
  const held = await hold(window, "POST", "/approve");
  held.go(json(409, { error: { message: "changed by another server" } }));
  const again = page.waitForRequest((one) => one.method() === "GET" && new URL(one.url()).pathname.endsWith(`/conversations/${idOf(window)}`));
  await card.getByRole("button", { name: "Allow" }).click();
  await again;
  await page.locator(".question button:enabled", { hasText: "Allow" }).waitFor();
}

async function takenBack(window) {
  const { page } = window;
  const other = await talk(window, "Other");
  await window.newConversation();
  await window.send("[tools] please");
  await window.state(window.card("search"), "running");
  await window.steer("Be brief.");
  await window.text("Will be read at the next step").waitFor();
  await window.box.fill("And quick");
  await page.keyboard.press("Escape");
  await window.idle();
  const id = idOf(window);
  const held = await hold(window, "DELETE", "/steer");
  await page.getByRole("button", { name: "Take back" }).click();
  await held.asked;
  await goTo(window, other);
  await window.text("You said: Other").waitFor();
  const response = page.waitForResponse((one) => one.url().endsWith("/steer"));
  held.go();
  await response;
  await until(() => page.evaluate((key) => sessionStorage.getItem(key)?.includes("Be brief."), `oa-draft-${id}`));
  await goTo(window, id);
  await window.card("search").waitFor();
  assert.equal(await window.box.inputValue(), "Be brief.\n\nAnd quick");
}

/** The model has read the message before the answer to the request is here. */
async function readFirst(window) {
  const { page } = window;
  await window.send("[tools] please");
  await window.state(window.card("search"), "running");
  let answer;
  const isRead = new Promise((resolve) => { answer = resolve; });
  await page.route("**/steer", async (route) => {
    const response = await route.fetch();
    await isRead;
    await route.fulfill({ response });
  });
  await window.send("Be brief.");
  await until(async () => (await load(idOf(window))).steering.length === 1);
  await open();
  await window.text("You said: Be brief.").waitFor();
  await window.idle();
  const response = page.waitForResponse((one) => one.url().endsWith("/steer"));
  answer();
  await response;
  await window.sent();
  assert.equal(await window.text("Will be read").count(), 0);
}

/** A message is sent before the server describes the agent: its conversation is not opened again. */
async function early(window) {
  const { page } = window;
  const held = await hold(window, "GET", "/api/agent");
  await page.reload();
  await held.asked;
  await window.send("[delete] it");
  await window.state(window.card("delete_file"), "approval");
  await window.idle();
  const announced = () => page.locator("#announcer").textContent();
  assert.match(await announced(), /needs your approval/);
  let opened = 0;
  page.on("request", (one) => { opened += one.method() === "GET" && one.url().endsWith(`/conversations/${idOf(window)}`); });
  // The list is asked for together with the conversation.
  const listed = page.waitForResponse((one) => one.url().includes("/conversations?"));
  held.go();
  await page.waitForFunction(() => document.getElementById("agent-name").textContent === "Helper");
  await listed;
  assert.equal(opened, 0);
  assert.match(await announced(), /needs your approval/);
}

/** The page does not take the focus from a control that the user reached before it was ready. */
async function focused(window) {
  const { page } = window;
  await page.waitForFunction(() => document.activeElement.id === "prompt");
  const held = await hold(window, "GET", "/api/agent");
  await page.reload();
  await held.asked;
  await page.locator("#theme").focus();
  const listed = page.waitForResponse((one) => one.url().includes("/conversations?"));
  held.go();
  await listed;
  await page.locator(".welcome").waitFor();
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  assert.equal(await page.evaluate(() => document.activeElement.id), "theme");
}

/** Text that is typed and sent before its conversation is loaded belongs to that one. */
async function unloaded(window) {
  const { page } = window;
  const id = await talk(window, "Hello");
  const held = await hold(window, "GET", `/conversations/${id}`);
  await page.reload();
  await held.asked;
  await window.send("Hello again");
  await window.sent();
  await window.box.fill("typed early");
  held.go();
  await window.text("You said: Hello again").waitFor();
  assert.equal(await window.box.inputValue(), "typed early");
  assert.equal(idOf(window), id);
  await ended(id);
  assert.equal((await load(id)).messages.length, 4);
  await window.box.fill("");
}

const wide = { widths: [1600] };
const CONFLICT = { widths: [1600], allowed: /409/ };

export const scenarios = [
  ["a late answer to a steered message", steered, CONFLICT],
  ["a late new conversation", created, wide],
  ["a late approval", answered, wide],
  ["a refused approval", refused, CONFLICT],
  ["messages that are taken back late", takenBack, wide],
  ["a message that is read at once", readFirst, wide],
  ["a message before the agent is described", early, wide],
  ["a message before its conversation is loaded", unloaded, wide],
  ["the focus before the page is ready", focused, wide],
];
