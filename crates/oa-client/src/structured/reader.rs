use oa_types::ContentBlock;

use super::partial::PartialJson;
use super::passage::Passage;
use crate::event::{AgentEvent, ToolUseDelta};

/// Follows the answer that is arriving.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    text: Passage,
    call: PartialJson,
    /// Which call of the answer is the one to follow.
    place: Option<usize>,
    answers: u32,
    shown: u64,
}

impl Reader {
    /// Takes what happens. Whether there is more to be seen of the answer than before.
    pub(crate) fn take(&mut self, event: &AgentEvent, tool: Option<&str>) -> bool {
        match (event, tool) {
            (AgentEvent::AnswerStart, _) => {
                *self = Self { answers: self.answers + 1, ..Self::default() };
            }
            (AgentEvent::Block(ContentBlock::Text(block)), None) => self.text.push(&block.text),
            (AgentEvent::ToolUseDelta(delta), Some(tool)) => self.take_piece(delta, tool),
            _ => {}
        }
        let growth = self.json().growth();
        std::mem::replace(&mut self.shown, growth) != growth
    }

    /// What has arrived.
    pub(crate) fn json(&self) -> &PartialJson {
        if self.place.is_some() { &self.call } else { self.text.json() }
    }

    /// Which answer this is, counted from 1.
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
