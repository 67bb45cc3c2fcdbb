//! Tokens of Rust text, each with its place.

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A comment that is not a doc comment.
    Comment,
    /// A word, also a keyword; `r#type` is one.
    Ident,
    /// `//!` or `/*! */`.
    InnerDoc,
    Lifetime,
    /// A number, string or character, with its quotes and prefixes.
    Literal,
    /// `///` or `/** */`.
    OuterDoc,
    /// `::`, `->`, `=>`, `..`, `...` and `..=` are one token each, everything else is one character.
    Punct,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// From 1.
    pub(crate) line: usize,
    /// The byte at which it begins.
    pub(crate) start: usize,
}

impl Token<'_> {
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text == text && matches!(self.kind, Kind::Ident | Kind::Punct)
    }
}

/// Returns all tokens of a text, comments included. Text that is not Rust gives some tokens and never fails.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { text, at: 0, line: 1 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.token() {
        tokens.push(token);
    }
    tokens
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

// Longest first, because the first match is taken. `>>` is two tokens: generics need each `>`.
const LONG_PUNCTUATION: [&str; 6] = ["..=", "...", "..", "::", "->", "=>"];

impl<'a> Lexer<'a> {
    fn token(&mut self) -> Option<Token<'a>> {
        let rest = self.rest();
        let blank = rest.len() - rest.trim_start().len();
        self.skip(blank);
        let rest = self.rest();
        let first = rest.chars().next()?;
        // The order matters: the prefix of `b".."` or `r#".."#` would be a word, and a quote may begin a
        // character or a lifetime.
        let (kind, length) = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            (doc_kind(rest, "//"), length)
        } else if rest.starts_with("/*") {
            (doc_kind(rest, "/*"), block_comment(rest))
        } else if let Some(length) = string(rest) {
            (Kind::Literal, length)
        } else if first == '\'' {
            quote(rest)
        } else if first.is_ascii_digit() {
            (Kind::Literal, number(rest))
        } else if is_word(first) {
            let prefix = if rest.starts_with("r#") { 2 } else { 0 };
            (Kind::Ident, prefix + word(&rest[prefix..]))
        } else {
            let long = LONG_PUNCTUATION.iter().find(|long| rest.starts_with(**long));
            (Kind::Punct, long.map_or_else(|| first.len_utf8(), |long| long.len()))
        };
        let token = Token { kind, text: &rest[..length], line: self.line, start: self.at };
        self.skip(length);
        Some(token)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self, length: usize) {
        self.line += self.rest()[..length].matches('\n').count();
        self.at += length;
    }
}

/// `///` and `//!` are docs, `////` and `/***` are not, nor is `/**/`.
fn doc_kind(rest: &str, opening: &str) -> Kind {
    let rest = &rest[opening.len()..];
    let again = if opening == "//" { '/' } else { '*' };
    match rest.strip_prefix(again) {
        _ if rest.starts_with('!') => Kind::InnerDoc,
        Some(more) if !more.starts_with([again, '/']) => Kind::OuterDoc,
        _ => Kind::Comment,
    }
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        let step = if rest[at..].starts_with("/*") {
            depth += 1;
            2
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            2
        } else {
            rest[at..].chars().next().map_or(1, char::len_utf8)
        };
        at += step;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The length of a string literal, if one begins here.
fn string(rest: &str) -> Option<usize> {
    let prefix = rest.bytes().take_while(u8::is_ascii_lowercase).count();
    match &rest[..prefix] {
        "" | "b" | "c" => {
            let quoted = rest[prefix..].strip_prefix('"')?;
            Some(prefix + 1 + closed(quoted, '"'))
        }
        "r" | "br" | "cr" => {
            // `r#type` begins like a raw string, but has no quote behind its hashes.
            let hashes = rest[prefix..].bytes().take_while(|byte| *byte == b'#').count();
            let quoted = rest[prefix + hashes..].strip_prefix('"')?;
            let end = format!("\"{}", "#".repeat(hashes));
            let length = quoted.find(&end).map_or(quoted.len(), |at| at + end.len());
            Some(prefix + hashes + 1 + length)
        }
        _ => None,
    }
}

/// A character literal or a lifetime.
fn quote(rest: &str) -> (Kind, usize) {
    let mut chars = rest[1..].chars();
    let (first, second) = (chars.next(), chars.next());
    // `'a'` and `'\n'` are characters, `'a` and `'static` lifetimes. A lifetime never has a quote after its
    // first letter.
    if first == Some('\\') || second == Some('\'') {
        return (Kind::Literal, 1 + closed(&rest[1..], '\''));
    }
    (Kind::Lifetime, 1 + word(&rest[1..]))
}

/// The length up to and with the closing quote.
fn closed(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// `1..2` is a number and a range, `1.max(2)` a number and a call, `1e-3` one number.
fn number(rest: &str) -> usize {
    let mut at = word(rest);
    let hexadecimal = rest.starts_with("0x");
    let next = |at: usize| rest[at..].chars().next();
    if next(at) == Some('.') && next(at + 1).is_some_and(|c| c.is_ascii_digit()) {
        at += 1 + word(&rest[at + 1..]);
    }
    if !hexadecimal && rest[..at].ends_with(['e', 'E']) && matches!(next(at), Some('+' | '-')) {
        at += 1 + word(&rest[at + 1..]);
    }
    at
}

fn word(rest: &str) -> usize {
    rest.find(|c| !is_word(c)).unwrap_or(rest.len())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        let found: Vec<_> = tokens(text).iter().map(|token| token.text).collect();
        assert_eq!(found, expect);
    }

    fn kinds(text: &str) -> Vec<Kind> {
        tokens(text).iter().map(|token| token.kind).collect()
    }

    #[test]
    fn paths_arrows_and_ranges_are_one_token() {
        check("a::<B>()->c", &["a", "::", "<", "B", ">", "(", ")", "->", "c"]);
        check("0..=9 ...", &["0", "..=", "9", "..."]);
        check("1.max(2.5e-3)", &["1", ".", "max", "(", "2.5e-3", ")"]);
        check("0xfe-1", &["0xfe", "-", "1"]);
    }

    #[test]
    fn literals_end_where_rust_ends_them() {
        check(r#"f("a\"//", b)"#, &["f", "(", r#""a\"//""#, ",", "b", ")"]);
        check(r###"br#"a"b"#;"###, &[r###"br#"a"b"#"###, ";"]);
        check(r"'\'' 'a' 'a>", &[r"'\''", "'a'", "'a", ">"]);
        check("r#type for", &["r#type", "for"]);
        check("\"open", &["\"open"]);
    }

    #[test]
    fn docs_are_told_from_comments() {
        use Kind::{Comment, InnerDoc, OuterDoc};
        assert_eq!(kinds("//! a\n/// b\n// c\n//// d"), [InnerDoc, OuterDoc, Comment, Comment]);
        assert_eq!(
            kinds("/*! a */ /** b */ /**/ /* c */ /*** d */"),
            [InnerDoc, OuterDoc, Comment, Comment, Comment]
        );
        check("/* a /* b */ c */ d", &["/* a /* b */ c */", "d"]);
    }

    #[test]
    fn lines_are_counted_through_literals() {
        let lines: Vec<_> = tokens("a\n\"b\nc\" d\n/*\n*/ e").iter().map(|t| t.line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5]);
    }
}
