use oa_types::ContentBlock;

use crate::AgentEvent;

/// Joins the text of a turn's answers as in [`Reply::text`](crate::Reply::text): with a blank line between
/// two answers, unless the first ends with a space or the second begins with white space. A single line break
/// at the end of the first is completed to a blank line. Answers that a hook refused are left out.
///
/// [`apply`](Self::apply) collects the text from the events of a turn. [`before`](Self::before) returns the separator
/// to write before each piece, so streamed text equals collected text for any split into pieces, except that a refused
/// answer that was already written cannot be removed.
///
/// ```
/// use oa_events::TurnText;
///
/// let (mut turn, mut text) = (TurnText::default(), String::new());
/// for answer in [["Let me ", "look."], ["The answer ", "is 42."]] {
///     turn.begin_answer();
///     for piece in answer {
///         turn.push(&mut text, piece);
///     }
/// }
/// assert_eq!(text, "Let me look.\n\nThe answer is 42.");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TurnText {
    /// True until the first text of an answer arrives.
    begins: bool,
    /// The last character that is not a line break, and the number of line breaks after it.
    last: Option<char>,
    breaks: usize,
    /// The length of the text before the first piece of this answer, and `last` and `breaks` at that point.
    answer: (usize, Option<char>, usize),
}

impl TurnText {
    /// Applies an event of the turn to the text so far: appends its text, or removes an answer that a hook refused.
    pub fn apply(&mut self, text: &mut String, event: &AgentEvent) {
        match event {
            AgentEvent::AnswerRetry(_) => self.discard_answer(text),
            AgentEvent::AnswerStart => self.begin_answer(),
            AgentEvent::Block(ContentBlock::Text(block)) => self.push(text, &block.text),
            _ => {}
        }
    }

    /// Begins an answer. Call it after [`AgentEvent::AnswerStart`](crate::AgentEvent::AnswerStart).
    pub fn begin_answer(&mut self) {
        self.begins = true;
    }

    /// Appends the next piece to the text so far.
    pub fn push(&mut self, text: &mut String, piece: &str) {
        // Recorded before the separator, which goes away with the answer.
        if self.begins {
            self.answer = (text.len(), self.last, self.breaks);
        }
        text.push_str(self.before(piece));
        text.push_str(piece);
    }

    /// Removes the text of the last answer, as appended by [`push`](Self::push).
    pub fn discard_answer(&mut self, text: &mut String) {
        if !self.begins {
            let (length, last, breaks) = self.answer;
            text.truncate(length);
            (self.begins, self.last, self.breaks) = (true, last, breaks);
        }
    }

    /// Accepts the next piece of text, and returns the separator to write before it.
    pub fn before(&mut self, piece: &str) -> &'static str {
        if piece.is_empty() {
            return "";
        }
        let is_apart = !self.begins || piece.starts_with(char::is_whitespace);
        // `Done.` and `Next` get a blank line, `Done.\n` and `Next` one more line break, `Done. ` and `Next`
        // nothing. Before the first text, `last` is `None` and nothing is added.
        let separator = match (self.breaks, self.last) {
            _ if is_apart => "",
            (0, Some(last)) if !last.is_whitespace() => "\n\n",
            (1, _) => "\n",
            _ => "",
        };
        self.begins = false;
        // A piece of line breaks only adds to those before: the end of an answer may be split between pieces.
        let words = piece.trim_end_matches('\n');
        if let Some(last) = words.chars().next_back() {
            (self.last, self.breaks) = (Some(last), 0);
        }
        self.breaks += piece.len() - words.len();
        separator
    }
}

#[cfg(test)]
mod tests {
    use oa_types::TextBlock;
    use proptest::prelude::*;

    use super::*;

    /// Joins answers, each cut into pieces of some characters.
    fn joined(answers: &[impl AsRef<str>], size: usize) -> String {
        let (mut turn, mut text) = (TurnText::default(), String::new());
        for answer in answers {
            turn.begin_answer();
            let characters: Vec<char> = answer.as_ref().chars().collect();
            for piece in characters.chunks(size) {
                let piece: String = piece.iter().collect();
                turn.push(&mut text, &piece);
            }
        }
        text
    }

    /// White space by which the model separates them is kept, and a single line break is completed.
    #[test]
    fn answers_are_separated_by_a_blank_line() {
        let cases = [
            (&["Let me look.", "It is 42."][..], "Let me look.\n\nIt is 42."),
            (&["", "Alone.", ""], "Alone."),
            (&["First. ", "Then. ", "Done."], "First. Then. Done."),
            (&["Look:\n", "It is 42."], "Look:\n\nIt is 42."),
            (&["Look:\n\n", "It is 42."], "Look:\n\nIt is 42."),
            (&["Let me look.", "\n\nIt is 42."], "Let me look.\n\nIt is 42."),
            (&["One.", "", "Two."], "One.\n\nTwo."),
        ];
        for (answers, expected) in cases {
            assert_eq!(joined(answers, 100), expected);
        }
    }

    #[test]
    fn a_refused_answer_is_left_out() {
        let block = |text: &str| AgentEvent::Block(ContentBlock::Text(TextBlock::new(text)));
        let refused = || AgentEvent::AnswerRetry("cite a source".to_owned());
        let events = [
            AgentEvent::AnswerStart,
            block("Let me look."),
            AgentEvent::AnswerStart,
            block("The key is "),
            block("1234.\n\n"),
            refused(),
            AgentEvent::AnswerStart,
            refused(), // one without text
            AgentEvent::AnswerStart,
            block("It is secret."),
        ];
        let (mut turn, mut text) = (TurnText::default(), String::new());
        for event in &events {
            turn.apply(&mut text, event);
        }
        assert_eq!(text, "Let me look.\n\nIt is secret.");
    }

    proptest! {
        #[test]
        fn text_is_equal_for_any_split(answers in prop::collection::vec("[ab \n]{0,5}", 0..5), size in 1..4_usize) {
            prop_assert_eq!(joined(&answers, size), joined(&answers, 100));
        }

        /// Without what was put between them, the answers are as they were.
        #[test]
        fn only_line_breaks_are_added(answers in prop::collection::vec("[ab]{0,5}", 0..5)) {
            prop_assert_eq!(joined(&answers, 2).replace('\n', ""), answers.concat());
        }
    }
}
