// The block structure of Markdown, from text that arrives in pieces of any size. Pure.
//
// Each line is read once, so the work for a piece does not grow with the text before it. An incomplete line is held
// back only while its first characters do not determine its type: at most `MAX_HELD` characters.
//
// Deliberately absent: HTML (it is text), indented code, reference links.
//
// The sink builds the output. Nodes are the values that it returns:
//   open(parent, type, attributes) -> node     types: quote, list, item, paragraph, heading, code, table, row, cell, rule
//   text(node, piece)                          appends to a paragraph, heading, code or cell
//   replace(node, text)                        replaces its text
//   rename(node, type, attributes)             a paragraph turns out to be a heading
//   remove(node)                               a paragraph turns out to be the head of a table
//   close(node)                                nothing in it changes any more

const MAX_HELD = 1000;
const MAX_DEPTH = 16;
const MAX_CELLS = 64;
const MAX_CLOSING = 64;

const MARKERS = /^[\s>#\-*+_=`~|:.)\d]*$/;
const CONTAINERS = /^\s*(?:(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?|>\s*)*/;
const TASK = /^\[[ xX]?\]?$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*(.*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*))?$/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( +|\t|$)/;
const DELIMITER = /^:?-+:?$/;

export class Markdown {
  #sink;
  #root;
  #containers = []; // {type: "quote" | "list" | "item", node, indent, marker}
  #leaf = null; // {type: "paragraph" | "heading" | "code" | "table", node, ..}
  #line = ""; // the held-back beginning of a line
  #isInLine = false; // the line has begun, and its rest is text of the leaf
  #return = ""; // a carriage return at the end of a piece, as a line feed may follow

  constructor(sink, root) {
    this.#sink = sink;
    this.#root = root;
  }

  write(piece) {
    const whole = this.#return + piece;
    this.#return = whole.endsWith("\r") ? "\r" : "";
    const lines = (this.#return ? whole.slice(0, -1) : whole).split(/\r?\n/);
    for (let index = 0; index < lines.length; index += 1) {
      const isComplete = index < lines.length - 1;
      const text = lines[index];
      if (this.#isInLine) {
        this.#continueLine(text);
        if (isComplete) this.#endLine();
      } else {
        this.#line += text;
        if (isComplete) {
          const line = this.#line;
          this.#line = "";
          this.#readLine(line, true);
        } else if (this.#line !== "" && this.#isDecided(this.#line)) {
          const line = this.#line;
          this.#line = "";
          this.#isInLine = this.#readLine(line, false);
        }
      }
    }
  }

  /** Ends the text. */
  end() {
    if (this.#isInLine) this.#endLine();
    if (this.#line !== "") {
      const line = this.#line;
      this.#line = "";
      this.#readLine(line, true);
    }
    this.#closeLeaf();
    while (this.#containers.length) this.#closeContainer();
  }

  /** Returns true if the beginning of a line determines its type. */
  #isDecided(line) {
    if (line.length > MAX_HELD) return true;
    if (this.#leaf?.type === "code") {
      if (/^[\s>]*[`~]*\s*$/.test(line)) return false;
      // Otherwise it is code, unless it is outside of the code's item or quote.
      if (this.#containers.reduce((rest, one) => (rest === null ? null : continueContainer(one, rest)), line) !== null) return true;
    }
    // For example, `-` may become an item, a rule, or the line below a heading; `- a` is an item with a
    // paragraph. In `- [`, the bracket may become a task.
    const rest = line.replace(CONTAINERS, "");
    return !MARKERS.test(rest) && !FENCE.test(rest) && !TASK.test(rest);
  }

  /** Appends to a line that has begun. */
  #continueLine(text) {
    const leaf = this.#leaf;
    if (!leaf || text === "") return;
    if (leaf.type === "table") return this.#growRow(text);
    if (leaf.type === "heading") return this.#growHeading(text, false);
    if (leaf.type === "paragraph") leaf.lastLine += text;
    this.#sink.text(leaf.node, text);
  }

  /** Number signs at the end of a heading are not shown, so they are held back until more text follows. */
  #growHeading(text, isComplete) {
    const leaf = this.#leaf;
    // For example, ` ##` in `# A ##` closes the heading, but is shown if the next piece is `B`.
    const all = leaf.held + text;
    const closing = (leaf.isEmpty ? /(?:(?:^|\s+)#+\s*|\s+)$/ : /(?:\s+#+\s*|\s+)$/).exec(all.slice(-MAX_CLOSING));
    leaf.held = closing ? closing[0] : "";
    const shown = leaf.held ? all.slice(0, -leaf.held.length) : all;
    if (shown) {
      leaf.isEmpty = false;
      this.#sink.text(leaf.node, shown);
    }
    if (isComplete) this.#closeLeaf();
  }

  #endLine() {
    this.#isInLine = false;
    const leaf = this.#leaf;
    if (leaf?.type === "heading") this.#growHeading("", true);
    // Written before the next line of code, because the line break before the closing fence is not shown.
    else if (leaf?.type === "code") leaf.pending = "\n";
    else if (leaf?.type === "table") this.#endRow();
  }

  /** Reads a line or its decided beginning. Returns true if the rest of the line is text of the leaf. */
  #readLine(line, isComplete) {
    // First the containers that continue, then code, which ends only with its fence or its containers; then a
    // blank line, the end of a paragraph, and new containers. The leaf comes last.
    let rest = line;
    let matched = 0;
    for (const container of this.#containers) {
      const after = continueContainer(container, rest);
      if (after === null) break;
      rest = after;
      matched += 1;
    }
    const isBlank = rest.trim() === "";
    const hasAll = matched === this.#containers.length;

    if (this.#leaf?.type === "code" && hasAll) return this.#readCode(rest, isComplete);
    if (isBlank) {
      this.#readBlank(matched);
      return false;
    }
    // Before new containers are opened, because `- | -` also looks like an item.
    const isHeadOfTable = isComplete && hasAll && this.#leaf?.type === "paragraph" && rest.includes("|");
    if (isHeadOfTable && this.#endsParagraph(rest)) return false;
    // CommonMark's lazy continuation: `> a` and then `b` are one paragraph in the quote.
    // A paragraph continues without the markers of its containers.
    const isLazy = !hasAll && this.#leaf?.type === "paragraph" && !beginsBlock(rest, true);
    if (!isLazy) {
      if (!hasAll) this.#leaveFrom(matched);
      rest = this.#openContainers(rest);
    }
    return this.#readLeaf(rest, isComplete);
  }

  #readBlank(matched) {
    const leaf = this.#leaf;
    if (leaf?.type === "code") {
      // A quote ends here; an item may continue.
      this.#leaveFrom(matched);
      return;
    }
    if (leaf) this.#closeLeaf();
    const quote = this.#containers.findIndex((one, index) => index >= matched && one.type === "quote");
    if (quote >= 0) this.#leaveFrom(quote);
  }

  /** Closes the containers from this one on. */
  #leaveFrom(depth) {
    this.#closeLeaf();
    while (this.#containers.length > depth) this.#closeContainer();
  }

  #closeContainer() {
    const container = this.#containers.pop();
    this.#sink.close(container.node);
  }

  #closeLeaf() {
    const leaf = this.#leaf;
    if (!leaf) return;
    this.#leaf = null;
    this.#sink.close(leaf.node);
  }

  #parent() {
    return this.#containers.at(-1)?.node ?? this.#root;
  }

  #openContainers(line) {
    let rest = line;
    for (;;) {
      const top = this.#containers.at(-1);
      const item = RULE.test(rest) ? null : ITEM.exec(rest);
      const isItem = item && this.#mayBegin(item, rest);
      // A line that is not an item ends the list.
      if (top?.type === "list" && !(isItem && top.marker === markerOf(item[2]))) {
        this.#closeLeaf();
        this.#closeContainer();
        continue;
      }
      const isFull = this.#containers.length >= MAX_DEPTH;
      const quote = /^ {0,3}> ?/.exec(rest);
      if (quote && !isFull) {
        this.#closeLeaf();
        this.#containers.push({ type: "quote", node: this.#sink.open(this.#parent(), "quote", {}) });
        rest = rest.slice(quote[0].length);
      } else if (isItem && !isFull) {
        this.#closeLeaf();
        rest = this.#openItem(item, rest);
      } else {
        return rest;
      }
    }
  }

  #mayBegin(item, line) {
    if (this.#leaf?.type !== "paragraph") return true;
    // A paragraph is interrupted only by a plausible start of a list: `1.`, and not an empty item.
    const isFirst = !/^\d/.test(item[2]) || Number.parseInt(item[2], 10) === 1 || this.#isInList();
    return isFirst && line.slice(item[0].length).trim() !== "";
  }

  #isInList() {
    return this.#containers.at(-1)?.type === "list" || this.#containers.at(-1)?.type === "item";
  }

  #openItem(item, line) {
    const marker = markerOf(item[2]);
    const isOrdered = marker === "." || marker === ")";
    if (this.#containers.at(-1)?.type !== "list") {
      const attributes = isOrdered ? { isOrdered, start: Number.parseInt(item[2], 10) } : { isOrdered };
      this.#containers.push({ type: "list", marker, node: this.#sink.open(this.#parent(), "list", attributes) });
    }
    let rest = line.slice(item[0].length);
    // Five or more spaces after the marker belong to the text.
    const padding = item[3].length > 4 || item[3] === "" || item[3] === "\t" ? 1 : item[3].length;
    if (item[3].length > 4) rest = rest.trimStart();
    // The column of the text: for `- a` it is 2, and a line that begins with 2 spaces continues the item.
    const indent = item[1].length + item[2].length + padding;
    const task = /^\[([ xX])\](?:\s+|$)/.exec(rest);
    const attributes = task ? { isDone: task[1] !== " " } : {};
    if (task) rest = rest.slice(task[0].length);
    this.#containers.push({ type: "item", indent, node: this.#sink.open(this.#parent(), "item", attributes) });
    return rest;
  }

  #readCode(line, isComplete) {
    const leaf = this.#leaf;
    const fence = isComplete && /^ {0,3}(`{3,}|~{3,})\s*$/.exec(line);
    if (fence && fence[1][0] === leaf.fence[0] && fence[1].length >= leaf.fence.length) {
      this.#closeLeaf();
      return false;
    }
    let text = line;
    for (let spaces = leaf.indent; spaces > 0 && text.startsWith(" "); spaces -= 1) text = text.slice(1);
    this.#sink.text(leaf.node, leaf.pending + text);
    leaf.pending = isComplete ? "\n" : "";
    return !isComplete;
  }

  #readLeaf(line, isComplete) {
    if (line.trim() === "") return false;
    const leaf = this.#leaf;
    if (leaf?.type === "paragraph" && isComplete && this.#endsParagraph(line)) return false;
    if (leaf?.type === "table") {
      if (!beginsBlock(line, false)) return this.#readRow(line, isComplete);
      this.#closeLeaf();
    }
    const fence = FENCE.exec(line);
    if (fence && isComplete && !(fence[1][0] === "`" && fence[2].includes("`"))) {
      this.#closeLeaf();
      const indent = line.search(/[`~]/);
      const language = fence[2].trim().split(/\s/)[0];
      const node = this.#sink.open(this.#parent(), "code", { language });
      this.#leaf = { type: "code", node, fence: fence[1], indent, pending: "" };
      return false;
    }
    const heading = HEADING.exec(line);
    if (heading) {
      this.#closeLeaf();
      const node = this.#sink.open(this.#parent(), "heading", { level: heading[1].length });
      this.#leaf = { type: "heading", node, held: "", isEmpty: true };
      this.#growHeading(heading[2] ?? "", isComplete);
      return !isComplete;
    }
    if (RULE.test(line) && isComplete) {
      this.#closeLeaf();
      this.#sink.close(this.#sink.open(this.#parent(), "rule", {}));
      return false;
    }
    const text = line.trimStart();
    if (this.#leaf?.type === "paragraph") {
      this.#sink.text(this.#leaf.node, `\n${text}`);
      this.#leaf.lines += 1;
      this.#leaf.before += this.#leaf.lines > 2 ? `\n${this.#leaf.lastLine}` : this.#leaf.lastLine;
    } else {
      this.#closeLeaf();
      this.#leaf = { type: "paragraph", node: this.#sink.open(this.#parent(), "paragraph", {}), lines: 1, before: "" };
      this.#sink.text(this.#leaf.node, text);
    }
    this.#leaf.lastLine = text;
    return !isComplete;
  }

  /** Handles a line that turns the paragraph before it into a heading or a table. */
  #endsParagraph(line) {
    const leaf = this.#leaf;
    if (/^ {0,3}=+\s*$/.test(line) || /^ {0,3}-+\s*$/.test(line)) {
      const level = line.includes("=") ? 1 : 2;
      this.#sink.rename(leaf.node, "heading", { level });
      this.#closeLeaf();
      return true;
    }
    if (!line.includes("|") || !leaf.lastLine.includes("|")) return false;
    const delimiters = cellsOf(line);
    // By cell: an expression for the whole line would take quadratic time for many blanks.
    if (!delimiters.every((cell) => DELIMITER.test(cell))) return false;
    const alignments = delimiters.map(alignmentOf);
    const head = cellsOf(leaf.lastLine);
    if (head.length !== alignments.length || head.length > MAX_CELLS) return false;
    // The last line is the head of the table, and the lines before it stay a paragraph: `a`, `b | c`, `--|--`
    // become a paragraph `a` and a table with the head `b`, `c`.
    if (leaf.lines > 1) {
      this.#sink.replace(leaf.node, leaf.before);
      this.#sink.close(leaf.node);
    } else {
      this.#sink.remove(leaf.node);
    }
    const node = this.#sink.open(this.#parent(), "table", {});
    this.#leaf = { type: "table", node, alignments, row: null };
    this.#openRow(true);
    for (const cell of head) this.#addCell(cell);
    this.#endRow();
    return true;
  }

  #openRow(isHead) {
    const node = this.#sink.open(this.#leaf.node, "row", { isHead });
    this.#leaf.row = { node, isHead, cells: 0, cell: null, text: "" };
  }

  #addCell(text) {
    const row = this.#leaf.row;
    if (row.cells >= this.#leaf.alignments.length) return;
    const align = this.#leaf.alignments[row.cells];
    const cell = this.#sink.open(row.node, "cell", { isHead: row.isHead, align });
    this.#sink.text(cell, text);
    this.#sink.close(cell);
    row.cells += 1;
  }

  #readRow(line, isComplete) {
    this.#openRow(false);
    this.#growRow(line);
    if (isComplete) this.#endRow();
    return !isComplete;
  }

  /** Cells are shown when the row is complete, because a bar in a code span does not end a cell. */
  #growRow(text) {
    const row = this.#leaf.row;
    row.text += text;
  }

  #endRow() {
    const { row, alignments } = this.#leaf;
    if (!row.isHead) for (const cell of cellsOf(row.text)) this.#addCell(cell);
    while (row.cells < alignments.length) this.#addCell("");
    this.#sink.close(row.node);
    this.#leaf.row = null;
  }
}

