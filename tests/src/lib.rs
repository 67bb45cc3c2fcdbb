//! What the whole-system tests share: fixtures and what is expected of them.

mod fixture;
mod outcome;

pub use crate::fixture::{Fixture, all, recorded};
pub use crate::outcome::Outcome;
