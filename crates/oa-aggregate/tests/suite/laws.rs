//! Laws that hold for every stream.

mod calls;
mod decoding;
mod frames;
mod halves;
mod held;
mod ids;
mod limits;
mod payloads;
mod templates;
mod text;
mod think;
mod whole;
