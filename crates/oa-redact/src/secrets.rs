use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde_json::Value;

use crate::base64;
use crate::escape::{self, Escape};
use crate::header;
use crate::strip::strip_invisible;
use crate::view::Views;

/// The replacement for a secret.
pub const MASK: &str = "****";

/// The length of a secret's prefix that is masked where text was cut off within it, in bytes.
const TELLING: usize = 8;

/// The secrets of one server, in every form in which a text may contain them.
///
/// Derived forms are computed when a secret is added. Searching takes time linear in the text and is meant for
/// errors and logs.
#[derive(Clone, Default)]
pub struct Secrets(Vec<Secret>);

#[derive(Clone)]
struct Secret {
    text: Box<[u8]>,
    /// The length of a prefix that is masked.
    telling: usize,
    /// True for a base64 form, whose neighboring digits belong to it.
    is_base64: bool,
}

impl Secrets {
    /// Creates an empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a secret, unless it is empty.
    pub fn add(&mut self, secret: &str) {
        // A prefix that covers only the scheme reveals nothing.
        let scheme = secret.find(char::is_whitespace).map_or(0, |at| at + 1);
        self.insert(secret.as_bytes(), scheme + TELLING, false);
        // As in `user:key`, text before the secret shifts its base64 form by one of three offsets.
        for shift in 0..3 {
            // A shorter form would also be found in harmless text.
            let standard = base64::inside(secret.as_bytes(), shift);
            if standard.len() >= TELLING {
                let url = standard.replace('+', "-").replace('/', "_");
                self.insert(standard.as_bytes(), TELLING, true);
                self.insert(url.as_bytes(), TELLING, true);
            }
        }
    }

    /// Adds a key, unless it is shorter than 8 bytes: local servers are given placeholders such as `none`.
    pub fn add_key(&mut self, key: &str) {
        if key.len() >= header::SHORTEST_KEY {
            self.add(key);
        }
    }

    /// Adds the secrets in a request header: its value, each word of it except the scheme, the values of
    /// cookies and other `name=value` pairs, and the password of `Basic` credentials.
    ///
    /// Values shorter than 16 bytes count as words; the limit is 8 bytes in headers meant for secrets:
    /// `Authorization`, `Cookie`, and names that end in `-key`, `-secret` or `-token`.
    /// [Harmless](crate::is_harmless) headers contain no secrets.
    pub fn add_header(&mut self, name: &str, value: &str) {
        header::secrets(name, value).for_each(|secret| self.add(secret));
        let basic =
            value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
        // The header has only the base64 form, but a server may quote the password itself.
        let decoded = basic.and_then(|(_, credentials)| base64::decode(credentials.trim()));
        let decoded = decoded.and_then(|decoded| String::from_utf8(decoded).ok());
        if let Some((_, password)) = decoded.as_deref().and_then(|decoded| decoded.split_once(':'))
        {
            self.add_key(password);
        }
    }

