//! White space around a text that grows, such as the arguments of a call.

/// Finds the white space around a text as it grows. Each byte is examined once, however often it is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trim {
    seen: usize,
    start: usize,
    end: usize,
}

impl Trim {
    /// Returns the text without white space around it.
    ///
    /// # Panics
    ///
    /// If the text does not begin with the text of the last call, it may panic.
    pub fn of<'t>(&mut self, text: &'t str) -> &'t str {
        let new = &text[self.seen..];
        if self.start == self.end {
            self.start = text.len() - new.trim_start().len();
            self.end = self.start;
        }
        let words = new.trim_end();
        if !words.is_empty() {
            self.end = self.seen + words.len();
        }
        self.seen = text.len();
        &text[self.start..self.end]
    }

    /// Returns the text without white space at its start.
    ///
    /// # Panics
    ///
    /// As [`of`](Self::of).
    pub fn start_of<'t>(&mut self, text: &'t str) -> &'t str {
        self.of(text);
        &text[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn growing_text_is_trimmed_like_std(pieces in prop::collection::vec("[ \n\u{a0}ab]{0,4}", 0..8)) {
            let (mut text, mut trim, mut start) = (String::new(), Trim::default(), Trim::default());
            for piece in pieces {
                text += &piece;
                prop_assert_eq!(trim.of(&text), text.trim());
                prop_assert_eq!(start.start_of(&text), text.trim_start());
            }
        }
    }
}
