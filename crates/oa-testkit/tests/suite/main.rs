//! The scripted server from outside: in memory, and over a socket with a client that hides nothing.

mod client;
mod tapes;

mod cassette_files;
mod cassettes;
mod framing;
mod memory;
mod misbehavior;
mod requests;
mod said;
mod story;
mod strict;
