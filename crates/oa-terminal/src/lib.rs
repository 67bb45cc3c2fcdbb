//! Questions to a person at a terminal.
//!
//! # When to use this crate directly
//!
//! Use it with your own permission checks. To run an agent, use the facade `open-agent`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod answer;
mod prompt;

pub use crate::prompt::TerminalPrompt;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
