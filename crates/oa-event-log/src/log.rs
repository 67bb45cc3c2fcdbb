//! The log.

use std::collections::VecDeque;

use oa_events::AgentEvent;
use oa_json::held;
use oa_types::ContentBlock;
use serde::Serialize;

use crate::event::{ConversationEvent, EventId};

/// The longest text that is kept as one entry, in bytes, so that no reader gets more at once. Also the maximum number of
/// its pieces, which may be empty.
const LONGEST_TEXT: usize = 32 << 10;
/// The number of pieces of a text that a reader gets individually.
const NEAR: usize = 32;
/// Bytes that an entry takes in addition to its content.
const OVERHEAD: usize = 256;

/// A bounded log of a conversation's events, oldest first.
///
/// Pieces of the same text are kept as one entry, so a long answer takes little more than its text. A reader that falls
/// behind gets fewer, longer pieces. Nothing is lost until the log is full; then the oldest entries are dropped.
#[derive(Debug)]
pub struct EventLog {
    entries: VecDeque<Entry>,
    /// The number of the next event.
    next: u64,
    bytes: usize,
    /// The last event that was dropped.
    dropped: Option<EventId>,
    most_bytes: usize,
    most_entries: usize,
}

/// One event, or the pieces of a text.
///
/// The pieces `He`, `llo` and `!` with the numbers 4 to 6 are one entry: `first` is 4, the text `Hello!`, and
/// `ends` is `[2, 5, 6]`. Number 5 is the text from byte 2 to byte 5.
#[derive(Debug)]
struct Entry {
    run: u64,
    first: u64,
    /// For text in several pieces, the end of each piece; otherwise empty.
    ends: Vec<u32>,
    event: ConversationEvent,
    bytes: usize,
}

/// The result of reading the log.
#[derive(Debug, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    clippy::large_enum_variant,
    reason = "readers handle every case; there is one at a time, and it is nearly always an event"
)]
pub enum Next {
    /// An event, or several pieces of text as one event with the id of the last.
    Event(EventId, ConversationEvent),
    /// Events before this number were dropped.
    Gap(u64),
    /// There is no new event yet.
    Nothing,
}

impl EventLog {
    /// Creates a log that holds about `most_bytes` of events, as held in memory, at most `most_entries` of them, and
    /// always the newest.
    #[must_use]
    pub fn new(most_bytes: usize, most_entries: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            next: 1,
            bytes: 0,
            dropped: None,
            most_bytes,
            most_entries: most_entries.max(1),
        }
    }

    /// Adds an event, and drops the oldest ones if there are too many.
    pub fn push(&mut self, run: u64, event: ConversationEvent) -> EventId {
        let number = self.next;
        self.next += 1;
        let grown = self.entries.back_mut().and_then(|last| last.join(run, &event));
        if let Some(grown) = grown {
            self.bytes += grown;
        } else {
            let bytes = OVERHEAD + size(&event) + answer_size(&event);
            self.bytes += bytes;
            self.entries.push_back(Entry { run, first: number, ends: Vec::new(), event, bytes });
        }
        // The newest entry stays even if it is larger than the limit: `last` must know the newest event.
        while self.entries.len() > 1
            && (self.bytes > self.most_bytes || self.entries.len() > self.most_entries)
        {
            self.drop_first();
        }
        EventId { run, number }
    }

    /// Drops all events before a run. The stored conversation contains them.
    pub fn drop_before(&mut self, run: u64) {
        while self.entries.front().is_some_and(|entry| entry.run < run) {
            self.drop_first();
        }
    }

    /// Returns the event with this number; [`Next::Gap`] if it was dropped.
    #[must_use]
    pub fn read(&self, from: u64) -> Next {
        if from >= self.next {
            return Next::Nothing;
        }
        // Numbers have no holes between entries, so the entry found here begins after `from` only if older
        // ones were dropped.
        let place = self.entries.partition_point(|entry| entry.last() < from);
        match self.entries.get(place) {
            Some(entry) if entry.first <= from => {
                let (number, event) = entry.next(from);
                Next::Event(EventId { run: entry.run, number }, event)
            }
            Some(entry) => Next::Gap(entry.first),
            None => Next::Nothing,
        }
    }

    /// Returns the number after an event that a reader has seen; `None` if the log does not know the event.
    #[must_use]
    pub fn after(&self, seen: EventId) -> Option<u64> {
        // A reader that has seen everything up to the last dropped event misses nothing.
        if self.dropped == Some(seen) {
            return Some(seen.number + 1);
        }
        let place = self.entries.partition_point(|entry| entry.last() < seen.number);
        let entry = self.entries.get(place)?;
        (entry.first <= seen.number && entry.run == seen.run).then_some(seen.number + 1)
    }

    /// Returns the number of the next event.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number of the oldest event.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.entries.front().map_or(self.next, |entry| entry.first)
    }

    /// Returns the id of the newest event.
    #[must_use]
    pub fn last(&self) -> Option<EventId> {
        let last = self.entries.back()?;
        Some(EventId { run: last.run, number: last.last() })
    }

    fn drop_first(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.bytes -= entry.bytes;
            self.dropped = Some(EventId { run: entry.run, number: entry.last() });
        }
    }
}

