// What the scenarios share: the browser, the server's controls, and the checks of each state.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { PAGE_URL, DIRECT_URL, CONTROL_URL, PAGE_TOKEN, CHROMIUM, NODE_FOLDER, SCREENSHOTS } = process.env;
const require = createRequire(join(NODE_FOLDER, "package.json"));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const url = PAGE_URL;
export const token = PAGE_TOKEN;

const control = async (path) => {
  const response = await fetch(`${CONTROL_URL}/${path}`, { method: path === "image" ? "GET" : "POST" });
  assert.equal(response.status, 200);
  return response;
};
/** Lets one answer or tool that waits go on. */
export const open = () => control("open");
/** Forgets what was opened and not passed. */
export const close = () => control("reset");
export const cut = () => control("cut");
export const mend = () => control("mend");

/** Ends what a failed scenario has left behind. */
export async function reset() {
  await mend();
  const { body } = await api("GET", "conversations?limit=100");
  for (const { id } of body.conversations) {
    await api("POST", `conversations/${id}/stop`);
    await api("DELETE", `conversations/${id}`);
  }
  await close();
}

export const image = async () => (await (await control("image")).json()).url;

export async function api(method, path, body) {
  const response = await fetch(new URL(`api/${path}`, DIRECT_URL), {
    method,
    headers: { authorization: `Bearer ${PAGE_TOKEN}`, "content-type": "application/json" },
    body: method === "GET" || method === "DELETE" ? undefined : JSON.stringify(body ?? {}),
  });
  const text = await response.text();
  return { status: response.status, body: text ? JSON.parse(text) : null };
}

export async function launch() {
  mkdirSync(SCREENSHOTS, { recursive: true });
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"] });
}

/** A page in a window of its own. `errors` collects what the console and scripts complain about. */
export class Window {
  static async open(browser, width, { address = `${PAGE_URL}?token=${encodeURIComponent(PAGE_TOKEN)}`, reducedMotion = "reduce" } = {}) {
    const window = new Window();
    window.width = width;
    window.context = await browser.newContext({
      viewport: { width, height: width < 600 ? 740 : 900 }, reducedMotion, colorScheme: "light", permissions: ["clipboard-read", "clipboard-write"],
    });
    window.page = await window.context.newPage();
    window.page.setDefaultTimeout(Number(process.env.PAGE_TIMEOUT ?? 20000));
    window.errors = [];
    window.page.on("console", (message) => ["error", "warning"].includes(message.type()) && window.errors.push(message.text()));
    window.page.on("pageerror", (error) => window.errors.push(String(error)));
    await window.page.goto(address);
    return window;
  }

  get isNarrow() {
    return this.width < 860;
  }

  /** Text in the conversation or around it, but not what screen readers are told. */
  text(words, options) {
    return this.page.getByRole("main", { includeHidden: true }).getByText(words, options);
  }

  get box() {
    return this.page.getByRole("textbox", { name: "Message", exact: true });
  }

  async send(text) {
    await this.box.fill(text);
    // The button is disabled until the previous message is sent.
    await this.page.locator("#send:enabled").waitFor();
    await this.box.press("Enter");
  }

  /** Sends a message to the agent at work, and waits until the server has it. */
  async steer(text) {
    await this.send(text);
    await this.sent();
  }

  /** Waits until the server has the message, which empties the box. */
  sent() {
    return this.page.waitForFunction(() => document.getElementById("prompt").value === "");
  }

  /** Sends a prompt and waits for the end of the run. */
  async ask(text) {
    const ends = await this.page.locator(".thread > .end").count();
    await this.send(text);
    await this.page.locator(".thread > .end").nth(ends).waitFor();
    await this.idle();
  }

  idle() {
    return this.page.waitForFunction(() => !document.body.classList.contains("is-running"));
  }

  running() {
    return this.page.waitForFunction(() => document.body.classList.contains("is-running"));
  }

  card(name) {
    return this.page.getByRole("article", { name: new RegExp(`^Tool call ${name}`) }).last();
  }

  async state(card, state) {
    await this.page.waitForFunction(([element, wanted]) => element.dataset.state === wanted, [await card.elementHandle(), state]);
  }

  async newConversation() {
    await this.page.keyboard.press("Control+Shift+O");
    await this.page.locator(".welcome").waitFor();
  }

  async showList() {
    if (await this.page.evaluate(() => document.body.dataset.drawer !== "open")) await this.page.getByRole("button", { name: "Conversations" }).click();
  }

  async hideList() {
    if (this.isNarrow) await this.page.keyboard.press("Escape");
  }

  /** Checks layout and accessibility in both themes, and takes their pictures. */
  async check(name) {
    await this.checkLayout(name);
    for (const colorScheme of ["light", "dark"]) {
      await this.page.emulateMedia({ colorScheme });
      await this.page.screenshot({ path: join(SCREENSHOTS, `${name}-${this.width}-${colorScheme}.png`) });
      // Only colors differ in the dark.
      await this.#checkAccessibility(`${name}, ${colorScheme}`, colorScheme === "dark" ? ["color-contrast"] : null);
    }
    await this.#checkNames(name);
    await this.page.emulateMedia({ colorScheme: "light" });
  }

