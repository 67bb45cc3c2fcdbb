//! Messages between MCP clients and a server, from the server's side.
//!
//! `ToolServer` of `oa-mcp` is built on this module.
//!
//! ```
//! use oa_mcp_data::client::{Incoming, InputLine, LineSplitter, answer, read};
//! use serde_json::json;
//!
//! let mut lines = LineSplitter::new(1_000);
//! let (line, _) = lines.push(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
//! let Some(InputLine::Whole(line)) = line else { panic!("no line") };
//! let message = read(&line, 100)?.remove(0);
//! let Incoming::Request { id, method, .. } = message else { panic!("no request") };
//! assert_eq!(method, "ping");
//! assert_eq!(answer(&id, &json!({})), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
//! # Ok::<(), String>(())
//! ```

mod accepted;
mod content;
mod envelope;
mod journal;
mod level;
mod limits;
mod message;
mod offered;
mod sessions;
mod splitter;

pub use accepted::Accepted;
pub use content::{failure, tool_result};
pub(crate) use envelope::header_text;
pub use envelope::{
    Envelope, LEVELS, Mirrors, Origin, STATELESS, VERSIONS, add_meta, complete, enclose,
    level_place, of_subscription,
};
pub use journal::{Journal, News};
pub use level::Level;
pub use limits::ServerLimits;
pub use message::{
    HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, answer,
    answer_with, error, excerpt, is_answer, is_progress_token, joined, memory_of, notice, read,
    unavailable,
};
pub use offered::describe_tool;
pub use sessions::{ClientSessions, Full};
pub use splitter::{InputLine, LineSplitter};
