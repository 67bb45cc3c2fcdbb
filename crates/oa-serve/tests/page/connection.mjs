// Reloading, dropped connections, gaps, several viewers, tokens.

import assert from "node:assert/strict";
import { Window, api, cut, mend, open, url } from "./driver.mjs";

const BOTH = "The first half \u2060and the second half.";

async function reload(window) {
  const { page } = window;
  await window.send("[gate] please");
  await window.text("The first half").waitFor();
  await page.reload();
  await window.text("The first half").waitFor();
  await window.running();
  assert.equal(await page.getByRole("article", { name: "You" }).count(), 1);
  await open();
  await window.idle();
  assert.equal(await page.getByRole("article", { name: "Agent" }).innerText(), BOTH);
  await page.reload();
  await window.text("and the second half.").waitFor();
  assert.equal(await page.getByRole("article", { name: "Agent" }).innerText(), BOTH);
}

async function reloadInTool(window) {
  const { page } = window;
  await window.send("[tools] please");
  await window.state(window.card("search"), "running");
  await window.card("search").getByText("1 of 3").waitFor();
  await page.reload();
  await window.state(window.card("search"), "running");
  await window.card("search").getByText("1 of 3").waitFor();
  assert.equal(await page.getByRole("article", { name: /^Tool call/ }).count(), 2);
  await open();
  await window.text("The notes mention it twice").waitFor();
  await window.idle();
  assert.equal(await window.text("I search the notes").count(), 1);
}

async function dropped(window) {
  const { page } = window;
  await window.send("[gate] please");
  await window.text("The first half").waitFor();
  await page.evaluate(() => {
    const announcer = document.getElementById("announcer");
    globalThis.said = [];
    new MutationObserver(() => globalThis.said.push(announcer.textContent)).observe(announcer, { childList: true, characterData: true, subtree: true });
  });
  await cut();
  await window.text("Connection lost").waitFor();
  await window.check("connection-lost");
  await open();
  await mend();
  await window.text("and the second half.").waitFor();
  await window.idle();
  // On a busy machine, the connection may be lost twice.
  const said = (await page.evaluate(() => globalThis.said)).filter((one) => one.startsWith("Connect"));
  assert.deepEqual([said[0], said.at(-1)], ["Connection lost. Reconnecting.", "Connected again."]);
  assert.equal(await page.getByRole("article", { name: "Agent" }).innerText(), BOTH);
  assert.equal(await window.text("Connection lost").count(), 0);
}

/** The problem that is over is not shown any more. */
async function back(window) {
  const { page } = window;
  await window.ask("Hello");
  const address = new URL(page.url()).hash;
  await window.newConversation();
  await cut();
  await page.evaluate((to) => { location.hash = to; }, address);
  await page.getByRole("alert").getByText("The server cannot be reached.").waitFor();
  await mend();
  await window.text("You said: Hello").waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
}

/** While the page is away, more events come than the server keeps. */
async function gap(window) {
  const { page } = window;
  await window.send("[many] please");
  await window.text("Begin").waitFor();
  const id = decodeURIComponent(new URL(page.url()).hash.slice(1));
  await cut();
  await window.text("Connection lost").waitFor();
  await open();
  while ((await api("GET", `conversations/${id}`)).body.running) await page.waitForTimeout(20);
  await mend();
  await window.text("word599").waitFor();
  await window.idle();
  const stored = await api("GET", `conversations/${id}`);
  assert.equal(stored.body.running, false);
  const whole = stored.body.messages.at(-1).content.filter((block) => block.type === "text").map((block) => block.text).join("");
  const shown = (await page.locator(".answer").allInnerTexts()).join("");
  assert.equal(shown.replace(/\s/g, ""), whole.replace(/\s/g, ""));
}

async function viewers(window, browser) {
  const { page } = window;
  await window.send("[gate] please");
  await window.text("The first half").waitFor();
  const other = await Window.open(browser, window.width, { address: `${url}?token=${encodeURIComponent(process.env.PAGE_TOKEN)}${new URL(page.url()).hash}` });
  await other.text("The first half").waitFor();
  await open();
  for (const one of [window, other]) {
    await one.text("and the second half.").waitFor();
    await one.idle();
  }
  await other.send("[delete] it");
  await window.state(window.card("delete_file"), "approval");
  await other.state(other.card("delete_file"), "approval");
  await window.card("delete_file").getByRole("button", { name: "Allow" }).click();
  for (const one of [window, other]) {
    await one.text("The result is").waitFor();
    await one.idle();
    assert.equal(await one.page.getByRole("article", { name: "You" }).count(), 2);
    assert.equal(await one.card("delete_file").getAttribute("data-state"), "done");
  }
  other.checkErrors();
  await other.close();
}

async function tokens(window) {
  const { page } = window;
  const dialog = page.getByRole("dialog", { name: "Access token" });
  await dialog.waitFor();
  await window.check("token");
  await page.keyboard.type("wrong");
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  await page.waitForFunction(() => document.querySelector("#token")?.value === "");
  await page.keyboard.type(process.env.PAGE_TOKEN);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Ask Helper" }).waitFor();
  await window.ask("Hello");
  await page.reload();
  await window.text("You said: Hello").waitFor();
}

const NETWORK = /net::ERR_|Failed to load resource|ERR_/;

export const scenarios = [
  ["reload in mid-answer", reload],
  ["reload while a tool runs", reloadInTool],
  ["a dropped connection", dropped, { allowed: NETWORK }],
  ["a server that comes back", back, { allowed: NETWORK }],
  ["a gap in the events", gap, { allowed: NETWORK }],
  ["several viewers", viewers],
  ["the token is asked for", tokens, { address: url, allowed: /401/ }],
];
