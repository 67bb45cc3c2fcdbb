//! The stored format of messages, their wire format, and the inputs that constructors reject.

mod cost;
mod error_record;
mod finish;
mod history;
mod images;
mod overflow;
mod settings;
mod stored;
mod wire;
