use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
#[cfg(any(feature = "log", feature = "schemars"))]
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
#[cfg(feature = "log")]
use oa_client::ErrorKind;
use oa_client::{AgentOptions, Reply, Result};
use oa_types::Message;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::attempt::{Attempt, attempt_outcome};
use crate::jobs::{JobFuture, Jobs};
#[cfg(feature = "log")]
use crate::log::{BatchLog, Fingerprint};
use crate::options::BatchOptions;
#[cfg(feature = "schemars")]
use crate::output_type::OutputType;
use crate::progress::BatchProgress;
use crate::prompts::{Iterated, Prompts, Streamed};
use crate::scheduler::{AttemptOutcome, Scheduler};

/// Starts a batch whose prompts come from an iterator: texts, or messages with images or audio.
///
/// The iterator is advanced only when there is room for a prompt, and must not block: use
/// [`run_batch_stream`] for prompts that have to be waited for. See the [crate's page](crate) for an example.
///
/// # Errors
///
/// `Config` for a concurrency of 0, or an agent that [cannot be used](AgentOptions::check).
pub fn run_batch<'a, I>(prompts: I, options: BatchOptions) -> Result<RunningBatch<'a>>
where
    I: IntoIterator<Item: Into<Message>, IntoIter: Send + 'a>,
{
    RunningBatch::new(Box::pin(Iterated(prompts.into_iter())), options)
}

/// Starts a batch whose prompts come from a stream; otherwise like [`run_batch`].
///
/// The stream is polled only when there is room for a prompt.
///
/// # Errors
///
/// As [`run_batch`].
pub fn run_batch_stream<'a, S>(prompts: S, options: BatchOptions) -> Result<RunningBatch<'a>>
where
    S: Stream<Item: Into<Message>> + Send + 'a,
{
    RunningBatch::new(Box::pin(Streamed(Box::pin(prompts))), options)
}

/// A running batch: a stream of `(index, Result<Reply>)`, where the index counts prompts from 0.
///
/// Each prompt is yielded exactly once, with its reply or with the error of its last attempt. In manual mode a reply
/// may end with calls that wait for results, in [`Reply::message`]. If the log cannot be written, the prompts in
/// progress fail with kind `Storage` and the batch ends.
///
/// # Cancel safety
///
/// Dropping a pending [`next`](Self::next) loses nothing. Dropping the batch closes its connections and cancels its
/// tools at once; there are no background tasks. If there is a log, its thread ends after the write in progress, and
/// the next run does not repeat a prompt whose reply was yielded.
///
/// Nothing progresses unless it is polled: between two calls to `next`, answers wait while their timeouts keep running.
/// Spawn a task for slow work on a reply.
#[must_use = "streams do nothing unless polled"]
pub struct RunningBatch<'a> {
    prompts: Option<Prompts<'a>>,
    agent: AgentOptions,
    scheduler: Scheduler,
    jobs: Jobs<Job>,
    /// Prompts that wait to be retried, with the error of the last attempt.
    waiting: HashMap<u64, (Attempt, Result<Reply>)>,
    outcomes: HashMap<u64, Result<Reply>>,
    timer: Option<Pin<Box<Sleep>>>,
    began: Option<Instant>,
    progress: BatchProgress,
    #[cfg(feature = "log")]
    log: Option<Arc<BatchLog>>,
    #[cfg(feature = "schemars")]
    output_type: Option<Arc<OutputType>>,
}

/// A job that is done.
#[cfg_attr(
    not(feature = "log"),
    expect(clippy::large_enum_variant, reason = "nearly all jobs are answered")
)]
enum Job {
    Answered {
        index: u64,
        attempt: Attempt,
        result: Result<Reply>,
    },
    #[cfg(feature = "log")]
    Logged {
        index: u64,
        result: Result<Reply>,
        has_failed: bool,
    },
    #[cfg(feature = "log")]
    Looked {
        index: u64,
        prompt: Message,
        found: Option<Result<Reply>>,
    },
    /// No client could be made for the prompt.
    Refused {
        index: u64,
        error: oa_client::Error,
    },
}

impl<'a> RunningBatch<'a> {
    pub(crate) fn new(prompts: Prompts<'a>, options: BatchOptions) -> Result<Self> {
        options.check()?;
        Ok(Self {
            prompts: Some(prompts),
            agent: options.agent,
            scheduler: Scheduler::new(options.rules),
            jobs: Jobs::new(),
            waiting: HashMap::new(),
            outcomes: HashMap::new(),
            timer: None,
            began: None,
            progress: BatchProgress::default(),
            #[cfg(feature = "log")]
            log: options.log.map(Arc::new),
            #[cfg(feature = "schemars")]
            output_type: None,
        })
    }

