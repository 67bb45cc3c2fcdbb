//! Calls in the text of an answer.

use oa_aggregate::{Delta, MadeUpIds};
use oa_fallback::{Scanned, Scanner};
use oa_types::{ContentBlock, TextBlock, ThinkingBlock};

/// Finds the calls in a text, and keeps the blocks of the answer that it comes to.
pub(crate) struct Scan {
    scanner: Scanner,
    ids: MadeUpIds,
    /// What was handed out, in order.
    blocks: Vec<ContentBlock>,
    calls: usize,
    /// The arguments of the last call, which nobody was told yet.
    arguments: Option<String>,
    told: String,
    is_finished: bool,
}

impl Scan {
    pub(crate) fn new(scanner: Scanner, id_seed: u64) -> Self {
        Self {
            scanner,
            ids: MadeUpIds::new(id_seed, Vec::new()),
            blocks: Vec::new(),
            calls: 0,
            arguments: None,
            told: String::new(),
            is_finished: false,
        }
    }

    /// Takes more of the text.
    pub(crate) fn push(&mut self, text: &str) {
        self.scanner.push(text);
    }

    /// Takes note of what is no text to be looked at.
    pub(crate) fn pass(&mut self, delta: &Delta<'_>) {
        match delta {
            Delta::Thinking(thinking) => match self.blocks.last_mut() {
                Some(ContentBlock::Thinking(last)) => last.thinking.push_str(thinking),
                _ => self.blocks.push(ThinkingBlock::new(*thinking).into()),
            },
            Delta::Refusal(text) => add_text(&mut self.blocks, text),
            Delta::CallStart { .. } => self.calls += 1,
            _ => {}
        }
    }

    /// Returns the next thing that was found.
    pub(crate) fn next_delta(&mut self) -> Option<Delta<'_>> {
        if let Some(arguments) = self.arguments.take() {
            self.told = arguments;
            return Some(Delta::CallArguments { call: self.calls - 1, fragment: &self.told });
        }
        match self.scanner.next_item()? {
            Scanned::Text(text) => {
                add_text(&mut self.blocks, text);
                Some(Delta::Text(text))
            }
            Scanned::Call(call) => {
                let call = call.into_tool_use(self.ids.next_id());
                self.arguments = Some(call.input.to_string());
                self.told.clone_from(&call.name);
                self.blocks.push(call.into());
                self.calls += 1;
                Some(Delta::CallStart { call: self.calls - 1, name: Some(&self.told) })
            }
            Scanned::Malformed(call) => {
                let error = call.into_tool_use_error(self.ids.next_id());
                self.arguments = Some(error.raw_data.clone()).filter(|raw| !raw.is_empty());
                self.told = error.name.clone().unwrap_or_default();
                self.blocks.push(error.into());
                self.calls += 1;
                let name = Some(&*self.told).filter(|name| !name.is_empty());
                Some(Delta::CallStart { call: self.calls - 1, name })
            }
            _ => None,
        }
    }

    /// Whether what follows in this answer is of no use.
    pub(crate) fn is_done(&self) -> bool {
        self.scanner.is_done()
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// The text is at its end, or was cut off there.
    pub(crate) fn finish(&mut self, is_cut_off: bool) {
        self.is_finished = true;
        if is_cut_off {
            self.scanner.finish_cut_off();
        } else {
            self.scanner.finish();
        }
    }

    /// What was handed out.
    pub(crate) fn into_blocks(self) -> Vec<ContentBlock> {
        self.blocks
    }
}

fn add_text(blocks: &mut Vec<ContentBlock>, text: &str) {
    match blocks.last_mut() {
        Some(ContentBlock::Text(last)) => last.text.push_str(text),
        _ => blocks.push(TextBlock::new(text).into()),
    }
}
