use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use oa_client::{Reply, Result};
use oa_types::Message;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::batch::RunningBatch;
use crate::options::BatchOptions;
use crate::output_type::{OutputType, foreign, read};
use crate::progress::BatchProgress;
use crate::prompts::Iterated;

/// Starts a batch whose answers are values of type `T`; otherwise like [`run_batch`](crate::run_batch).
///
/// Each prompt is asked as by [`send_for`](oa_client::Client::send_for): the schema of the type is sent, and an answer
/// that does not match is corrected by the model, in up to three attempts. If none matches, the outcome is an error of
/// kind `Output`.
///
/// With a log, a reply that is not a value of the type, because the type has changed or the log is that of a batch of
/// texts, is an error of kind `InvalidInput`, and nothing is sent.
///
/// ```
/// use oa_batch::{BatchOptions, run_batch_for};
/// # use oa_client::AgentOptions;
/// # use oa_testkit::{MemoryServer, Reply, Script};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Invoice {
///     number: u32,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oa_client::Result<()> {
/// # let model = MemoryServer::new(Script::new().otherwise(Reply::text(r#"{"number": 7}"#)));
/// # let agent = AgentOptions::builder().model("any").transport(model).build()?;
/// let documents = ["Invoice no. 7", "Our invoice: 7"];
/// let mut batch = run_batch_for::<Invoice>(documents, BatchOptions::new(agent))?;
/// while let Some((index, reply)) = batch.next().await {
///     println!("{index}: {}", reply?.value.number);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`run_batch`](crate::run_batch).
pub fn run_batch_for<'a, T>(
    prompts: impl IntoIterator<Item: Into<Message>, IntoIter: Send + 'a>,
    options: BatchOptions,
) -> Result<TypedBatch<'a, T>>
where
    T: DeserializeOwned + JsonSchema,
{
    let prompts = Box::pin(Iterated(prompts.into_iter()));
    let batch = RunningBatch::new(prompts, options)?.with_output_type(OutputType::of::<T>());
    Ok(TypedBatch { batch, value: PhantomData })
}

/// A running batch of typed answers: a stream of `(index, Result<TypedReply<T>>)`, where the index counts prompts from
/// 0. See [`RunningBatch`] for its rules.
///
/// # Cancel safety
///
/// As [`RunningBatch`].
#[must_use = "streams do nothing unless polled"]
pub struct TypedBatch<'a, T> {
    batch: RunningBatch<'a>,
    value: PhantomData<fn() -> T>,
}

/// A value with the reply that contains it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TypedReply<T> {
    /// The value.
    pub value: T,
    /// The reply. Its text is the value as JSON, and `turn_usage` includes attempts that did not match.
    pub reply: Reply,
}

impl<T: DeserializeOwned> TypedBatch<'_, T> {
    /// Waits for the next outcome; `None` at the end.
    ///
    /// # Panics
    ///
    /// As [`RunningBatch::next`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<(usize, Result<TypedReply<T>>)> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns the progress of the batch.
    #[must_use]
    pub fn progress(&self) -> BatchProgress {
        self.batch.progress()
    }
}

impl<T: DeserializeOwned> Stream for TypedBatch<'_, T> {
    type Item = (usize, Result<TypedReply<T>>);

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let typed = |reply: Reply| match read(&reply.text) {
            Some(value) => Ok(TypedReply { value, reply }),
            None => Err(foreign()),
        };
        let outcome = Pin::new(&mut self.batch).poll_next(cx);
        outcome.map(|outcome| outcome.map(|(index, reply)| (index, reply.and_then(typed))))
    }
}

impl<T> fmt::Debug for TypedBatch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedBatch").field(&self.batch).finish()
    }
}
