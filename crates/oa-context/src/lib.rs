//! Token counts of conversations, and ways to shorten conversations that are too long.
//!
//! [`estimate_tokens`] needs no vocabulary: it takes linear time, does not allocate, and never decreases when text is
//! appended. For exact counts, use a [`TokenCounter`]: `Tiktoken` or `HuggingFace` (features), or any closure with
//! [`counter_fn`]. [`Corrected`] learns from the usage that a server reports, and a [`PromptCutDetector`] uses it to
//! detect prompts that the server truncated silently. [`truncate_messages`] and [`Truncation`] drop the oldest
//! messages in whole exchanges, so that no call loses its result. [`ContextPolicy`] decides when to do so, and whether
//! a model should summarize the dropped messages.
//!
//! During a turn, [`ContextPolicy::shorten`] also clears old tool results, and drops or summarizes earlier steps of
//! the turn. The turn's prompt stays.
//!
//! Nothing here acts on its own: all functions map messages to messages or to a plan.
//!
//! ```
//! use oa_context::{estimate_tokens, is_approaching_limit, truncate_messages};
//! use oa_types::{Message, TextBlock};
//!
//! let mut messages = vec![Message::system("You are brief.")];
//! for number in 1..=20 {
//!     messages.push(Message::user(format!("What is {number} plus {number}?")));
//!     messages.push(Message::assistant(vec![TextBlock::new((2 * number).to_string()).into()]));
//! }
//! println!("about {} tokens", estimate_tokens(&messages));
//! if is_approaching_limit(&messages, 300, 0.9) {
//!     messages = truncate_messages(&messages, 10, true);
//! }
//! assert_eq!(messages.len(), 11);
//! ```
//!
//! # Accuracy
//!
//! Within 15 % of `o200k_base` for English, code in several languages, Chinese, Arabic and JSON, measured on texts
//! not used to build the estimator; `cargo bench -p oa-context` prints the table, with nine more languages. Other
//! vocabularies give other counts, which [`Corrected`] compensates for.
//!
//! # When to use this crate directly
//!
//! To manage your own history. To run an agent, use the facade `open-agent`.
//!
//! # Not included
//!
//! No I/O and no models: the caller sends summary requests to a model and returns its answers.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod counter;
mod estimate;
mod scaled;

mod han;
mod meter;
mod rates;
mod script;

#[cfg(feature = "tokenizers")]
mod hugging_face;
#[cfg(any(feature = "tiktoken", feature = "tokenizers"))]
mod pieces;
#[cfg(feature = "tiktoken")]
mod tiktoken;

mod cache_miss;
mod calibration;
mod prompt_cut;

mod exchange;
mod truncate;

mod policy;
mod shorten;
mod summary;
mod transcript;

#[cfg(feature = "tokenizers")]
mod error;

pub use crate::cache_miss::{CacheMiss, CacheMissDetector, ChangedPart, SentPrefix};
pub use crate::calibration::{Calibration, Corrected, Observation};
pub use crate::counter::{Costs, CounterFn, TokenCounter, counter_fn};
#[cfg(feature = "tokenizers")]
pub use crate::error::{Error, ErrorKind};
pub use crate::estimate::{
    Estimator, estimate_text, estimate_tokens, estimate_tools, is_approaching_limit,
};
#[cfg(feature = "tokenizers")]
pub use crate::hugging_face::HuggingFace;
pub use crate::policy::{ContextPolicy, Overflow, Plan};
pub use crate::prompt_cut::{PromptCut, PromptCutDetector, SentPrompt};
pub use crate::shorten::{ContextShortened, HowShortened, RunningTurn, Shortened, Shortening};
pub use crate::summary::Summary;
#[cfg(feature = "tiktoken")]
pub use crate::tiktoken::Tiktoken;
pub use crate::truncate::{Truncated, Truncation, Unit, truncate_messages};

/// Runs the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
