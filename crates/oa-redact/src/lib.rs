//! Masks secrets in text that somebody else wrote, and makes excerpts of it that are safe to print.
//!
//! A model server may repeat the key that it was sent: in an error message, in a page of a proxy, in a
//! stream. [`Secrets`] knows the keys of one server. [`Secrets::excerpt`] is the only way in which its
//! text gets into an error, a log or a report: mask, then cut, then remove what a terminal would act on.
//! The order matters. A key that was cut first is no longer recognized.
//!
//! Text that goes to a terminal as it came can move the cursor, rewrite earlier lines, reorder what a person
//! reads, or hide part of it. Three functions prevent that:
//!
//! - [`visible`](visible()) escapes, as `\u{1b}`, for data that a person judges: arguments of a call, names.
//!   Nothing in its result is invisible, and it is one line.
//! - [`printable`] escapes only what a terminal acts on, for prose that a person reads: line breaks, joined emoji
//!   and typographic spaces stay.
//! - [`strip_invisible`] removes, for messages and excerpts that are shown for information.
//!
//! # Who needs this crate alone
//!
//! Programs that log or print what a server answers to which they send a key.
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
