//! Masking and excerpts.

mod forms;
mod laws;
mod visible;
