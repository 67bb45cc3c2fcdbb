//! The scripted server through its public interface: in memory, and over a socket with a raw client.

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
