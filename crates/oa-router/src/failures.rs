//! One error from those of several servers.

use std::time::Duration;

use oa_chat::{Error, ErrorKind};

use crate::board::Refusal;

/// How many servers an error tells of by name.
const MOST_NAMED: usize = 8;
/// How long one server's words may be, in characters.
const LONGEST_WORDS: usize = 120;

/// A server and how it failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) server: usize,
    pub(crate) error: Error,
}

/// Why a server was not asked.
#[derive(Clone, Debug)]
pub(crate) enum Untried {
    /// For how much longer, and its last failure.
    LeftAlone(Duration, Option<String>),
    NoRoom,
}

/// The most telling of the errors, in words that tell all of them: a server that said something comes
/// before one that broke off, and that before one that could not be reached. It may be retried if any of
/// them may, or if somebody was not asked: not before `earliest`, when the first server may be asked again.
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
        // With one server there is nothing to add to what it said.
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
    // One line, whatever somebody sends along.
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
