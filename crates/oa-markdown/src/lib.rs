//! Markdown that is still streaming, as styled and wrapped lines for a terminal.
//!
//! [`Markdown`] takes text as it arrives and returns [`Block`]s. A block becomes [`Line`]s of any width, which know their
//! width in columns and print with or without ANSI styles. [`wrap`] and [`fold`] break any other styled text.
//!
//! # Guarantees
//!
//! - The blocks do not depend on how the text was split.
//! - Control and other invisible characters of the text are shown, not sent to the terminal.
//! - Memory is bounded: a line or a block that becomes too long is ended.
//!
//! # When to use this crate directly
//!
//! Use it for a terminal program of your own. For a chat that is ready, use the program `oa`.
//!
//! # Out of scope
//!
//! No terminal: no cursor, no keys, no size. Widths are arguments.

mod markdown;
mod style;
mod wrap;

pub use crate::markdown::{Align, Block, Markdown};
pub use crate::style::{Color, Line, Span, Style, excerpt, floor_char_boundary};
pub use crate::wrap::{fold, wrap};

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
