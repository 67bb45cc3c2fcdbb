use std::borrow::Cow;
use std::mem;

/// The notice that a proxy writes as thinking while it loads the model, in front of the answer (QUIRKS row 149).
///
/// It arrives in small pieces. Pass each piece of thinking from the start of the answer on to [`rest`](Self::rest).
///
/// ```
/// use oa_types::wire::LoadingNotice;
///
/// let mut notice = LoadingNotice::default();
/// for piece in ["━━━━━", "\n", "llama-swap loading model: a\n", "...", "\nDone! (2.50s)\n", "━━━━━\n"] {
///     assert_eq!(notice.rest(piece), "");
/// }
/// assert_eq!(notice.rest(" \nThe user asks"), "The user asks");
/// assert!(!notice.is_open());
/// ```
#[derive(Debug, Default)]
pub struct LoadingNotice(Stage);

#[derive(Debug, Default)]
enum Stage {
    /// The text so far may be the beginning of a notice.
    Maybe(String),
    /// In a line of a notice that has so far only bars, and true if it has any.
    Bars(bool),
    /// In any other line of a notice.
    Line,
    /// Behind its last line, where a blank line follows.
    Behind,
    #[default]
    Unknown,
    Over,
}

const BAR: char = '━';

/// The most bars above a notice; newer versions write five.
const BARS: usize = 40;

/// The line below these bars.
const WORDS: &str = "\nllama-swap loading model:";

impl LoadingNotice {
    /// Takes the next piece of thinking, and returns what is not part of a notice. Nothing is returned while the text so far
    /// may be the beginning of one.
    pub fn rest<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        let text = match mem::take(&mut self.0) {
            Stage::Unknown if piece.is_empty() => return Cow::Borrowed(piece),
            Stage::Unknown => Cow::Borrowed(piece),
            Stage::Maybe(held) => Cow::Owned(held + piece),
            stage => {
                self.0 = stage;
                return Cow::Borrowed(&piece[self.length_in(piece)..]);
            }
        };
        let words = text.trim_start_matches(BAR);
        let bars = (text.len() - words.len()) / BAR.len_utf8();
        let may_open = (1..=BARS).contains(&bars);
        if may_open && words.starts_with(WORDS) {
            self.0 = Stage::Line;
            let length = self.length_in(words);
            return Cow::Owned(words[length..].to_owned());
        }
        if may_open && WORDS.starts_with(words) {
            self.0 = Stage::Maybe(text.into_owned());
            return Cow::Borrowed("");
        }
        self.0 = Stage::Over;
        text
    }

    /// Takes the part of a piece that belongs to the notice, and returns its length.
    fn length_in(&mut self, piece: &str) -> usize {
        for (at, next) in piece.char_indices() {
            self.0 = match (&self.0, next) {
                (Stage::Bars(true), '\n') => Stage::Behind,
                (Stage::Bars(_) | Stage::Line, '\n') => Stage::Bars(false),
                (Stage::Bars(_), BAR) => Stage::Bars(true),
                (Stage::Bars(_) | Stage::Line, _) => Stage::Line,
                (Stage::Behind, ' ') => Stage::Behind,
                (stage, _) => {
                    let is_blank_line = matches!(stage, Stage::Behind) && next == '\n';
                    self.0 = Stage::Over;
                    return at + usize::from(is_blank_line);
                }
            };
        }
        piece.len()
    }

    /// Returns true while the next piece may belong to a notice that has begun.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(self.0, Stage::Unknown | Stage::Over)
    }

    /// Ends the notice, because something else follows. Returns the text so far if it was none.
    pub fn close(&mut self) -> String {
        match mem::replace(&mut self.0, Stage::Over) {
            Stage::Maybe(held) => held,
            _ => String::new(),
        }
    }
}
