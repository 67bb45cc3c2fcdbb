// Markdown as elements, rendered while it arrives. The work per piece of text is bounded: blocks that have ended are
// never touched again, and of a growing paragraph only the last few thousand characters are read again.

import { CodeBlock } from "./code.js";
import { element, isInCharacter } from "./element.js";
import { parse } from "./inline.js";
import { Markdown } from "./markdown.js";

const STEP = 4096; // characters processed at once
const LONG = 2048; // from this length on, the beginning of a paragraph is settled
const OPEN = 1024; // characters at the end that stay unsettled
const LONGEST = 8192; // settled even in the middle of emphasis

/** Characters read and nodes created by all prose of the page, for measuring. */
export const work = { characters: 0, nodes: 0, pieces: 0, mostInPiece: 0 };

export class Prose {
  #markdown;
  #dirty = new Set();
  #rank = 2; // of the last heading: the page itself uses the first two

  constructor() {
    this.element = element("div", { class: "prose" });
    this.#markdown = new Markdown(this, { content: this.element });
  }

  write(piece) {
    const before = work.characters;
    work.pieces += 1;
    this.#markdown.write(piece);
    this.#flush();
    work.mostInPiece = Math.max(work.mostInPiece, work.characters - before - piece.length);
  }

  end() {
    this.#markdown.end();
    this.#flush();
  }

  #flush() {
    for (const node of this.#dirty) node.leaf.render(true);
    this.#dirty.clear();
  }

  // The sink of `Markdown`.