    /// Masks the secrets in a text.
    #[must_use]
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let spans = self.spans(text);
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masked = String::with_capacity(text.len());
        let mut from = 0;
        for span in spans {
            masked.push_str(&text[from..span.start]);
            masked.push_str(MASK);
            from = span.end;
        }
        masked.push_str(&text[from..]);
        Cow::Owned(masked)
    }

    /// Masks the secrets in a text, and removes [invisible](crate::strip_invisible) characters.
    #[must_use]
    pub fn clean(&self, text: &str) -> String {
        // Twice, because the parts of a key may have been kept apart by such a character.
        self.mask(&strip_invisible(&self.mask(text))).into_owned()
    }

    /// [Cleans](Self::clean) all texts in a JSON value, member names included, and masks numbers that contain a secret.
    /// Members whose names become equal are numbered, so that none is lost.
    pub fn clean_json(&self, value: &mut Value) {
        match value {
            Value::Array(list) => list.iter_mut().for_each(|value| self.clean_json(value)),
            Value::Object(members) => {
                let mut same = 1;
                for (name, mut value) in std::mem::take(members) {
                    self.clean_json(&mut value);
                    let cleaned = self.clean(&name);
                    let mut name = cleaned.clone();
                    while members.contains_key(&name) {
                        same += 1;
                        name = format!("{cleaned} ({same})");
                    }
                    members.insert(name, value);
                }
            }
            Value::Number(number) if !self.spans(&number.to_string()).is_empty() => {
                *value = Value::from(MASK);
            }
            Value::String(text) => *text = self.clean(text),
            Value::Bool(_) | Value::Null | Value::Number(_) => {}
        }
    }

    /// Makes an excerpt: masks the secrets, removes [invisible](crate::strip_invisible) characters, folds the text onto one
    /// line, and cuts it after `characters` characters.
    #[must_use]
    pub fn excerpt(&self, text: &str, characters: usize) -> String {
        // Folded before, too: a carriage return separates words, but is removed as invisible.
        let line = folded(&strip_invisible(&folded(&self.mask(text))));
        // Masked once more: what was removed may have kept a secret apart.
        let line = self.mask(&line);
        match line.char_indices().nth(characters) {
            Some((end, _)) => format!("{}...", &line[..end]),
            None => line.into_owned(),
        }
    }

    /// Finds the secrets in a text: the ranges to mask, from left to right, without adjacent ranges.
    #[must_use]
    pub fn spans(&self, text: &str) -> Vec<Range<usize>> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let mut spans = Views::new(text)
            .find(|bytes| self.0.iter().flat_map(|secret| secret.spans(bytes)).collect());
        spans.sort_unstable_by_key(|span| span.start);
        let mut apart: Vec<Range<usize>> = Vec::with_capacity(spans.len());
        for span in spans {
            match apart.last_mut() {
                Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
                _ => apart.push(span),
            }
        }
        apart
    }

    fn insert(&mut self, text: &[u8], telling: usize, is_base64: bool) {
        if !text.is_empty() && !self.0.iter().any(|known| *known.text == *text) {
            let telling = telling.min(text.len());
            self.0.push(Secret { text: text.into(), telling, is_base64 });
        }
    }
}

impl Secret {
    /// Finds the secret, and its prefix where the text was cut off within it.
    fn spans(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        // A secret begins with its first byte or with an escape of it. The search goes on behind that byte,
        // even after a match: overlapping matches are merged by `Secrets::spans`.
        let begins = |byte: &u8| *byte == self.text[0] || b"%\\&".contains(byte);
        let is_escaped = |rest: &[u8]| {
            Escape::read(rest).is_some_and(|escape| escape.bytes().first() == self.text.first())
        };
        let (mut ways, mut runs) = (Vec::new(), InvisibleRuns::default());
        let mut from = 0;
        while let Some(at) = bytes[from..].iter().position(begins) {
            let start = from + at;
            from = start + 1;
            if bytes[start] != self.text[0] && !is_escaped(&bytes[start..]) {
                continue;
            }
            let Some(end) = self.end_in(bytes, start, &mut ways, &mut runs) else { continue };
            spans.push(match self.is_base64 {
                true => widened(bytes, start..end, spans.last()),
                false => start..end,
            });
        }
        spans
    }

