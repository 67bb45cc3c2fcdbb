//! Shared by the unit tests of several modules.

pub(crate) mod sample_turn;
