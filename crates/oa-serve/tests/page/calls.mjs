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
  await window.send("Be brief.");
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
  ["tool progress, logs, results and steering", progress],
  ["nested agents", nested],
  ["approve with changes", approve],
  ["deny", deny],
  ["external results", external],
  ["stop", stop],
];
