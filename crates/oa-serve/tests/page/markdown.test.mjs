// Markdown, inline Markdown, colors of code, and server-sent events.

import assert from "node:assert/strict";
import test from "node:test";
import { parse } from "../../src/page/inline.js";
import { Markdown } from "../../src/page/markdown.js";
import { EventParser } from "../../src/page/sse.js";
import { highlight } from "../../src/page/syntax.js";
import { visible } from "../../src/page/value.js";

test("a person sees every character of an input", () => {
  for (const hidden of ["200b", "3164", "115f", "ffa0", "034f", "fe0f", "2800", "00a0", "3000", "2028"]) {
    assert.equal(visible(`notes.txt${String.fromCharCode(parseInt(hidden, 16))}`), `notes.txt\\u${hidden}`);
  }
  assert.equal(visible("a\u{e0100}"), "a\\udb40\\udd00");
  assert.equal(visible("two words, öäü 👋"), "two words, öäü 👋");
});

/** Builds a tree, and counts what is asked of it. */
class Tree {
  root = { type: "root", children: [] };
  operations = 0;
  characters = 0;

  open(parent, type, attributes) {
    this.operations += 1;
    const node = { type, attributes, children: [], text: "", isClosed: false, parent };
    assert.equal(parent.isClosed ?? false, false, "nothing is added to what is closed");
    parent.children.push(node);
    return node;
  }

  text(node, piece) {
    assert.equal(node.isClosed, false);
    this.operations += 1;
    this.characters += piece.length;
    node.text += piece;
  }

  replace(node, text) {
    this.characters += text.length;
    node.text = text;
  }

  rename(node, type, attributes) {
    node.type = type;
    node.attributes = attributes;
  }

  remove(node) {
    node.parent.children.splice(node.parent.children.indexOf(node), 1);
  }

  close(node) {
    assert.equal(node.isClosed, false, `${node.type} is closed once`);
    node.isClosed = true;
  }
}

function show(node) {
  const inner = node.children.map(show).join("");
  const names = {
    root: "", quote: "quote", list: node.attributes?.isOrdered ? "ol" : "ul", item: "li", paragraph: "p", code: `code:${node.attributes?.language}`,
    heading: `h${node.attributes?.level}`, table: "table", row: "tr", cell: node.attributes?.isHead ? "th" : "td", rule: "hr",
  };
  const text = node.type === "item" && node.attributes.isDone !== undefined ? (node.attributes.isDone ? "[x]" : "[ ]") : "";
  const body = text + (node.text ?? "") + inner;
  return node.type === "root" ? body : `<${names[node.type]}>${body}</>`;
}

function render(source, cut = source.length) {
  const tree = new Tree();
  const markdown = new Markdown(tree, tree.root);
  for (let at = 0; at < source.length; at += cut) markdown.write(source.slice(at, at + cut));
  markdown.end();
  const open = (node) => (node.isClosed === false ? [node.type] : []).concat(node.children.flatMap(open));
  assert.deepEqual(open(tree.root), [], "everything is closed at the end");
  return { shown: show(tree.root), tree };
}

