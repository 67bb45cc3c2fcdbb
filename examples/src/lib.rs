//! Code shared by the examples: [`Model`] finds a server or starts a stand-in, [`Terminal`] prints,
//! [`Arguments`] parses the command line. The examples are the `*.rs` files next to this folder.

mod arguments;
mod chat;
mod model;
pub mod stand_in;
mod terminal;

pub use crate::arguments::Arguments;
pub use crate::chat::{Call, Chat};
pub use crate::model::Model;
pub use crate::terminal::Terminal;
