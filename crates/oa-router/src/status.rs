use crate::breaker::Health;

/// How one server of a [`Router`](crate::Router) stands, at one moment.
///
/// Each request that was given to it is counted once more when it is over, so that
/// `asked = in_use + answered + failed + refused + given_up`.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name, or else its address.
    pub name: String,
    /// Whether it is asked.
    pub health: Health,
    /// How many answers may be in progress; `None` if there is no cap.
    pub cap: Option<usize>,
    /// How many answers are in progress.
    pub in_use: usize,
    /// How many requests it was given.
    pub asked: u64,
    /// How many answers came to their end.
    pub answered: u64,
    /// How many requests it failed, before or in the middle of its answer.
    pub failed: u64,
    /// How many requests were wrong themselves.
    pub refused: u64,
    /// How many requests were dropped: by an interrupt, or with their client.
    pub given_up: u64,
    /// How it failed last, in at most 121 characters.
    pub last_failure: Option<String>,
}
