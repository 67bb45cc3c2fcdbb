//! The body of a response, from any transport.

use std::error::Error as StdError;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use oa_transport::ResponseBody;
use oa_types::Exclusive;

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// The next piece of a body.
pub(crate) type FramePoll = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

/// A body of any transport.
pub(crate) enum AnyBody {
    Other(Exclusive<Pin<Box<dyn Frames + Send>>>),
    Own(ResponseBody),
}

/// A body whose errors are boxed.
pub(crate) trait Frames {
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> FramePoll;
}

impl AnyBody {
    pub(crate) fn new(body: impl Frames + Send + 'static) -> Self {
        Self::Other(Exclusive::new(Box::pin(body)))
    }

    #[inline]
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> FramePoll {
        match self {
            Self::Other(body) => body.get_mut().as_mut().poll_frame(cx),
            Self::Own(body) => Frames::poll_frame(Pin::new(body), cx),
        }
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> Frames for B {
    #[inline]
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> FramePoll {
        Body::poll_frame(self, cx).map_err(Into::into)
    }
}