    /// Makes it ask for values instead of texts.
    #[cfg(feature = "schemars")]
    pub(crate) fn with_output_type(mut self, output_type: OutputType) -> Self {
        self.output_type = Some(Arc::new(output_type));
        self
    }

    /// Changes how values are requested in the attempts that begin from now on.
    #[cfg(feature = "schemars")]
    pub(crate) fn change_output_type(&mut self, change: impl FnOnce(&mut OutputType)) {
        if let Some(output_type) = &mut self.output_type {
            change(Arc::make_mut(output_type));
        }
    }

    /// Waits for the next outcome; `None` at the end.
    ///
    /// # Panics
    ///
    /// When polled outside of a tokio runtime, or in one without time or I/O.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<(usize, Result<Reply>)> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns the progress of the batch.
    #[must_use]
    pub fn progress(&self) -> BatchProgress {
        let mut progress = self.progress;
        progress.retries = self.scheduler.retried().into();
        let finished = progress.done + progress.failed;
        let seconds = self.began.map_or(0.0, |began| began.elapsed().as_secs_f64());
        if seconds > 0.0 {
            progress.per_second = (finished - progress.from_log) as f64 / seconds;
        }
        progress.remaining = self.to_come().map(|to_come| {
            let unfinished = self.scheduler.taken().saturating_sub(finished);
            unfinished.saturating_add(to_come)
        });
        progress
    }

