#!/usr/bin/env node
// A server on the official TypeScript SDK 2.4 (@modelcontextprotocol/server), of version 2026-07-28 alone, that asks in the
// place of a result.
// usage: asking-server.mjs --sdk DIR [--http]
// DIR is a folder in which the package was installed. With --http, it prints url=... and ends with its stdin.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const args = process.argv.slice(2);
const require = createRequire(join(args[args.indexOf("--sdk") + 1], "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { McpServer, acceptedContent, createMcpHandler, fromJsonSchema, inputRequired } = await load("@modelcontextprotocol/server");

const person = { type: "object", properties: { name: { type: "string", minLength: 2 } }, required: ["name"] };
const who = () => inputRequired.elicit({ message: "Who are you?", requestedSchema: person });
const text = (value) => ({ content: [{ type: "text", text: JSON.stringify(value) }] });

const factory = () => {
  const server = new McpServer({ name: "asking", version: "1" }, { capabilities: { tools: {}, prompts: {}, resources: {} } });
  const empty = fromJsonSchema({ type: "object", properties: {} });
  // Everything at once, and then once more.
  server.registerTool("all", { inputSchema: empty }, async (_, cx) => {
    const said = cx.mcpReq.inputResponses;
    const state = cx.mcpReq.requestState();
    if (!said) {
      const messages = [{ role: "user", content: { type: "text", text: "A haiku, please." } }];
      const inputRequests = {
        who: who(),
        where: inputRequired.elicitUrl({ message: "Sign in", url: "https://example.org/sign-in" }),
        poem: inputRequired.createMessage({ messages, maxTokens: 50 }),
        folders: inputRequired.listRoots(),
      };
      return inputRequired({ inputRequests, requestState: "one" });
    }
    if (state === "one") return inputRequired({ inputRequests: { again: who() }, requestState: JSON.stringify(said) });
    return text({ first: JSON.parse(state), second: said });
  });
  server.registerTool("confirm", { inputSchema: empty }, async (_, cx) => {
    const said = acceptedContent(cx.mcpReq.inputResponses, "who");
    if (cx.mcpReq.inputResponses && !said) return text("not confirmed");
    return said ? text(said) : inputRequired({ inputRequests: { who: who() } });
  });
  server.registerPrompt("greet", {}, async (cx) => {
    const said = acceptedContent(cx.mcpReq.inputResponses, "who");
    if (!said) return inputRequired({ inputRequests: { who: who() } });
    return { messages: [{ role: "user", content: { type: "text", text: `Greet ${said.name}.` } }] };
  });
  server.registerResource("card", "card://one", {}, async (uri, cx) => {
    const said = acceptedContent(cx.mcpReq.inputResponses, "who");
    if (!said) return inputRequired({ inputRequests: { who: who() } });
    return { contents: [{ uri: uri.href, text: said.name }] };
  });
  return server;
};

if (args.includes("--http")) {
  const handler = createMcpHandler(factory, { legacy: "reject" });
  const server = createServer(async (req, res) => {
    const parts = [];
    for await (const part of req) parts.push(part);
    const body = parts.length ? Buffer.concat(parts) : undefined;
    const request = new Request(`http://${req.headers.host}${req.url}`, { method: req.method, headers: req.headers, body });
    const response = await handler.fetch(request);
    res.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body) for await (const part of response.body) res.write(part);
    res.end();
  });
  server.listen(0, "127.0.0.1", () => console.log(`url=http://127.0.0.1:${server.address().port}/mcp`));
  process.stdin.on("end", () => process.exit(0)).resume();
} else {
  const { serveStdio } = await load("@modelcontextprotocol/server/stdio");
  serveStdio(factory, { legacy: "reject" });
}
