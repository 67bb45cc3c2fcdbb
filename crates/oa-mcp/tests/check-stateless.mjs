#!/usr/bin/env node
// Drives an MCP server with the official TypeScript client 2.4 (@modelcontextprotocol/client), first by `auto`, which
// must choose the version 2026-07-28, then by `legacy`, with a handshake. Says `ok` or `FAIL` for each scenario; the
// exit status is the number of failures.
//
//   node check-stateless.mjs --sdk DIR --url URL
//   node check-stateless.mjs --sdk DIR -- COMMAND [ARGUMENT ...]
import { check, modules, options, texts as text, transport as reach, within } from "./client.mjs";

const opts = options();
const load = modules(opts.sdk, "@modelcontextprotocol/client");
const { Client, StreamableHTTPClientTransport: Http } = await load("");
const { StdioClientTransport: Stdio } = await load("/stdio");

async function connect(mode) {
  const transport = reach(opts, { Http, Stdio }, "ignore");
  const link = { errors: [], changes: [], logs: [], wake: () => {} };
  const client = new Client({ name: "check-stateless", version: "1.0.0" }, {
    capabilities: {},
    versionNegotiation: { mode },
    listChanged: { tools: { onChanged: (error, tools) => { link.changes.push(tools?.map((tool) => tool.name)); link.wake(); } } },
  });
  client.onerror = (error) => link.errors.push(String(error?.message ?? error));
  client.setNotificationHandler("notifications/message", ({ params }) => { link.logs.push(params); link.wake(); });
  await within(20000, client.connect(transport), "connecting");
  return Object.assign(link, { client, transport });
}
const call = (link, name, args, options) => link.client.callTool({ name, arguments: args }, { timeout: 20000, ...options });
async function until(link, is_so, what) {
  await within(20000, (async () => { while (!is_so()) await new Promise((done) => { link.wake = done; }); })(), what);
}

const scenarios = {
  async version(link, mode) {
    const version = link.client.getNegotiatedProtocolVersion();
    check(version === (mode === "auto" ? "2026-07-28" : "2025-11-25"), "another version", version);
    check(link.client.getServerVersion()?.name === "offered", "the server has no name", link.client.getServerVersion());
    check(link.client.getInstructions() === "Be kind.", "no instructions");
    return version;
  },
  async list(link) {
    const { tools } = await link.client.listTools();
    check(tools.length > 10 && tools.every((tool) => tool.inputSchema.type === "object"), "a list", tools);
    return `${tools.length} tools`;
  },
  async call(link) {
    const result = await call(link, "add", { a: 25, b: 17 });
    check(result.structuredContent.sum === 42 && JSON.parse(text(result)).sum === 42, "another sum", result);
    const said = "line\r\n\u2028 \u0000 \"\\ \ud83d\ude00";
    check(text(await call(link, "echo", { text: said })) === said, "another text");
  },
  async errors(link) {
    const failed = await call(link, "fail", {});
    check(failed.isError && /it failed/.test(text(failed)), "no error", failed);
    const wrong = await call(link, "add", { a: "x", b: 1 });
    check(wrong.isError && /\ba\b/.test(text(wrong)), "the field is not named", wrong);
    const unknown = await call(link, "none", {}).catch((error) => error);
    check(unknown.code === -32602, "another code", unknown);
  },
  async progress(link) {
    const told = [];
    await call(link, "slow", { steps: 5, ms: 60 }, { onprogress: (progress) => told.push(progress.progress) });
    check(told.length >= 4 && told.every((step, i) => i === 0 || step > told[i - 1]), "other progress", told);
  },
  async cancel(link) {
    const stop = new AbortController();
    const running = call(link, "slow", { steps: 1000, ms: 100 }, { signal: stop.signal }).catch((error) => error);
    await new Promise((done) => setTimeout(done, 200));
    stop.abort("enough");
    check((await within(5000, running, "cancelling")) instanceof Error, "a result");
    check(text(await call(link, "echo", { text: "next" })) === "next", "the next call fails");
  },
  async changes(link, mode) {
    await call(link, "grow", {});
    await until(link, () => link.changes.length > 0, "a changed list");
    check(link.changes.at(-1).includes("grown"), "another list", link.changes);
    check(text(await call(link, "grown", {})) === "grown", "the new tool");
    // A log line that belongs to no call is for clients with a handshake only.
    if (mode === "legacy") {
      await until(link, () => link.logs.length > 0, "a log line");
      check(link.logs[0].level === "warning" && /another tool/.test(link.logs[0].data), "another line", link.logs);
    } else check(link.logs.length === 0, "log lines that nobody asked for", link.logs);
  },
  async close(link) {
    const errors = link.errors.filter((error) => !/unknown token|[Aa]bort|enough/.test(error));
    check(errors.length === 0, "the client complained", errors);
    const start = performance.now();
    await within(10000, link.client.close(), "closing");
    return `${Math.round(performance.now() - start)} ms`;
  },
};

let [ok, failed] = [0, 0];
for (const mode of ["auto", "legacy"]) {
  let link;
  for (const [name, run] of Object.entries(scenarios)) {
    try {
      link ??= await connect(mode);
      const says = await within(60000, run(link, mode), name);
      ok += 1;
      console.log(`ok   ${mode} ${name}${says ? `: ${says}` : ""}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${mode} ${name}: ${error.stack}`);
      if (!link) break;
    }
  }
  await link?.client.close().catch(() => {});
}
console.log(`${ok} ok, ${failed} failed`);
process.exit(failed);
