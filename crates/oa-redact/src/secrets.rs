use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use crate::base64;
use crate::escape::{self, Escape};
use crate::header;
use crate::strip::strip_invisible;
use crate::view::Views;

/// The text that stands in the place of a secret.
pub const MASK: &str = "****";

/// How much of a secret's beginning gives it away where a text was cut within it, in bytes.
const TELLING: usize = 8;

/// The secrets of one server, in every form in which a text may have them.
///
/// What is derived from them is made when they are added. Looking through a text takes time in
/// proportion to its length, and is meant for errors and logs.
#[derive(Clone, Default)]
pub struct Secrets(Vec<Secret>);

#[derive(Clone)]
struct Secret {
    text: Box<[u8]>,
    /// How much of its beginning gives it away.
    telling: usize,
    /// True if it is what base64 has of a secret, whose neighbors belong to it.
    is_base64: bool,
}

impl Secrets {
    /// Knows no secret.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a secret, unless it is empty.
    pub fn add(&mut self, secret: &str) {
        // A scheme in front gives nothing away.
        let scheme = secret.find(char::is_whitespace).map_or(0, |at| at + 1);
        self.insert(secret.as_bytes(), scheme + TELLING, false);
        // As in `user:key`: what stands in front moves the bits by one of three steps.
        for shift in 0..3 {
            let standard = base64::inside(secret.as_bytes(), shift);
            if standard.len() >= TELLING {
                let url = standard.replace('+', "-").replace('/', "_");
                self.insert(standard.as_bytes(), TELLING, true);
                self.insert(url.as_bytes(), TELLING, true);
            }
        }
    }

    /// Adds a key, unless it is shorter than 8 bytes: local servers are given words such as `none`.
    pub fn add_key(&mut self, key: &str) {
        if key.len() >= header::SHORTEST_KEY {
            self.add(key);
        }
    }

    /// Adds what a request header holds: its value, each word of it but the scheme, the values of
    /// cookies and of other `name=value` pairs, and the password of `Basic` credentials.
    ///
    /// What is shorter than 16 bytes is taken for a word, and than 8 in a header that exists to carry a
    /// key: `Authorization`, `Cookie`, names that end in `-key`, `-secret` or `-token`. Nothing is a
    /// secret in a [harmless](crate::is_harmless) header.
    pub fn add_header(&mut self, name: &str, value: &str) {
        header::secrets(name, value).for_each(|secret| self.add(secret));
        let basic =
            value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
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

    /// Makes an excerpt: masks the secrets, puts the text on one line, cuts it after so many characters
    /// and removes what is not [visible](crate::strip_invisible).
    #[must_use]
    pub fn excerpt(&self, text: &str, characters: usize) -> String {
        let masked = self.mask(text);
        let mut line = String::new();
        for word in masked.split_whitespace() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        match line.char_indices().nth(characters) {
            Some((end, _)) => format!("{}...", strip_invisible(&line[..end])),
            None => strip_invisible(&line).into_owned(),
        }
    }

    /// Finds the secrets in a text: the parts to mask, from left to right, none beside another.
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
    /// Finds the secret, and its beginning where the text was cut within it.
    fn spans(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        let begins = |byte: &u8| *byte == self.text[0] || b"%\\&".contains(byte);
        let is_escaped = |rest: &[u8]| {
            Escape::read(rest).is_some_and(|escape| escape.bytes().first() == self.text.first())
        };
        let mut ways = Vec::new();
        let mut from = 0;
        while let Some(at) = bytes[from..].iter().position(begins) {
            let start = from + at;
            from = start + 1;
            if bytes[start] != self.text[0] && !is_escaped(&bytes[start..]) {
                continue;
            }
            let (matched, end) = self.longest(&bytes[start..], &mut ways);
            let end = start + end;
            if matched < self.telling {
                continue;
            }
            let end = if matched == self.text.len() {
                end
            } else {
                let rest = end + escape::broken(&bytes[end..]);
                match [end, rest].into_iter().find(|end| is_cut(&bytes[*end..])) {
                    Some(end) => end,
                    None => continue,
                }
            };
            spans.push(if self.is_base64 { widened(bytes, start..end) } else { start..end });
        }
        spans
    }

    /// Returns how much of the secret a text begins with, each byte as it is or escaped, and where that ends.
    /// `ways` is room to work in.
    fn longest(&self, bytes: &[u8], ways: &mut Vec<(usize, usize)>) -> (usize, usize) {
        let mut longest = (0, 0);
        // A byte that may be both, as the `%` of `%25`, leaves a way open to come back to.
        ways.clear();
        ways.push((0, 0));
        for _ in 0..STEPS * self.text.len() {
            let Some((matched, end)) = ways.pop() else { break };
            longest = longest.max((matched, end));
            let (wanted, rest) = (&self.text[matched..], &bytes[end..]);
            if wanted.is_empty() {
                break;
            }
            if rest.first() == wanted.first() {
                ways.push((matched + 1, end + 1));
            }
            let invisible = Escape::invisible(rest).filter(|_| matched > 0);
            for escape in [Escape::read(rest), invisible].into_iter().flatten() {
                if wanted.starts_with(escape.bytes()) {
                    ways.push((matched + escape.bytes().len(), end + escape.length));
                }
            }
        }
        longest
    }
}

/// How many ways to read a secret are tried, for each of its bytes.
const STEPS: usize = 4;

/// Returns whether a text was cut off before this: nothing follows, or what people put in the place of the rest.
fn is_cut(rest: &[u8]) -> bool {
    let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let rest = &rest[blank..];
    let rest = rest.strip_prefix(b"(").or_else(|| rest.strip_prefix(b"[")).unwrap_or(rest);
    let marks = ["..", "\u{2026}", "**", "xxx", "XXX", "\u{2022}", "\u{fffd}", "trunc", "Trunc"];
    rest.is_empty() || marks.iter().any(|mark| rest.starts_with(mark.as_bytes()))
}

/// All of the base64 around a part of it.
fn widened(bytes: &[u8], part: Range<usize>) -> Range<usize> {
    let is_digit = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
    let before = bytes[..part.start].iter().rev().take_while(is_digit).count();
    let behind = bytes[part.end..].iter().take_while(is_digit).count();
    part.start - before..part.end + behind
}

/// Tells how many secrets there are, and none of them.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("forms", &self.0.len()).finish_non_exhaustive()
    }
}
