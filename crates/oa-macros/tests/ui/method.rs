//! A method.

extern crate oa_tools as open_agent;

use oa_macros::tool;

struct Agent;

impl Agent {
    /// Takes the agent.
    #[tool]
    async fn method(&self, _a: u8) {}
}

fn main() {}
