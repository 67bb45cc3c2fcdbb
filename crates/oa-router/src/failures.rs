//! Combines the errors of several servers into one.

use std::time::Duration;

use oa_chat::{Error, ErrorKind};

use crate::board::Refusal;

/// The largest number of servers named in an error.
const MOST_NAMED: usize = 8;
/// The longest message of one server, in characters.
const LONGEST_WORDS: usize = 120;

/// A server and its error.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) server: usize,
    pub(crate) error: Error,
}

/// The reason why a server was not used.
#[derive(Clone, Debug)]
pub(crate) enum Untried {
    /// Its circuit is open for this long, after this failure.
    LeftAlone(Duration, Option<String>),
    NoRoom,
}

/// Returns the most relevant error with a message about all of them. An error response ranks above a broken
/// answer, and that above a failed connection. The error is retryable if any of them is, or if a server was not
/// used; `earliest` is the time until a server can be used again.
pub(crate) fn sum_up(
    failures: Vec<Failure>,
    untried: &[(usize, Untried)],
    refusal: Refusal,
    names: &[impl AsRef<str>],
    earliest: Duration,
) -> Error {
    let wait = Some(earliest).filter(|wait| !wait.is_zero());
    let is_retryable =
        !untried.is_empty() || failures.iter().any(|failure| failure.error.is_retryable());
    let mut words = words(&failures, untried, names);
    match refusal {
        Refusal::LeftAlone => {}
        Refusal::QueueFull(waiting) => {
            words.push_str(&format!("; {waiting} requests wait already"));
        }
        Refusal::Waited(wait) => words.push_str(&format!("; waited for {wait:?}")),
    }
    let telling = failures.into_iter().map(|failure| failure.error).max_by_key(rank);
    match telling {
        None => Error::unavailable(words, wait),
        // With only one server, its own error says everything.
        Some(error) => {
            let error = if names.len() == 1 { error } else { error.with_message(words) };
            if is_retryable { error.retryable_after(wait) } else { error }
        }
    }
}

/// A failure in a few words.
pub(crate) fn excerpt(error: &Error) -> String {
    let mut words: String = error.to_string().chars().take(LONGEST_WORDS + 1).collect();
    if let Some((end, _)) = words.char_indices().nth(LONGEST_WORDS) {
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

fn words(failures: &[Failure], untried: &[(usize, Untried)], names: &[impl AsRef<str>]) -> String {
    let name = |server: usize| names.get(server).map_or("?", AsRef::as_ref);
    let tried = failures
        .iter()
        .map(|Failure { server, error }| format!("{} failed: {}", name(*server), excerpt(error)));
    let left_out = untried.iter().map(|(server, why)| match why {
        Untried::LeftAlone(left, None) => format!("{} is left alone for {left:?}", name(*server)),
        Untried::LeftAlone(left, Some(last)) => {
            format!("{} is left alone for {left:?} after: {last}", name(*server))
        }
        Untried::NoRoom => format!("{} is busy", name(*server)),
    });
    let count = failures.len() + untried.len();
    let mut parts: Vec<String> = tried.chain(left_out).take(MOST_NAMED).collect();
    if count > MOST_NAMED {
        parts.push(format!("and {} more", count - MOST_NAMED));
    }
    let asked = failures.len();
    format!("no answer from {} servers, {asked} asked: {}", names.len(), parts.join("; "))
}