impl Entry {
    fn last(&self) -> u64 {
        self.first + (self.ends.len().max(1) - 1) as u64
    }

    /// Adds a piece of the same text, and returns the number of bytes by which the entry grew.
    fn join(&mut self, run: u64, event: &ConversationEvent) -> Option<usize> {
        let (ConversationEvent::Agent(text), ConversationEvent::Agent(more)) =
            (&mut self.event, event)
        else {
            return None;
        };
        if self.run != run || !is_same_text(text, more) {
            return None;
        }
        let (text, more) = (text_mut(text)?, text_of(more)?);
        // The limit is far below `u32::MAX`, so no conversion below can fail after the text has grown.
        if text.len() + more.len() > LONGEST_TEXT || self.ends.len() == LONGEST_TEXT {
            return None;
        }
        if self.ends.is_empty() {
            self.ends.push(u32::try_from(text.len()).ok()?);
        }
        text.push_str(more);
        self.ends.push(u32::try_from(text.len()).ok()?);
        let grown = more.len() + 2 * size_of::<u32>();
        // The log adds the same to its own sum, and subtracts this one when it drops the entry.
        self.bytes += grown;
        Some(grown)
    }

    /// Returns the event with this number. A reader that is far behind gets all remaining pieces as one event, with the
    /// number of the last.
    fn next(&self, from: u64) -> (u64, ConversationEvent) {
        let mut event = self.event.clone();
        let (ConversationEvent::Agent(whole), false) = (&mut event, self.ends.is_empty()) else {
            return (from, event);
        };
        // `read` has found this entry by the number, so the number is not below `first`.
        let place = usize::try_from(from - self.first).unwrap_or(usize::MAX);
        let is_behind = self.ends.len().saturating_sub(place) > NEAR;
        let last = if is_behind { self.ends.len() - 1 } else { place };
        let end = |place: usize| self.ends.get(place).map_or(0, |&end| end as usize);
        let start = place.checked_sub(1).map_or(0, end);
        if let Some(text) = text_mut(whole) {
            // The end is cut first: `drain` shifts the offsets.
            text.truncate(end(last));
            text.drain(..start);
        }
        (self.first + last as u64, event)
    }
}

/// Returns true if `more` continues the text of `text`, so that both can become one event.
fn is_same_text(text: &AgentEvent, more: &AgentEvent) -> bool {
    match (text, more) {
        // Blocks of two answers are never compared, because the start of the second is an entry between them.
        (AgentEvent::Block(ContentBlock::Text(_)), AgentEvent::Block(ContentBlock::Text(_)))
        | (
            AgentEvent::Block(ContentBlock::Thinking(_)),
            AgentEvent::Block(ContentBlock::Thinking(_)),
        ) => true,
        (AgentEvent::ToolUseDelta(text), AgentEvent::ToolUseDelta(more)) => {
            text.call == more.call && more.id.is_none() && more.name.is_none()
                // The first fragment has the name and remains a separate event.
                && text.id.is_none()
                && text.name.is_none()
        }
        (AgentEvent::Nested(text), AgentEvent::Nested(more)) => {
            text.call_id == more.call_id
                && text.agent == more.agent
                && is_same_text(&text.event, &more.event)
        }
        _ => false,
    }
}

fn text_of(event: &AgentEvent) -> Option<&str> {
    match event {
        AgentEvent::Block(ContentBlock::Text(block)) => Some(&block.text),
        AgentEvent::Block(ContentBlock::Thinking(block)) => Some(&block.thinking),
        AgentEvent::ToolUseDelta(delta) => Some(&delta.arguments),
        AgentEvent::Nested(nested) => text_of(&nested.event),
        _ => None,
    }
}

fn text_mut(event: &mut AgentEvent) -> Option<&mut String> {
    match event {
        AgentEvent::Block(ContentBlock::Text(block)) => Some(&mut block.text),
        AgentEvent::Block(ContentBlock::Thinking(block)) => Some(&mut block.thinking),
        AgentEvent::ToolUseDelta(delta) => Some(&mut delta.arguments),
        AgentEvent::Nested(nested) => text_mut(&mut nested.event),
        _ => None,
    }
}

/// Returns the memory of an answer to a call in bytes, which is added to that of its event.
fn answer_size(event: &ConversationEvent) -> usize {
    match event {
        ConversationEvent::Answered { answer, .. } => memory(answer),
        _ => 0,
    }
}

/// Returns the memory of an event in bytes.
fn size(event: &ConversationEvent) -> usize {
    match event {
        ConversationEvent::Agent(event) => memory(event),
        ConversationEvent::Answered { call_id, .. } => memory(call_id),
        ConversationEvent::Prompt { text, images } => memory(&(text, images)),
        ConversationEvent::Run(event) => memory(event),
    }
}

/// Returns an upper bound of the memory of a value, in bytes: as JSON, of which lists and objects take many times the
/// length of their text.
fn memory(value: &impl Serialize) -> usize {
    // Events are JSON: they are sent as such.
    serde_json::to_string(value).map_or(0, |json| held::by_json(&json))
}

#[cfg(test)]
mod tests;
