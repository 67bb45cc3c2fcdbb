//! Templates: chunks that are recognized by comparing bytes instead of parsing JSON.
//!
//! The chunks of one stream are the same JSON except for a few values. A chunk that was read in full becomes a
//! *template*: its bytes, and the *slots* in them where the next chunk may have a different value. A payload that
//! equals the template in every byte outside the slots, and has a valid scalar of the same type in each slot, is the
//! same JSON with other values. It need not be parsed.
//!
//! # Two payloads
//!
//! The first chunk of a stream is read in full by [`decode`](crate::decode):
//!
//! ```json
//! {"id":"c-1","created":17,"choices":[{"index":0,"delta":{"content":"Hel"}}]}
//!        ---           --                      -                    ===
//! ```
//!
//! It records the positions of the scalars, without their quotes. A
//! [`ChunkTemplate`](chunk_template::ChunkTemplate) holds five things:
//!
//! - the bytes, as a [`Pattern`](pattern::Pattern);
//! - the slot of the text (`===`), which is *open*: its value differs in each chunk;
//! - the other slots (`---`: an id, a number that decoding ignores, the choice's index), which are *closed*: as long as
//!   they do not vary, they are compared like the bytes around them, which is cheaper than checking a value;
//! - the position of the delta, `{"content":"Hel"}`;
//! - the meaning of such a chunk, as a [`ChunkShape`](shape::ChunkShape): text in choice 0, no finish reason.
//!
//! The second chunk is compared with it:
//!
//! ```json
//! {"id":"c-1","created":18,"choices":[{"index":0,"delta":{"content":"lo\n"}}]}
//! ```
//!
//! 1. The bytes up to the open slot, `{"id":"c-1","created":17,..,"content":"`, differ from the payload in the second
//!    digit of `created`. There is a closed slot, so it is opened; from now on its value is checked each time.
//! 2. The comparison starts over: the bytes up to `created` are equal. `18` is a number by the grammar of RFC 8259, two
//!    bytes long. The bytes up to the text are equal. `lo\n` is a valid string up to its closing quote: this is the text.
//!    The bytes after it are equal, and both end.
//! 3. So the payload matches, and [`Matched`] is the shape with this text: `lo` and a line break. The
//!    [`Aggregator`](crate::Aggregator) continues with it, and no chunk is built.
//!
//! If the second chunk were `..,"delta":{"role":"assistant","content":"lo"}}]}`, the comparison would fail inside the
//! delta. Then everything before and after the delta is compared, and only the delta is read: a
//! [`Frame`](chunk_template::Frame) matched. If it failed anywhere else, the payload would be read in full, and become
//! a template as well. A [`TemplateCache`] keeps the four that were used last.
//!
//! # Across answers
//!
//! A server's next answer has a different id and time stamp, but the same chunks. A template of an earlier answer is
//! therefore compared in the same way, and the first payload of the new answer that matches *replaces* its bytes: id,
//! model and time stamp are those of the new answer and fixed again, and the aggregator takes the id and model from
//! them. Nothing of the earlier answer is left. With templates for the first and the last chunk (eight per server), a
//! short answer is compared from its first byte to its last.
//!
//! # Why the result is the same
//!
//! The full reading decides what a payload means; a template may only give the same result, faster. This holds because
//!
//! - a slot begins and ends where a scalar does, and its value is checked by the reader's own functions
//!   ([`string_at`](crate::json::string_at), [`number_length`](oa_json::number_length));
//! - every relevant value is either a slot whose value is used (text, counts, index, id, model), or compared byte by byte:
//!   names of members, `null`, `true`, a finish reason, names and ids of calls;
//! - a payload does not become a template if one place does not decide: a member occurs twice, thinking has two names,
//!   there are two choices, an error, parts, or anything else that is rare, except for one reasoning detail.
//!
//! Laws in `tests/suite/laws` mutate payloads in every place and check that decoding with templates, whatever they were
//! learned from, gives the same result as decoding without them; a fuzz target does the same with arbitrary bytes.
//!
//! # Files
//!
//! [`cache`] is the public type: it holds the templates and decides which is tried first. [`chunk_template`] is one
//! template, and [`pattern`] compares payloads with it. The reader of JSON records [`slot`] and [`notes`]; [`shape`]
//! is the meaning of a template, and [`matched`] that of a payload that matched it.

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
