//! Results inserted in place of their calls, without another request.

use oa_types::{ContentBlock, Message, TextBlock};
use serde_json::Value;

use super::Turn;
use crate::call::Call;
use crate::options::Mode;
use crate::repair::has_text;

impl Turn {
    /// Returns true if the driver should hold back text after a call, because
    /// [`Action::Show`](crate::Action::Show) shows it once the call has a result.
    #[must_use]
    pub fn inlines_results(&self) -> bool {
        self.options.inline_results && self.options.mode == Mode::Auto
    }

    /// Inserts the results of an answer's calls into its text if all succeeded, and adds that text as the last message.
    /// The answer stays before it, with its calls and results. Returns true if it did.
    ///
    /// The text after the first call is shown here: with results, or unchanged if the model will not be asked again.
    pub(super) fn put_inline(&mut self) -> bool {
        if !self.inlines_results() {
            return false;
        }
        let filled = self.progress.last.is_none() && self.round.calls.iter().all(Call::went_well);
        let is_asked_again = self.progress.last.as_ref().is_none_or(|last| self.may_ask(last));
        // The next answer says all of it again, so the text that was held back is not shown.
        if !filled && is_asked_again {
            return false;
        }
        let results = self.round.calls.iter().filter(|_| filled).filter_map(Call::content);
        let answer = self.round.answer_in(self.history());
        let (mut text, rest) = filled_text(answer.map_or(&[], |answer| &answer.content), results);
        text.push_str(&rest);
        if !self.options.final_text_only {
            self.out.extend((!rest.is_empty()).then(|| TextBlock::new(rest).into()));
        } else if filled {
            // `answer` has set the text without the results.
            self.final_text = text.as_str().into();
        }
        let message = Message::assistant(vec![TextBlock::new(text).into()]);
        if filled && has_text(&message) {
            self.conversation.push(message);
        }
        filled
    }
}

/// Returns the text before the first call, and the text after it with results in place of calls.
fn filled_text<'a>(
    blocks: &[ContentBlock],
    mut results: impl Iterator<Item = &'a Value>,
) -> (String, String) {
    // `From [call 1] to [call 2]!` with the results 3 and 7 gives `From ` and `3 to 7!`.
    let (mut text, mut rest) = (String::new(), None);
    for block in blocks {
        match block {
            ContentBlock::Text(block) => rest.as_mut().unwrap_or(&mut text).push_str(&block.text),
            ContentBlock::ToolUse(_) => {
                let rest = rest.get_or_insert_with(String::new);
                match results.next() {
                    Some(Value::String(result)) => rest.push_str(result),
                    Some(result) => rest.push_str(&result.to_string()),
                    None => {}
                }
            }
            _ => {}
        }
    }
    (text, rest.unwrap_or_default())
}