const CASES = [
  ["Hello\nworld\n\nagain", "<p>Hello\nworld</><p>again</>"],
  ["# One\n## Two ##\ntext", "<h1>One</><h2>Two</><p>text</>"],
  ["Title\n===\nSub\n---\n", "<h1>Title</><h2>Sub</>"],
  ["- a\n- b\n  - c\n- d", "<ul><li><p>a</></><li><p>b</><ul><li><p>c</></></></><li><p>d</></></>"],
  ["1. a\n2. b\n\ntext", "<ol><li><p>a</></><li><p>b</></></><p>text</>"],
  ["1. a\n\n   more\n2. b", "<ol><li><p>a</><p>more</></><li><p>b</></></>"],
  ["- a\n\n- b", "<ul><li><p>a</></><li><p>b</></></>"],
  ["- [ ] open\n- [x] done", "<ul><li>[ ]<p>open</></><li>[x]<p>done</></></>"],
  ["* **Bold**: x\n* y", "<ul><li><p>**Bold**: x</></><li><p>y</></></>"],
  ["```rust\nfn a() {}\n\n  b\n```\nafter", "<code:rust>fn a() {}\n\n  b</><p>after</>"],
  ["~~~\n```\n~~~", "<code:>```</>"],
  ["````\n```\n````", "<code:>```</>"],
  ["- a\n  ```js\n  x\n    y\n  ```\n- b", "<ul><li><p>a</><code:js>x\n  y</></><li><p>b</></></>"],
  ["```py\nnever closed", "<code:py>never closed</>"],
  ["> quote\n> more\nlazy\n\nout", "<quote><p>quote\nmore\nlazy</></><p>out</>"],
  ["> - a\n> - b", "<quote><ul><li><p>a</></><li><p>b</></></></>"],
  ["a\n\n---\n\nb", "<p>a</><hr></><p>b</>"],
  ["* * *", "<hr></>"],
  ["| a | b |\n| --- | :-: |\n| 1 | 2 |\n| `x|y` | 4\n\nend", "<table><tr><th>a</><th>b</></><tr><td>1</><td>2</></><tr><td>`x|y`</><td>4</></></><p>end</>"],
  ["text\na | b\n- | -\n1 | 2", "<p>text</><table><tr><th>a</><th>b</></><tr><td>1</><td>2</></></>"],
  ["a | b\nno table", "<p>a | b\nno table</>"],
  ["<script>alert(1)</script>", "<p><script>alert(1)</script></>"],
  ["text\n- item", "<p>text</><ul><li><p>item</></></>"],
  ["in 2024\n2024. was", "<p>in 2024\n2024. was</>"],
  ["a\r\nb\r\n\r\nc", "<p>a\nb</><p>c</>"],
  ["`code` first\n**bold** first\n_it_ #5 > 3", "<p>`code` first\n**bold** first\n_it_ #5 > 3</>"],
  ["", ""],
];

test("blocks", () => {
  for (const [source, expected] of CASES) assert.equal(render(source).shown, expected, JSON.stringify(source));
});

test("text in any pieces gives the same blocks", () => {
  for (const [source, expected] of CASES) {
    for (let cut = 1; cut < source.length; cut += 1) assert.equal(render(source, cut).shown, expected, `${JSON.stringify(source)} by ${cut}`);
  }
});

