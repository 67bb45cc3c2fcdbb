use std::io::{self, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::tool_server::call::Connection;
use crate::tool_server::protocol::Step;
use oa_mcp_data::client::{INVALID_REQUEST, InputLine, LineSplitter, Origin, error};

/// The capacity of the queue of lines to read.
const LINES: usize = 4;
/// The capacity of the queue of messages to write.
const MESSAGES: usize = 64;
/// The maximum bytes of one read, and of one write of several messages.
const CHUNK: usize = 64 * 1024;
/// The wait for canceled calls at the end of input, and again for their answers to be written.
const LAST: Duration = Duration::from_millis(400);

/// Serves one client over a pair of streams until either ends.
pub(crate) async fn over_streams(
    connection: Connection,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) {
    let limit = connection.limits().message_bytes;
    let (lines_in, lines) = mpsc::channel(LINES);
    let (out, messages) = mpsc::channel(MESSAGES);
    let (done, written) = oneshot::channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(read_async(input, limit, lines_in));
    tasks.spawn(async move {
        let _ = write_async(output, messages).await;
        let _ = done.send(());
    });
    converse(connection, lines, out, written).await;
}

/// Serves the client on the standard streams of the process.
///
/// They are read and written on dedicated threads. Threads of the runtime would keep the program from exiting if a
/// client leaves its input open.
pub(crate) async fn over_stdio(connection: Connection) -> io::Result<()> {
    let limit = connection.limits().message_bytes;
    let (lines_in, lines) = mpsc::channel(LINES);
    let (out, messages) = mpsc::channel(MESSAGES);
    let (done, written) = oneshot::channel();
    let stdout = Stdout::take()?;
    let output = stdout.output()?;
    thread::Builder::new().name("mcp-input".to_owned()).spawn(move || {
        read_blocking(io::stdin().lock(), limit, &lines_in);
    })?;
    thread::Builder::new().name("mcp-output".to_owned()).spawn(move || {
        let _ = write_blocking(output, messages);
        let _ = done.send(());
    })?;
    converse(connection, lines, out, written).await;
    drop(stdout);
    Ok(())
}

/// Answers lines until the end of input.
async fn converse(
    connection: Connection,
    mut lines: mpsc::Receiver<InputLine>,
    out: mpsc::Sender<String>,
    written: oneshot::Receiver<()>,
) {
    let connection = Arc::new(connection);
    let (time, limits) = (connection.limits().write_time, connection.limits());
    // Those that run; any more have ended, and their answers wait for the client.
    let most = limits.calls.saturating_add(limits.subscriptions.max(1));
    // Before `last`, so that `changed` reports a change between the two. Otherwise it would be missed.
    let mut changes = connection.live().subscribe();
    let mut seen = connection.live().last();
    let mut calls = JoinSet::new();
    // Ends if the client leaves unread what must be written before the next line is read.
    'lines: loop {
        let line = tokio::select! {
            biased;
            line = lines.recv() => line,
            Some(_) = calls.join_next() => continue,
            Ok(()) = changes.changed() => {
                let (news, last) = connection.news(seen);
                seen = last;
                for (_, notice) in news {
                    if out.send_timeout(notice, time).await.is_err() {
                        break 'lines;
                    }
                }
                continue;
            }
            // The client no longer reads.
            () = out.closed() => None,
        };
        let Some(line) = line else { break };
        let steps = match line {
            InputLine::Whole(line) => connection.receive(&line, Origin::Lines),
            // The line was too long.
            _ => {
                let why = format!("the message has more than {} bytes", limits.message_bytes);
                vec![Step::Refuse(error(&Value::Null, INVALID_REQUEST, &why))]
            }
        };
        for step in steps {
            let (connection, out) = (Arc::clone(&connection), out.clone());
            match step {
                Step::Answer(answer) | Step::Reject(_, answer) | Step::Refuse(answer) => {
                    if out.send_timeout(answer, time).await.is_err() {
                        break 'lines;
                    }
                }
                Step::Call(call) => {
                    calls.spawn(async move { connection.run(call, &out).await });
                }
                Step::Listen(subscription) => {
                    calls.spawn(async move { connection.listen(subscription, &out).await });
                }
                Step::Cancel(cancel) => cancel.cancel(),
            }
            while calls.len() > most {
                if tokio::time::timeout(time, calls.join_next()).await.is_err() {
                    break 'lines;
                }
            }
        }
    }
    // Canceled calls still answer. The writer ends when the last sender is dropped; calls have clones of it.
    connection.end();
    let _ = tokio::time::timeout(LAST, async { while calls.join_next().await.is_some() {} }).await;
    drop((calls, out));
    let _ = tokio::time::timeout(LAST, written).await;
}

