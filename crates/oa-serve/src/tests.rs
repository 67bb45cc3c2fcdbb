//! Shared by the unit tests of several modules.

mod bodies;
pub(crate) mod sample_turn;
