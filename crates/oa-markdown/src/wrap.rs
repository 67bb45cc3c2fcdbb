//! Wrapping of text.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::style::{Line, Span, Style};

/// The minimum width of text, in columns. In a narrower terminal, lines are too long.
const NARROWEST: usize = 4;

/// Breaks text into lines of at most `width` columns: at spaces, between wide characters, and within words longer than
/// a line. `first` begins the first line, `next` all others.
#[must_use]
pub fn wrap(spans: &[Span], first: &[Span], next: &[Span], width: usize) -> Vec<Line> {
    let mut wrapper = Wrapper::new(first, next, width);
    for span in spans {
        for piece in span.text.split_inclusive('\n') {
            let (piece, ends) = match piece.strip_suffix('\n') {
                Some(piece) => (piece, true),
                None => (piece, false),
            };
            piece.graphemes(true).for_each(|grapheme| wrapper.push(grapheme, span.style));
            if ends {
                wrapper.end_word();
                wrapper.end_line();
            }
        }
    }
    wrapper.finish()
}

/// Breaks text at exactly `width` columns, and keeps all spaces: for code.
#[must_use]
pub fn fold(spans: &[Span], indent: &[Span], width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = Begun::new(indent);
    let width = width.max(line.width + NARROWEST);
    for span in spans {
        for grapheme in span.text.graphemes(true) {
            if line.width + grapheme.width() > width {
                lines.push(std::mem::replace(&mut line, Begun::new(indent)).line);
            }
            line.push(grapheme, span.style);
        }
    }
    lines.push(line.line);
    lines
}

struct Wrapper<'a> {
    next: &'a [Span],
    width: usize,
    lines: Vec<Line>,
    line: Begun,
    /// True if the line has text after its prefix.
    has_text: bool,
    spaces: Vec<(String, Style)>,
    word: Vec<(String, Style)>,
    word_width: usize,
}

impl<'a> Wrapper<'a> {
    fn new(first: &[Span], next: &'a [Span], width: usize) -> Self {
        let line = Begun::new(first);
        let longest = line.width.max(Begun::new(next).width);
        Self {
            next,
            width: width.max(longest + NARROWEST),
            lines: Vec::new(),
            line,
            has_text: false,
            spaces: Vec::new(),
            word: Vec::new(),
            word_width: 0,
        }
    }

    fn push(&mut self, grapheme: &str, style: Style) {
        if grapheme == " " {
            self.end_word();
            self.spaces.push((grapheme.to_owned(), style));
            return;
        }
        let columns = grapheme.width();
        // Text in wide characters has no spaces: it may break between any two.
        let is_wide = columns > 1;
        if is_wide {
            self.end_word();
        }
        self.word.push((grapheme.to_owned(), style));
        self.word_width += columns;
        if is_wide {
            self.end_word();
        }
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        // Spaces are held back until the next word, and dropped if a line ends before it.
        if self.line.width + self.spaces.len() + self.word_width <= self.width {
            for (space, style) in self.spaces.drain(..) {
                self.line.push(&space, style);
            }
        } else {
            if self.has_text {
                self.end_line();
            }
            self.spaces.clear();
        }
        for (grapheme, style) in std::mem::take(&mut self.word) {
            // A word that is longer than the line is broken anywhere.
            if self.line.width + grapheme.width() > self.width {
                self.end_line();
            }
            self.line.push(&grapheme, style);
            self.has_text = true;
        }
        self.word_width = 0;
    }

    fn end_line(&mut self) {
        self.spaces.clear();
        let line = std::mem::replace(&mut self.line, Begun::new(self.next));
        self.lines.push(line.line);
        self.has_text = false;
    }

    fn finish(mut self) -> Vec<Line> {
        self.end_word();
        if self.has_text || self.lines.is_empty() {
            self.end_line();
        }
        self.lines
    }
}

/// A line under construction.
struct Begun {
    line: Line,
    width: usize,
}

impl Begun {
    fn new(beginning: &[Span]) -> Self {
        let line = Line { spans: beginning.to_vec() };
        Self { width: line.width(), line }
    }

    fn push(&mut self, grapheme: &str, style: Style) {
        match self.line.spans.last_mut() {
            Some(last) if last.style == style => last.text.push_str(grapheme),
            _ => self.line.spans.push(Span { text: grapheme.to_owned(), style }),
        }
        self.width += grapheme.width();
    }
}

#[cfg(test)]
mod tests;