  /** Nothing is wider than the window, nothing is cut off that does not scroll, and no two controls overlap. */
  async checkLayout(name) {
    const problems = await this.page.evaluate(() => {
      const found = [];
      const root = document.documentElement;
      if (root.scrollWidth > innerWidth || root.scrollHeight > innerHeight) found.push("the page scrolls as a whole");
      const shows = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && element.getClientRects().length > 0;
      const label = (element) => `${element.tagName.toLowerCase()}.${element.className} "${element.textContent.slice(0, 30)}"`;
      const scope = document.querySelector("dialog[open]") ?? document.body;
      const isInert = (element) => element.closest("[inert]");
      for (const element of scope.querySelectorAll("*")) {
        if (!shows(element) || isInert(element) || element.closest(".visually-hidden, .skip, svg")) continue;
        const box = element.getBoundingClientRect();
        const scroller = element.parentElement.closest(".table, pre, .log");
        if (!scroller && (box.left < -1 || box.right > innerWidth + 1)) found.push(`${label(element)} leaves the window: ${box.left} to ${box.right}`);
        const style = getComputedStyle(element);
        const isCut = element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0;
        if (isCut && style.overflowX === "hidden" && style.textOverflow !== "ellipsis" && element.id !== "sidebar") found.push(`${label(element)} is cut off`);
      }
      const controls = [...scope.querySelectorAll("button, a, input, textarea, summary")].filter((one) => shows(one) && !isInert(one) && !one.closest(".skip"));
      const inView = (box) => box.bottom > 0 && box.top < innerHeight && box.width > 1;
      const isVisible = (one) => {
        // What has scrolled out of its box is not seen.
        const clip = one.closest("#scroll, .value, .log, #sidebar, dialog");
        if (!clip) return true;
        const [inner, outer] = [one.getBoundingClientRect(), clip.getBoundingClientRect()];
        return inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
      };
      const boxes = controls.filter(isVisible).map((one) => [one, one.getBoundingClientRect()]).filter(([, box]) => inView(box));
      for (const [index, [one, a]] of boxes.entries()) {
        for (const [other, b] of boxes.slice(index + 1)) {
          if (one.contains(other) || other.contains(one) || one.closest(".to-end, .attachments") || other.closest(".to-end, .attachments")) continue;
          const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (width > 1 && height > 1) found.push(`${label(one)} overlaps ${label(other)}`);
        }
      }
      return found;
    });
    assert.deepEqual(problems, [], `layout of ${name} at ${this.width}`);
  }

  async #checkAccessibility(name, rules) {
    if (!(await this.page.evaluate(() => "axe" in globalThis))) await this.page.evaluate(AXE);
    const violations = await this.page.evaluate(async (only) => {
      const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
      const runOnly = only ? { type: "rule", values: only } : { type: "tag", values: tags };
      // Addresses of conversations are fragments, so the rule takes those that have scrolled out of the list for skip links. Our own is tried by key.
      const rules = only ? {} : { "skip-link": { enabled: false } };
      const { violations } = await globalThis.axe.run(document, { runOnly, rules, resultTypes: ["violations"] });
      return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.any[0]?.message ?? ""}`).join(" | ")}`);
    }, rules);
    assert.deepEqual(violations, [], `accessibility of ${name} at ${this.width}`);
  }

  /** In Chromium's own accessibility tree, whatever can be used or is a part of the page has a name. */
  async #checkNames(name) {
    const session = await this.context.newCDPSession(this.page);
    await session.send("Accessibility.enable");
    const { nodes } = await session.send("Accessibility.getFullAXTree");
    await session.detach();
    const roles = new Set([
      "article", "button", "checkbox", "combobox", "dialog", "DisclosureTriangle", "form", "group", "image", "img", "link", "main", "meter",
      "navigation", "progressbar", "region", "textbox",
    ]);
    const unnamed = new Set(["main", "group"]);
    const named = nodes.filter((node) => !node.ignored && roles.has(node.role?.value));
    const problems = named.filter((node) => !unnamed.has(node.role.value) && !node.name?.value?.trim()).map((node) => `${node.role.value} has no name`);
    // What can be used is told apart.
    assert.deepEqual(problems, [], `accessibility tree of ${name} at ${this.width}`);
    assert.ok(named.some((node) => node.role.value === "textbox" || node.role.value === "button"), "the tree is there");
  }

  /** Moves the focus with Tab alone to what has this name. */
  async tabTo(wanted, most = 120) {
    for (let step = 0; step < most; step += 1) {
      await this.page.keyboard.press("Tab");
      const name = await this.page.evaluate(() => {
        const one = document.activeElement;
        const label = one.labels?.[0]?.textContent ?? "";
        return (one.getAttribute("aria-label") || label || one.innerText || one.id).replace(/\s+/g, " ").trim();
      });
      if (wanted.test(name)) return;
    }
    assert.fail(`Tab does not reach ${wanted}`);
  }

  /** No error in the console, except for what the test did to the network. */
  checkErrors(allowed = null) {
    assert.deepEqual(this.errors.filter((error) => !allowed?.test(error)), []);
  }

  async close() {
    await this.context.close();
  }
}
