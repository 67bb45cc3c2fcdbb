//! The client against a real server, through the public API alone. `cargo xtask conformance` brings up
//! llama.cpp's own server with a made-up model, see `tests/realserver/README.md`, or takes the one at
//! `OPEN_AGENT_BASE_URL`.
//!
//! Without a server each test says that it is skipped. Against a server of the user's, what holds for
//! the made-up model alone is skipped, and what the server cannot do is said to be lacking: such a
//! server is not at fault, and neither is the client.

mod answer;
mod server;
mod wire;

mod calls;
mod connections;
mod dialects;
mod doctor;
mod errors;
mod formats;
mod loops;
mod models;
mod structured;
mod text;
mod thinking;
