// Asks the agent of the example `mcp_server` with the official TypeScript client: progress, a result, and cancellation.
//   node ask-agent.mjs SDK -- COMMAND [ARGUMENT ...]
//   node ask-agent.mjs SDK URL
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [sdk, target, ...command] = process.argv.slice(2);
const require = createRequire(join(resolve(sdk), "x.js"));
const load = (path) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${path}`)).href);
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");

const check = (holds, what) => { if (!holds) { console.error(`FAIL ${what}`); process.exit(1); } };
const client = new Client({ name: "ask-agent", version: "1" }, { capabilities: {} });
await client.connect(target === "--"
  ? new StdioClientTransport({ command: command[0], args: command.slice(1) })
  : new StreamableHTTPClientTransport(new URL(target)));
const ask = (prompt, options) => client.callTool({ name: "ask", arguments: { prompt } }, undefined, { timeout: 30000, ...options });

const told = [];
const result = await ask("Take 3 steps of 50 ms.", { onprogress: (progress) => told.push(progress) });
check(!result.isError && result.content[0].text === "I took 3 steps.", `the result: ${JSON.stringify(result)}`);
const messages = told.map(({ message }) => message).join("; ");
for (const wanted of ["slow runs", "slow: 1 of 3", "slow: 2 of 3"]) check(messages.includes(wanted), `no "${wanted}" in: ${messages}`);
for (let i = 1; i < told.length; i++) check(told[i].progress > told[i - 1].progress, "the progress does not grow");

const stop = new AbortController();
let heard = 0;
let last = 0;
const running = ask("Take 1000 steps of 20 ms.", {
  signal: stop.signal,
  onprogress: () => { last = performance.now(); if (++heard === 5) stop.abort("enough"); },
}).then(() => "a result", (error) => error);
const ended = await running;
check(ended instanceof Error, `the canceled call: ${ended}`);
const since = performance.now();
await new Promise((done) => setTimeout(done, 500));
check(last < since + 200, "the agent went on after it was canceled");
const next = await ask("Hello");
check(next.content[0].text.startsWith("Tell me"), `the next call: ${JSON.stringify(next)}`);
await client.close();
console.log("the agent answers, tells its progress and stops");
