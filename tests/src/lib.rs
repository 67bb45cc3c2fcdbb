//! Code shared by the whole-system tests: fixtures and expectations.

mod chance;
mod fixture;
mod history;
mod outcome;

pub use crate::chance::Chance;
pub use crate::fixture::{Fixture, all, recorded};
pub use crate::history::{letters, open_calls};
pub use crate::outcome::Outcome;
