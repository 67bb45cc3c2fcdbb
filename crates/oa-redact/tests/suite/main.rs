//! What is masked, and what an excerpt shows.

mod forms;
mod laws;
mod visible;