    /// Returns the end of the secret that starts at `start`, each byte plain or escaped, or of its masked prefix where
    /// the text was cut off. `ways` is scratch space.
    fn end_in(
        &self,
        bytes: &[u8],
        start: usize,
        ways: &mut Vec<(usize, usize)>,
        runs: &mut InvisibleRuns,
    ) -> Option<usize> {
        let mut cut_prefix = None;
        // A byte that may be both, such as the `%` in `%25`, leaves an alternative to backtrack to. The one that gets further
        // is not always the right one: the backslash of a cut escape may also be the next byte of the secret.
        ways.clear();
        ways.push((0, start));
        for _ in 0..STEPS * self.text.len() {
            let Some((matched, end)) = ways.pop() else { break };
            let (wanted, rest) = (&self.text[matched..], &bytes[end..]);
            if wanted.is_empty() {
                return Some(end);
            }
            // Only a text that ends here is masked after a prefix. A whole match, which is longer, still
            // takes precedence, so the search goes on.
            if matched >= self.telling {
                cut_prefix = cut_prefix.max(cut_after(bytes, end));
            }
            if rest.first() == wanted.first() {
                ways.push((matched + 1, end + 1));
            }
            // Before the first byte, invisible characters are not part of the secret. Any number of them is one step.
            let behind = if matched > 0 { runs.end(bytes, end) } else { end };
            if behind > end {
                ways.push((matched, behind));
            }
            if let Some(escape) = Escape::read(rest).filter(|it| wanted.starts_with(it.bytes())) {
                ways.push((matched + escape.bytes().len(), end + escape.length));
            }
        }
        cut_prefix
    }
}

/// The number of alternatives tried per byte of a secret.
const STEPS: usize = 4;

/// The ends of runs of invisible characters, by the places from which they have been read. So each place is read once,
/// even if a secret could begin anywhere within a long run.
#[derive(Default)]
struct InvisibleRuns(HashMap<usize, usize>);

impl InvisibleRuns {
    /// Returns the end of the invisible characters at a place; the place itself if there are none.
    fn end(&mut self, bytes: &[u8], place: usize) -> usize {
        let (mut end, mut read) = (place, Vec::new());
        while let Some(next) = Escape::invisible(&bytes[end..]) {
            if let Some(&known) = self.0.get(&end) {
                end = known;
                break;
            }
            read.push(end);
            end += next.length;
        }
        self.0.extend(read.into_iter().map(|place| (place, end)));
        end
    }
}

/// Returns the words of a text on one line.
fn folded(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Returns where a text that goes up to `end` was cut off: there, or after a partial escape.
fn cut_after(bytes: &[u8], end: usize) -> Option<usize> {
    let behind = end + escape::broken(&bytes[end..]);
    [end, behind].into_iter().find(|end| is_cut(&bytes[*end..]))
}

/// Returns true if the text was cut off before `rest`: it is empty, or starts with an ellipsis or similar.
fn is_cut(rest: &[u8]) -> bool {
    let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let rest = &rest[blank..];
    let rest = rest.strip_prefix(b"(").or_else(|| rest.strip_prefix(b"[")).unwrap_or(rest);
    let marks = ["..", "\u{2026}", "**", "xxx", "XXX", "\u{2022}", "\u{fffd}", "trunc", "Trunc"];
    rest.is_empty() || marks.iter().any(|mark| rest.starts_with(mark.as_bytes()))
}

/// Returns the whole base64 text around a part of it. `last` is the text around the part before: what is in it is not
/// read again, so that a text that repeats a secret takes linear time.
fn widened(bytes: &[u8], part: Range<usize>, last: Option<&Range<usize>>) -> Range<usize> {
    let is_digit = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
    // The digits at both ends also hold bits of the secret, and those beyond are of the same credentials, as
    // in `user:key`.
    let start = match last.filter(|last| part.start <= last.end) {
        Some(last) if part.end <= last.end => return last.clone(),
        Some(last) => last.start,
        None => part.start - bytes[..part.start].iter().rev().take_while(is_digit).count(),
    };
    start..part.end + bytes[part.end..].iter().take_while(is_digit).count()
}

/// Shows the number of forms only.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("forms", &self.0.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A secret could begin at each second byte of such a text, within one run.
    #[test]
    fn long_invisible_runs_are_read_once() {
        let text = "\u{1b}B".repeat(2_000) + "x";
        let mut runs = InvisibleRuns::default();
        for place in (0..text.len() - 1).step_by(2).rev() {
            let known = runs.0.len();
            assert_eq!(runs.end(text.as_bytes(), place), text.len() - 1);
            assert_eq!(runs.0.len(), known + 1);
        }
    }
}
