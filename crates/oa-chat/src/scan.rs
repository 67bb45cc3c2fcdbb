//! Finds calls in the text of an answer.

use oa_aggregate::{Delta, MadeUpIds};
use oa_fallback::{Scanned, Scanner};
use oa_types::{ContentBlock, TextBlock, ThinkingBlock};

/// Finds the calls in a text and collects the blocks of the answer.
pub(crate) struct Scan {
    scanner: Scanner,
    ids: MadeUpIds,
    /// The blocks that were found, in order.
    blocks: Vec<ContentBlock>,
    calls: usize,
    native: Vec<NativeCall>,
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
            ids: MadeUpIds::new(id_seed, Vec::new()),
            blocks: Vec::new(),
            calls: 0,
            native: Vec::new(),
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
        self.scanner.push(text);
    }

    /// Records a delta that is not scanned. Native calls are numbered together with those found in the text.
    pub(crate) fn pass<'a>(&mut self, mut delta: Delta<'a>) -> Delta<'a> {
        match &mut delta {
            Delta::Thinking(thinking) => match self.blocks.last_mut() {
                Some(ContentBlock::Thinking(last)) => last.thinking.push_str(thinking),
                _ => self.blocks.push(ThinkingBlock::new(*thinking).into()),
            },
            Delta::Refusal(text) => add_text(&mut self.blocks, text),
            Delta::CallStart { call, .. } => {
                // After one call in the text, the server's own call 0 is reported as call 1.
                let (number, place) = (self.calls, self.blocks.len());
                self.native.push(NativeCall { call: *call, number, place });
                *call = number;
                self.calls += 1;
            }
            Delta::CallArguments { call, .. } => {
                *call = self.native(*call).map_or(*call, |native| native.number);
            }
            _ => {}
        }
        delta
    }

    fn native(&self, call: usize) -> Option<&NativeCall> {
        self.native.iter().find(|native| native.call == call)
    }

    /// Returns the next delta.
    pub(crate) fn next_delta(&mut self) -> Option<Delta<'_>> {
        if let Some(arguments) = self.arguments.take() {
            self.told = arguments;
            return Some(Delta::CallArguments { call: self.calls - 1, fragment: &self.told });
        }
        loop {
            let block = match self.scanner.next_item()? {
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
                    self.id.clone_from(&call.id);
                    self.arguments = Some(call.input.to_string());
                    self.told.clone_from(&call.name);
                    call.into()
                }
                Scanned::Malformed(call) => {
                    let error = call.into_tool_use_error(self.ids.next_id());
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
            self.calls += 1;
            if !is_named {
                self.arguments = None;
                continue;
            }
            return Some(Delta::CallStart { call: self.calls - 1, id: &self.id, name: &self.told });
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
            self.scanner.finish_cut_off();
        } else {
            self.scanner.finish();
        }
    }

    /// Returns the blocks that were reported.
    pub(crate) fn into_told(mut self) -> Vec<ContentBlock> {
        self.blocks.truncate(self.before.unwrap_or(usize::MAX));
        self.blocks
    }

    /// Returns the blocks that were found, in order.
    pub(crate) fn into_blocks(self) -> Vec<ContentBlock> {
        self.blocks
    }

    /// Returns the blocks found, with each native call at the position where it began.
    pub(crate) fn with_native(
        mut self,
        calls: impl Iterator<Item = ContentBlock>,
    ) -> Vec<ContentBlock> {
        let place = |(call, block)| match self.native(call) {
            Some(native) => (native.place, native.number, block),
            None => (usize::MAX, call, block),
        };
        let mut calls: Vec<(usize, usize, ContentBlock)> = calls.enumerate().map(place).collect();
        calls.sort_by_key(|(place, number, _)| (*place, *number));
        // From the last to the first, so that indexes stay valid.
        for (place, _, block) in calls.into_iter().rev() {
            self.blocks.insert(place.min(self.blocks.len()), block);
        }
        self.blocks
    }
}

/// A native call that has begun.
struct NativeCall {
    /// Its number among the native calls.
    call: usize,
    /// Its number among all calls.
    number: usize,
    /// The number of blocks before it.
    place: usize,
}

fn add_text(blocks: &mut Vec<ContentBlock>, text: &str) {
    match blocks.last_mut() {
        Some(ContentBlock::Text(last)) => last.text.push_str(text),
        _ => blocks.push(TextBlock::new(text).into()),
    }
}
