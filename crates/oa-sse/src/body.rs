use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Body;
use pin_project_lite::pin_project;

use crate::error::ReadError;
use crate::event::Event;
use crate::parser::Parser;
use crate::reader::Reader;

pin_project! {
    /// The events of an HTTP body, borrowed one at a time.
    ///
    /// A final event without a blank line is delivered. After an error of the body there are no more events.
    ///
    /// One poll reads no more than a [`PollBudget`] allows, so a body that is always ready cannot keep the task from
    /// yielding.
    #[derive(Debug)]
    pub struct BodyEvents<B> {
        #[pin]
        body: B,
        reader: Reader,
    }
}

impl<B> BodyEvents<B>
where
    B: Body<Data = Bytes>,
{
    /// Reads events from `body`.
    pub fn new(body: B) -> Self {
        Self::with_parser(body, Parser::new())
    }

    /// Reads events from `body` with a configured parser.
    pub fn with_parser(body: B, parser: Parser) -> Self {
        Self { body, reader: Reader::new(parser) }
    }

    /// Returns the parser, for its last event id and retry time.
    #[must_use]
    pub fn parser(&self) -> &Parser {
        &self.reader.parser
    }

    /// Returns the underlying body.
    pub fn get_ref(&self) -> &B {
        &self.body
    }

    /// Returns the underlying body. Data read from it directly does not reach the parser.
    pub fn get_mut(&mut self) -> &mut B {
        &mut self.body
    }

    /// Returns the underlying body. Data already read but not yet returned as events is lost.
    pub fn into_inner(self) -> B {
        self.body
    }

    /// Returns the parser for the next connection: it keeps the last event id and the retry time, and no data.
    #[must_use]
    pub fn into_parser(self) -> Parser {
        self.reader.into_parser()
    }

    /// Returns the next event, or `None` at the end of the body.
    ///
    /// # Errors
    ///
    /// [`ReadError::Parse`] for an event over the limit, after which reading continues; [`ReadError::Source`]
    /// if the body fails.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing, because data already read stays in the parser.
    pub async fn next(&mut self) -> Result<Option<Event<'_>>, ReadError<B::Error>>
    where
        B: Unpin,
    {
        // `poll_fn` cannot return a borrow of `self`, so the event is lent afterwards. There is no await in
        // between, so a cancel cannot lose it.
        let found = poll_fn(|cx| Pin::new(&mut *self).poll_event(cx)).await?;
        Ok(found.then(|| self.reader.parser.lend_event()))
    }

    /// Reads until the parser has an event; returns false at the end.
    fn poll_event(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<bool, ReadError<B::Error>>> {
        let mut this = self.project();
        let reader = this.reader;
        loop {
            if reader.parser.find_event().map_err(ReadError::Parse)? {
                return Poll::Ready(Ok(true));
            }
            if reader.ended {
                return Poll::Ready(Ok(false));
            }
            ready!(reader.poll_read(cx, |cx| {
                let frame = ready!(this.body.as_mut().poll_frame(cx));
                // Trailers become an empty chunk: they have no meaning for an event stream.
                Poll::Ready(frame.map(|frame| Ok(frame?.into_data().unwrap_or_default())))
            }))?;
        }
    }
}
