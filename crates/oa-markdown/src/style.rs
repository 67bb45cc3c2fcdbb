//! Styled text in lines for a terminal.

use std::borrow::Cow;
use std::fmt::Write;

use oa_redact::{printable, visible};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A color of the terminal's palette, which fits dark and light themes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Color {
    /// For code.
    Cyan,
    /// For success.
    Green,
    /// For errors.
    Red,
    /// For questions.
    Yellow,
}

/// The look of a piece of text.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Style {
    attributes: u8,
    color: Option<Color>,
}

const BOLD: u8 = 1;
const DIM: u8 = 2;
const ITALIC: u8 = 4;
const UNDERLINE: u8 = 8;
const STRIKE: u8 = 16;
/// Attributes and their codes.
const CODES: [(u8, &str); 5] =
    [(BOLD, "1"), (DIM, "2"), (ITALIC, "3"), (UNDERLINE, "4"), (STRIKE, "9")];

impl Style {
    /// Plain text.
    pub const PLAIN: Self = Self { attributes: 0, color: None };
    /// Dimmed text.
    pub const DIMMED: Self = Self { attributes: DIM, color: None };

    const fn with(mut self, attribute: u8) -> Self {
        self.attributes |= attribute;
        self
    }

    /// Returns the style in bold.
    #[must_use]
    pub const fn bold(self) -> Self {
        self.with(BOLD)
    }

    /// Returns the style dimmed.
    #[must_use]
    pub const fn dim(self) -> Self {
        self.with(DIM)
    }

    /// Returns the style in italics.
    #[must_use]
    pub const fn italic(self) -> Self {
        self.with(ITALIC)
    }

    /// Returns the style underlined.
    #[must_use]
    pub const fn underline(self) -> Self {
        self.with(UNDERLINE)
    }

    /// Returns the style struck through.
    #[must_use]
    pub const fn strike(self) -> Self {
        self.with(STRIKE)
    }

    /// Returns the style in a color.
    #[must_use]
    pub const fn color(mut self, color: Color) -> Self {
        self.color = Some(color);
        self
    }

    /// Writes the escape sequence that turns the style on.
    fn write_on(self, out: &mut String) {
        let color = self.color.map(|color| match color {
            Color::Cyan => "36",
            Color::Green => "32",
            Color::Red => "31",
            Color::Yellow => "33",
        });
        let set = CODES.iter().filter(|(attribute, _)| self.attributes & attribute != 0);
        let codes: Vec<_> = set.map(|(_, code)| *code).chain(color).collect();
        // Writing to a string does not fail.
        let _ = write!(out, "\x1b[{}m", codes.join(";"));
    }
}

/// A piece of text of one style.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Span {
    /// The text. It contains no character that a terminal acts on, except line feeds in text that is not wrapped yet.
    pub text: String,
    /// The style.
    pub style: Style,
}

impl Span {
    /// Creates a span of text that may have several lines: characters that a terminal acts on are escaped, and tabs
    /// become spaces.
    #[must_use]
    pub fn new(text: &str, style: Style) -> Self {
        let text = printable(text);
        let text = if text.contains('\t') { text.replace('\t', "    ") } else { text.into_owned() };
        Self { text, style }
    }

    /// Creates a span of one line in which every character is visible: line breaks and invisible characters are
    /// escaped.
    #[must_use]
    pub fn visible(text: &str, style: Style) -> Self {
        Self { text: visible(text).into_owned(), style }
    }
}

/// A line of a terminal.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Line {
    /// The pieces.
    pub spans: Vec<Span>,
}

impl Line {
    /// Creates a line of one style; see [`Span::visible`].
    #[must_use]
    pub fn new(text: &str, style: Style) -> Self {
        Self { spans: vec![Span::visible(text, style)] }
    }

    /// Adds a piece.
    #[must_use]
    pub fn and(mut self, text: &str, style: Style) -> Self {
        self.spans.push(Span::visible(text, style));
        self
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.width()).sum()
    }

    /// Returns the text without styles.
    #[must_use]
    pub fn plain(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Returns the line for a terminal, with escape sequences if it has styles.
    #[must_use]
    pub fn ansi(&self, has_styles: bool) -> String {
        let mut out = String::new();
        for span in &self.spans {
            if has_styles && span.style != Style::PLAIN {
                span.style.write_on(&mut out);
                out.push_str(&span.text);
                out.push_str("\x1b[0m");
            } else {
                out.push_str(&span.text);
            }
        }
        out
    }

    /// Returns the line cut to a width, with `…` in place of omitted text.
    #[must_use]
    pub fn cut(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut line = Self::default();
        let mut left = width.saturating_sub(1);
        for span in self.spans {
            let mut text = String::new();
            for grapheme in span.text.graphemes(true) {
                let columns = grapheme.width();
                if columns > left {
                    text.push('…');
                    line.spans.push(Span { text, style: span.style });
                    return line;
                }
                left -= columns;
                text.push_str(grapheme);
            }
            line.spans.push(Span { text, style: span.style });
        }
        line
    }
}

/// Cuts a text to a number of characters, with `…` in place of omitted text.
#[must_use]
pub fn excerpt(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Returns the last character boundary at or before `at`. (The method of `str` needs a newer Rust than our
/// minimum.)
#[must_use]
pub fn floor_char_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_in_lines() {
        let line = Line::new("a\x1b[2J\u{202e}\n", Style::PLAIN.bold());
        assert_eq!(line.ansi(true), "\x1b[1ma\\u{1b}[2J\\u{202e}\\u{a}\x1b[0m");
        assert_eq!(line.ansi(false), line.plain());
    }

    #[test]
    fn cut_lines_fit_also_with_wide_characters() {
        let line = Line::new("大きさ", Style::PLAIN).and("x", Style::DIMMED);
        assert_eq!(line.clone().cut(7), line);
        assert_eq!(line.clone().cut(6).plain(), "大き…");
        assert_eq!(line.clone().cut(4).plain(), "大…");
        assert_eq!(line.cut(0).plain(), "…");
    }
}
