//! Encoding of a conversation's events as response bytes: the part that all protocols share.

use oa_sse::Frame;
use serde::Serialize;

use crate::conversation::View;

/// A protocol that turns events into frames. It has no I/O and no clock, so equal events give equal bytes.
pub(crate) trait Encoder: Send + 'static {
    /// Appends the frames for an item that a viewer has read.
    fn write(&mut self, view: View, out: &mut Vec<u8>);

    /// Returns true once the stream is complete.
    fn is_over(&self) -> bool;

    /// Appends a keep-alive for proxies while there are no events.
    fn keep_alive(&self, out: &mut Vec<u8>) {
        Frame::write_comment("alive", out);
    }
}

/// Appends an event with JSON as its data.
pub(crate) fn data(data: &impl Serialize, out: &mut Vec<u8>) {
    // JSON has no line breaks outside of strings, where they are escaped.
    if let Ok(data) = serde_json::to_string(data) {
        let written = Frame::new(&data).write_to(out);
        debug_assert!(written.is_ok(), "an event without fields is valid");
    }
}

/// Returns the id with which a front end approves or denies a call that waited at the end of a run. If the call is
/// asked about again, it has another id, so an answer counts once.
pub(crate) fn approval_id(run: u64, call_id: &str) -> String {
    format!("{run}-{call_id}")
}
