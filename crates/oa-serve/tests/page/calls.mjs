// Tool calls: progress, logs, results, nested agents, approvals, external results, steering and stopping.

import assert from "node:assert/strict";
import { open } from "./driver.mjs";

async function progress(window) {
  const { page } = window;
  await window.send("[tools] please");
  const search = window.card("search");
  await window.state(search, "running");
  const bar = search.getByRole("progressbar", { name: "Progress of search" });
  await bar.waitFor();
  assert.equal(await bar.getAttribute("aria-valuenow"), "1");
  assert.equal(await bar.getAttribute("aria-valuemax"), "3");
  await search.getByText("1 of 3").waitFor();
  await search.getByText("Opening the index").waitFor();
  await search.locator("summary").focus();
  await page.keyboard.press("Enter");
  const log = search.getByRole("list", { name: "Log of search" });
  await log.getByText("notebook 2 is slow").waitFor();
  assert.match(await search.getByRole("region", { name: "Arguments of search" }).innerText(), /"query": "brook"/);
  await window.check("tool-running");
  // A message while it works is read at the next step.
  await window.steer("Be brief.");
  await window.text("Will be read at the next step: Be brief.").waitFor();
  await window.check("steering");
  await open();
  await window.text("You said: Be brief.").waitFor();
  await window.idle();
  await page.getByRole("article", { name: "You, while the agent worked" }).waitFor();
  assert.equal(await window.text("Will be read at").count(), 0);
  assert.equal(await search.getAttribute("data-state"), "done");
  assert.match(await search.getByRole("region", { name: "Result of search" }).innerText(), /ideas\.md/);
  assert.equal(await log.getByRole("listitem").count(), 3);
  const fetch = window.card("fetch");
  assert.equal(await fetch.getAttribute("data-state"), "failed");
  await fetch.locator("summary").click();
  assert.match(await fetch.getByRole("region", { name: "Result of fetch" }).innerText(), /does not answer/);
  await window.check("tool-done");
}

/** Ids of calls are unique within one answer only. */
async function sameIds(window) {
  const { page } = window;
  const cards = page.getByRole("article", { name: /^Tool call delete_file/ });
  for (const [index, name] of ["one", "two"].entries()) {
    await window.send(`[same] ${name}`);
    await cards.nth(index).waitFor();
    await window.state(cards.nth(index), "approval");
    await window.idle();
    await cards.nth(index).getByRole("button", { name: "Allow", exact: true }).click();
    await window.state(cards.nth(index), "done");
    await window.idle();
    await page.locator(".thread > .end").nth(index).waitFor();
  }
  const summaries = async () => Promise.all((await cards.all()).map(async (card) => [await card.getAttribute("data-state"), await card.locator("summary").textContent()]));
  const seen = await summaries();
  assert.deepEqual(seen.map(([state]) => state), ["done", "done"]);
  assert.match(seen[0][1], /one/);
  assert.match(seen[1][1], /two/);
  await page.reload();
  await cards.nth(1).waitFor();
  assert.equal(await cards.count(), 2);
  assert.match(await cards.nth(0).textContent(), /\[same\] one/);
  assert.match(await cards.nth(1).textContent(), /\[same\] two/);
}

