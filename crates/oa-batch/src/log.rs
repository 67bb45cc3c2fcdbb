mod entry;
mod file;
mod fingerprint;
mod line;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use oa_client::{Error, ErrorKind, Reply, Result};
use oa_contain::contain;
use oa_session::Worker;

use self::entry::{Entry, Lines};
use self::file::LogFile;
use self::line::Line;

pub(crate) use self::fingerprint::Fingerprint;

/// A log of a batch, which makes it resumable: a text file with one line of JSON per reply or failure.
///
/// A reply is yielded only after its line is on disk (`fdatasync`; replies that come together share one). A later run
/// of the same prompts with the same log yields logged replies from the file and sends the rest: prompts without a
/// line, and prompts that failed, unless [`keep_failures`](Self::keep_failures) is set.
///
/// A crash costs the replies that were not yielded yet. These are the prompts in progress and those whose lines wait
/// for the disk, at most [`concurrency`](crate::BatchOptions::concurrency) and [`window`](crate::BatchOptions::window)
/// together; they are sent again. A batch that is dropped writes the lines that wait, so it costs only the prompts in
/// progress. With [`in_input_order`](crate::BatchOptions::in_input_order), replies that wait for their turn are on disk
/// already.
///
/// The log knows the prompts, not the agent: after a change of its model, its system prompt or its limits, logged replies
/// are still yielded. Use a new log, or [`send_again_if`](Self::send_again_if) for some of them.
///
/// A line names its prompt by index and by a fingerprint of its content. A prompt that differs from the one whose reply
/// is logged at its index fails with kind `InvalidInput` and is not sent. A prompt that failed may be changed.
///
/// One batch at a time can have the file open. A line that a crash cut off is overwritten. In memory there are 24 bytes
/// for each line of earlier runs.
///
/// ```
/// use oa_batch::{BatchLog, BatchOptions, run_batch};
/// # use oa_client::AgentOptions;
/// # use oa_testkit::{MemoryServer, Reply, Script};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = MemoryServer::new(Script::new().otherwise(Reply::text("blue")));
/// # let agent = AgentOptions::builder().model("any").transport(server.clone()).build()?;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("colors.jsonl");
/// for _run in 0..2 {
///     let log = BatchLog::open(&path).await?;
///     let options = BatchOptions::new(agent.clone()).log(log);
///     let mut batch = run_batch(["Sky?", "Sea?"], options)?;
///     while let Some((_, reply)) = batch.next().await {
///         assert_eq!(reply?.text, "blue");
///     }
/// }
/// assert_eq!(server.requests().len(), 2); // the second run sent nothing
/// # Ok(())
/// # }
/// ```
pub struct BatchLog {
    thread: Worker<Option<LogFile>>,
    /// Lines that are not written yet.
    lines: Lines,
    /// Sorted by index, one for each.
    entries: Vec<Entry>,
    keeps_failures: bool,
    is_unwanted: Option<Box<Unwanted>>,
}

type Unwanted = dyn Fn(&Reply) -> bool + Send + Sync;

impl BatchLog {
    /// Opens a log, or creates it. The folder must exist.
    ///
    /// # Errors
    ///
    /// `Storage` if the file is in use for longer than five seconds, is not a regular file, is not a batch log, is
    /// damaged before its end, or cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the file.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let lines = Lines::default();
        let thread = Worker::spawn("oa-batch-log", None).map_err(storage)?;
        let shared = Arc::clone(&lines);
        let opened = thread.run(move |file| {
            let (opened, entries) = LogFile::open(path, shared)?;
            *file = Some(opened);
            Ok(entries)
        });
        let entries = opened.await.map_err(storage)?;
        Ok(Self { thread, lines, entries, keeps_failures: false, is_unwanted: None })
    }

    /// Yields logged failures from the log too, instead of sending these prompts again.
    #[must_use]
    pub fn keep_failures(mut self, keep: bool) -> Self {
        self.keeps_failures = keep;
        self
    }

    /// Sends prompts again whose logged reply meets a condition. The new reply replaces the logged one; if there is none,
    /// the logged one stays in the file. If the condition panics, the logged reply is yielded.
    ///
    /// ```
    /// use oa_batch::BatchLog;
    /// use oa_types::FinishReason;
    ///
    /// # async fn open() -> oa_client::Result<()> {
    /// // After `max_tokens` was raised: answers that were cut off are asked for again.
    /// let log = BatchLog::open("answers.jsonl").await?;
    /// let log = log.send_again_if(|reply| reply.finish_reason == FinishReason::Length);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn send_again_if(
        mut self,
        condition: impl Fn(&Reply) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.is_unwanted = Some(Box::new(condition));
        self
    }

    /// Returns how many replies earlier runs have logged.
    #[must_use]
    pub fn replies(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_reply).count()
    }

    /// Returns how many prompts have failed in earlier runs and have no reply.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.entries.len() - self.replies()
    }

    /// Returns true if the outcome of a prompt may be known.
    pub(crate) fn knows(&self, index: u64) -> bool {
        self.entry(index).is_some()
    }

    /// Reads the outcome of a prompt; `None` if it must be sent.
    pub(crate) async fn look_up(&self, index: u64, prompt: Fingerprint) -> Option<Result<Reply>> {
        let entry = self.entry(index)?;
        let read = self.thread.run(move |file| {
            let line = file::opened(file)?.read(entry.offset)?;
            Line::parse(&line)
        });
        let line = match read.await {
            Ok(line) => line,
            Err(error) => return Some(Err(storage(error))),
        };
        if line.prompt() == Some(prompt) {
            let outcome = line.into_outcome();
            let is_unwanted = |reply| {
                let is_unwanted = self.is_unwanted.as_deref()?;
                contain(|| is_unwanted(reply)).ok()
            };
            let sends_again = outcome.as_ref().ok().and_then(is_unwanted).unwrap_or_default();
            return (!sends_again).then_some(outcome);
        }
        entry.is_reply.then(|| {
            let message = format!(
                "prompt {index} is not the one whose reply is in the log: use the prompts of the earlier run, or a \
                 new log"
            );
            Err(Error::new(ErrorKind::InvalidInput, message))
        })
    }

    /// Adds the outcome of a prompt to the lines that wait. The next [`flush`](Self::flush) or the drop of the file
    /// writes them.
    pub(crate) fn add(
        &self,
        index: u64,
        prompt: Fingerprint,
        outcome: &Result<Reply>,
    ) -> Result<()> {
        let line = Line::new(index, prompt, outcome).to_bytes()?;
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).extend(line);
        Ok(())
    }

    /// Writes the lines that wait; they are on disk when this returns.
    pub(crate) async fn flush(&self) -> Result<()> {
        // The first of several jobs writes the lines of all.
        // If that write fails, the file is broken, and the flushes of the other jobs fail too.
        self.thread.run(|file| file::opened(file)?.flush()).await.map_err(storage)
    }

    fn entry(&self, index: u64) -> Option<Entry> {
        let place = self.entries.binary_search_by_key(&index, |entry| entry.index).ok()?;
        let entry = self.entries[place];
        (entry.is_reply || self.keeps_failures).then_some(entry)
    }
}

