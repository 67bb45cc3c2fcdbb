//! The stored shape of messages, their shape on the wire, and what constructors refuse.

mod contain;
mod cost;
mod error_record;
mod finish;
mod history;
mod images;
mod overflow;
mod settings;
mod stored;
mod wire;
