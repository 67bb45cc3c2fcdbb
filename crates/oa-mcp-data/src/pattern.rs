use std::iter::Peekable;
use std::str::Chars;

/// The longest pattern that is sent to model servers, in bytes.
const LONGEST: usize = 512;
/// The maximum repetitions in a pattern, with those of nested groups multiplied.
const REPETITIONS: u32 = 1_000;
/// The nesting depth of groups.
const DEPTH: u32 = 8;

/// Returns a pattern of the same meaning that every model server which supports patterns can be expected to accept;
/// `None` if there is none.
///
/// Model servers turn a pattern into a grammar, and one that they cannot parse fails the whole request. llama.cpp, the
/// strictest of them, requires both anchors and knows no `\d`, no `\w`, no `\/` and no `(?:a)`. So classes are written
/// out and needless escapes are removed: `^\d+\/(?:a|b)$` becomes `^[0-9]+/(a|b)$`. A pattern without both anchors has no
/// such form, because `.` stands for different characters in different servers. `a{2,1}` has been seen to exhaust a
/// server's memory.
pub(crate) fn plain(pattern: &str) -> Option<String> {
    if pattern.len() > LONGEST {
        return None;
    }
    let inner = pattern.strip_prefix('^')?.strip_suffix('$')?;
    // The grammar that is followed:
    //   pattern      = "^" sequence "$"
    //   alternatives = sequence *("|" sequence)
    //   sequence     = 1*(atom [repetition])
    //   atom         = "\" escape / "[" class "]" / "(" ["?:"] alternatives ")" / any other character
    // Whatever it does not cover, such as lookarounds, back references and lazy repetitions, is not plain. Neither is an
    // escaped `$` at the end: its backslash is left over.
    let mut reader = Reader { rest: inner.chars().peekable(), out: "^".to_owned() };
    // No alternatives: `^a|b$` means `(^a)|(b$)`, but to llama.cpp `^(a|b)$`.
    reader.sequence(DEPTH, REPETITIONS)?;
    if reader.rest.next().is_some() {
        return None;
    }
    reader.out.push('$');
    (reader.out.len() <= LONGEST).then_some(reader.out)
}

/// Returns true if a character has a meaning outside of classes, so that it must be escaped there.
fn is_special(c: char) -> bool {
    "^$.[](){}|*+?".contains(c)
}

/// Reads a pattern and writes its plain form.
struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
}

