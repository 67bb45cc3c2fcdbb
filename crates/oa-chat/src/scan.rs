//! Finds calls in the text of an answer.

use std::sync::Arc;
use std::vec::IntoIter;

use oa_aggregate::{Delta, MadeUpIds};
use oa_fallback::{Limits, MixedCalls, Scanned, Scanner, TextCall, calls_in_thinking};
use oa_types::{ContentBlock, TextBlock, ThinkingBlock, ToolSpec};

/// Finds the calls in a text and collects the blocks of the answer.
pub(crate) struct Scan {
    scanner: Scanner,
    /// The tools that may be called in thinking, and the limits on such calls.
    pub(crate) in_thinking: Option<(Arc<[ToolSpec]>, Limits)>,
    /// The calls found in thinking.
    thought: IntoIter<TextCall>,
    ids: MadeUpIds,
    /// The blocks that were found, in order.
    blocks: Vec<ContentBlock>,
    /// The calls found, and the server's own.
    calls: MixedCalls,
    /// The number of the last call.
    call: usize,
    /// The arguments of the last call, not reported yet.
    arguments: Option<String>,
    told: String,
    /// The id of the last call.
    id: String,
    is_finished: bool,
    /// True if text after a call is not reported.
    holds_text: bool,
    /// The number of blocks before the first such call.
    before: Option<usize>,
}

impl Scan {
    pub(crate) fn new(scanner: Scanner, id_seed: u64, holds_text: bool) -> Self {
        Self {
            scanner,
            in_thinking: None,
            thought: IntoIter::default(),
            ids: MadeUpIds::new(id_seed, Vec::new()),
            blocks: Vec::new(),
            calls: MixedCalls::new(),
            call: 0,
            arguments: None,
            told: String::new(),
            id: String::new(),
            is_finished: false,
            holds_text,
            before: None,
        }
    }

    /// Takes more of the text.
    pub(crate) fn push(&mut self, text: &str) {
        self.in_thinking.take_if(|_| !text.trim().is_empty());
        self.scanner.push(text);
    }

    /// Records a delta that is not scanned; returns it unless it is about a call that is not reported. Native calls are
    /// numbered together with those found in the text.
    pub(crate) fn pass<'a>(&mut self, mut delta: Delta<'a>) -> Option<Delta<'a>> {
        match &mut delta {
            Delta::Thinking(thinking) => match self.blocks.last_mut() {
                Some(ContentBlock::Thinking(last)) => last.thinking.push_str(thinking),
                _ => self.blocks.push(ThinkingBlock::new(*thinking).into()),
            },
            Delta::Refusal(text) => add_text(&mut self.blocks, text),
            Delta::CallStart { call, name, .. } => {
                self.in_thinking = None;
                *call = self.calls.add_sent(*call, name, self.blocks.len())?;
            }
            Delta::CallArguments { call, .. } => *call = self.calls.number_of(*call)?,
            _ => {}
        }
        Some(delta)
    }

    /// Returns the next delta.
    pub(crate) fn next_delta(&mut self) -> Option<Delta<'_>> {
        if let Some(arguments) = self.arguments.take() {
            self.told = arguments;
            return Some(Delta::CallArguments { call: self.call, fragment: &self.told });
        }
        loop {
            let thought = self.thought.next().map(Scanned::Call);
            let block = match thought.or_else(|| self.scanner.next_item())? {
                Scanned::Text(text) => {
                    let length = text.len();
                    add_text(&mut self.blocks, text);
                    if self.before.is_some() {
                        continue;
                    }
                    let whole = self.blocks.last().and_then(ContentBlock::as_text)?;
                    return Some(Delta::Text(&whole[whole.len() - length..]));
                }
                Scanned::Call(call) => {
                    let call = call.into_tool_use(self.ids.next_id());
                    let Some(number) = self.calls.add_found(&call.name, self.blocks.len()) else {
                        self.blocks.push(call.into());
                        continue;
                    };
                    self.call = number;
                    self.id.clone_from(&call.id);
                    self.arguments = Some(call.input.to_string());
                    self.told.clone_from(&call.name);
                    call.into()
                }
                Scanned::Malformed(call) => {
                    let error = call.into_tool_use_error(self.ids.next_id());
                    self.call = self.calls.add_malformed();
                    self.id = error.id.clone().unwrap_or_default();
                    self.arguments = Some(error.raw_data.clone()).filter(|raw| !raw.is_empty());
                    self.told = error.name.clone().unwrap_or_default();
                    error.into()
                }
                _ => return None,
            };
            // Without a name there is no call that could have a result, and nothing to report before its error.
            let is_named = !self.told.is_empty();
            if self.holds_text && is_named {
                self.before.get_or_insert(self.blocks.len());
            }
            self.blocks.push(block);
            if !is_named {
                self.arguments = None;
                continue;
            }
            return Some(Delta::CallStart { call: self.call, id: &self.id, name: &self.told });
        }
    }

    /// True if the rest of this answer is not needed.
    pub(crate) fn is_done(&self) -> bool {
        self.scanner.is_done()
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Ends the text, which may have been cut off.
    pub(crate) fn finish(&mut self, is_cut_off: bool) {
        self.is_finished = true;
        if is_cut_off {
            return self.scanner.finish_cut_off();
        }
        self.scanner.finish();
        let of = self.in_thinking.take();
        if let (Some((tools, limits)), [ContentBlock::Thinking(only)]) = (of, &*self.blocks) {
            self.thought = calls_in_thinking(&only.thinking, &tools, limits).into_iter();
        }
    }

    /// Returns the blocks that were reported.
    pub(crate) fn into_told(mut self) -> Vec<ContentBlock> {
        self.blocks.truncate(self.before.unwrap_or(usize::MAX));
        let mut places = 0..;
        self.blocks.retain(|_| places.next().is_some_and(|place| self.calls.shows(place)));
        self.blocks
    }

    /// Returns the blocks that were found, in order.
    pub(crate) fn into_blocks(self) -> Vec<ContentBlock> {
        self.blocks
    }

    /// Returns the blocks found, with each native call at the position where it began.
    pub(crate) fn with_native(self, calls: Vec<ContentBlock>) -> Vec<ContentBlock> {
        self.calls.merge(self.blocks, calls)
    }
}

fn add_text(blocks: &mut Vec<ContentBlock>, text: &str) {
    match blocks.last_mut() {
        Some(ContentBlock::Text(last)) => last.text.push_str(text),
        _ => blocks.push(TextBlock::new(text).into()),
    }
}