  open(parent, type, attributes) {
    const node = make(type, this.#ranked(type, attributes));
    parent.content.append(node.element);
    work.nodes += 1;
    return node;
  }

  text(node, piece) {
    if (node.code) {
      work.characters += piece.length;
      node.code.append(piece);
      return;
    }
    node.leaf.pending += piece;
    this.#dirty.add(node);
  }

  replace(node, text) {
    node.leaf.reset(text);
    this.#dirty.add(node);
  }

  rename(node, type, attributes) {
    const renamed = make(type, this.#ranked(type, attributes));
    node.leaf.render(true);
    // Moves the nodes, so that what the leaf has shown stays valid.
    renamed.element.append(...node.element.childNodes);
    node.element.replaceWith(renamed.element);
    node.element = renamed.element;
    node.leaf.element = renamed.element;
  }

  /** Headings of an answer may begin at any level, but headings on the page must not skip levels. */
  #ranked(type, attributes) {
    if (type !== "heading") return attributes;
    this.#rank = Math.min(6, attributes.level + 2, this.#rank + 1);
    return { ...attributes, rank: this.#rank };
  }

  remove(node) {
    this.#dirty.delete(node);
    node.element.remove();
  }

  close(node) {
    this.#dirty.delete(node);
    node.code?.close();
    node.leaf?.render(false);
  }
}

function make(type, attributes) {
  switch (type) {
    case "code": {
      const code = new CodeBlock(attributes.language);
      return { element: code.element, code };
    }
    case "list":
      return container(element(attributes.isOrdered ? "ol" : "ul", { start: attributes.start > 1 ? attributes.start : null }));
    case "item":
      return item(attributes);
    case "quote":
      return container(element("blockquote"));
    case "table": {
      const table = element("table");
      const scroller = element("div", { class: "table", role: "region", "aria-label": "Table", tabindex: "0" }, table);
      return { element: scroller, content: table };
    }
    case "row":
      return container(element("tr"));
    case "cell": {
      const tag = attributes.isHead ? "th" : "td";
      return leaf(element(tag, { class: `align-${attributes.align}`, scope: attributes.isHead ? "col" : null }));
    }
    case "rule":
      return container(element("hr"));
    case "heading":
      return leaf(element(`h${attributes.rank}`, { class: `level-${attributes.level}` }));
    default:
      return leaf(element("p"));
  }
}

const container = (made) => ({ element: made, content: made });
/** Each leaf has the direction of its own first letter and does not affect the direction of others. */
const leaf = (made) => {
  made.dir = "auto";
  return { element: made, content: made, leaf: new Leaf(made) };
};

function item({ isDone }) {
  if (isDone === undefined) return container(element("li"));
  const box = element("input", { type: "checkbox", disabled: true, checked: isDone, "aria-label": isDone ? "Done" : "To do" });
  const content = element("div");
  return { element: element("li", { class: "task" }, box, content), content };
}

/** Growing inline text. */
class Leaf {
  pending = "";
  #tail = ""; // the unsettled source
  #shown = []; // its nodes: {key, node, dom}

  constructor(made) {
    this.element = made;
  }

  reset(text) {
    this.element.replaceChildren();
    this.#tail = "";
    this.#shown = [];
    this.pending = text;
  }

  render(isOpen) {
    do {
      this.#tail += this.pending.slice(0, STEP);
      this.pending = this.pending.slice(STEP);
      this.#show(this.#parse(this.#tail, isOpen || this.pending !== ""));
      if (this.#tail.length > LONG) this.#settle(isOpen);
    } while (this.pending !== "");
  }

  #parse(source, isOpen) {
    work.characters += source.length;
    return parse(source, isOpen);
  }

  #settle(isOpen) {
    // Shows the part before the cut as it is without the rest, forgets it, and goes on with the rest. So the
    // next piece reads only the rest again.
    const cut = this.#cut();
    if (cut <= 0) return;
    this.#show(this.#parse(this.#tail.slice(0, cut), false));
    this.#shown = [];
    this.#tail = this.#tail.slice(cut);
    this.#show(this.#parse(this.#tail, isOpen));
  }

  /** The position before which no markup is open, or which is far enough back to settle anyway. */
  #cut() {
    // Prefers a space in a text at `target`, then the end of the node before. If there is no such place, as
    // in a long emphasis, the text is cut anyway once it is longer than `LONGEST`.
    const target = this.#tail.length - OPEN;
    const index = this.#shown.findIndex(({ node }) => node.end > target);
    const start = index > 0 ? this.#shown[index - 1].node.end : 0;
    const space = this.#tail.lastIndexOf(" ", target) + 1;
    const isText = index >= 0 && this.#shown[index].node.type === "text";
    if (isText && space > start) return space;
    if (start > 0) return start;
    if (this.#tail.length <= LONGEST) return 0;
    return space > 0 ? space : target - Number(isInCharacter(this.#tail, target));
  }

  /** Replaces the unsettled nodes by these, touching only those that differ. */
  #show(nodes) {
    let same = 0;
    const keys = nodes.map(keyOf);
    while (same < nodes.length && same < this.#shown.length && keys[same] === this.#shown[same].key) {
      this.#shown[same].node = nodes[same];
      same += 1;
    }
    const [old, next] = [this.#shown[same], nodes[same]];
    // Most pieces only lengthen the last text. Its node stays, and with it a selection in it.
    if (old?.node.type === "text" && next?.type === "text" && next.text.startsWith(old.node.text)) {
      old.dom.appendData(next.text.slice(old.node.text.length));
      this.#shown[same] = { key: keys[same], node: next, dom: old.dom };
      same += 1;
    }
    for (const { dom } of this.#shown.splice(same)) dom.remove();
    for (let index = same; index < nodes.length; index += 1) {
      const dom = build(nodes[index]);
      this.element.append(dom);
      this.#shown.push({ key: keys[index], node: nodes[index], dom });
    }
  }
}

const keyOf = (node) => JSON.stringify(node, (name, value) => (name === "end" ? undefined : value));

function build(node) {
  work.nodes += 1;
  switch (node.type) {
    case "text":
      return document.createTextNode(node.text);
    case "code":
      return element("code", { text: node.text });
    case "break":
      return element("br");
    case "image":
      return element("img", { src: node.url, alt: node.text });
    case "link":
      return element("a", { href: node.url, target: "_blank", rel: "noopener noreferrer nofollow" }, ...node.children.map(build));
    default:
      return element(node.type, {}, ...node.children.map(build));
  }
}
