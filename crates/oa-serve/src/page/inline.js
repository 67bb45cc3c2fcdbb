// Inline Markdown: emphasis, code, links. Pure.
//
// `parse` returns nodes: {type: "text", text}, {type: "code", text}, {type: "break"}, {type: "image", url, text}, and
// with children: strong, em, del, link (url). Each has `end`, the offset in the source after it.

const ESCAPED = /[!-/:-@[-`{-~]/;
const PUNCTUATION = /[\p{P}\p{S}]/u;
const URL_TEXT = /^https?:\/\/[^\s<>"`]+/i;
const SAFE = /^(?:https?:\/\/|mailto:)/i;
const SAFE_IMAGE = /^data:image\/(?:png|jpeg|gif|webp);base64,[a-z\d+/=]+$/i;
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", hellip: "…", mdash: "—", ndash: "–", copy: "©", times: "×", rarr: "→" };
const MAX_BRACKETS = 32;

/** Parses text. If it `isOpen`, more may follow: markup that is open at its end is treated as closed. */
export function parse(text, isOpen = false) {
  return new Reader(text, isOpen).read();
}

class Reader {
  constructor(text, isOpen) {
    this.text = text;
    this.isOpen = isOpen;
    this.at = 0;
    this.items = [];
    this.brackets = [];
    this.missingTicks = new Set();
  }

  read() {
    const special = /[\\`*_~[\]!<&\nhH]/g;
    while (this.at < this.text.length) {
      special.lastIndex = this.at;
      const found = special.exec(this.text);
      const next = found ? found.index : this.text.length;
      if (next > this.at) this.addText(this.text.slice(this.at, next), next);
      if (found) this.readSpecial(found[0]);
    }
    return join(emphasize(this.items, this.isOpen));
  }

  addText(text, end) {
    this.items.push({ type: "text", text, end });
    this.at = end;
  }

  add(node, end) {
    this.items.push({ ...node, end });
    this.at = end;
  }

  readSpecial(character) {
    const { text, at } = this;
    switch (character) {
      case "\\":
        if (text[at + 1] === "\n") return this.add({ type: "break" }, at + 2);
        if (text[at + 1] && ESCAPED.test(text[at + 1])) return this.addText(text[at + 1], at + 2);
        return this.addText("\\", at + 1);
      case "`":
        return this.readCode();
      case "*":
      case "_":
      case "~":
        return this.readDelimiter(character);
      case "[":
        return this.openBracket(at, false);
      case "!":
        return text[at + 1] === "[" ? this.openBracket(at, true) : this.addText("!", at + 1);
      case "]":
        return this.closeBracket();
      case "<":
        return this.readAutolink();
      case "&":
        return this.readEntity();
      case "\n":
        return this.readNewline();
      default:
        return this.readUrl(character);
    }
  }

  readCode() {
    const { text, at } = this;
    const ticks = /^`+/.exec(text.slice(at))[0];
    const from = at + ticks.length;
    // Remembers the lengths that are not closed: otherwise each run would search to the end of the text.
    const close = this.missingTicks.has(ticks.length) ? -1 : closingTicks(text, from, ticks.length);
    if (close < 0) {
      this.missingTicks.add(ticks.length);
      if (this.isOpen && ticks.length === 1 && from < text.length) {
        return this.add({ type: "code", text: text.slice(from).replaceAll("\n", " ") }, text.length);
      }
      return this.addText(ticks, from);
    }
    let code = text.slice(from, close).replaceAll("\n", " ");
    if (/^ .*[^ ].* $/.test(code)) code = code.slice(1, -1);
    return this.add({ type: "code", text: code }, close + ticks.length);
  }

  readDelimiter(character) {
    const { text, at } = this;
    let end = at;
    while (text[end] === character) end += 1;
    const count = end - at;
    if (character === "~" && count !== 2) return this.addText(text.slice(at, end), end);
    const before = at === 0 ? " " : text[at - 1];
    // Text that may follow makes a run at the end an opener, as in `a **`.
    const after = text[end] ?? (this.isOpen ? "x" : " ");
    const isSpace = (one) => /\s/.test(one);
    const isPunctuation = (one) => PUNCTUATION.test(one);
    // CommonMark's left-flanking and right-flanking runs. An underscore within a word neither opens nor
    // closes.
    const left = !isSpace(after) && (!isPunctuation(after) || isSpace(before) || isPunctuation(before));
    const right = !isSpace(before) && (!isPunctuation(before) || isSpace(after) || isPunctuation(after));
    const isWord = character === "_";
    const canOpen = left && (!isWord || !right || isPunctuation(before));
    const canClose = right && (!isWord || !left || isPunctuation(after));
    this.items.push({ type: "delimiter", character, count, length: count, canOpen, canClose, end });
    this.at = end;
  }

  openBracket(at, isImage) {
    const end = at + (isImage ? 2 : 1);
    if (this.brackets.length < MAX_BRACKETS) this.brackets.push({ item: this.items.length, isImage });
    this.addText(isImage ? "![" : "[", end);
  }

  closeBracket() {
    const { text, at } = this;
    const bracket = this.brackets.pop();
    const target = bracket && readTarget(text, at + 1, this.isOpen);
    if (!target) return this.addText("]", at + 1);
    // The items from the bracket on are the label; the first is the bracket itself.
    const children = join(emphasize(this.items.splice(bracket.item).slice(1), false));
    const label = plain(children);
    if (bracket.isImage) return this.add(imageOf(target.url, label), target.end);
    // Links do not nest.
    this.brackets = this.brackets.filter((one) => one.isImage);
    return this.add(linkOf(target.url, children), target.end);
  }

  readAutolink() {
    const found = /^<((?:https?:\/\/|mailto:)[^\s<>]*)>/i.exec(this.text.slice(this.at, this.at + 2048));
    if (!found) return this.addText("<", this.at + 1);
    const end = this.at + found[0].length;
    return this.add(linkOf(found[1], [{ type: "text", text: found[1], end }]), end);
  }

  readEntity() {
    const found = /^&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z]{2,8}));/.exec(this.text.slice(this.at, this.at + 12));
    const text = found && entity(found);
    return text ? this.addText(text, this.at + found[0].length) : this.addText("&", this.at + 1);
  }

  readNewline() {
    const last = this.items.at(-1);
    const isHard = last?.type === "text" && / {2,}$/.test(last.text);
    if (last?.type === "text") last.text = last.text.replace(/ +$/, "");
    return isHard ? this.add({ type: "break" }, this.at + 1) : this.addText("\n", this.at + 1);
  }

  readUrl(character) {
    const { text, at } = this;
    const isStart = at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]);
    const found = isStart && URL_TEXT.exec(text.slice(at, at + 2048));
    if (!found) return this.addText(character, at + 1);
    let url = found[0].replace(/[.,:;!?'"*_~\]]+$/, "");
    while (url.endsWith(")") && count(url, ")") > count(url, "(")) url = url.slice(0, -1);
    const end = at + url.length;
    return this.add(linkOf(url, [{ type: "text", text: url, end }]), end);
  }
}

const count = (text, character) => text.split(character).length - 1;

function closingTicks(text, from, length) {
  const ticks = /`+/g;
  ticks.lastIndex = from;
  for (let found = ticks.exec(text); found; found = ticks.exec(text)) {
    if (found[0].length === length) return found.index;
  }
  return -1;
}

/** Reads `(url "title")`. */
function readTarget(text, at, isOpen) {
  if (text[at] !== "(") return null;
  const rest = text.slice(at, at + 4096);
  const found = /^\(\s*(?:<([^<>\n]*)>|((?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.)*\))*))(?:\s+(?:"[^"]*"|'[^']*'|\([^)]*\)))?\s*\)/.exec(rest);
  if (found) return { url: unescape(found[1] ?? found[2] ?? ""), end: at + found[0].length };
  // The target of a link at the end is not complete yet.
  if (isOpen && !/[\s)]/.test(rest) && at + rest.length === text.length) return { url: "", end: text.length };
  return null;
}

const unescape = (url) => url.replace(/\\([!-/:-@[-`{-~])/g, "$1");

const linkOf = (url, children) => (SAFE.test(url) ? { type: "link", url, children } : { type: "span", children });

/** An image with its data in the URL is shown. Any other is a link: loading it would reveal the reader to its server. */
function imageOf(url, label) {
  if (SAFE_IMAGE.test(url)) return { type: "image", url, text: label };
  return linkOf(url, [{ type: "text", text: label || url, end: 0 }]);
}

const plain = (nodes) => nodes.map((node) => node.text ?? (node.children ? plain(node.children) : " ")).join("");

function entity([, decimal, hex, name]) {
  if (name) return Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : null;
  const code = decimal ? Number.parseInt(decimal, 10) : Number.parseInt(hex, 16);
  const isCharacter = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : "\ufffd";
}

/** Pairs the delimiters as in CommonMark. */
function emphasize(items, isOpen) {
  const stack = []; // indexes of delimiters that may open
  const out = [];
  for (const item of items) {
    out.push(item);
    if (item.type !== "delimiter") continue;
    if (item.canClose) closeDelimiter(out, stack, item);
    const place = out.lastIndexOf(item);
    if (place >= 0 && item.canOpen && item.count > 0) stack.push(place);
  }
  if (isOpen) closeLast(out, stack);
  return out.flatMap((item) => (item.type === "delimiter" ? delimiterText(item) : [item]));
}

const delimiterText = (item) =>
  item.count ? [{ type: "text", text: item.character.repeat(item.count), end: item.end }] : [];

function closeDelimiter(out, stack, closer) {
  while (closer.count > 0) {
    let depth = stack.length - 1;
    while (depth >= 0 && !matches(out[stack[depth]], closer)) depth -= 1;
    if (depth < 0) return;
    const place = stack[depth];
    const opener = out[place];
    // `closer` is the last item, so the children are all items between it and the opener. Openers among them
    // become text: `stack` is cut below.
    const used = opener.count >= 2 && closer.count >= 2 ? 2 : 1;
    const children = join(out.splice(place + 1, out.length - place - 2).flatMap((item) => (item.type === "delimiter" ? delimiterText(item) : [item])));
    const type = opener.character === "~" ? "del" : used === 2 ? "strong" : "em";
    opener.count -= used;
    closer.count -= used;
    out.splice(place + 1, 0, { type, children, end: closer.end - closer.count });
    stack.length = opener.count > 0 ? depth + 1 : depth;
    if (opener.count === 0) out.splice(place, 1);
    if (closer.count === 0) out.pop();
  }
}

function matches(opener, closer) {
  if (opener.character !== closer.character) return false;
  if (opener.character === "~") return opener.count >= 2 && closer.count >= 2;
  // Rules 9 and 10 of CommonMark's emphasis: `*foo**bar*` is one emphasis with two asterisks in its text.
  const isEither = opener.canClose || closer.canOpen;
  return !isEither || (opener.length + closer.length) % 3 !== 0 || (opener.length % 3 === 0 && closer.length % 3 === 0);
}

/** Closes bold text whose end has not arrived. */
function closeLast(out, stack) {
  const place = stack.findLast((one) => out[one]?.type === "delimiter" && out[one].count >= 2);
  if (place === undefined) return;
  const opener = out[place];
  const inner = out.splice(place + 1).flatMap((item) => (item.type === "delimiter" ? delimiterText(item) : [item]));
  opener.count -= 2;
  const children = join(inner);
  const type = opener.character === "~" ? "del" : "strong";
  if (children.length) out.push({ type, children, end: children.at(-1).end });
}

/** Joins adjacent texts. */
function join(nodes) {
  const joined = [];
  for (const node of nodes) {
    const last = joined.at(-1);
    if (node.type === "text" && last?.type === "text") {
      last.text += node.text;
      last.end = node.end;
    } else if (node.type === "span") {
      joined.push(...node.children.map((child) => ({ ...child, end: node.end })));
    } else {
      joined.push(node.type === "text" ? { ...node } : node);
    }
  }
  return joined;
}
