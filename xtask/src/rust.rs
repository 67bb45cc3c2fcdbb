//! Rust sources as far as the rules need them: tokens, items, and the modules and imports of a crate.
//!
//! Nothing is expanded and nothing is type-checked. The rules that use these modules name what they cannot see, such as
//! items that macros generate.

pub(crate) mod expand;
pub(crate) mod item;
pub(crate) mod lexer;
pub(crate) mod module;
