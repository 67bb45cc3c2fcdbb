//! Templates.

mod cache;
mod chunk_template;
mod matched;
mod notes;
mod pattern;
mod shape;
pub(crate) mod slot;

pub use self::cache::TemplateCache;
pub(crate) use self::matched::Matched;
pub(crate) use self::notes::{MemberCounts, Notes};
pub(crate) use self::shape::Content;
