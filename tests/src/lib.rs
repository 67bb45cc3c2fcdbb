//! Shared parts of the whole-system tests: fixtures and their expected outcomes.

mod chance;
mod fixture;
mod history;
mod outcome;

pub use crate::chance::Chance;
pub use crate::fixture::{Fixture, all, recorded};
pub use crate::history::{letters, open_calls};
pub use crate::outcome::Outcome;
