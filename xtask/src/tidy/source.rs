//! Rust text with its comments, and its strings, blanked out. Lines keep their numbers.

pub(super) struct Source {
    /// Without comments and docs.
    pub(super) code: String,
    /// Without comments, docs and the contents of string and character literals.
    pub(super) bare: String,
}

impl Source {
    pub(super) fn new(text: &str) -> Self {
        let mut scanner = Scanner {
            chars: text.chars().collect(),
            at: 0,
            code: String::with_capacity(text.len()),
            bare: String::with_capacity(text.len()),
        };
        scanner.scan();
        Self { code: scanner.code, bare: scanner.bare }
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
                if items.next().is_some_and(|item| item.starts_with("mod ")) {
                    return offset;
                }
            }
            offset += line.len();
        }
        offset
    }
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    code: String,
    bare: String,
}

#[derive(Clone, Copy)]
enum Text {
    Code,
    Comment,
    Literal,
}

impl Scanner {
    fn scan(&mut self) {
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('/', Some('/')) => self.line_comment(),
                ('/', Some('*')) => self.block_comment(),
                ('"', _) => self.string(),
                ('\'', _) => self.quote(),
                ('r', Some('"' | '#')) if self.begins_word() => self.raw_string(),
                _ => self.take(Text::Code),
            }
        }
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.take(Text::Comment);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                (None, _) => return,
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                _ => {
                    self.take(Text::Comment);
                    continue;
                }
            }
            self.take(Text::Comment);
            self.take(Text::Comment);
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.take(Text::Code);
        self.literal_until('"');
    }

    /// A character literal or a lifetime.
    fn quote(&mut self) {
        self.take(Text::Code);
        if self.peek(0) == Some('\\') || self.peek(1) == Some('\'') {
            self.literal_until('\'');
        }
    }

    fn literal_until(&mut self, end: char) {
        while let Some(c) = self.peek(0) {
            if c == end {
                self.take(Text::Code);
                return;
            }
            if c == '\\' {
                self.take(Text::Literal);
            }
            self.take(Text::Literal);
        }
    }

    fn raw_string(&mut self) {
        let hashes = self.chars[self.at + 1..].iter().take_while(|c| **c == '#').count();
        if self.peek(1 + hashes) != Some('"') {
            // A raw name such as `r#type`.
            self.take(Text::Code);
            return;
        }
        for _ in 0..hashes + 2 {
            self.take(Text::Code);
        }
        while let Some(c) = self.peek(0) {
            let closes = c == '"' && (1..=hashes).all(|i| self.peek(i) == Some('#'));
            if closes {
                for _ in 0..=hashes {
                    self.take(Text::Code);
                }
                return;
            }
            self.take(Text::Literal);
        }
    }

    /// Returns whether the `r` here opens a literal (`r"`, `br"`, `cr"`) and ends no longer word.
    fn begins_word(&self) -> bool {
        let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
        let mut before = self.chars[..self.at].iter().rev();
        match before.next() {
            Some('b' | 'c') => !before.next().is_some_and(is_word),
            Some(c) => !is_word(c),
            None => true,
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn take(&mut self, text: Text) {
        let Some(c) = self.peek(0) else { return };
        self.at += 1;
        let blank = if c == '\n' { '\n' } else { ' ' };
        self.code.push(if matches!(text, Text::Comment) { blank } else { c });
        self.bare.push(if matches!(text, Text::Code) { c } else { blank });
    }
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
}
