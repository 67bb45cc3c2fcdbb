//! Templates: chunks that are recognized by comparing bytes instead of parsing JSON.
//!
//! The chunks of one stream are the same JSON but for a few values. A chunk that was read in full becomes a *template*:
//! its bytes, and the *slots* in them where the next chunk may have another value. A payload that equals the template in
//! every byte outside the slots, and has a valid scalar of the same type in each slot, is the same JSON with other
//! values. It need not be parsed to know what it says.
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
//! While it reads, it notes where the scalars lie, without their quotes. Five things are remembered in a
//! [`ChunkTemplate`](chunk_template::ChunkTemplate):
//!
//! - the bytes, as a [`Pattern`](pattern::Pattern);
//! - the slot of the words (`===`), which is *open*: each chunk has its own;
//! - the other slots (`---`: an id, a number that decoding ignores, the choice's index), which are *closed*: as long as
//!   they do not vary they are compared like the bytes around them, which is cheaper than checking a value;
//! - where the delta lies, `{"content":"Hel"}`;
//! - what such a chunk says, as a [`ChunkShape`](shape::ChunkShape): text in choice 0, no finish reason.
//!
//! The second chunk is compared with it:
//!
//! ```json
//! {"id":"c-1","created":18,"choices":[{"index":0,"delta":{"content":"lo\n"}}]}
//! ```
//!
//! 1. The bytes up to the open slot, `{"id":"c-1","created":17,..,"content":"`, are not those of the payload: they differ
//!    in the second digit of `created`. A closed slot lies there, so it is opened, and from then on costs a number.
//! 2. Again: the bytes up to `created` are equal. `18` is a number by the grammar of RFC 8259, two bytes long. The bytes
//!    up to the words are equal. `lo\n` is a valid string up to its closing quote: these are the words. The bytes behind
//!    it are equal, and both end.
//! 3. So the payload matches, and [`Matched`] is the shape with these words: text, `lo` and a line break. The
//!    [`Aggregator`](crate::Aggregator) takes it from there, and no chunk is ever built.
//!
//! Had the second chunk been `..,"delta":{"role":"assistant","content":"lo"}}]}`, the comparison would have failed inside
//! the delta. Then everything before the delta and everything behind it is compared, and the delta alone is read: a
//! [`Frame`](chunk_template::Frame) matched. Had it failed anywhere else, the payload would have been read in full, and
//! become a template as well. A [`TemplateCache`] keeps the four that were of use last.
//!
//! # Across answers
//!
//! A server's next answer has another id, another time stamp and the same chunks. A template of an earlier answer is
//! therefore compared in the same way, and the first payload of the new answer that matches *replaces* its bytes:
//! id, model and time stamp are those of the new answer, fixed again, and the aggregator takes id and model from there.
//! Nothing of the earlier answer is left. With templates for the first and the last chunk (eight per server) a short
//! answer is compared from its first byte to its last.
//!
//! # Why the result is the same
//!
//! The full reading decides what a payload says; a template may only say the same, sooner. It holds because
//!
//! - a slot begins and ends where a scalar does, and the value in it is checked by the reader's own functions
//!   ([`string_at`](crate::json::string_at), [`number_length`](crate::json::number_length));
//! - every value that decides something is a slot whose value is taken over (words, counts, index, id, model), or is
//!   compared byte by byte: names of members, `null`, `true`, a finish reason, names and ids of calls;
//! - a payload is no template where one place would not decide: a member occurs twice, thinking stands under two names,
//!   there are two choices, an error, parts, or anything else that is rare but for one reasoning detail.
//!
//! Laws in `tests/suite/laws` mutate payloads in every place and hold that decoding with templates, whatever they were
//! learned from, gives what decoding without them gives; a fuzz target does the same with arbitrary bytes.
//!
//! # What it saves
//!
//! Instructions from payload to delta, counted by `cargo bench -p oa-aggregate` on x86-64, and by the same bench with the
//! cache switched off:
//!
//! | | read in full | with templates |
//! | --- | --- | --- |
//! | a text chunk of 250 bytes | 5,500 | 750 |
//! | the same, `created` differs now and then | 5,500 | 950 |
//! | the same with usage, 323 bytes | 7,760 | 1,720 |
//! | a fragment of a call's arguments | 6,900 | 890 |
//! | a short answer of llama.cpp: role, one word, finish, usage | 26,900 | 11,400 after others, 28,300 alone |
//!
//! `serde_json` reads the same text chunk into the smallest struct that has the text in 5,340.
//!
//! # Files
//!
//! [`cache`] is the public type: which templates there are, and which is tried first. [`chunk_template`] is one of them.
//! [`pattern`] does the comparing. [`slot`] and [`notes`] are what the reading of JSON writes down, [`shape`] is what a
//! template says, and [`matched`] what a payload said that matched it.

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
