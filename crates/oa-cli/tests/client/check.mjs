#!/usr/bin/env node
// Uses `oa mcp --tools files:FOLDER` as a program does that speaks the Model Context Protocol, by the official
// TypeScript client, and prints what it got as JSON.
//
//   node check.mjs SDK PROGRAM FOLDER
//
// SDK is a folder in which `npm install @modelcontextprotocol/sdk` was run.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [sdk, program, folder] = process.argv.slice(2);
const require = createRequire(join(resolve(sdk), "x.js"));
const load = (path) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${path}`)).href);
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");

const client = new Client({ name: "check", version: "1" });
await client.connect(new StdioClientTransport({ command: program, args: ["mcp", "--tools", `files:${folder}`] }));
const call = async (name, args) => {
  const { content, isError = false } = await client.callTool({ name, arguments: args });
  return { isError, text: content.map((block) => block.text ?? "").join("") };
};
const { tools } = await client.listTools();
console.log(JSON.stringify({
  server: client.getServerVersion(),
  tools: tools.map((tool) => tool.name),
  read: await call("read_file", { path: "notes.txt" }),
  found: await call("find_in_files", { text: "rain" }),
  outside: await call("read_file", { path: "../secret.txt" }),
  wrong: await call("read_file", { path: 7 }),
}));
await client.close();
