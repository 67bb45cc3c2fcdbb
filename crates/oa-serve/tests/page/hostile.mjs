// Text that was written to do harm: markup, scripts, characters that turn text around, lines without an end.

import assert from "node:assert/strict";

const EVIL = "<img src=x onerror=\"document.title='hacked'\"> <script>document.title='hacked'</script>";

/** Markup is text wherever it comes from: an answer, a prompt, a title, a draft. */
async function markup(window) {
  const { page } = window;
  await window.ask("[evil] please");
  await window.text("onerror=").first().waitFor();
  assert.deepEqual(await page.locator(".prose a").evaluateAll((links) => links.map((link) => link.href)), ["https://example.com/c.png"]);
  await window.newConversation();
  await window.ask(EVIL);
  // The title is the server's, which reads the list again.
  await page.waitForFunction((text) => document.getElementById("title").textContent.startsWith(text), EVIL.slice(0, 40));
  assert.equal(await page.getByRole("article", { name: "You" }).locator("p").innerText(), EVIL);
  await window.box.fill(EVIL);
  await page.reload();
  await page.getByRole("article", { name: "You" }).waitFor();
  assert.equal(await window.box.inputValue(), EVIL);
  await window.box.fill("");
  assert.equal(await page.locator("#transcript img, #sidebar img, header img, script:not([src])").count(), 0);
  assert.doesNotMatch(await page.title(), /^hacked/);
  await window.showList();
  await window.check("hostile-list");
}

/** What a person allows is shown as it will run, and a paragraph turns no other around. */
async function turned(window) {
  const { page } = window;
  await window.send("[trojan] please");
  const card = window.card("delete_file");
  await window.state(card, "approval");
  await window.idle();
  const input = card.getByRole("textbox", { name: "Input that will run" });
  assert.match(await input.inputValue(), /"notes\\u202etxt\.exe"[^]*"a\\u200bb\\udb40\\udc41c"/);
  assert.match(await card.locator("summary").textContent(), /notes\\u202etxt\.exe/);
  assert.doesNotMatch(await card.textContent(), /[\u202e\u200b]/);
  await window.check("hostile-approval");
  await card.getByRole("button", { name: "Allow", exact: true }).click();
  await window.text("And one that does not.").waitFor();
  await window.idle();
  // What was escaped to be seen is what has run.
  assert.match(await card.getByRole("region", { name: "Result of delete_file", includeHidden: true }).textContent(), /notes\\u202etxt\.exe/);
  const sides = await page.locator(".prose").last().locator("p").evaluateAll((all) => all.map((paragraph) => {
    const range = document.createRange();
    range.selectNodeContents(paragraph);
    const [text, box] = [range.getBoundingClientRect(), paragraph.getBoundingClientRect()];
    return text.left - box.left < box.right - text.right ? "left" : "right";
  }));
  assert.deepEqual(sides, ["left", "right", "left"]);
  await window.check("hostile-direction");
}

/** A megabyte without a space: in a prompt, in a paragraph, as code. */
async function line(window) {
  const { page } = window;
  const length = 1 << 20;
  for (const kind of ["words", "code"]) {
    await window.newConversation();
    await window.ask(`[line] as ${kind}`);
    const shown = page.locator(kind === "code" ? ".prose pre" : ".prose p").last();
    assert.ok((await shown.evaluate((one) => one.textContent.length)) >= length);
    await window.checkLayout(`a line of ${kind}`);
  }
  await window.newConversation();
  await window.ask("y".repeat(length));
  await window.checkLayout("a prompt of one line");
  assert.ok((await page.title()).length < 200);
  // The page still answers.
  await window.ask("Hello again");
  await window.text("You said: Hello again").waitFor();
}

export const scenarios = [
  ["hostile markup", markup],
  ["hostile directions", turned],
  ["hostile lines", line],
];
