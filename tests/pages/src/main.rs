//! Runs the program of a README that `PAGES_PROGRAM` names, with its server at `OPEN_AGENT_BASE_URL`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "programs of pages print")]

include!(concat!(env!("OUT_DIR"), "/programs.rs"));

fn server() -> String {
    std::env::var("OPEN_AGENT_BASE_URL").unwrap_or_default()
}

fn main() -> open_agent::Result<()> {
    run(&std::env::var("PAGES_PROGRAM").unwrap_or_default())
}
