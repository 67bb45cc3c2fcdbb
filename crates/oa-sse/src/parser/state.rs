//! The state of the current block, and the results of the inner loop.

use crate::line::Span;

/// The location of the current block's data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Data {
    #[default]
    None,
    Chunk(Span),
    /// In `Parser::held`, from this offset.
    Held(usize),
}

/// The location of the current block's event name; empty names count as none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Name {
    #[default]
    None,
    Chunk(Span),
    Held,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum End {
    #[default]
    Open,
    Strict,
    Lenient,
}

/// The item found by the inner loop. The caller borrows it afterwards, because the loop cannot hold a borrow.
/// The line of the last two is `Parser::found`.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Found {
    Nothing,
    TooLarge,
    Event,
    Comment,
    Unknown,
}

/// The lines, other than events, that stop the inner loop.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Want {
    Events,
    Everything,
}
