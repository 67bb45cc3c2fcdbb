//! Rust sources as far as the rules need them: tokens, items, and the modules and imports of a crate.
//!
//! Nothing is expanded and nothing is type-checked. What these files cannot see, such as an item that a macro makes,
//! the rules that stand on them name.

pub(crate) mod expand;
pub(crate) mod item;
pub(crate) mod lexer;
pub(crate) mod module;