impl Reader<'_> {
    /// Reads a character and writes it as it is.
    fn copy(&mut self) -> Option<char> {
        let next = self.rest.next()?;
        self.out.push(next);
        Some(next)
    }

    /// Copies this character if it is next.
    fn copy_if(&mut self, expected: char) -> bool {
        let is_next = self.rest.next_if_eq(&expected).is_some();
        if is_next {
            self.out.push(expected);
        }
        is_next
    }

    /// Reads alternatives up to a closing parenthesis or the end; `most` repetitions are left.
    fn alternatives(&mut self, depth: u32, most: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        loop {
            self.sequence(depth, most)?;
            if !self.copy_if('|') {
                return Some(());
            }
        }
    }

    /// Reads at least one atom.
    fn sequence(&mut self, depth: u32, most: u32) -> Option<()> {
        let mut is_empty = true;
        while let Some(&next) = self.rest.peek() {
            if matches!(next, '|' | ')') {
                break;
            }
            is_empty = false;
            self.rest.next();
            let mut group = None;
            match next {
                '\\' => {
                    let at = self.out.len();
                    self.escape()?;
                    if self.repeats_next() && !self.out[at..].starts_with('[') {
                        depth.checked_sub(1)?;
                        self.out.insert(at, '(');
                        self.out.push(')');
                    }
                }
                '[' => self.class()?,
                '(' => {
                    if self.rest.next_if_eq(&'?').is_some() {
                        self.rest.next_if_eq(&':')?;
                    }
                    self.out.push('(');
                    // The following characters say how often the group repeats.
                    group = Some(self.rest.clone());
                    self.alternatives(depth, most)?;
                    self.copy_if(')').then_some(())?;
                }
                '^' | '$' | '*' | '+' | '?' | '{' | '}' | ']' => return None,
                next if next.is_control() => return None,
                // In JSON, it is written with a backslash, which llama.cpp does not add.
                '"' => return None,
                // llama.cpp repeats only the last byte of such a character, and all literals up to an escaped one. A
                // group it repeats whole.
                next if !next.is_ascii() && self.repeats_next() => {
                    depth.checked_sub(1)?;
                    self.out.extend(['(', next, ')']);
                }
                next => self.out.push(next),
            }
            let times = self.repetition()?;
            // How often a group repeats is known only behind it, so its content is read again with what is left:
            // in `(a{500}){500}` first with 1,000 repetitions, then with 1,000 / 500 = 2, which `{500}` exceeds.
            let left = most / times.max(1);
            if left == 0 {
                return None;
            }
            // A level of nesting may be read twice, so the innermost one 2^8 times with a `DEPTH` of 8.
            if let Some(rest) = group.filter(|_| times > 1) {
                Reader { rest, out: String::new() }.alternatives(depth, left)?;
            }
        }
        (!is_empty).then_some(())
    }

    fn repeats_next(&mut self) -> bool {
        matches!(self.rest.peek(), Some('*' | '+' | '?' | '{'))
    }

    /// Reads a repetition, if there is one, and returns its count.
    fn repetition(&mut self) -> Option<u32> {
        let times = match self.rest.peek() {
            // Loops in a grammar, and not expanded like counted repetitions, so they cost nothing.
            Some('*' | '+' | '?') => {
                self.copy();
                1
            }
            Some('{') => {
                self.copy();
                let least = self.number()?;
                let times = match self.copy()? {
                    '}' => least,
                    ',' if self.copy_if('}') => least,
                    ',' => {
                        let most = self.number()?;
                        self.copy_if('}').then_some(())?;
                        if most < least {
                            return None;
                        }
                        most
                    }
                    _ => return None,
                };
                Some(times).filter(|times| *times <= REPETITIONS)?
            }
            _ => return Some(1),
        };
        // Lazy and possessive repetitions.
        (!self.repeats_next()).then_some(times)
    }

    fn number(&mut self) -> Option<u32> {
        let mut digits = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        self.out.push_str(&digits);
        digits.parse().ok()
    }

    /// Reads an escape outside of classes, after its backslash.
    fn escape(&mut self) -> Option<()> {
        let next = self.rest.next()?;
        match next {
            'd' => self.out.push_str("[0-9]"),
            'D' => self.out.push_str("[^0-9]"),
            'w' => self.out.push_str("[A-Za-z0-9_]"),
            'W' => self.out.push_str("[^A-Za-z0-9_]"),
            // In JSON, both are written with a backslash, which llama.cpp does not add.
            '"' | '\\' => return None,
            next if is_special(next) => self.out.extend(['\\', next]),
            next if next.is_ascii_punctuation() => self.out.push(next),
            // Among them `\s` and `\S`: engines disagree on which characters are white space.
            _ => return None,
        }
        Some(())
    }

    /// Reads a class after its opening bracket.
    fn class(&mut self) -> Option<()> {
        self.out.push('[');
        let is_negated = self.copy_if('^');
        let start = self.out.len();
        // Written last, where a hyphen is a literal in every engine.
        let mut has_hyphen = false;
        let mut is_empty = true;
        loop {
            let from = match self.rest.next()? {
                ']' if is_empty => return None,
                ']' => break,
                '[' => return None,
                '\\' => match self.rest.next()? {
                    'd' => {
                        self.out.push_str("0-9");
                        None
                    }
                    'w' => {
                        self.out.push_str("A-Za-z0-9_");
                        None
                    }
                    next if next.is_ascii_punctuation() => Some(next),
                    _ => return None,
                },
                // Elsewhere, a hyphen is a literal: `[-a]`, `[a-]`. After a class or a range, as in `[\d-z]` and
                // `[a-c-e]`, engines disagree on what it means.
                '-' if !is_empty && self.rest.peek() != Some(&']') => return None,
                next if next.is_control() => return None,
                next => Some(next),
            };
            if !is_negated && matches!(from, Some('"' | '\\')) {
                return None;
            }
            let to = self.end_of_range();
            match (from, to) {
                (None, None) => {}
                (Some('-'), None) => has_hyphen = true,
                (Some(from), None) => self.member(from, start)?,
                (Some(from), Some(to))
                    if from != '-'
                        && from <= to
                        && !matches!(to, '[' | '\\')
                        && !to.is_control() =>
                {
                    self.member(from, start)?;
                    self.out.push('-');
                    self.member(to, start)?;
                }
                _ => return None,
            }
            is_empty = false;
        }
        if has_hyphen {
            self.out.push('-');
        }
        self.out.push(']');
        Some(())
    }

    /// Reads the end of a range in a class, if the next character is a hyphen that begins one.
    fn end_of_range(&mut self) -> Option<char> {
        let mut ahead = self.rest.clone();
        let to = ahead.next_if_eq(&'-').and_then(|_| ahead.next()).filter(|to| *to != ']')?;
        self.rest = ahead;
        Some(to)
    }

    /// Writes a character of a class whose members begin at `start`.
    fn member(&mut self, c: char, start: usize) -> Option<()> {
        match c {
            // At the start it would mean another class, and llama.cpp takes no escape for it.
            '^' if self.out.len() == start && self.out.ends_with('[') => return None,
            '[' | ']' | '\\' => self.out.extend(['\\', c]),
            c => self.out.push(c),
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn common_patterns_have_a_plain_form() {
        for (pattern, expected) in [
            ("^[a-z]+$", "^[a-z]+$"),
            (r"^\d{3}-\w+$", "^[0-9]{3}-[A-Za-z0-9_]+$"),
            (r"^\D\W$", "^[^0-9][^A-Za-z0-9_]$"),
            (r"^[\w.-]+@[\w-]+\.\w+$", r"^[A-Za-z0-9_.-]+@[A-Za-z0-9_-]+\.[A-Za-z0-9_]+$"),
            ("^(a|b)$", "^(a|b)$"),
            ("^(?:https?|ftp)://[^ ]*$", "^(https?|ftp)://[^ ]*$"),
            (r"^[a-z]{1,63}(\.[a-z]{1,63})*$", r"^[a-z]{1,63}(\.[a-z]{1,63})*$"),
            ("^日本$", "^日本$"),
            ("^日本+é{2}[é]*$", "^日(本)+(é){2}[é]*$"),
            (r"^\/a\-b\@c$", "^/a-b@c$"),
            ("^.{1,500}$", "^.{1,500}$"),
            (r"^\$$", r"^\$$"),
            (r"^v\.?\d+\.{2}$", r"^v(\.)?[0-9]+(\.){2}$"),
            (r#"^[^"\\]*$"#, r#"^[^"\\]*$"#),
            ("^[-a]$", "^[a-]$"),
            ("^[a-]$", "^[a-]$"),
            (r"^[a\-z\.\/]$", "^[az./-]$"),
            (r"^[^\]\[]$", r"^[^\]\[]$"),
            (r"^[a\^]$", "^[a^]$"),
            ("^[^^]$", "^[^^]$"),
            ("^[ -~]$", "^[ -~]$"),
        ] {
            assert_eq!(plain(pattern).as_deref(), Some(expected), "{pattern}");
        }
    }

    #[test]
    fn unsupported_patterns_are_rejected() {
        for pattern in [
            "",
            "^",
            "^$",
            "[a-z]+",
            "^a",
            "a$",
            r"^a\$",
            r"^\S+$",
            r"^[^\s]$",
            r"^[\^a]$",
            r"^[\d-z]$",
            "^[a-c-e]$",
            r"^[\--z]$",
            r"^[,-\]a]$",
            "^[-^]$",
            r"^[\--^-a]$",
            r"^\\$",
            r#"^"a"$"#,
            r#"^["a]$"#,
            "^a|b$",
            "^[a-z$",
            "^(a$",
            "^a)$",
            "^*a$",
            "^a{2,1}$",
            "^[z-a]$",
            "^(?!x).*$",
            "^(?<n>a)$",
            r"^(a)\1$",
            r"^\p{L}+$",
            r"^\bfoo$",
            "^a++$",
            "^a*?$",
            "^a{,3}$",
            "^{$",
            "^\\",
            "^[]$",
            "^[[:alpha:]]$",
            "^a{2001}$",
            "^(a{500}){500}$",
            "^(|a)$",
            "^a\n$",
            "^((((((((((a))))))))))$",
        ] {
            assert_eq!(plain(pattern), None, "{pattern}");
        }
        assert_eq!(plain(&format!("^{}$", "a".repeat(1_000))), None);
        assert_eq!(plain(&format!("^{}$", r"\w".repeat(200))), None);
    }

    proptest! {
        #[test]
        fn plain_forms_are_plain(pattern in r"\^[\[\](){}|*+?^$\\.,:a-dw0-2-]{0,12}\$|\^.{0,40}\$") {
            if let Some(once) = plain(&pattern) {
                prop_assert_eq!(plain(&once), Some(once));
            }
        }

        /// The reading of nested groups twice must not be exponential.
        #[test]
        fn nested_groups_are_read_in_bounded_time(depth in 0..40_usize, times in 1..3_u32) {
            let close = format!("){{{times}}}");
            let pattern = format!("^{}a{}$", "(".repeat(depth), close.repeat(depth));
            prop_assert_eq!(plain(&pattern).is_some(), depth <= 8);
        }
    }
}
