//! What holds for every stream.

mod calls;
mod decoding;
mod forms;
mod frames;
mod held;
mod ids;
mod limits;
mod payloads;
mod text;
mod think;
