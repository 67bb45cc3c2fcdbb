//! Events of prompts, and events as front ends show them.

mod prompts;
mod shown;
