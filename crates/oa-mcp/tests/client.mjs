// What the programs beside this file share: their command line, the official packages, and checks.
//
//   PROGRAM --sdk DIR [OPTIONS] --url URL
//   PROGRAM --sdk DIR [OPTIONS] -- COMMAND [ARGUMENT ...]
//
// DIR is a folder in which the packages were installed by npm; the environment variable MCP_SDK_DIR stands in for it.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

export const usage = (why) => { console.error(`${why}\nsee the head of ${process.argv[1]}`); process.exit(64); };

/** Reads the command line. `named` are the options with a value, `flags` those without. */
export function options(named = [], flags = []) {
  const opts = { sdk: process.env.MCP_SDK_DIR ?? "." };
  const argv = process.argv.slice(2);
  while (argv.length) {
    const word = argv.shift();
    if (word === "--") { opts.command = argv.splice(0); break; }
    if (flags.includes(word)) opts[word.slice(2)] = true;
    else if (["--sdk", "--url", ...named].includes(word) && argv.length) opts[word.slice(2)] = argv.shift();
    else usage(`unknown option ${word}`);
  }
  if (!opts.url === !opts.command?.length) usage("give --url URL or -- COMMAND");
  return opts;
}

/** Returns a function that loads modules of an official package. */
export function modules(sdk, name) {
  const require = createRequire(join(resolve(sdk), "x.js"));
  return (path) => {
    let file;
    try { file = require.resolve(`${name}${path}`); } catch { usage(`no ${name} in ${resolve(sdk)}: give --sdk DIR`); }
    return import(pathToFileURL(file).href.replace(/\.cjs$/, ".mjs"));
  };
}

/** The transport to the server of the command line, by the classes of the package. */
export const transport = (opts, { Http, Stdio }, stderr) => opts.url
  ? new Http(new URL(opts.url))
  : new Stdio({ command: opts.command[0], args: opts.command.slice(1), stderr });

export function check(holds, what, seen) {
  if (!holds) throw new Error(seen === undefined ? what : `${what}; seen: ${JSON.stringify(seen)?.slice(0, 300)}`);
}

export function within(ms, promise, what) {
  let timer;
  const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error(`${what} took longer than ${ms} ms`)), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** The text of a result. */
export const texts = (result) => (result.content ?? []).filter((block) => block.type === "text").map((block) => block.text).join("\n");