/** Every feature without a pointer: Tab, Enter, Space, Escape and shortcuts. */
async function keys(window) {
  const { page } = window;
  await page.evaluate(() => {
    globalThis.pointers = 0;
    addEventListener("pointerdown", () => { globalThis.pointers += 1; }, true);
  });
  const type = async (text) => {
    await page.keyboard.press("Shift+Escape");
    await page.keyboard.type(text);
    await page.keyboard.press("Enter");
    await window.sent();
  };
  const done = async (words) => {
    await window.text(words).first().waitFor();
    await window.idle();
  };
  // Thinking, folded and unfolded.
  await type("[think] of a number");
  await open();
  await done("Seven.");
  await page.evaluate(() => document.getElementById("skip").focus());
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "prompt");
  await page.evaluate(() => document.getElementById("skip").focus());
  await window.tabTo(/^Thought/);
  await page.keyboard.press("Space");
  await window.text("I take seven.").waitFor();
  // Copying an answer and its code.
  await type("[markdown] please");
  await done("That is all");
  await page.evaluate(() => document.getElementById("skip").focus());
  await window.tabTo(/^Copy rust/);
  await page.keyboard.press("Enter");
  await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith("/// Returns"));
  await window.tabTo(/^Copy\s?answer/);
  await page.keyboard.press("Enter");
  await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith("## A short tour"));
  // A tool that works: its card, its log, a message for the agent, a stop.
  await type("[tools] please");
  await window.state(window.card("search"), "running");
  await page.evaluate(() => document.getElementById("skip").focus());
  await window.tabTo(/^search/);
  await page.keyboard.press("Enter");
  await window.card("search").getByText("notebook 2 is slow").first().waitFor();
  await window.tabTo(/^Log of search/);
  await type("Be brief.");
  await window.text("Will be read at the next step: Be brief.").waitFor();
  await window.tabTo(/^Stop/);
  await page.keyboard.press("Enter");
  await window.state(window.card("search"), "stopped");
  await window.idle();
  // Approve, deny, answer.
  await window.newConversation();
  await type("[delete] the notes");
  await window.state(window.card("delete_file"), "approval");
  await page.keyboard.press("Control+.");
  await window.tabTo(/^Allow/);
  await page.keyboard.press("Enter");
  await done("The result is");
  await window.newConversation();
  await type("[delete] the notes");
  await window.state(window.card("delete_file"), "approval");
  await page.keyboard.press("Control+.");
  await window.tabTo(/^Reason, if you deny/);
  await page.keyboard.type("I need it");
  await window.tabTo(/^Deny/);
  await page.keyboard.press("Enter");
  await window.state(window.card("delete_file"), "denied");
  await done("The result is");
  await type("[pick] please");
  await window.state(window.card("pick_color"), "answer");
  await page.keyboard.press("Control+.");
  await page.keyboard.type("ochre");
  await window.tabTo(/^This is an error/);
  await page.keyboard.press("Space");
  await page.keyboard.press("Space");
  await window.tabTo(/^Send result/);
  await page.keyboard.press("Enter");
  await done("The result is ochre");
  // Images and agents.
  await type("[draw] a hill");
  await window.state(window.card("draw"), "done");
  await window.idle();
  await page.evaluate(() => document.getElementById("skip").focus());
  await window.tabTo(/^Enlarge/);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await window.newConversation();
  await type("[nested] please");
  const lookup = page.getByRole("group", { name: "Agent researcher" }).getByRole("article", { name: /^Tool call lookup/ });
  await lookup.waitFor();
  await open();
  await done("It is a small stream.");
  await page.evaluate(() => document.getElementById("skip").focus());
  await window.tabTo(/^lookup/);
  await page.keyboard.press("Enter");
  await lookup.getByRole("region", { name: "Result of lookup" }).waitFor();
  // Another conversation: open it, rename it, delete it.
  if (window.isNarrow) await page.keyboard.press("Control+Shift+S");
  else await page.evaluate(() => document.getElementById("skip").focus());
  await window.tabTo(/^\[delete\] the notes/);
  await page.keyboard.press("Enter");
  await window.text("The result is ochre").waitFor();
  if (window.isNarrow) await page.keyboard.press("Control+Shift+S");
  else await page.evaluate(() => document.getElementById("skip").focus());
  await window.tabTo(/^Rename \[delete\] the notes/);
  await page.keyboard.press("Enter");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("By keyboard");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("title").textContent === "By keyboard");
  await window.tabTo(/^Delete By keyboard/);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await window.tabTo(/^Delete$/);
  await page.keyboard.press("Enter");
  await page.locator(".welcome").waitFor();
  assert.equal(await page.evaluate(() => globalThis.pointers), 0);
}

