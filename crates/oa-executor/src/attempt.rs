use std::mem;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use oa_contain::{Contained, Panic, contain};
use oa_tools::{BlockingHandler, ErrorBody, Tool, ToolContext, ToolError};
use oa_types::{Outcome, flattened, micros};
use serde_json::Value;
use tokio::task::{self, JoinError, JoinHandle};
use tokio::time::{self, Instant};

use crate::caps::Counted;
use crate::ended::{Ended, panic_body};
use crate::event::ToolRetry;
use crate::queue::{QueuedEvent, Sender};
use crate::retry::RetryPolicy;

/// A call with everything needed to run it, including retries.
pub(crate) struct Job {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) input: Value,
    /// The context of the call; each attempt gets a child of its cancellation signal.
    pub(crate) cx: ToolContext,
    /// The timeout of one attempt.
    pub(crate) timeout: Option<Duration>,
    /// The end of the run's time limit.
    pub(crate) deadline: Option<Instant>,
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) sender: Sender,
    pub(crate) record: Arc<Record>,
    pub(crate) counted: Counted,
}

/// The progress of a job, readable after the job is dropped.
#[derive(Debug, Default)]
pub(crate) struct Record {
    attempts: AtomicU32,
    started: OnceLock<Instant>,
}

impl Record {
    /// Returns the result of a job that is canceled now.
    pub(crate) fn cancelled(&self) -> Ended {
        // Paired with the one in `start`.
        fence(Ordering::SeqCst);
        Ended { duration: self.elapsed(), ..Ended::cancelled(self.attempts()) }
    }

    fn start(&self) {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.started.get_or_init(Instant::now);
    }

    fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    fn elapsed(&self) -> Duration {
        self.started.get().map_or(Duration::ZERO, Instant::elapsed)
    }
}

/// The reason why an attempt has no result.
enum Failure {
    Cancelled,
    Failed(ToolError),
    Panicked(Panic),
    RunTimedOut,
    TimedOut(Duration),
}

impl Job {
    pub(crate) async fn run(mut self) -> Ended {
        let (outcome, result) = match self.attempts().await {
            Ok(result) => (Outcome::Ok, Ok(flattened(result))),
            Err(Failure::Cancelled) => return self.record.cancelled(),
            Err(failure) => {
                let (outcome, body) = failure.into_parts();
                (outcome, Err(body))
            }
        };
        // Those of a failed attempt are dropped, and not left in the context, which the tool may keep.
        let images = Some(self.cx.take_images()).filter(|_| outcome == Outcome::Ok);
        let images = images.unwrap_or_default();
        let (attempts, duration) = (self.record.attempts(), self.record.elapsed());
        Ended { outcome, result, images, attempts, duration, cached: false }
    }

    async fn attempts(&mut self) -> Result<Value, Failure> {
        let mut retry = 0;
        loop {
            if self.cx.is_cancelled() {
                return Err(Failure::Cancelled);
            }
            self.record.start();
            // The last check before the tool's code runs. A cancel from another thread is either seen here, or it
            // sees the attempt: a call that is told not to have run never does.
            if self.cx.is_cancelled() {
                return Err(Failure::Cancelled);
            }
            let failure = match self.attempt().await {
                Ok(result) => return Ok(result),
                Err(failure) => failure,
            };
            let Some(delay) = self.pause(retry, &failure) else { return Err(failure) };
            // A cancel during the delay drops this future; `Record` still knows how many attempts there were.
            self.tell_retry(&failure, delay);
            time::sleep(delay).await;
            // All attempts share the images of the call.
            drop(self.cx.take_images());
            retry += 1;
        }
    }