    /// Returns the number of prompts in the source, if known.
    fn to_come(&self) -> Option<u64> {
        match &self.prompts {
            None => Some(0),
            Some(prompts) => {
                let (least, most) = prompts.size_hint();
                most.filter(|most| *most == least).map(|most| most as u64)
            }
        }
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Option<(usize, Result<Reply>)>> {
        let began = *self.began.get_or_insert_with(Instant::now);
        loop {
            // Outcomes first: each one that is yielded makes room in the window.
            if let Some(index) = self.scheduler.take_settled()
                && let Some(outcome) = self.outcomes.remove(&index)
            {
                return Poll::Ready(Some((usize::try_from(index).unwrap_or(usize::MAX), outcome)));
            }
            // One time for all decisions of a pass; polling takes time, so an attempt ends at a later one.
            let now = began.elapsed();
            self.begin_attempts(cx, now);
            if self.scheduler.is_over() {
                return Poll::Ready(None);
            }
            match self.jobs.poll_next(cx) {
                Poll::Ready(job) => self.end(job, began.elapsed()),
                Poll::Pending => ready!(self.poll_timer(cx, began, now)),
            }
        }
    }

    /// Starts the attempts for which there is room and whose time has come.
    fn begin_attempts(&mut self, cx: &mut Context<'_>, now: Duration) {
        // Retries first: they hold a place in the window, and in order everything behind them waits.
        while let Some(index) = self.scheduler.take_retry(now) {
            if let Some((attempt, _)) = self.waiting.remove(&index) {
                self.jobs.push(ask(index, attempt));
            }
        }
        while self.scheduler.wants_prompt(now) {
            let Some(prompts) = &mut self.prompts else {
                return;
            };
            match prompts.as_mut().poll_next(cx) {
                Poll::Ready(Some(prompt)) => {
                    let index = self.scheduler.take_prompt(now);
                    let job = self.first(index, prompt);
                    self.jobs.push(job);
                }
                Poll::Ready(None) => self.end_prompts(),
                Poll::Pending => return,
            }
        }
    }

    fn end_prompts(&mut self) {
        self.prompts = None;
        self.scheduler.end_prompts();
    }

    /// Returns the first job of a prompt: a lookup in the log, or the first attempt.
    fn first(&self, index: u64, prompt: Message) -> JobFuture<Job> {
        #[cfg(feature = "log")]
        if let Some(log) = self.log.as_ref().filter(|log| log.knows(index)) {
            let log = Arc::clone(log);
            return Box::pin(async move {
                let found = log.look_up(index, Fingerprint::of(&prompt)).await;
                Job::Looked { index, prompt, found }
            });
        }
        self.question(index, prompt)
    }

    fn question(&self, index: u64, prompt: Message) -> JobFuture<Job> {
        let attempt = Attempt::new(&self.agent, prompt);
        #[cfg(feature = "schemars")]
        let attempt = attempt.map(|attempt| attempt.with_output_type(self.output_type.clone()));
        match attempt {
            Ok(attempt) => ask(index, attempt),
            Err(error) => Box::pin(async move { Job::Refused { index, error } }),
        }
    }

    fn end(&mut self, job: Job, now: Duration) {
        match job {
            Job::Answered { index, attempt, result } => {
                if self.scheduler.end(index, attempt_outcome(&result), now) {
                    self.waiting.insert(index, (attempt, result));
                } else {
                    self.conclude(index, &attempt, result);
                }
            }
            #[cfg(feature = "log")]
            Job::Logged { index, result, has_failed } => {
                self.settle(index, result);
                if has_failed {
                    self.give_up();
                }
            }
            #[cfg(feature = "log")]
            Job::Looked { index, prompt, found: None } => {
                let job = self.question(index, prompt);
                self.jobs.push(job);
            }
            #[cfg(feature = "log")]
            Job::Looked { index, found: Some(result), .. } => {
                self.scheduler.end(index, AttemptOutcome::Logged, now);
                self.progress.from_log += 1;
                #[cfg(feature = "schemars")]
                let result = match &self.output_type {
                    Some(output_type) => result.and_then(|reply| output_type.accept(reply)),
                    None => result,
                };
                self.settle(index, result);
            }
            Job::Refused { index, error } => {
                self.scheduler.end(index, AttemptOutcome::Logged, now);
                self.settle(index, Err(error));
            }
        }
    }

    /// Takes the final outcome of a prompt that was sent.
    fn conclude(&mut self, index: u64, attempt: &Attempt, result: Result<Reply>) {
        self.progress.tokens = self.progress.tokens.saturating_add(attempt.tokens());
        #[cfg(feature = "log")]
        if let Some(log) = &self.log {
            // Added now and not by the job, which may be dropped before its first poll.
            let added = log.add(index, Fingerprint::of(attempt.prompt()), &result);
            // The write is a job but no attempt: it leaves its place to the next prompt, and the outcome is
            // held until its line is on disk.
            let log = Arc::clone(log);
            self.jobs.push(Box::pin(async move {
                let written = match added {
                    Ok(()) => log.flush().await,
                    unfit => unfit,
                };
                match written {
                    Ok(()) => Job::Logged { index, result, has_failed: false },
                    Err(error) => {
                        let has_failed = error.kind() == ErrorKind::Storage;
                        Job::Logged { index, result: Err(error), has_failed }
                    }
                }
            }));
            return;
        }
        self.settle(index, result);
    }

    fn settle(&mut self, index: u64, result: Result<Reply>) {
        match &result {
            Ok(_) => self.progress.done += 1,
            Err(_) => self.progress.failed += 1,
        }
        self.outcomes.insert(index, result);
        self.scheduler.settle(index);
    }

    /// Ends a batch whose log cannot be written: no further prompts, no retries.
    #[cfg(feature = "log")]
    fn give_up(&mut self) {
        self.prompts = None;
        for index in self.scheduler.give_up() {
            if let Some((attempt, result)) = self.waiting.remove(&index) {
                self.progress.tokens = self.progress.tokens.saturating_add(attempt.tokens());
                self.settle(index, result);
            }
        }
    }

    /// Waits until something is due again.
    fn poll_timer(&mut self, cx: &mut Context<'_>, began: Instant, now: Duration) -> Poll<()> {
        // With the time at which attempts began: what has become due since then wakes at once.
        let due = self.scheduler.wakes_at(now).and_then(|due| began.checked_add(due));
        let Some(due) = due else {
            self.timer = None;
            return Poll::Pending;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if timer.deadline() != due {
            timer.as_mut().reset(due);
        }
        timer.as_mut().poll(cx)
    }
}

fn ask(index: u64, mut attempt: Attempt) -> JobFuture<Job> {
    Box::pin(async move {
        let result = attempt.ask().await;
        Job::Answered { index, attempt, result }
    })
}

impl Stream for RunningBatch<'_> {
    type Item = (usize, Result<Reply>);

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_outcome(cx)
    }
}

impl fmt::Debug for RunningBatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningBatch")
            .field("agent", &self.agent)
            .field("scheduler", &self.scheduler)
            .field("progress", &self.progress())
            .finish_non_exhaustive()
    }
}
