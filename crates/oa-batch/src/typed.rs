use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use oa_client::{OutputMode, Reply, Result};
use oa_types::Message;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::batch::RunningBatch;
use crate::options::BatchOptions;
use crate::output_type::{OutputType, foreign, read};
use crate::progress::BatchProgress;
use crate::prompts::{Iterated, Prompts, Streamed};

/// Starts a batch whose answers are values of type `T`; otherwise like [`run_batch`](crate::run_batch).
///
/// Each prompt is asked as by [`send_for`](oa_client::Client::send_for): the schema of the type is sent, and an answer
/// that does not match is corrected by the model, in up to three attempts. If none matches, the outcome is an error of
/// kind `Output`. Methods of the [`TypedBatch`] add checks and change the number of attempts.
///
/// With a log, a reply that is not a value of the type, because the type or a check has changed or the log is that of a
/// batch of texts, is an error of kind `InvalidInput`, and nothing is sent.
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
    TypedBatch::new(Box::pin(Iterated(prompts.into_iter())), options)
}

/// Starts a batch of typed answers whose prompts come from a stream; otherwise like [`run_batch_for`].
///
/// The stream is polled only when there is room for a prompt.
///
/// # Errors
///
/// As [`run_batch`](crate::run_batch).
pub fn run_batch_stream_for<'a, T>(
    prompts: impl Stream<Item: Into<Message>> + Send + 'a,
    options: BatchOptions,
) -> Result<TypedBatch<'a, T>>
where
    T: DeserializeOwned + JsonSchema,
{
    TypedBatch::new(Box::pin(Streamed(Box::pin(prompts))), options)
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

impl<'a, T: DeserializeOwned + JsonSchema> TypedBatch<'a, T> {
    fn new(prompts: Prompts<'a>, options: BatchOptions) -> Result<Self> {
        let batch = RunningBatch::new(prompts, options)?.with_output_type(OutputType::of::<T>());
        Ok(Self { batch, value: PhantomData })
    }
}

/// Options of each request for a value, as those of [`send_for`](oa_client::Client::send_for). Set them before the first
/// call of [`next`](Self::next): they apply to prompts that have not been sent.
impl<T: DeserializeOwned> TypedBatch<'_, T> {
    /// Sets the maximum number of attempts for each value; 3 by default. With 0, each prompt fails with kind `Config`.
    pub fn tries(self, tries: u32) -> Self {
        self.with(|output_type| output_type.tries = Some(tries))
    }

    /// Sets how structured output is requested from the model.
    pub fn mode(self, mode: OutputMode) -> Self {
        self.with(|output_type| output_type.mode = mode)
    }

    /// Names the output tool. [`OutputMode::Format`] and [`OutputMode::Prompt`] have none, so each prompt fails with
    /// kind `Config`.
    pub fn tool_name(self, name: impl Into<String>) -> Self {
        self.with(|output_type| output_type.tool = Some(name.into()))
    }

    /// Adds a check beyond the type. The model reads the error that the closure returns; a panic is an error, too.
    ///
    /// ```
    /// # use oa_batch::{BatchOptions, run_batch_for};
    /// # use oa_client::AgentOptions;
    /// # use oa_testkit::{MemoryServer, Reply};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Invoice {
    /// #     number: u32,
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> oa_client::Result<()> {
    /// # let model = MemoryServer::new([Reply::text(r#"{"number": 0}"#), Reply::text(r#"{"number": 7}"#)]);
    /// # let options = BatchOptions::new(AgentOptions::builder().model("any").transport(model).build()?);
    /// let mut batch = run_batch_for::<Invoice>(["Invoice no. 7"], options)?
    ///     .check(|invoice| match invoice.number {
    ///         0 => Err("invoices are numbered from 1".to_owned()),
    ///         _ => Ok(()),
    ///     })
    ///     .tries(5);
    /// # assert_eq!(batch.next().await.expect("a reply").1?.value.number, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn check<F>(self, check: F) -> Self
    where
        F: Fn(&T) -> Result<(), String> + Send + Sync + 'static,
    {
        self.with(|output_type| output_type.add_check(check))
    }

    fn with(mut self, change: impl FnOnce(&mut OutputType)) -> Self {
        self.batch.change_output_type(change);
        self
    }
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
