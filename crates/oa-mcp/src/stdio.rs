use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::child::{self, Group, LastWords};
use crate::error::{Error, ErrorKind};
use crate::lines::{Line, Lines};
use crate::link::{Link, Outgoing};
use crate::listener::OnStderr;
use crate::stdio_spec::StdioSpec;

/// The wait for the remaining output of a program that has ended. A child process of it may hold the pipe open forever.
const REST: Duration = Duration::from_millis(50);

/// Starts a program and the tasks that carry its messages. The returned task ends when the program, and everything that
/// it started, has ended.
pub(crate) fn start(
    spec: &StdioSpec,
    link: &Arc<Link>,
    outgoing: mpsc::Receiver<Outgoing>,
    words: &Arc<LastWords>,
    on_stderr: Option<OnStderr>,
) -> Result<JoinHandle<()>, Error> {
    let mut child = child::spawn(spec)?;
    let group = Group::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        return Err(Error::new(ErrorKind::Connect, "the server has no pipes"));
    };
    let stderr = {
        let (link, words) = (Arc::clone(link), Arc::clone(words));
        tokio::spawn(async move {
            words.read(stderr, &link, on_stderr).await;
        })
    };
    let writer = tokio::spawn(write(stdin, outgoing, Arc::clone(link)));
    let running = Running { child, group, stderr, writer, words: Arc::clone(words) };
    Ok(tokio::spawn(running.supervise(stdout, Arc::clone(link))))
}

/// A running program and its tasks, which are aborted on drop.
struct Running {
    child: Child,
    group: Group,
    stderr: JoinHandle<()>,
    writer: JoinHandle<()>,
    words: Arc<LastWords>,
}

impl Running {
    async fn supervise(mut self, stdout: ChildStdout, link: Arc<Link>) {
        // Reads until the connection closes or the program is gone. If the program exits or stops reading,
        // that only starts the timer `rest`, because answers that are still in the pipe count.
        let mut lines =
            Lines::new(BufReader::with_capacity(64 * 1024, stdout), link.limits.message_bytes);
        let mut status = None;
        let (mut rest, mut is_deaf) = (None, false);
        let reason = loop {
            tokio::select! {
                biased;
                () = link.closing.cancelled() => break None,
                line = lines.next() => match line {
                    Ok(Line::Whole(line)) => {
                        if link.incoming(line, None).is_err() && let Err(error) = link.garbage(line) {
                            break Some(error);
                        }
                    }
                    Ok(Line::TooLong) => {
                        break Some(Error::too_long(link.limits.message_bytes));
                    }
                    Ok(Line::End) | Err(_) => {
                        if status.is_none() {
                            let exit = tokio::time::timeout(REST, self.child.wait()).await;
                            status = exit.ok().and_then(Result::ok);
                        }
                        break Some(self.death(status, &link).await);
                    }
                },
                exit = self.child.wait(), if rest.is_none() => {
                    status = exit.ok();
                    rest = Some(Instant::now() + REST);
                }
                // The program no longer reads. If it has also exited, that is the error to report.
                // Guarded, because a finished `JoinHandle` panics when it is polled again.
                _ = &mut self.writer, if !is_deaf => {
                    is_deaf = true;
                    rest = Some(Instant::now() + REST);
                }
                () = at(rest) => {
                    status = status.or_else(|| self.child.try_wait().ok().flatten());
                    break Some(match status {
                        None if is_deaf => Error::new(ErrorKind::Closed, "the server closed its input"),
                        status => self.death(status, &link).await,
                    });
                }
            }
        };
        link.end(reason.unwrap_or_else(Link::closed));
        // Keep reading, so that a server that is shutting down does not block on its output.
        let drain =
            tokio::spawn(async move { while matches!(lines.next().await, Ok(Line::Whole(_))) {} });
        child::end(&mut self.child, &mut self.group, link.limits.close_time).await;
        drain.abort();
    }

    async fn death(&mut self, status: Option<std::process::ExitStatus>, link: &Link) -> Error {
        let _ = tokio::time::timeout(REST, &mut self.stderr).await;
        Error::new(ErrorKind::Closed, self.words.add_to(child::describe(status), link))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stderr.abort();
        self.writer.abort();
    }
}

/// Waits until a time; forever without one.
pub(crate) async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Writes messages until the connection closes and the queue is empty, then closes the program's input.
async fn write(mut stdin: ChildStdin, mut outgoing: mpsc::Receiver<Outgoing>, link: Arc<Link>) {
    loop {
        let message = tokio::select! {
            // The queue first: the last messages, such as cancellations, are written before the end.
            biased;
            message = outgoing.recv() => message,
            () = link.closing.cancelled() => None,
        };
        let Some(message) = message else { return };
        if let Some(written) = &message.written {
            written.store(true, std::sync::atomic::Ordering::Release);
        }
        let mut bytes = message.bytes;
        bytes.push(b'\n');
        if stdin.write_all(&bytes).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}
