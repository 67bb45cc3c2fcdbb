//! The line that is typed while the model works.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use oa_markdown::{Line, Span, Style, floor_char_boundary};
use reedline::LineBuffer;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::view::typed;

/// A line that is being typed, shown as one row, however long the text is.
#[derive(Debug, Default)]
pub struct Composer {
    buffer: LineBuffer,
}

/// The meaning of a key.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Input {
    /// The text has become too long, and its end was left out.
    Cut,
    /// The text may have changed.
    Edited,
    /// Ctrl-D without text.
    Ended,
    /// Ctrl-C.
    Interrupt,
    /// The terminal has another size, in columns and rows.
    Resize(usize, usize),
    /// The line was sent.
    Sent(String),
    /// Ctrl-Z, where shells can suspend a program.
    Suspend,
}

/// The longest text, in bytes.
const LONGEST: usize = 64 * 1024;
/// The hint about a text that was cut.
pub(super) const CUT: &str = "the end of the text was left out: at most 64 KiB fit here";

impl Composer {
    /// Handles a terminal event.
    pub fn on(&mut self, event: &Event) -> Input {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(*key),
            Event::Paste(text) => self.insert(&text.replace("\r\n", "\n").replace('\r', "\n")),
            Event::Resize(columns, rows) => Input::Resize((*columns).into(), (*rows).into()),
            _ => Input::Edited,
        }
    }

    fn key(&mut self, key: KeyEvent) -> Input {
        let buffer = &mut self.buffer;
        let (control, alt) = (KeyModifiers::CONTROL, KeyModifiers::ALT);
        // Both together are AltGr, which makes characters such as `@`.
        let is_alt_gr = key.modifiers.contains(control | alt);
        let is_control = key.modifiers.contains(control) && !is_alt_gr;
        let is_alt = key.modifiers.contains(alt) && !is_alt_gr;
        match key.code {
            KeyCode::Char('c') if is_control => return Input::Interrupt,
            KeyCode::Char('z') if is_control && cfg!(unix) => return Input::Suspend,
            KeyCode::Char('d') if is_control && buffer.is_empty() => return Input::Ended,
            KeyCode::Enter if is_alt || key.modifiers.contains(KeyModifiers::SHIFT) => {
                return self.insert("\n");
            }
            KeyCode::Char('j') if is_control => return self.insert("\n"),
            KeyCode::Enter => return Input::Sent(self.take()),
            KeyCode::Backspace if is_alt || is_control => buffer.delete_word_left(),
            KeyCode::Backspace => buffer.delete_left_grapheme(),
            KeyCode::Delete => buffer.delete_right_grapheme(),
            KeyCode::Left => buffer.move_left(),
            KeyCode::Right => buffer.move_right(),
            KeyCode::Home => buffer.move_to_start(),
            KeyCode::End => buffer.move_to_end(),
            KeyCode::Char(c) if is_control => match c {
                'a' => buffer.move_to_start(),
                'b' => buffer.move_left(),
                'd' => buffer.delete_right_grapheme(),
                'e' => buffer.move_to_end(),
                'f' => buffer.move_right(),
                'h' => buffer.delete_left_grapheme(),
                'k' => buffer.clear_to_end(),
                'u' => buffer.clear_to_insertion_point(),
                'w' => buffer.delete_word_left(),
                _ => {}
            },
            KeyCode::Char(_) if is_alt => {}
            KeyCode::Char(c) => return self.insert(c.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        Input::Edited
    }

    fn insert(&mut self, text: &str) -> Input {
        let room = LONGEST.saturating_sub(self.buffer.len());
        let end = floor_char_boundary(text, room);
        self.buffer.insert_str(&text[..end]);
        if end < text.len() { Input::Cut } else { Input::Edited }
    }

    /// Puts back a text.
    pub fn restore(&mut self, text: String) {
        self.buffer.set_buffer(text);
        self.buffer.move_to_end();
    }

    /// Takes the text.
    pub fn take(&mut self) -> String {
        let text = self.buffer.get_buffer().to_owned();
        self.buffer.clear();
        text
    }

    /// Returns the row, at most `width` columns wide, and the column of the cursor in it. Line breaks
    /// show as `⏎`. Of a text that is too long, the row shows the part around the cursor.
    #[must_use]
    pub fn row(&self, sign: &str, width: usize) -> (Line, usize) {
        let text = self.buffer.get_buffer();
        let (before, after) = text.split_at(self.buffer.insertion_point());
        let (before, after) = (typed(before, Style::PLAIN), typed(after, Style::PLAIN));
        let before = before.text;
        let room = width.saturating_sub(sign.width() + 1).max(1);
        // Whole graphemes only: a wide one that does not fit is left out.
        // The end of the text before the cursor, and as much as fits after it.
        let mut begin = before.len();
        let mut columns = 0;
        for (at, grapheme) in before.grapheme_indices(true).rev() {
            if columns + grapheme.width() > room {
                break;
            }
            (begin, columns) = (at, columns + grapheme.width());
        }
        let mut behind = Line::default();
        behind.spans.push(after);
        let mut line = Line::new(sign, Style::PLAIN.bold());
        line.spans.push(Span::new(&before[begin..], Style::PLAIN));
        line.spans.extend(behind.cut(room - columns.min(room)).spans);
        (line, sign.width() + columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[KeyEvent]) -> Composer {
        let mut composer = Composer::default();
        for key in keys {
            composer.on(&Event::Key(*key));
        }
        composer
    }

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn keys_edit_the_line() {
        let composer = typed(&[
            key(KeyCode::Char('大')),
            key(KeyCode::Char('x')),
            key(KeyCode::Left),
            key(KeyCode::Left),
            key(KeyCode::Char('a')),
        ]);
        assert_eq!(
            composer.row("> ", 20),
            (
                Line::new("> ", Style::PLAIN.bold())
                    .and("a", Style::PLAIN)
                    .and("大x", Style::PLAIN),
                3
            )
        );
        let mut composer = composer;
        let sent = composer.on(&Event::Key(key(KeyCode::Enter)));
        assert_eq!(sent, Input::Sent("a大x".to_owned()));
        assert_eq!(composer.take(), "");
    }

    /// On Windows, AltGr arrives as Ctrl and Alt.
    #[test]
    fn alt_gr_makes_characters() {
        let keys = ['@', 'c', 'd', '\u{20ac}'];
        let alt_gr = KeyModifiers::CONTROL | KeyModifiers::ALT;
        let mut composer = Composer::default();
        for key in keys {
            let key = Event::Key(KeyEvent::new(KeyCode::Char(key), alt_gr));
            assert_eq!(composer.on(&key), Input::Edited);
        }
        assert_eq!(composer.take(), "@cd\u{20ac}");
    }

    #[test]
    fn text_is_shown_as_it_was_typed() {
        let mut composer = Composer::default();
        // An ideographic space, an emoji and its selector, a joiner of Persian, and a tab.
        composer.on(&Event::Paste(
            "東京\u{3000}\u{2764}\u{fe0f} \u{645}\u{6cc}\u{200c}\u{62e}\tx".to_owned(),
        ));
        let shown = "> 東京\u{3000}\u{2764}\u{fe0f} \u{645}\u{6cc}\u{200c}\u{62e}    x";
        assert_eq!(composer.row("> ", 40).0.plain(), shown);
    }

    #[test]
    fn a_paste_with_line_breaks_is_not_sent() {
        let mut composer = Composer::default();
        assert_eq!(composer.on(&Event::Paste("one\r\ntwo\x1b".to_owned())), Input::Edited);
        assert_eq!(composer.row("> ", 40).0.plain(), "> one⏎two\\u{1b}");
        assert_eq!(composer.take(), "one\ntwo\x1b");
    }

    #[test]
    fn long_text_scrolls_with_the_cursor() {
        let mut composer = Composer::default();
        composer.restore("abcdefghij".to_owned());
        let (line, column) = composer.row("> ", 8);
        assert_eq!((line.plain().as_str(), column), ("> fghij", 7));
        composer.on(&Event::Key(key(KeyCode::Home)));
        let (line, column) = composer.row("> ", 8);
        assert_eq!((line.plain().as_str(), column), ("> abcd…", 2));
    }

    #[test]
    fn text_is_bounded() {
        let mut composer = Composer::default();
        assert_eq!(composer.on(&Event::Paste("ä".repeat(LONGEST / 2))), Input::Edited);
        // Nothing is left out without a word.
        assert_eq!(composer.on(&Event::Key(key(KeyCode::Char('x')))), Input::Cut);
        assert_eq!(composer.take().len(), LONGEST);
        assert_eq!(composer.on(&Event::Paste("ä".repeat(LONGEST))), Input::Cut);
        assert_eq!(composer.take().len(), LONGEST);
    }
}
