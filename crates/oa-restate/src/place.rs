use std::pin::Pin;

use oa_turn::RunOutcome;
use restate_sdk::context::DurableFuture;
use restate_sdk::errors::TerminalError;

use crate::contract::Given;

/// A future of the engine.
pub(crate) type Durable<'ctx, T> = Pin<Box<dyn DurableFuture<Output = T> + Send + 'ctx>>;

/// The code of an await that was canceled by an operator.
pub(crate) const CANCELLED: u16 = 409;

/// The place of a turn.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) session: String,
    pub(crate) agent: Option<String>,
    pub(crate) turn: u64,
    /// The agents that it runs within, outermost first.
    pub(crate) within: Vec<String>,
    /// The invocation that ends when the turn is interrupted.
    pub(crate) watch: String,
    /// The end of the turn's time, in microseconds since 1970.
    pub(crate) deadline: Option<u64>,
    /// The recorded start of the turn, in microseconds since 1970.
    pub(crate) began: u64,
    /// True if another writer has removed messages of the conversation since the turn began: what was recorded is
    /// replayed, and the next step fails.
    pub(crate) is_lost: bool,
    /// The size of the removed messages, in bytes of JSON.
    pub(crate) lost: usize,
}

/// An event that a turn waits for.
#[derive(Debug)]
pub(crate) enum Happened {
    /// A call of the run with this number has ended.
    Called { run: u64, place: usize, outcome: Box<Result<RunOutcome, TerminalError>> },
    /// A waiting call got a decision or a result; `None` if none came in time.
    Given { awakeable: String, given: Option<Box<Given>> },
    /// The user has interrupted the turn.
    Interrupted,
    /// The time of the turn is up.
    TimeUp,
}
