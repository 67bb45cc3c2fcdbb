//! Combines the errors of several servers into one.

use std::time::Duration;

use oa_chat::{Error, ErrorKind};

use crate::scheduler::Rejection;

/// The largest number of servers named in an error.
const MAX_NAMED: usize = 8;
/// The longest message of one server, in characters.
const MAX_EXCERPT: usize = 120;

/// A server and its error.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) server: usize,
    pub(crate) error: Error,
}

/// The reason why a server was not used.
#[derive(Clone, Debug)]
pub(crate) enum Unused {
    /// Its circuit is open for this long, after this failure.
    CircuitOpen(Duration, Option<String>),
    Busy,
}

/// Returns the most relevant error with a message about all of them. An error response ranks above a broken
/// answer, and that above a failed connection. The error is retryable if any of them is, or if a server was not
/// used; `earliest` is the time until a server that may answer the request can be used again.
pub(crate) fn summarize(
    failures: Vec<Failure>,
    unused: &[(usize, Unused)],
    rejection: Rejection,
    names: &[impl AsRef<str>],
    earliest: Duration,
) -> Error {
    let wait = Some(earliest).filter(|wait| !wait.is_zero());
    let is_retryable =
        !unused.is_empty() || failures.iter().any(|failure| failure.error.is_retryable());
    let mut message = message(&failures, unused, names);
    match rejection {
        Rejection::AllOpen => {}
        Rejection::QueueFull(0) => message.push_str("; queueing is disabled"),
        Rejection::QueueFull(waiting) => {
            message.push_str(&format!("; the queue is full ({waiting} waiting)"));
        }
        Rejection::TimedOut(wait) => {
            message.push_str(&format!("; timed out after waiting {wait:?} for a free server"));
        }
    }
    // Of equal rank, the last server's.
    let most_relevant = failures.into_iter().map(|failure| failure.error).max_by_key(rank);
    match most_relevant {
        None => Error::unavailable(message, wait),
        // With only one server, its own error says everything.
        Some(error) => {
            let error = if names.len() == 1 { error } else { error.with_message(message) };
            if is_retryable { error.retryable_after(wait) } else { error }
        }
    }
}

/// Returns the error on one line, shortened.
pub(crate) fn excerpt(error: &Error) -> String {
    // One character more than is shown tells whether anything was cut.
    let mut words: String = error.to_string().chars().take(MAX_EXCERPT + 1).collect();
    if let Some((end, _)) = words.char_indices().nth(MAX_EXCERPT) {
        words.truncate(end);
        words.push('…');
    }
    // Keep it on one line, whatever the server sent.
    words.replace(char::is_control, " ")
}

fn rank(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::Api if error.is_retryable() => 5,
        ErrorKind::Api => 4,
        ErrorKind::Stream => 3,
        ErrorKind::Timeout => 2,
        ErrorKind::Connect => 1,
        _ => 0,
    }
}

/// Describes each server that failed or was not used.
fn message(failures: &[Failure], unused: &[(usize, Unused)], names: &[impl AsRef<str>]) -> String {
    let name = |server: usize| names.get(server).map_or("?", AsRef::as_ref);
    let tried = failures
        .iter()
        .map(|Failure { server, error }| format!("{} failed: {}", name(*server), excerpt(error)));
    let not_used = unused.iter().map(|(server, why)| match why {
        Unused::CircuitOpen(left, None) => {
            format!("{} has an open circuit for another {left:?}", name(*server))
        }
        Unused::CircuitOpen(left, Some(last)) => {
            format!("{} has an open circuit for another {left:?} after: {last}", name(*server))
        }
        Unused::Busy => format!("{} is busy", name(*server)),
    });
    let count = failures.len() + unused.len();
    let mut parts: Vec<String> = tried.chain(not_used).take(MAX_NAMED).collect();
    if count > MAX_NAMED {
        parts.push(format!("and {} more", count - MAX_NAMED));
    }
    let tried = failures.len();
    format!("no server answered ({tried} of {} tried): {}", names.len(), parts.join("; "))
}
