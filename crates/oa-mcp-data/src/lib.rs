//! Reads and writes the data of the Model Context Protocol for agents: pure functions without I/O, a clock or a
//! connection.
//!
//! - Tools: [`ToolDescription`], [`ToolSelection`], [`tool_name`], [`Schema`], [`MirroredArguments`], [`Pins`] and
//!   their [`Approval`], and their results ([`read_result`], [`OutputSchema`]).
//! - Questions: [`Elicitation`], which checks answers against its form, and [`Sampling`]; [`Rounds`], if a server asks
//!   instead of returning a result, and [`RequiredPages`], if it asks with an error.
//! - [`Resource`]s and [`Prompt`]s, read page by page ([`Pages`]).
//! - [`client`]: messages between a server and its clients.
//! - [`CallClock`]: the timeouts of a call.
//!
//! ```
//! use oa_mcp_data::{Schema, SchemaForm};
//! use serde_json::json;
//!
//! let schema = json!({
//!     "$schema": "http://json-schema.org/draft-07/schema#",
//!     "properties": { "at": { "$ref": "#/$defs/place" } },
//!     "$defs": { "place": { "type": "string", "format": "uri" } },
//! });
//! let schema = Schema::read(Some(&schema), SchemaForm::Portable, 64 * 1024)?;
//! assert_eq!(schema.offered, json!({ "properties": { "at": { "type": "string" } }, "type": "object" }));
//! # Ok::<(), String>(())
//! ```
//!
//! # When to use this crate directly
//!
//! To use MCP servers over your own transport. `oa-mcp` connects to servers; the facade `open-agent` re-exports it as
//! `mcp`.

pub mod client;

mod approval;
mod description;
mod mirrored;
mod name;
mod output;
mod pins;
mod repair;
mod result;
mod schema;
mod selection;
mod subschemas;

mod elicitation;
mod hello;
mod host;
mod root;
mod rounds;
mod sampling;
mod visits;

mod answer;
mod json;
mod message;
mod pages;
mod pattern;
mod prompt;
mod resource;

mod challenge;
mod clock;
mod config;
mod cut;
mod ignored;
mod limits;
mod notice;
mod relisting;
mod reopening;
mod restarts;
mod resumption;
mod tail;
mod url;
mod variables;

pub use crate::answer::{AnswerError, forgets_session, is_session_lost, read_integer, take_result};
pub use crate::approval::Approval;
pub use crate::challenge::{key_problem, may_send_again, wants_another_key};
pub use crate::clock::{CallClock, Expired, Patience};
pub use crate::config::{ConfiguredServer, read_config};
pub use crate::cut::cut;
pub use crate::description::{ToolDescription, ToolOrigin, ToolRules};
pub use crate::elicitation::{Elicitation, ElicitationAnswer, ElicitationMode};
pub use crate::hello::Hello;
pub use crate::host::{
    Boxed, Host, HostRefusal, HostRequest, INVALID_PARAMS, INVALID_REQUEST, NO_METHOD, Offers,
    OnElicitation, OnSampling, QuestionLimits, REFUSED, Wanted,
};
pub use crate::ignored::{Ignored, Ignoring};
pub use crate::json::{Unreadable, read_json};
pub use crate::limits::Limits;
pub use crate::message::{read_block, read_message};
pub use crate::mirrored::MirroredArguments;
pub use crate::name::{NameOwners, tool_name};
pub use crate::notice::{read_level, read_log, read_progress};
pub use crate::output::OutputSchema;
pub use crate::pages::Pages;
pub use crate::pins::{Pins, UnconfirmedTool, tool_hash};
pub use crate::prompt::{FilledPrompt, Prompt, PromptArgument};
pub use crate::relisting::Relisting;
pub use crate::reopening::Reopening;
pub use crate::resource::{Resource, ResourceContent, ResourceData};
pub use crate::restarts::Restarts;
pub use crate::result::read_result;
pub use crate::resumption::Resumption;
pub use crate::root::Root;
pub use crate::rounds::{CallReply, InputRequest, Round, RoundError, RoundLimits, Rounds};
pub use crate::sampling::{Sampled, Sampling};
pub use crate::schema::{Schema, SchemaForm};
pub use crate::selection::{ToolSelection, UnmatchedPatterns};
pub use crate::tail::Tail;
pub use crate::url::{redirected, secrets_in_url, split_credentials};
pub use crate::variables::fill_variables;
pub use crate::visits::{RequiredPages, Visits};

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
