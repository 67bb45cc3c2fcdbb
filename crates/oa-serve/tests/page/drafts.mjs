// What was written and not sent, and what was sent and not read: nothing of it is lost.

import assert from "node:assert/strict";
import { api, image, open } from "./driver.mjs";

/** Neither what is typed nor what waits for the model is lost by a reload. */
async function unsent(window) {
  const { page } = window;
  await window.send("[tools] please");
  await window.state(window.card("search"), "running");
  await window.steer("Be brief.");
  await window.text("Will be read at the next step: Be brief.").waitFor();
  await window.box.fill("And kind");
  await page.reload();
  await window.text("Will be read at the next step: Be brief.").waitFor();
  assert.equal(await window.box.inputValue(), "And kind");
  // A stop leaves it for the next message, and so does a reload.
  await page.keyboard.press("Escape");
  await window.idle();
  await window.text("Will be read with your next message: Be brief.").waitFor();
  await page.reload();
  await window.text("Will be read with your next message: Be brief.").waitFor();
  assert.equal(await window.box.inputValue(), "And kind");
  await window.check("unsent");
  await window.box.press("Enter");
  await window.text("You said:").first().waitFor();
  await window.idle();
  assert.equal(await window.text("Will be read").count(), 0);
  assert.equal(await window.box.inputValue(), "");
  // A draft belongs to its conversation.
  await window.box.fill("for this one");
  await window.newConversation();
  assert.equal(await window.box.inputValue(), "");
  await window.box.fill("for a new one");
  await page.goBack();
  await page.getByRole("article", { name: "You" }).first().waitFor();
  assert.equal(await window.box.inputValue(), "for this one");
  await window.box.fill("");
  await window.newConversation();
  assert.equal(await window.box.inputValue(), "for a new one");
  await window.box.fill("");
}

/** Images stay with the conversation in which they were attached, also over a reload, until they are sent. */
async function attached(window) {
  const { page } = window;
  const data = Buffer.from((await image()).split(",")[1], "base64");
  const attach = (name) => page.locator("#file").setInputFiles([{ name, mimeType: "image/png", buffer: data }]);
  const list = page.getByRole("list", { name: "Attached files" });
  const names = () => list.getByRole("img").evaluateAll((all) => all.map((one) => one.alt));
  await attach("hill.png");
  await list.getByRole("img", { name: "hill.png" }).waitFor();
  await attach("brook.png");
  await list.getByRole("img", { name: "brook.png" }).waitFor();
  await window.box.fill("[image] with words");
  await page.reload();
  await list.getByRole("img", { name: "brook.png" }).waitFor();
  assert.deepEqual(await names(), ["hill.png", "brook.png"]);
  assert.equal(await window.box.inputValue(), "[image] with words");
  await list.getByRole("button", { name: "Remove hill.png" }).click();
  await list.getByRole("img", { name: "hill.png" }).waitFor({ state: "detached" });
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.id);
  assert.equal(await focused(), "Remove brook.png");
  await page.reload();
  await list.getByRole("img", { name: "brook.png" }).waitFor();
  assert.deepEqual(await names(), ["brook.png"]);
  await window.check("draft-images");
  // They are sent with their words, once.
  await window.box.press("Enter");
  await window.text("I see an image.").waitFor();
  await window.idle();
  assert.equal(await list.count(), 0);
  assert.equal(await page.getByRole("article", { name: "You" }).getByRole("img").count(), 1);
  // Others belong to the next conversation, and not to this one.
  await attach("rill.png");
  await list.getByRole("img", { name: "rill.png" }).waitFor();
  await window.newConversation();
  assert.equal(await list.count(), 0);
  await page.goBack();
  await list.getByRole("img", { name: "rill.png" }).waitFor();
  // A message to an agent that works for another viewer takes no image along, and loses none.
  const id = decodeURIComponent(new URL(page.url()).hash.slice(1));
  await api("POST", `conversations/${id}/prompt`, { text: "[gate] please" });
  await window.text("The first half").waitFor();
  await window.running();
  await window.steer("Be brief.");
  await window.text("Will be read at the next step: Be brief.").waitFor();
  assert.deepEqual(await names(), ["rill.png"]);
  await open();
  await window.text("You said: Be brief.").waitFor();
  await window.idle();
  assert.deepEqual(await names(), ["rill.png"]);
  await list.getByRole("button", { name: "Remove rill.png" }).press("Enter");
  await list.waitFor({ state: "hidden" });
  assert.equal(await focused(), "prompt");
}

/** A message that a stopped run has not read goes back into the box, before what is written there. */
async function takenBack(window) {
  const { page } = window;
  const button = page.getByRole("button", { name: "Take back" });
  await window.send("[tools] please");
  await window.state(window.card("search"), "running");
  await window.steer("Be brief.");
  await window.steer("Be kind.");
  await window.text("Will be read at the next step: Be brief. · Be kind.").waitFor();
  assert.equal(await button.count(), 0, "it may be read any moment");
  await window.box.fill("And quick");
  await page.keyboard.press("Escape");
  await window.idle();
  await button.press("Enter");
  await window.text("Will be read").waitFor({ state: "hidden" });
  assert.equal(await window.box.inputValue(), "Be brief.\n\nBe kind.\n\nAnd quick");
  assert.equal(await page.evaluate(() => document.activeElement.id), "prompt");
  // The next run does not read it, and neither does a page that is loaded now.
  const id = decodeURIComponent(new URL(page.url()).hash.slice(1));
  assert.deepEqual((await api("GET", `conversations/${id}`)).body.steering, []);
  await page.reload();
  await page.getByRole("article", { name: "You" }).first().waitFor();
  assert.equal(await window.box.inputValue(), "Be brief.\n\nBe kind.\n\nAnd quick");
  await window.ask("Hello");
  await window.text("You said: Hello").waitFor();
  assert.equal(await page.getByRole("article", { name: "You, while the agent worked" }).count(), 0);
  assert.equal((await api("DELETE", `conversations/${id}/steer`)).body.messages.length, 0);
}

export const scenarios = [
  ["what is typed and what waits", unsent],
  ["images in drafts", attached],
  ["a message is taken back", takenBack],
];