/** The rest of a line after the marker of this container; null if the line is not in it. */
function continueContainer(container, line) {
  switch (container.type) {
    case "quote": {
      const marker = /^ {0,3}> ?/.exec(line);
      return marker ? line.slice(marker[0].length) : null;
    }
    case "item": {
      if (line.trim() === "") return line;
      const spaces = line.length - line.trimStart().length;
      const indent = line.startsWith("\t") ? 4 : spaces;
      if (indent < container.indent) return null;
      return line.startsWith("\t") ? line.slice(1) : line.slice(container.indent);
    }
    default:
      return line;
  }
}

const markerOf = (marker) => marker.at(-1);

/** Returns true if a line begins a block and is not text of a paragraph. */
const beginsBlock = (line, isParagraph) =>
  FENCE.test(line) || HEADING.test(line) || RULE.test(line) || /^ {0,3}>/.test(line) ||
  (ITEM.test(line) && (!isParagraph || /\S/.test(line.replace(ITEM, ""))));

function alignmentOf(cell) {
  const [left, right] = [cell.startsWith(":"), cell.endsWith(":")];
  return left && right ? "center" : right ? "right" : "left";
}

/** The cells of a row; a bar after a backslash or in a code span is text. */
function cellsOf(line) {
  const cells = [];
  let cell = "";
  let ticks = "";
  const text = line.trim().replace(/^\|/, "");
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (character === "\\" && text[index + 1] === "|") {
      cell += "|";
      index += 1;
    } else if (character === "`") {
      const run = /^`+/.exec(text.slice(index, index + 16))[0];
      if (ticks === run) ticks = "";
      // Backticks that are never closed are text, and do not hide the bars after them.
      else if (ticks === "" && text.indexOf(run, index + run.length) >= 0) ticks = run;
      cell += run;
      index += run.length - 1;
    } else if (character === "|" && ticks === "") {
      cells.push(cell.trim());
      cell = "";
    } else {
      cell += character;
    }
  }
  if (cell.trim() !== "" || !text.endsWith("|")) cells.push(cell.trim());
  return cells;
}
