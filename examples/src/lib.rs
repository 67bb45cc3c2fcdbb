//! Code shared by the examples: [`Model`] finds a server or starts a stand-in, [`Terminal`] prints,
//! [`Arguments`] parses the command line. The examples are the `*.rs` files next to this folder.

mod arguments;
mod chat;
#[cfg(feature = "session-postgres")]
mod database;
#[cfg(feature = "restate")]
mod engine;
mod model;
pub mod stand_in;
mod terminal;

pub use crate::arguments::Arguments;
pub use crate::chat::{Call, Chat};
#[cfg(feature = "session-postgres")]
pub use crate::database::Database;
#[cfg(feature = "restate")]
pub use crate::engine::Engine;
pub use crate::model::Model;
pub use crate::terminal::Terminal;