impl fmt::Debug for BatchLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchLog")
            .field("replies", &self.replies())
            .field("failures", &self.failures())
            .field("keeps_failures", &self.keeps_failures)
            .finish_non_exhaustive()
    }
}

fn storage(error: oa_session::Error) -> Error {
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
    let message = format!("the log of the batch: {error}{}", cause.unwrap_or_default());
    Error::new(ErrorKind::Storage, message).with_cause(error)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::mpsc;
    use std::task::Poll;
    use std::time::Duration;

    use oa_client::AgentOptions;
    use oa_testkit::{MemoryServer, Reply, Script};

    use super::*;
    use crate::{BatchOptions, run_batch};

    /// The second prompt is answered while the line of the first is being written, and the batch is dropped at the
    /// first reply.
    #[tokio::test(start_paused = true)]
    async fn dropped_batch_keeps_all_answers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("batch.jsonl");
        let log = BatchLog::open(&path).await.unwrap();
        let (release, released) = mpsc::channel::<()>();
        let mut busy = log.thread.run(move |_| {
            let _ = released.recv();
            Ok(())
        });
        assert!(poll_fn(|cx| Poll::Ready(busy.as_mut().poll(cx))).await.is_pending());

        let server = MemoryServer::new([
            Reply::text("One."),
            Reply::text("Two.").delay_head(Duration::from_secs(1)),
        ]);
        let agent = AgentOptions::builder().model("any").transport(server.clone()).build().unwrap();
        let options = BatchOptions::new(agent).concurrency(2).log(log);
        let mut batch = run_batch(["1", "2"], options).unwrap();
        for _ in 0..20 {
            let mut next = Box::pin(batch.next());
            assert!(poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await.is_pending());
        }
        assert_eq!(server.requests().iter().filter(|request| request.is_over()).count(), 1);
        tokio::time::advance(Duration::from_secs(2)).await;
        release.send(()).unwrap();
        // Not polled meanwhile, so the second answer is not read before the first line is written.
        while !std::fs::read_to_string(&path).unwrap().contains("One.") {
            std::thread::yield_now();
        }
        let (index, reply) = batch.next().await.unwrap();
        assert_eq!((index, &*reply.unwrap().text), (0, "One."));
        assert!(server.requests().iter().all(|request| request.is_over()));
        drop(batch);
        assert_eq!(BatchLog::open(&path).await.unwrap().replies(), 2);
    }

    #[tokio::test]
    async fn unwritable_log_ends_the_batch() {
        let folder = tempfile::tempdir().unwrap();
        let log = BatchLog::open(folder.path().join("batch.jsonl")).await.unwrap();
        // As after a full disk.
        let breaks = log.thread.run(|file| {
            file::opened(file)?.break_off();
            Ok(())
        });
        breaks.await.unwrap();
        let server = MemoryServer::new(Script::new().otherwise(Reply::text("Yes.")));
        let agent = AgentOptions::builder().model("any").transport(server.clone()).build().unwrap();
        let options = BatchOptions::new(agent).concurrency(4).window(4).log(log);
        let mut batch = run_batch(vec!["?"; 1_000], options).unwrap();
        let mut failed = 0;
        while let Some((index, outcome)) = batch.next().await {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Storage, "prompt {index}");
            assert!(error.to_string().contains("an earlier write to"), "{error}");
            failed += 1;
        }
        assert!((1..=8).contains(&failed), "{failed}");
        assert_eq!(server.requests().len(), failed);
    }
}
