//! The line that is typed while the model works.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use oa_markdown::{Line, Style, floor_char_boundary};
use reedline::LineBuffer;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A line that is being typed, shown as one row, however long the text is.
#[derive(Debug, Default)]
pub struct Composer {
    buffer: LineBuffer,
}

/// The meaning of a key.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Input {
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
}

/// The longest text, in bytes.
const LONGEST: usize = 64 * 1024;

impl Composer {
    /// Handles a terminal event.
    pub fn on(&mut self, event: &Event) -> Input {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(*key),
            Event::Paste(text) => {
                self.insert(&text.replace("\r\n", "\n").replace('\r', "\n"));
                Input::Edited
            }
            Event::Resize(columns, rows) => Input::Resize((*columns).into(), (*rows).into()),
            _ => Input::Edited,
        }
    }

    fn key(&mut self, key: KeyEvent) -> Input {
        let buffer = &mut self.buffer;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('c') if is_control => return Input::Interrupt,
            KeyCode::Char('d') if is_control && buffer.is_empty() => return Input::Ended,
            KeyCode::Enter if is_alt || key.modifiers.contains(KeyModifiers::SHIFT) => {
                self.insert("\n");
            }
            KeyCode::Char('j') if is_control => self.insert("\n"),
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
            KeyCode::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        Input::Edited
    }

    fn insert(&mut self, text: &str) {
        let room = LONGEST.saturating_sub(self.buffer.len());
        self.buffer.insert_str(&text[..floor_char_boundary(text, room)]);
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
        let shown = |text: &str| open_agent::redact::visible(&text.replace('\n', "⏎")).into_owned();
        let (before, after) = (shown(before), shown(after));
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
        let behind = Line::default().and(&after, Style::PLAIN).cut(room - columns.min(room));
        let mut line = Line::new(sign, Style::PLAIN.bold()).and(&before[begin..], Style::PLAIN);
        line.spans.extend(behind.spans);
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
        composer.on(&Event::Paste("ä".repeat(LONGEST)));
        assert_eq!(composer.take().len(), LONGEST);
    }
}
