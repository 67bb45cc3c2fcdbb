//! The client against a real server, through the public API only. `cargo xtask conformance` starts llama.cpp's
//! own server with a generated model (see `tests/realserver/README.md`) or uses the one at
//! `OPEN_AGENT_BASE_URL`.
//!
//! Without a server, each test reports that it is skipped. With a server of the user's, tests that need the
//! generated model are skipped, and missing abilities are reported: neither the server nor the client is at
//! fault.

mod answer;
mod server;
mod settings;
mod wire;

mod calls;
mod connections;
mod contexts;
mod dialects;
mod doctor;
mod errors;
mod formats;
mod loops;
mod mcp;
mod models;
mod progress;
mod schema_forms;
mod small;
mod structured;
mod text;
mod thinking;
