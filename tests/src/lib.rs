//! Shared parts of the tests of conversations and of the whole system: clients and tools, fixtures and their expected outcomes.

mod chance;
mod fixture;
mod outcome;
pub mod talk;

pub use crate::chance::Chance;
pub use crate::fixture::{Fixture, all, recorded};
pub use crate::outcome::Outcome;
