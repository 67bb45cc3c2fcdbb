//! Renders Markdown that is still streaming as styled, wrapped lines for a terminal.
//!
//! [`Markdown`] takes text as it arrives and returns [`Block`]s. A block is rendered as [`Line`]s of any width, which
//! know their width in columns and print with or without ANSI styles. [`wrap`] and [`fold`] break other styled text
//! into lines.
//!
//! # Guarantees
//!
//! - The blocks do not depend on how the text was split.
//! - Control characters and other invisible characters in the text are made visible, not sent to the terminal.
//! - Memory is bounded: a line or a block that becomes too long is ended.
//!
//! # When to use this crate directly
//!
//! Use it in your own terminal program. For a ready-made chat, use the program `oa`.
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
