//! Messages: whole answers, pieces of one, or repeats of the deltas before them (QUIRKS rows 36, 37 and 117).

use crate::blocks::Voice;
use crate::budget::COPIES;
use crate::chunk::{Choice, Fragment, Part};
use crate::error::Error;
use crate::state::State;

impl State {
    /// Returns true if a message repeats the deltas before it. If all are messages, each is a piece (QUIRKS row 36).
    #[cold]
    pub(super) fn has_streamed(&mut self) -> Result<bool, Error> {
        if !self.messages_add {
            // What is held back belongs to the deltas, so it must be in the blocks before they are compared.
            self.flush()?;
            self.messages_add = self.speech.blocks.parts.is_empty();
        }
        Ok(!self.messages_add)
    }

    /// Takes the part of a message that is not in the deltas before it (QUIRKS row 117).
    pub(super) fn take_message(&mut self, choice: &Choice<'_>) -> Result<(), Error> {
        // Copies of its text during the comparison.
        let words = |part: &Part<'_>| match part {
            Part::Text(part) | Part::Thinking(part) => part.len(),
        };
        let length = choice.text.as_deref().map_or(0, str::len)
            + choice.thinking.as_deref().map_or(0, str::len)
            + choice.parts().iter().map(words).sum::<usize>();
        let copies = COPIES * length;
        self.budget.hold(copies)?;
        let mut text = choice.text.as_deref().unwrap_or_default().to_owned();
        let mut thinking = choice.thinking.as_deref().unwrap_or_default().to_owned();
        for part in choice.parts() {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Thinking(part) => thinking.push_str(part),
            }
        }
        let tags = self.options.quirks.think_tags;
        let text = self.speech.take_apart(
            text,
            &mut thinking,
            choice.is_thought(),
            tags,
            &mut self.budget,
        )?;
        let refusal = choice.refusal().unwrap_or_default();
        for (voice, whole) in
            [(Voice::Thinking, &*thinking), (Voice::Text, &*text), (Voice::Refusal, refusal)]
        {
            self.speech.say_rest(voice, whole, &mut self.budget)?;
        }
        self.budget.release(copies);
        if let Some(rare) = &choice.rare {
            let known = self.opaque.as_deref();
            let has_details = known.is_some_and(|known| !known.details.is_empty());
            let details = if has_details { &[][..] } else { &rare.details[..] };
            let is_signed = known.is_some_and(|known| !known.signed.is_empty());
            let signed = if is_signed { &[][..] } else { &rare.thinking_blocks[..] };
            self.keep_for_server(rare, details, signed, 0)?;
        }
        let calls = self.calls.in_message(choice.calls(), self.budget.left());
        for (fragment, call, arguments) in calls {
            self.add_whole(fragment, call, arguments)?;
        }
        if let Some(reason) = &choice.finish_reason {
            self.end_choice(reason)?;
        }
        Ok(())
    }

    /// Takes the calls of a message that repeats nothing.
    #[cold]
    pub(super) fn add_calls(&mut self, choice: &Choice<'_>) -> Result<(), Error> {
        let begun = self.calls.list.len();
        for fragment in choice.calls() {
            let arguments = fragment.arguments.as_deref().unwrap_or_default();
            if fragment.name.is_none() {
                self.add_fragment(fragment, arguments)?;
                continue;
            }
            // The calls of a message are whole, so none of them continues another, whatever their ids (QUIRKS row 11).
            let call = self.calls.find(fragment, arguments).filter(|&call| call < begun);
            self.add_whole(fragment, call, arguments)?;
        }
        Ok(())
    }

    /// Adds a call of a message: to the earlier call that it continues, or as a new one.
    fn add_whole(
        &mut self,
        fragment: &Fragment<'_>,
        call: Option<usize>,
        arguments: &str,
    ) -> Result<(), Error> {
        let call = match call {
            Some(call) => call,
            None => self.begin_call(fragment)?,
        };
        self.calls.list[call].is_in_message = true;
        self.add_to_call(call, fragment, arguments)
    }
}
