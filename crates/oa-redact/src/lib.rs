//! Masks secrets in foreign text, and makes excerpts that are safe to print.
//!
//! A model server may repeat the key that it was sent: in an error message, a proxy's error page, a stream. [`Secrets`]
//! holds the keys of one server. [`Secrets::excerpt`] is the only way for the server's text into an error, a log or a
//! report. It masks, then cuts, then removes terminal control characters. The order matters: a key that was cut first
//! would no longer be recognized.
//!
//! Foreign text printed unchanged can move the cursor, overwrite lines, reorder text, or hide parts of it.
//! Three functions prevent that:
//!
//! - [`visible`](visible()) escapes all invisible characters, as in `\u{1b}`, for data that a person judges, such as
//!   call arguments and names. The result contains nothing invisible and is a single line.
//! - [`printable`] escapes only terminal control characters, for prose: line breaks, joined emoji and
//!   typographic spaces are kept.
//! - [`strip_invisible`] removes them, for messages and excerpts that are shown for information.
//!
//! # When to use this crate directly
//!
//! To log or print responses from a server that receives a key.
//!
//! ```
//! use oa_redact::Secrets;
//!
//! let mut secrets = Secrets::new();
//! secrets.add_header("Authorization", "Bearer sk-0123456789abcdef");
//! let said = r#"{"error": "sk-0123456789abcdef is not valid", "escaped": "sk\u002d0123456789abcdef"}"#;
//! assert_eq!(secrets.mask(said), r#"{"error": "**** is not valid", "escaped": "****"}"#);
//! assert_eq!(secrets.excerpt(said, 22), r#"{"error": "**** is not..."#);
//! ```

mod header;
mod secrets;

mod strip;
mod visible;

mod escape;
mod view;

#[doc(hidden)]
pub mod base64;

pub use crate::header::is_harmless;
pub use crate::secrets::{MASK, Secrets};
pub use crate::strip::strip_invisible;
pub use crate::visible::{printable, visible};
