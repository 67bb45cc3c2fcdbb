//! What the examples share, so that each shows one thing: [`Model`] finds a server or brings up a stand-in,
//! [`Terminal`] prints, [`Arguments`] are what was typed. The examples themselves are the `*.rs` files beside this folder.

mod arguments;
mod chat;
mod model;
pub mod stand_in;
mod terminal;

pub use crate::arguments::Arguments;
pub use crate::chat::{Call, Chat};
pub use crate::model::Model;
pub use crate::terminal::Terminal;
