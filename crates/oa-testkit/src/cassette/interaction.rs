//! A request and its response, as recorded.

use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderMap};

use super::question::Question;
use crate::chop::Cut;

/// A request and its response.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Interaction {
    pub(super) answer: RecordedResponse,
    pub(super) question: Question,
}

/// The response.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RecordedResponse {
    pub(super) body: Bytes,
    /// The offsets of all pieces but the first, unless they are the [natural](natural) ones.
    pub(super) borders: Option<Vec<usize>>,
    /// The reason why it ends early, if it does.
    pub(super) cut: Option<String>,
    pub(super) headers: HeaderMap,
    pub(super) status: StatusCode,
}

impl RecordedResponse {
    /// Returns the pieces in which the body arrived.
    pub(super) fn pieces(&self) -> Vec<Bytes> {
        let cut = match &self.borders {
            Some(borders) => Cut::At(borders.clone()),
            None => natural(&self.headers),
        };
        cut.pieces(&self.body)
    }
}

/// Returns the default split of a body: streams into events, others not at all.
pub(super) fn natural(headers: &HeaderMap) -> Cut {
    if is_stream(headers) { Cut::Events } else { Cut::Whole }
}

/// Returns the offsets of all pieces but the first.
pub(super) fn borders_of(pieces: &[Bytes]) -> Vec<usize> {
    let ends = pieces.iter().scan(0, |end, piece| {
        *end += piece.len();
        Some(*end)
    });
    ends.take(pieces.len().saturating_sub(1)).collect()
}

pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
    kind.to_ascii_lowercase().starts_with(b"text/event-stream")
}
