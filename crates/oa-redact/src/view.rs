//! Decoded views of a text, with a mapping back to the original.

use std::ops::Range;

use crate::escape::Escape;

/// The number of times that escapes are decoded before searching, in addition to escapes in the secret itself:
/// proxies produce JSON in JSON in a URL.
const DEPTH: usize = 2;

/// A text as it is, decoded once, and decoded twice.
pub(crate) struct Views<'a> {
    text: &'a str,
    undone: Vec<View>,
}

struct View {
    bytes: Vec<u8>,
    /// The decoded escapes, in order. Bytes between them are unchanged.
    escapes: Vec<Undone>,
}

/// The positions of an escape in the source and of its decoded form in the view.
struct Undone {
    source: Range<usize>,
    bytes: Range<usize>,
}

impl<'a> Views<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut undone: Vec<View> = Vec::new();
        while undone.len() < DEPTH {
            let latest = undone.last().map_or(text.as_bytes(), |view| &view.bytes);
            let Some(view) = View::new(latest) else { break };
            undone.push(view);
        }
        Self { text, undone }
    }

    /// Calls `find` with each view and maps its results back to the original text.
    pub(crate) fn find(
        &self,
        mut find: impl FnMut(&[u8]) -> Vec<Range<usize>>,
    ) -> Vec<Range<usize>> {
        let mut spans = find(self.text.as_bytes());
        // A match at depth 2 is mapped to the text of depth 1, and from there to the original.
        for depth in 0..self.undone.len() {
            let views = &self.undone[..=depth];
            for span in find(&views[depth].bytes) {
                spans.push(views.iter().rev().fold(span, |span, view| view.source(&span)));
            }
        }
        // Masking slices the text at these ends, which must not panic whatever `find` returns.
        for span in &mut spans {
            while !self.text.is_char_boundary(span.start) {
                span.start -= 1;
            }
            while !self.text.is_char_boundary(span.end) {
                span.end += 1;
            }
        }
        spans
    }
}

impl View {
    /// Decodes a text once; `None` if it contains no escapes.
    fn new(source: &[u8]) -> Option<Self> {
        let (mut bytes, mut escapes) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(byte) = source.get(at) {
            let start = bytes.len();
            let Some(escape) = Escape::read(&source[at..]) else {
                bytes.push(*byte);
                at += 1;
                continue;
            };
            bytes.extend_from_slice(escape.bytes());
            escapes.push(Undone { source: at..at + escape.length, bytes: start..bytes.len() });
            at += escape.length;
        }
        (!escapes.is_empty()).then_some(Self { bytes, escapes })
    }

    /// Returns the part of the source that a nonempty part of the view comes from.
    fn source(&self, span: &Range<usize>) -> Range<usize> {
        // `a%2Db` has the view `a-b` with one escape, source 1..4 and bytes 1..2. Byte 0 precedes it and is
        // where it was; byte 1 comes from all of 1..4; byte 2 is one byte behind the escape, at 4.
        let place = |at: usize| {
            let next = self.escapes.partition_point(|escape| escape.bytes.start <= at);
            match self.escapes[..next].last() {
                None => at..at + 1,
                Some(escape) if at < escape.bytes.end => escape.source.clone(),
                Some(escape) => {
                    let start = escape.source.end + at - escape.bytes.end;
                    start..start + 1
                }
            }
        };
        place(span.start).start..place(span.end - 1).end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts of a text that decode to `part`.
    fn found<'a>(text: &'a str, part: &str) -> Vec<&'a str> {
        let positions = |bytes: &[u8]| {
            let windows = bytes.windows(part.len()).enumerate();
            let equal = windows.filter(|(_, window)| *window == part.as_bytes());
            equal.map(|(at, _)| at..at + part.len()).collect()
        };
        Views::new(text).find(positions).into_iter().map(|span| &text[span]).collect()
    }

    #[test]
    fn decoded_matches_map_to_source_ranges() {
        assert_eq!(found("1 a-b 2", "a-b"), ["a-b"]);
        assert_eq!(found("1 a%2Db 2", "a-b"), ["a%2Db"]);
        assert_eq!(found("%31 %61-b 2", "a-b"), ["%61-b"]);
        assert_eq!(found(r"1 a\\u002db 2", "a-b"), [r"a\\u002db"]);
        assert_eq!(found("1 a%26#45;b&lt;", "a-b"), ["a%26#45;b"]);
        assert_eq!(found("&#228;%C3%A4\\u00e4", "\u{e4}\u{e4}"), ["&#228;%C3%A4", "%C3%A4\\u00e4"]);
    }
}
