use std::task::{Context, Poll};

use bytes::Bytes;

use crate::budget::PollBudget;
use crate::error::ReadError;
use crate::parser::Parser;

/// A parser and the state of its source: the part of both readers that does not depend on the kind of source.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub(crate) parser: Parser,
    /// The rest of a chunk that is read in pieces.
    rest: Bytes,
    budget: PollBudget,
    /// The source has ended or failed, and must not be polled again.
    pub(crate) ended: bool,
}

impl Reader {
    pub(crate) fn new(parser: Parser) -> Self {
        Self { parser, ..Self::default() }
    }

    /// Returns the parser without the data that it has not returned as events.
    pub(crate) fn into_parser(mut self) -> Parser {
        self.parser.restart();
        self.parser
    }

    /// Moves the next piece or the end of the input into the parser. Also returns `Pending` if the budget is spent,
    /// after waking the task.
    pub(crate) fn poll_read<E>(
        &mut self,
        cx: &mut Context<'_>,
        poll_chunk: impl FnOnce(&mut Context<'_>) -> Poll<Option<Result<Bytes, E>>>,
    ) -> Poll<Result<(), ReadError<E>>> {
        if self.budget.is_spent() {
            self.budget.refill();
            // The source is not polled, so nothing else brings the task back.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.rest.is_empty() {
            let Poll::Ready(chunk) = poll_chunk(cx) else {
                self.budget.refill();
                return Poll::Pending;
            };
            match chunk {
                Some(Ok(chunk)) => self.rest = chunk,
                Some(Err(error)) => {
                    self.ended = true;
                    // Strict: half an event, cut off by a broken connection, must not look complete.
                    self.parser.finish();
                    return Poll::Ready(Err(ReadError::Source(error)));
                }
                None => {
                    self.ended = true;
                    self.parser.finish_lenient();
                    return Poll::Ready(Ok(()));
                }
            }
        }
        // The caller has drained the parser, so no chunks queue up. An empty chunk is charged, too.
        self.parser.push(self.budget.take(&mut self.rest));
        Poll::Ready(Ok(()))
    }
}