async fn read_async(
    mut input: impl AsyncRead + Unpin,
    limit: usize,
    lines: mpsc::Sender<InputLine>,
) {
    let mut splitter = LineSplitter::new(limit);
    let mut chunk = vec![0; CHUNK];
    while let Ok(count @ 1..) = input.read(&mut chunk).await {
        let mut rest = &chunk[..count];
        while !rest.is_empty() {
            let (line, used) = splitter.push(rest);
            rest = &rest[used..];
            if let Some(line) = line
                && lines.send(line).await.is_err()
            {
                return;
            }
        }
    }
    if let Some(line) = splitter.finish() {
        let _ = lines.send(line).await;
    }
}

fn read_blocking(mut input: impl Read, limit: usize, lines: &mpsc::Sender<InputLine>) {
    let mut splitter = LineSplitter::new(limit);
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = match input.read(&mut chunk) {
            Ok(count @ 1..) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            _ => break,
        };
        let mut rest = &chunk[..count];
        while !rest.is_empty() {
            let (line, used) = splitter.push(rest);
            rest = &rest[used..];
            if let Some(line) = line
                && lines.blocking_send(line).is_err()
            {
                return;
            }
        }
    }
    if let Some(line) = splitter.finish() {
        let _ = lines.blocking_send(line);
    }
}

async fn write_async(
    mut output: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<String>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    while let Some(message) = messages.recv().await {
        gather(&mut bytes, message, &mut messages);
        output.write_all(&bytes).await?;
        output.flush().await?;
    }
    Ok(())
}

fn write_blocking(mut output: impl Write, mut messages: mpsc::Receiver<String>) -> io::Result<()> {
    let mut bytes = Vec::new();
    while let Some(message) = messages.blocking_recv() {
        gather(&mut bytes, message, &mut messages);
        output.write_all(&bytes)?;
        output.flush()?;
    }
    Ok(())
}

/// Joins a message with those queued behind it.
fn gather(bytes: &mut Vec<u8>, first: String, messages: &mut mpsc::Receiver<String>) {
    bytes.clear();
    // Do not keep the memory of a large message.
    bytes.shrink_to(CHUNK);
    let mut next = Some(first);
    while let Some(message) = next {
        bytes.extend_from_slice(message.as_bytes());
        bytes.push(b'\n');
        next = if bytes.len() < CHUNK { messages.try_recv().ok() } else { None };
    }
}

/// Standard output, reserved for messages: anything that tools print goes to standard error instead.
struct Stdout {
    #[cfg(unix)]
    own: std::os::fd::OwnedFd,
}

impl Stdout {
    #[cfg(unix)]
    fn take() -> io::Result<Self> {
        use std::os::fd::AsFd;

        io::stdout().flush()?;
        let own = io::stdout().as_fd().try_clone_to_owned()?;
        // Without standard error, a tool's output still goes to the client, as before.
        let _ = rustix::stdio::dup2_stdout(io::stderr());
        Ok(Self { own })
    }

    #[cfg(unix)]
    fn output(&self) -> io::Result<std::fs::File> {
        Ok(self.own.try_clone()?.into())
    }

    #[cfg(not(unix))]
    fn take() -> io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    fn output(&self) -> io::Result<io::Stdout> {
        Ok(io::stdout())
    }
}

#[cfg(unix)]
impl Drop for Stdout {
    fn drop(&mut self) {
        let _ = io::stdout().flush();
        let _ = rustix::stdio::dup2_stdout(&self.own);
    }
}
