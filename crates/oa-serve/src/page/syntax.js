// Colors for code, a line at a time. Pure. A guess that is right for most languages: comments, strings, numbers, words.

const C_LIKE = { line: ["//"], block: ["/*", "*/"] };
const HASH = { line: ["#"], block: null };
const DASH = { line: ["--"], block: null };
const MARKUP = { line: [], block: ["<!--", "-->"] };
const NONE = { line: [], block: null };

const COMMENTS = {
  bash: HASH, sh: HASH, shell: HASH, zsh: HASH, console: HASH, python: HASH, py: HASH, ruby: HASH, rb: HASH, perl: HASH,
  yaml: HASH, yml: HASH, toml: HASH, ini: HASH, dockerfile: HASH, makefile: HASH, r: HASH, elixir: HASH, nix: HASH,
  sql: DASH, lua: DASH, haskell: DASH, hs: DASH, html: MARKUP, xml: MARKUP, svg: MARKUP, json: NONE,
};
const PLAIN = new Set(["", "text", "txt", "plain", "plaintext", "markdown", "md", "diff", "csv", "log", "output"]);

const WORDS = new Set(
  `abstract and as assert async await begin bool boolean break case catch char class const continue crate def default
  defer del delete do double dyn elif else elsif end enum except export extends extern false final finally float fn for
  foreach from func function global go goto if impl implements import in include instanceof int interface is lambda let
  local long loop match mod module move mut namespace new nil none None not null of operator or override package pass
  private protected pub public raise ref require return self Self short signed sizeof static string struct super switch
  template then this throw throws trait true True False try type typedef typeof undefined union unless unsafe unsigned
  until use using var virtual void volatile when where while with yield
  SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE ALTER DROP INDEX JOIN LEFT RIGHT INNER OUTER ON AND
  OR NOT NULL AS ORDER BY GROUP HAVING LIMIT DISTINCT UNION PRIMARY KEY REFERENCES DEFAULT`.split(/\s+/),
);
const LONGEST_LINE = 1000;

/** Splits a line into [kind, text]. `state` comes from the previous line: the end marker of an open comment, or null. */
export function highlight(line, language, state = null) {
  const name = language.toLowerCase();
  if (PLAIN.has(name) || line.length > LONGEST_LINE) return { tokens: [["", line]], state };
  // The model may write any name, also one that every object has.
  const comments = Object.hasOwn(COMMENTS, name) ? COMMENTS[name] : C_LIKE;
  const tokens = [];
  const add = (kind, text) => {
    if (text === "") return;
    if (tokens.at(-1)?.[0] === kind) tokens.at(-1)[1] += text;
    else tokens.push([kind, text]);
  };
  let at = 0;
  if (state) {
    const end = line.indexOf(state);
    at = end < 0 ? line.length : end + state.length;
    add("comment", line.slice(0, at));
    if (end < 0) return { tokens, state };
  }
  while (at < line.length) {
    const rest = line.slice(at);
    const opensLine = comments.line.some((mark) => rest.startsWith(mark) && (mark !== "#" || at === 0 || /\s/.test(line[at - 1])));
    if (opensLine) {
      add("comment", rest);
      break;
    }
    if (comments.block && rest.startsWith(comments.block[0])) {
      const close = comments.block[1];
      const end = rest.indexOf(close, comments.block[0].length);
      add("comment", end < 0 ? rest : rest.slice(0, end + close.length));
      if (end < 0) return { tokens, state: close };
      at += end + close.length;
      continue;
    }
    // A lone apostrophe is a lifetime or part of a word.
    const token = /^"(?:[^"\\]|\\.)*"|^'(?:[^'\\]|\\.)*'|^`(?:[^`\\]|\\.)*`|^[\p{L}_$][\p{L}\p{N}_$]*|^\d[\d._a-zA-Z]*|^\s+|^./u.exec(rest);
    const text = token ? token[0] : rest[0];
    if (text.length > 1 && /^["'`]/.test(text)) add("string", text);
    else if (/^\d/.test(text)) add("number", text);
    else if (WORDS.has(text)) add("word", text);
    else if (/^[\p{L}_$]/u.test(text) && /^\s*\(/.test(line.slice(at + text.length, at + text.length + 8))) add("name", text);
    else add("", text);
    at += text.length;
  }
  return { tokens, state: null };
}