    async fn attempt(&mut self) -> Result<Value, Failure> {
        // A child for each attempt: a timeout stops this one, and the next starts with a fresh signal.
        let cancel = self.cx.cancel().child();
        let cx = self.cx.clone().with_cancel(cancel.clone());
        let tool = Arc::clone(&self.tool);
        let input = match self.retry {
            Some(_) => self.input.clone(),
            // The only attempt.
            None => mem::take(&mut self.input),
        };
        // All of the tool's code runs in here, where panics become values.
        let mut result = pin!(Contained::new(Box::pin(async move {
            match tool.blocking() {
                Some(handler) => Pooled::new(handler, input, cx).await,
                None => Ok(Ok(tool.call(input, cx).await)),
            }
        })));
        let deadline = self.deadline;
        // A timeout too long to be represented is no timeout.
        let limit = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let until = match (limit, deadline) {
            (Some(limit), Some(deadline)) => Some(limit.min(deadline)),
            (limit, deadline) => limit.or(deadline),
        };
        let ended = match until {
            Some(until) => time::timeout_at(until, result.as_mut()).await,
            None => Ok(result.as_mut().await),
        };
        // From the outside in: the time ran out, the tool panicked while polled, the pool dropped the
        // handler, the handler panicked on the pool, and what the tool returned.
        match ended {
            Ok(Ok(Ok(Ok(result)))) => result.map_err(Failure::Failed),
            // The runtime is shutting down.
            Ok(Ok(Err(_))) => Err(Failure::Cancelled),
            Ok(Ok(Ok(Err(panic))) | Err(panic)) => Err(Failure::Panicked(panic)),
            Err(_) => {
                // Signal before dropping, so that the tool can react.
                cancel.cancel();
                Err(match self.timeout {
                    Some(timeout) if until == limit => Failure::TimedOut(timeout),
                    _ => Failure::RunTimedOut,
                })
            }
        }
    }

    /// Returns the delay before a retry, counted from 0, after this failure; `None` if it is not retried.
    fn pause(&self, retry: u32, failure: &Failure) -> Option<Duration> {
        let is_left = |policy: &&RetryPolicy| retry < policy.max_retries;
        let policy = self.retry.as_ref().filter(is_left)?;
        let is_worth_it = match failure {
            Failure::Failed(error) => policy.retries(error),
            Failure::TimedOut(_) => policy.timeouts,
            Failure::Cancelled | Failure::Panicked(_) | Failure::RunTimedOut => false,
        };
        let delay = policy.delay(retry, seed(self.cx.call_id()));
        // A retry after the end of the run would only replace this error by a less useful timeout.
        let is_in_time = self.deadline.is_none_or(|deadline| {
            Instant::now().checked_add(delay).is_some_and(|until| until < deadline)
        });
        (is_worth_it && is_in_time).then_some(delay)
    }

    fn tell_retry(&self, failure: &Failure, delay: Duration) {
        let retry = ToolRetry {
            call_id: self.cx.call_id().to_owned(),
            tool_name: self.cx.tool_name().to_owned(),
            attempt: self.record.attempts(),
            error: failure.text(),
            delay: micros::whole(delay),
        };
        self.sender.queue.post(self.sender.call, QueuedEvent::Retry(retry));
    }
}

impl Failure {
    fn into_parts(self) -> (Outcome, ErrorBody) {
        let body = ErrorBody::new("", self.text());
        match self {
            Self::Cancelled => (Outcome::Cancelled, body),
            Self::Failed(_) => (Outcome::Failed, body),
            Self::Panicked(panic) => (Outcome::Panicked, panic_body(&panic)),
            Self::RunTimedOut | Self::TimedOut(_) => (Outcome::TimedOut, body),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Cancelled => "cancelled".to_owned(),
            Self::Failed(error) => error.to_string(),
            Self::Panicked(_) => "the tool panicked".to_owned(),
            Self::RunTimedOut => "the run's time limit is reached".to_owned(),
            Self::TimedOut(timeout) => format!("timed out after {timeout:?}"),
        }
    }
}

/// A blocking handler on the blocking pool. A thread cannot be stopped: dropping this removes a handler that
/// has not started from the queue; a running one only sees its signal.
struct Pooled(JoinHandle<Result<Result<Value, ToolError>, Panic>>);

impl Pooled {
    fn new(handler: BlockingHandler, input: Value, cx: ToolContext) -> Self {
        // Catch the panic here so that the payload is not dropped by the pool.
        Self(task::spawn_blocking(move || contain(move || handler.run(input, cx))))
    }
}

impl Future for Pooled {
    type Output = Result<Result<Result<Value, ToolError>, Panic>, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Hashes a text (FNV-1a), so that calls that fail together do not retry together.
fn seed(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}
