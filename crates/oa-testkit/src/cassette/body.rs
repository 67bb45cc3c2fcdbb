use std::collections::VecDeque;
use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::error::{CassetteError, CassetteErrorKind};
use super::interaction::RecordedResponse;
use super::recorder::End;
use super::reel::Recording;
use crate::chop::Cut;

type BoxError = Box<dyn StdError + Send + Sync>;

/// A response body that is being recorded or replayed.
///
/// When recording, frames are passed on as they arrive. On replay, frames are the recorded pieces, each ready
/// immediately. If the recording was cut, the body fails there with [`Cut`](CassetteErrorKind::Cut).
///
/// # Cancel safety
///
/// A future waiting for the next frame may be dropped without losing data.
#[must_use = "bodies do nothing unless polled"]
pub struct TapedBody<B>(Source<B>);

enum Source<B> {
    Live(Live<B>),
    Played { cut: Option<String>, pieces: VecDeque<Bytes> },
}

/// A body that is being recorded.
struct Live<B> {
    body: Pin<Box<B>>,
    /// `None` once its end was recorded.
    recording: Option<Arc<Recording>>,
    take: usize,
}

impl<B: Body> TapedBody<B> {
    pub(super) fn live(body: B, recording: Arc<Recording>, take: usize) -> Self {
        let mut live = Live { body: Box::pin(body), recording: Some(recording), take };
        if live.body.is_end_stream() {
            live.end(End::Whole);
        }
        Self(Source::Live(live))
    }

    pub(super) fn played(answer: &RecordedResponse, cut: Option<&Cut>) -> Self {
        let pieces = cut.map_or_else(|| answer.pieces(), |cut| cut.pieces(&answer.body));
        Self(Source::Played { cut: answer.cut.clone(), pieces: pieces.into() })
    }
}

impl<B> Live<B> {
    fn end(&mut self, end: End) {
        if let Some(recording) = self.recording.take() {
            recording.recorder.end(self.take, end);
        }
    }
}

impl<B> Body for TapedBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let live = match &mut self.get_mut().0 {
            Source::Live(live) => live,
            Source::Played { cut, pieces } => {
                let piece = pieces.pop_front().map(|piece| Ok(Frame::data(piece)));
                return Poll::Ready(piece.or_else(|| {
                    let message = format!("the recording ends here: {}", cut.take()?);
                    Some(Err(CassetteError::new(CassetteErrorKind::Cut, message).into()))
                }));
            }
        };
        let frame =
            ready!(live.body.as_mut().poll_frame(cx)).map(|frame| frame.map_err(Into::into));
        match &frame {
            None => live.end(End::Whole),
            Some(Err(error)) => live.end(End::Cut(error.to_string())),
            Some(Ok(frame)) => {
                if let (Some(recording), Some(data)) = (&live.recording, frame.data_ref()) {
                    recording.recorder.piece(live.take, data);
                }
                if live.body.is_end_stream() {
                    live.end(End::Whole);
                }
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Live(live) => live.body.is_end_stream(),
            Source::Played { cut, pieces } => pieces.is_empty() && cut.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Live(live) => live.body.size_hint(),
            Source::Played { .. } => SizeHint::default(),
        }
    }
}

impl<B> Drop for Live<B> {
    fn drop(&mut self) {
        self.end(End::Cut("the client dropped the answer".to_owned()));
    }
}

impl<B> fmt::Debug for TapedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match &self.0 {
            Source::Live(_) => "live",
            Source::Played { .. } => "played",
        };
        f.debug_struct("TapedBody").field("source", &source).finish_non_exhaustive()
    }
}
