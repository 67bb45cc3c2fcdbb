//! Runs the ported example that `MIGRATING_EXAMPLE` names, against the server at `MIGRATING_SERVER`.

/// The examples say `futures`; this much of it is what they use.
extern crate futures_util as futures;

/// The server of all examples: theirs, if a test has no other.
fn server() -> String {
    std::env::var("MIGRATING_SERVER").unwrap_or_else(|_| "http://localhost:11434/v1".to_owned())
}

#[allow(dead_code, reason = "each program is there, and one is run")]
mod programs {
    include!(concat!(env!("OUT_DIR"), "/programs.rs"));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Its log analyzer reads its own first argument: so the name comes by the environment.
    programs::run(&std::env::var("MIGRATING_EXAMPLE").unwrap_or_default())
}
