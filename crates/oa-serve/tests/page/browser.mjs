// Runs the scenarios at one width (`PAGE_WIDTH`), and prints their names and times. `PAGE_ONLY` selects scenarios by a part
// of the name.

import { Window, close, launch, reset } from "./driver.mjs";
import * as answers from "./answers.mjs";
import * as calls from "./calls.mjs";
import * as connection from "./connection.mjs";
import * as drafts from "./drafts.mjs";
import * as edges from "./edges.mjs";
import * as hostile from "./hostile.mjs";
import * as late from "./late.mjs";
import * as lists from "./lists.mjs";

const only = process.env.PAGE_ONLY ?? "";
const width = Number(process.env.PAGE_WIDTH);
const scenarios = [answers, calls, connection, drafts, edges, hostile, late, lists].flatMap((module) => module.scenarios);

const browser = await launch();
let failures = 0;
const start = performance.now();
for (const [name, run, options = {}] of scenarios) {
  if (!name.includes(only) || !(options.widths ?? [width]).includes(width)) continue;
  const from = performance.now();
  let window = null;
  try {
    // What one scenario has opened lets no answer of the next one pass.
    await close();
    window = await Window.open(browser, width, options);
    await run(window, browser);
    window.checkErrors(options.allowed);
    console.log(`ok ${name} (${width} px, ${Math.round(performance.now() - from)} ms)`);
  } catch (error) {
    failures += 1;
    console.error(`FAILED ${name} (${width} px): ${error.stack}`);
    console.error(`console: ${window?.errors.join("\n")}`);
    await window?.page.screenshot({ path: `${process.env.SCREENSHOTS}/failed-${name.replaceAll(" ", "-")}-${width}.png` }).catch(() => {});
    await reset();
  }
  await window?.close();
}
console.log(`${Math.round((performance.now() - start) / 1000)} s in all`);
await browser.close();
process.exit(failures ? 1 : 0);
