//! Rust text with its comments, and its strings, blanked out. Lines keep their numbers.

use crate::rust::lexer::{Kind, tokens};

pub(super) struct Source {
    /// Without comments and docs.
    pub(super) code: String,
    /// Without comments, docs and the contents of string and character literals.
    pub(super) bare: String,
}

impl Source {
    pub(super) fn new(text: &str) -> Self {
        let (mut code, mut bare) = (String::new(), String::new());
        let mut at = 0;
        for token in tokens(text) {
            let between = &text[at..token.start];
            at = token.start + token.text.len();
            code.push_str(between);
            bare.push_str(between);
            match token.kind {
                Kind::Comment | Kind::InnerDoc | Kind::OuterDoc => {
                    blank(token.text, &mut code);
                    blank(token.text, &mut bare);
                }
                Kind::Ident | Kind::Lifetime | Kind::Punct => {
                    code.push_str(token.text);
                    bare.push_str(token.text);
                }
                Kind::Literal => {
                    code.push_str(token.text);
                    let (before, inside, after) = quoted(token.text);
                    bare.push_str(before);
                    blank(inside, &mut bare);
                    bare.push_str(after);
                }
            }
        }
        code.push_str(&text[at..]);
        bare.push_str(&text[at..]);
        Self { code, bare }
    }

    /// The code up to the test module at the end of the file.
    pub(super) fn code_before_tests(&self) -> &str {
        &self.code[..self.tests_at()]
    }

    fn tests_at(&self) -> usize {
        let mut offset = 0;
        for line in self.code.split_inclusive('\n') {
            if line.starts_with("#[cfg(test)]") {
                let rest = self.code[offset..].lines().skip(1);
                let mut items =
                    rest.map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("#["));
                // A declaration such as `mod tests;` is a line of code: its module is a file of its own.
                let is_inline = |item: &str| item.starts_with("mod ") && !item.ends_with(';');
                if items.next().is_some_and(is_inline) {
                    return offset;
                }
            }
            offset += line.len();
        }
        offset
    }
}

/// Splits a literal around what stands between its quotes; a number has none.
fn quoted(literal: &str) -> (&str, &str, &str) {
    let quotes = ['"', '\''];
    let Some(open) = literal.find(quotes) else { return (literal, "", "") };
    let (before, rest) = literal.split_at(open + 1);
    // One that never ends has no closing quote.
    let close = literal[open..].chars().next().and_then(|quote| rest.rfind(quote));
    let (inside, after) = rest.split_at(close.unwrap_or(rest.len()));
    (before, inside, after)
}

fn blank(text: &str, out: &mut String) {
    out.extend(text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, code: &str, bare: &str) {
        let source = Source::new(text);
        assert_eq!(source.code.trim_end(), code);
        assert_eq!(source.bare.trim_end(), bare);
    }

    #[test]
    fn comments_go_and_lines_stay() {
        check("a // b\nc", "a     \nc", "a     \nc");
        check("a /* b /* c */\n */ d", "a             \n    d", "a             \n    d");
    }

    #[test]
    fn strings_are_code_with_contents() {
        check(r#"f("a // b", c)"#, r#"f("a // b", c)"#, r#"f("      ", c)"#);
        check(r#"f("\"//", c) // d"#, r#"f("\"//", c)"#, r#"f("    ", c)"#);
    }

    #[test]
    fn raw_strings_end_at_their_hashes() {
        check(r###"r#"a " b"# // c"###, r###"r#"a " b"#"###, r###"r#"     "#"###);
        check(r##"br"a\" // c"##, r##"br"a\""##, r##"br"  ""##);
        check("r#type // c", "r#type", "r#type");
        check(r#"for"a//b""#, r#"for"a//b""#, r#"for"    ""#);
    }

    #[test]
    fn a_lifetime_opens_nothing() {
        check("&'a str // b", "&'a str", "&'a str");
        check(r"f('\'', '/', '\u{2f}') // b", r"f('\'', '/', '\u{2f}')", "f('  ', ' ', '      ')");
        check(r#"f('"') // b"#, r#"f('"')"#, "f(' ')");
    }

    #[test]
    fn the_test_module_is_cut_off() {
        let source =
            Source::new("a\n#[cfg(test)]\nuse b;\n#[cfg(test)]\n#[rustfmt::skip]\nmod t {}\n");
        assert_eq!(source.code_before_tests(), "a\n#[cfg(test)]\nuse b;\n");
    }

    #[test]
    fn a_declared_test_module_cuts_nothing_off() {
        let text = "#[cfg(test)]\nmod tests;\nmod b;\n";
        assert_eq!(Source::new(text).code_before_tests(), text);
    }
}
