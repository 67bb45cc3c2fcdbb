use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::slice;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A request body: segments of bytes with a known total length.
///
/// Clones share the segments, so a retry copies nothing.
#[derive(Clone, Default)]
pub struct RequestBody {
    segments: Segments,
    next: usize,
    left: usize,
}

#[derive(Clone)]
enum Segments {
    /// The common case, without an allocation.
    One(Bytes),
    Several(Arc<[Bytes]>),
}

impl RequestBody {
    /// Creates a body with one segment.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { next: 0, left: bytes.len(), segments: Segments::One(bytes) }
    }

    /// Creates an empty body.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates a body from segments, without copying them together.
    #[must_use]
    pub fn from_segments(segments: Vec<Bytes>) -> Self {
        let mut body = Self { segments: Segments::Several(segments.into()), next: 0, left: 0 };
        body.left = body.len();
        body
    }

    /// Returns true if the body is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the total length in bytes, sent or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.segments().iter().map(Bytes::len).sum()
    }

    /// Returns all segments, sent or not.
    #[must_use]
    pub fn segments(&self) -> &[Bytes] {
        match &self.segments {
            Segments::One(segment) => slice::from_ref(segment),
            Segments::Several(segments) => segments,
        }
    }
}

impl Default for Segments {
    fn default() -> Self {
        Self::Several(Arc::default())
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // Empty segments are skipped: an empty frame would cost a poll and carry nothing.
        while let Some(segment) = self.segments().get(self.next).cloned() {
            self.next += 1;
            if !segment.is_empty() {
                self.left -= segment.len();
                return Poll::Ready(Some(Ok(Frame::data(segment))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> Self {
        Self::new(bytes)
    }
}

impl From<String> for RequestBody {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<Vec<u8>> for RequestBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl From<&'static str> for RequestBody {
    fn from(text: &'static str) -> Self {
        Self::new(text)
    }
}

/// Shows the size, not the content.
impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody")
            .field("len", &self.len())
            .field("segments", &self.segments().len())
            .finish_non_exhaustive()
    }
}
