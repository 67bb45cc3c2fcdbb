use oa_json::{Limits, ObjectFinder, PartialReader};
use oa_types::ContentBlock;

use crate::event::{AgentEvent, ToolUseDelta};

/// Reads the answer as it arrives.
#[derive(Debug)]
pub(crate) struct Reader {
    limits: Limits,
    text: ObjectFinder,
    call: PartialReader,
    /// The index of the call to read.
    place: Option<usize>,
    answers: u32,
    shown: u64,
}

impl Reader {
    /// Creates a reader of answers whose value takes at most `held_bytes` of memory.
    pub(crate) fn new(held_bytes: usize) -> Self {
        let mut limits = Limits::default();
        limits.held_bytes = held_bytes;
        Self::of_answer(0, limits)
    }

    fn of_answer(answers: u32, limits: Limits) -> Self {
        Self {
            limits,
            text: ObjectFinder::with_limits(limits),
            call: PartialReader::with_limits(limits),
            place: None,
            answers,
            shown: 0,
        }
    }

    /// Takes an event; returns `true` if more of the answer can be seen than before.
    pub(crate) fn take(&mut self, event: &AgentEvent, tool: Option<&str>) -> bool {
        match (event, tool) {
            (AgentEvent::AnswerStart, _) => {
                *self = Self::of_answer(self.answers + 1, self.limits);
            }
            (AgentEvent::Block(ContentBlock::Text(block)), None) => self.text.push(&block.text),
            (AgentEvent::ToolUseDelta(delta), Some(tool)) => self.take_piece(delta, tool),
            _ => {}
        }
        let revision = self.json().revision();
        std::mem::replace(&mut self.shown, revision) != revision
    }

    /// Returns the JSON reader, which has the value so far.
    pub(crate) fn json(&self) -> &PartialReader {
        if self.place.is_some() { &self.call } else { self.text.object() }
    }

    /// Returns the number of the answer, counted from 1.
    pub(crate) fn answer(&self) -> u32 {
        self.answers
    }

    fn take_piece(&mut self, delta: &ToolUseDelta, tool: &str) {
        if self.place.is_none() && delta.name.as_deref() == Some(tool) {
            self.place = Some(delta.call);
        }
        if self.place == Some(delta.call) {
            self.call.push(&delta.arguments);
        }
    }
}
