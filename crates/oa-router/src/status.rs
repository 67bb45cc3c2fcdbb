use crate::breaker::Health;

/// A snapshot of one server of a [`Router`](crate::Router).
///
/// Each request is counted once when assigned and once when it is over, so that `asked = in_use + answered +
/// failed + refused + given_up`.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name or, if it has none, its address.
    pub name: String,
    /// The state of its circuit.
    pub health: Health,
    /// The cap on answers in progress; `None` if there is none.
    pub cap: Option<usize>,
    /// The number of answers in progress.
    pub in_use: usize,
    /// The number of requests assigned to it.
    pub asked: u64,
    /// The number of complete answers.
    pub answered: u64,
    /// The number of requests that it failed, before or during the answer.
    pub failed: u64,
    /// The number of requests rejected because of the request itself.
    pub refused: u64,
    /// The number of dropped requests: interrupted, or dropped with their client.
    pub given_up: u64,
    /// The message of its last failure, at most 121 characters.
    pub last_failure: Option<String>,
}
