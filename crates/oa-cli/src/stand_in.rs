//! A built-in scripted model, to try everything without a server.

mod script;
mod tools;

use std::collections::VecDeque;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use open_agent::{AnswerDelta, AnswerStream, ChatRequest, Error};
use tokio::time::{Sleep, sleep};
use tower::Service;

pub(crate) use self::tools::tools;

/// The name of the model.
pub(crate) const NAME: &str = "stand-in";
/// The delay before each word.
const WORD: Duration = Duration::from_millis(12);

/// A chat service that answers by a few rules. It is not a language model.
#[derive(Clone, Debug)]
pub(crate) struct StandIn;

impl Service<ChatRequest> for StandIn {
    type Response = AnswerStream;
    type Error = Error;
    type Future = Ready<Result<AnswerStream, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ChatRequest) -> Self::Future {
        let deltas = script::answer(&request).into();
        ready(Ok(AnswerStream::from_deltas(Speech { deltas, sleep: None })))
    }
}

/// An answer, word by word.
struct Speech {
    deltas: VecDeque<AnswerDelta>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Stream for Speech {
    type Item = Result<AnswerDelta, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let pause = self.sleep.get_or_insert_with(|| Box::pin(sleep(WORD)));
        ready!(pause.as_mut().poll(cx));
        self.sleep = None;
        Poll::Ready(self.deltas.pop_front().map(Ok))
    }
}
