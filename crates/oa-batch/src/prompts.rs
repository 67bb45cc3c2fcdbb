//! The sources of prompts.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use oa_types::Message;

pub(crate) type Prompts<'a> = Pin<Box<dyn Stream<Item = Message> + Send + 'a>>;

/// An iterator of prompts, as a stream that is always ready.
pub(crate) struct Iterated<I>(pub(crate) I);

// Nothing is pinned: items are taken by `&mut`.
impl<I> Unpin for Iterated<I> {}

impl<I> Stream for Iterated<I>
where
    I: Iterator<Item: Into<Message>>,
{
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Message>> {
        Poll::Ready(self.0.next().map(Into::into))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

/// A stream of anything that is a prompt.
pub(crate) struct Streamed<S>(pub(crate) Pin<Box<S>>);

impl<S> Stream for Streamed<S>
where
    S: Stream<Item: Into<Message>>,
{
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        self.0.as_mut().poll_next(cx).map(|prompt| prompt.map(Into::into))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}