test("random text in any pieces gives the same blocks, and nothing is lost", () => {
  const parts = ["a", " ", "\n", "\n\n", "- ", "1. ", "> ", "```", "~~~", "|", "---", "# ", "*", "`", "  ", "\t", "[x]", "x | y\n", "| - | - |\n", "b\r\n", "==="];
  let random = 3;
  const next = (below) => {
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
    return Math.floor((random / 2 ** 32) * below);
  };
  for (let round = 0; round < 1500; round += 1) {
    let source = "";
    for (let length = next(24); length > 0; length -= 1) source += parts[next(parts.length)];
    const { shown } = render(source);
    for (const cut of [1, 2, 3, 7]) assert.equal(render(source, cut).shown, shown, `${JSON.stringify(source)} by ${cut}`);
    const letters = (text) => [...text].filter((one) => one === "a" || one === "b").length;
    const words = (node) => node.text + node.children.map(words).join("");
    const all = render(source).tree.root.children.map(words).join("");
    if (!/```|~~~|\|/.test(source)) assert.equal(letters(all), letters(source), JSON.stringify(source));
  }
});

test("work for a text does not depend on how it is cut, and grows with its length alone", () => {
  const part = "Some words of a paragraph that goes on.\n\n- item one\n- item two\n\n```c\nint a;\nint b;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n";
  const work = (times) => render(part.repeat(times), 4).tree.operations;
  const [small, large] = [work(20), work(200)];
  assert.ok(large <= small * 10.5, `${small} operations for 20 parts, ${large} for 200`);
});

const inline = (text, isOpen) => parse(text, isOpen).map(showInline).join("");
function showInline(node) {
  const inner = node.children?.map(showInline).join("") ?? node.text ?? "";
  return node.type === "text" ? inner : node.type === "link" ? `<a ${node.url}>${inner}</a>` : `<${node.type}>${inner}</${node.type}>`;
}

test("inline Markdown", () => {
  const cases = [
    ["**b** *i* ***bi*** ~~d~~ `c`", "<strong>b</strong> <em>i</em> <em><strong>bi</strong></em> <del>d</del> <code>c</code>"],
    ["snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"],
    ["``a ` b`` `` ` ``", "<code>a ` b</code> <code>`</code>"],
    ["[t](https://a.b/c_(d) \"x\") <https://e.f>", "<a https://a.b/c_(d)>t</a> <a https://e.f>https://e.f</a>"],
    ["see https://a.b/c_d_e, (https://x.y).", "see <a https://a.b/c_d_e>https://a.b/c_d_e</a>, (<a https://x.y>https://x.y</a>)."],
    ["[x](javascript:alert(1)) [y](data:text/html,a)", "x y"],
    ["![i](https://a.b/c.png)", "<a https://a.b/c.png>i</a>"],
    ["![i](data:image/png;base64,aGk=)", "<image>i</image>"],
    ["![i](data:image/svg+xml;base64,aGk=)", "i"],
    ["<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"],
    ["a  \nb\\\nc\nd", "a<break></break>b<break></break>c\nd"],
    ["\\*no\\* &lt;b&gt; &#65;&#x42; &nope;", "*no* <b> AB &nope;"],
    ["**a [b](http://c.d) e**", "<strong>a <a http://c.d>b</a> e</strong>"],
    ["[not] a [link", "[not] a [link"],
    ["**not closed", "**not closed"],
  ];
  for (const [source, expected] of cases) assert.equal(inline(source), expected, source);
});

test("what was begun at the end of open text is shown as if it were ended", () => {
  assert.equal(inline("a **bo", true), "a <strong>bo</strong>");
  assert.equal(inline("a `co", true), "a <code>co</code>");
  assert.equal(inline("a [te](http", true), "a te");
  assert.equal(inline("a **", true), "a ");
});

test("any text is parsed, and quickly", () => {
  for (const part of ["*", "**a", "[", "[a](", "`", "_a_*", "![", "<", "~~", "&#", "*a_b"]) {
    const nodes = parse(part.repeat(2000), true);
    assert.ok(Array.isArray(nodes));
    const ends = nodes.map((node) => node.end);
    assert.deepEqual(ends, [...ends].sort((a, b) => a - b), part);
  }
});

/** A server or a small model may write them without end. */
test("lines of blanks take no time", () => {
  const blanks = " ".repeat(400000);
  for (const text of [`a\n${blanks}}`, `a|b\n${blanks}|-}`, `a|b\n-${blanks}|}`, `a | b\n-${blanks}|${blanks}- |\n1 | 2`]) {
    const tree = new Tree();
    const start = performance.now();
    const markdown = new Markdown(tree, tree.root);
    markdown.write(text);
    markdown.end();
    // Linear time is milliseconds, and quadratic time a minute.
    assert.ok(performance.now() - start < 10000);
  }
});

test("colors change no text", () => {
  const lines = ["fn main() { /* a", "b */ let x = 'a' + \"s\\\"\"; // c", "#!/bin/sh # x", "x = 0x1F 'it''s'", "😀 \u0000", "select * from t -- c"];
  for (const language of ["rust", "python", "sql", "html", "json", "", "nope"]) {
    let state = null;
    for (const line of lines) {
      const colored = highlight(line, language, state);
      state = colored.state;
      assert.equal(colored.tokens.map(([, text]) => text).join(""), line);
    }
  }
  assert.deepEqual(highlight("let a = 1; // x", "rust").tokens.map(([kind]) => kind), ["word", "", "number", "", "comment"]);
});

test("a language may have any name", () => {
  for (const name of ["constructor", "__proto__", "toString", "hasOwnProperty"]) {
    assert.deepEqual(highlight("let", name).tokens, [["word", "let"]], name);
  }
});

test("server-sent events in any pieces", () => {
  const source = ": hi\n\nid: 1-2\nevent: agent\ndata: {\"a\":\ndata: 1}\n\r\ndata:x\r\rid\ndata: é\n\nevent: lost\ndata: unfinished";
  const expected = [
    { event: "agent", data: '{"a":\n1}', id: "1-2" },
    { event: "message", data: "x", id: "1-2" },
    { event: "message", data: "é", id: "" },
  ];
  for (let cut = 1; cut <= source.length; cut += 1) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < source.length; at += cut) events.push(...parser.push(source.slice(at, at + cut)));
    assert.deepEqual(events, expected, `by ${cut}`);
  }
});
