//! A function and a builder are no tools yet: the compiler says what is missing.

extern crate oa_tools as open_agent;

use oa_macros::tool;
use open_agent::Tool;

/// Rolls a die.
#[tool]
async fn roll() -> u8 {
    4
}

fn offer(_: impl Tool) {}

fn main() {
    offer(roll);
    offer(open_agent::tool("roll", "Rolls a die"));
}