async function nested(window) {
  const { page } = window;
  await window.send("[nested] please");
  const agent = page.getByRole("group", { name: "Agent researcher" });
  await agent.getByText("I look the word up.").waitFor();
  const lookup = agent.getByRole("article", { name: /^Tool call lookup/ });
  await lookup.getByText("1 of 2").waitFor();
  await window.check("nested-running");
  await open();
  await window.text("It is a small stream.").waitFor();
  await window.idle();
  await agent.getByText("A brook is a small stream.").waitFor();
  assert.equal(await lookup.getAttribute("data-state"), "done");
  await window.check("nested-done");
  // It is kept with the conversation.
  await page.reload();
  const card = window.card("researcher");
  await window.state(card, "done");
  await card.locator("summary").first().press("Enter");
  await agent.getByText("I look the word up.").waitFor();
  await agent.getByText("A brook is a small stream.").waitFor();
  assert.equal(await lookup.getAttribute("data-state"), "done");
  await lookup.locator("summary").press("Enter");
  assert.match(await lookup.getByRole("region", { name: "Result of lookup" }).innerText(), /a small stream/);
  await window.check("nested-reloaded");
}

async function approve(window) {
  const { page } = window;
  await window.send("[delete] the notes");
  const card = window.card("delete_file");
  await window.state(card, "approval");
  await window.idle();
  assert.match(await page.locator("#announcer").textContent(), /delete_file needs your approval/);
  const input = card.getByRole("textbox", { name: "Input that will run" });
  assert.deepEqual(JSON.parse(await input.inputValue()), { path: "notes.txt" });
  await window.check("approval");
  // All by keyboard.
  await page.keyboard.press("Control+.");
  assert.ok(await input.evaluate((one) => one === document.activeElement));
  await page.keyboard.press("Control+A");
  await page.keyboard.type("{\"path\": ");
  assert.equal(await card.getByRole("button", { name: "Allow" }).isDisabled(), true);
  await card.getByRole("alert").getByText("Not valid JSON").waitFor();
  await page.keyboard.type("\"old.txt\"}");
  await card.getByRole("button", { name: "Allow with changes" }).waitFor();
  await page.keyboard.press("Control+Enter");
  await window.text("The result is").waitFor();
  await window.idle();
  assert.equal(await card.getAttribute("data-state"), "done");
  await card.locator("summary").press("Enter");
  assert.match(await card.getByRole("region", { name: "Arguments of delete_file" }).innerText(), /old\.txt/);
  assert.equal(await page.evaluate(() => document.activeElement === document.body), false, "the focus is not lost");
}

async function deny(window) {
  const { page } = window;
  await window.send("[delete] the notes");
  const card = window.card("delete_file");
  await window.state(card, "approval");
  await page.reload();
  await window.state(card, "approval");
  await card.getByRole("textbox", { name: "Reason, if you deny" }).fill("I need that file");
  await card.getByRole("button", { name: "Deny" }).press("Enter");
  await window.text("The result is").waitFor();
  await window.idle();
  assert.equal(await card.getAttribute("data-state"), "denied");
  await card.locator(".card-reason").getByText("I need that file").waitFor();
  await window.check("denied");
}

async function external(window) {
  const { page } = window;
  await window.send("[pick] please");
  const card = window.card("pick_color");
  await window.state(card, "answer");
  await window.idle();
  assert.match(await card.getByRole("region", { name: "Arguments", exact: true }).innerText(), /warm/);
  await window.check("external");
  await page.keyboard.press("Control+.");
  await page.keyboard.press("Control+Enter");
  await card.getByRole("alert").getByText("Write a result first.").waitFor();
  await page.keyboard.type("ochre");
  await page.keyboard.press("Control+Enter");
  await window.text("The result is ochre").waitFor();
  await window.idle();
  assert.equal(await card.getAttribute("data-state"), "done");
}

async function stop(window) {
  const { page } = window;
  await window.send("[gate] please");
  await window.text("The first half").waitFor();
  await window.running();
  await window.check("answering");
  await page.keyboard.press("Escape");
  await window.text("Stopped.").waitFor();
  await window.idle();
  await window.text("The first half").waitFor();
  // The same with the button, while a tool runs.
  await window.send("[tools] please");
  const search = window.card("search");
  await window.state(search, "running");
  await page.getByRole("button", { name: "Stop" }).click();
  await window.idle();
  await window.state(search, "stopped");
  await window.ask("Go on");
  await window.text("You said: Go on").waitFor();
  await window.check("stopped");
}

export const scenarios = [
  ["an id that is used again", sameIds],
  ["tool progress, logs, results and steering", progress],
  ["nested agents", nested],
  ["every feature by keyboard", keys],
  ["approve with changes", approve],
  ["deny", deny],
  ["external results", external],
  ["stop", stop],
];
