use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use pin_project_lite::pin_project;

use crate::error::ReadError;
use crate::event::EventBuf;
use crate::parser::Parser;
use crate::reader::Reader;

pin_project! {
    /// The events of a stream of byte chunks.
    ///
    /// A final event without a blank line is delivered. After an error of the source the stream ends. To reconnect as
    /// browsers do, send [`last_event_id`](Parser::last_event_id) as the header `Last-Event-ID`, and continue with the
    /// same parser: `EventStream::with_parser(next, events.into_parser())`.
    ///
    /// One poll reads no more than a [`PollBudget`] allows, so a source that is always ready cannot keep the task
    /// from yielding.
    ///
    /// # Cancel safety
    ///
    /// Dropping a pending `next` loses nothing, because data already read stays in the parser.
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct EventStream<S> {
        #[pin]
        source: S,
        reader: Reader,
    }
}

impl<S> EventStream<S> {
    /// Reads events from `source`.
    pub fn new(source: S) -> Self {
        Self::with_parser(source, Parser::new())
    }

    /// Reads events from `source` with a configured parser.
    pub fn with_parser(source: S, parser: Parser) -> Self {
        Self { source, reader: Reader::new(parser) }
    }

    /// Returns the parser, for its last event id and retry time.
    #[must_use]
    pub fn parser(&self) -> &Parser {
        &self.reader.parser
    }

    /// Returns the underlying source.
    pub fn get_ref(&self) -> &S {
        &self.source
    }

    /// Returns the underlying source. Data read from it directly does not reach the parser.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// Returns the underlying source. Data already read but not yet returned as events is lost.
    pub fn into_inner(self) -> S {
        self.source
    }

    /// Returns the parser for the next connection: it keeps the last event id and the retry time, and no data.
    #[must_use]
    pub fn into_parser(self) -> Parser {
        self.reader.into_parser()
    }

    /// Waits for the next event; `None` at the end.
    ///
    /// # Errors
    ///
    /// As an item: [`ReadError::Parse`] for an event over the limit, after which reading continues;
    /// [`ReadError::Source`] if the source fails.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing, because data already read stays in the parser.
    pub async fn next<E>(&mut self) -> Option<Result<EventBuf, ReadError<E>>>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin,
    {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl<S, E> Stream for EventStream<S>
where
    S: Stream<Item = Result<Bytes, E>>,
{
    type Item = Result<EventBuf, ReadError<E>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let reader = this.reader;
        loop {
            // Parsed events first: a source that is pending must not delay them.
            match reader.parser.next_event() {
                Ok(Some(event)) => return Poll::Ready(Some(Ok(event.into_owned()))),
                Ok(None) if reader.ended => return Poll::Ready(None),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Some(Err(ReadError::Parse(error)))),
            }
            if let Err(error) =
                ready!(reader.poll_read(cx, |cx| this.source.as_mut().poll_next(cx)))
            {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}
