//! Observes the bytes of an answer as they are read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use oa_sse::{Item, Parser};
use serde_json::Value;
use tokio::time::Instant;

/// The memory that JSON from the server or the model may take as a value, in bytes.
pub(crate) const ROOM: usize = 64 << 20;

/// Measurements of one answer's bytes.
#[derive(Debug, Default)]
pub(crate) struct Bytewise {
    /// The number of pieces that have arrived.
    pub(crate) pieces: u64,
    /// The number of comments before the first payload, and the time of the first one.
    pub(crate) comments: u32,
    pub(crate) first_comment: Option<Instant>,
    /// True if it is one JSON document.
    pub(crate) is_document: bool,
    /// True if `[DONE]` was received.
    pub(crate) is_done: bool,
    pub(crate) payloads: u64,
    pub(crate) usage: UsagePlace,
    /// The member that holds thinking.
    pub(crate) thinking: Option<&'static str>,
    pub(crate) calls: Fragments,
}

/// The number of payloads with token counts, and their other content.
#[derive(Debug, Default)]
pub(crate) struct UsagePlace {
    pub(crate) payloads: u64,
    pub(crate) alone: bool,
    pub(crate) in_choice: bool,
}

/// The way calls are split into pieces.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    pub(crate) count: u64,
    pub(crate) ids: u64,
    pub(crate) without_index: bool,
    pub(crate) with_objects: bool,
}

/// The bytes of a byte order mark, which pieces may split.
const MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// A body that is observed as it is read.
pub(crate) struct Tap {
    /// `None` once the body is not an event stream, or exceeds the limits.
    parser: Option<Parser>,
    /// True once more than blanks and a byte order mark has arrived.
    has_begun: bool,
    seen: Arc<Mutex<Bytewise>>,
}

impl Tap {
    pub(crate) fn new(limits: oa_sse::Limits) -> (Self, Arc<Mutex<Bytewise>>) {
        let seen = Arc::new(Mutex::new(Bytewise::default()));
        let parser = Some(Parser::with_limits(limits));
        (Self { parser, has_begun: false, seen: Arc::clone(&seen) }, seen)
    }

    pub(crate) fn look(&mut self, bytes: &Bytes) {
        let mut seen = lock(&self.seen);
        seen.pieces += 1;
        if !self.has_begun {
            let is_before = |byte: &&u8| byte.is_ascii_whitespace() || MARK.contains(byte);
            let first = bytes.iter().find(|byte| !is_before(byte));
            self.has_begun = first.is_some();
            if matches!(first, Some(b'{' | b'[')) {
                seen.is_document = true;
                self.parser = None;
            }
        }
        let Some(parser) = &mut self.parser else { return };
        parser.push(bytes.clone());
        loop {
            match parser.next_item() {
                Ok(Some(Item::Comment(_))) if seen.payloads == 0 => {
                    seen.comments = seen.comments.saturating_add(1);
                    seen.first_comment.get_or_insert_with(Instant::now);
                }
                Ok(Some(Item::Event(event))) => seen.take(event.raw_data()),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => {
                    self.parser = None;
                    return;
                }
            }
        }
        // Released, so that the transport can reuse the buffer.
        parser.release();
    }
}

/// Never poisoned: nothing panics while holding it.
pub(crate) fn lock(seen: &Mutex<Bytewise>) -> MutexGuard<'_, Bytewise> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bytewise {
    fn take(&mut self, payload: &[u8]) {
        self.payloads += 1;
        self.is_done |= payload.trim_ascii() == b"[DONE]";
        let Some(payload) = oa_json::read_within(payload, ROOM) else { return };
        let choice = &payload["choices"][0];
        if payload["usage"].is_object() || choice["usage"].is_object() {
            self.usage.payloads += 1;
            // Of several payloads with counts, the last one decides: earlier ones are running totals.
            self.usage.alone = choice.is_null();
            self.usage.in_choice = payload["usage"].is_null();
        }
        let delta = &choice["delta"];
        let is_said = |member: &&str| match &delta[*member] {
            Value::String(text) => !text.is_empty(),
            Value::Array(parts) => !parts.is_empty(),
            Value::Object(members) => !members.is_empty(),
            _ => false,
        };
        let members = [
            "reasoning_content",
            "reasoning",
            "reasoning_text",
            "reasoning_details",
            "thinking_blocks",
        ];
        let parts = delta["content"].as_array().into_iter().flatten();
        self.thinking = self.thinking.or_else(|| {
            let in_parts = || {
                let mut kinds = parts.map(|part| &part["type"]);
                kinds.any(|kind| kind == "thinking").then_some("content")
            };
            members.into_iter().find(is_said).or_else(in_parts)
        });
        for fragment in delta["tool_calls"].as_array().into_iter().flatten() {
            self.calls.count += 1;
            self.calls.ids += u64::from(fragment["id"].as_str().is_some_and(|id| !id.is_empty()));
            self.calls.without_index |= fragment["index"].is_null();
            self.calls.with_objects |= fragment["function"]["arguments"].is_object();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_document(pieces: &[&str]) -> bool {
        let (mut tap, seen) = Tap::new(oa_sse::Limits::default());
        for piece in pieces {
            tap.look(&Bytes::copy_from_slice(piece.as_bytes()));
        }
        lock(&seen).is_document
    }

    #[test]
    fn only_the_first_byte_makes_a_document() {
        assert!(is_document(&["{\"choices\":[]}"]));
        assert!(is_document(&["\n", "\u{feff}", " [1]"]));
        assert!(!is_document(&["data: ", "{\"choices\":[]}\n\n"]));
        assert!(!is_document(&["event: x\n", "\n", "{\"choices\":[]}\n\n"]));
    }
}
