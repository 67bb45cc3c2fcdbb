use std::fmt;

use tiktoken_rs::CoreBPE;

use crate::counter::{Costs, TokenCounter};
use crate::pieces::pieces;

/// An exact counter with one of OpenAI's vocabularies (feature `tiktoken`).
///
/// The vocabulary is loaded on first use, which takes a few tenths of a second, and kept until the program
/// ends. Names of special tokens count as plain text. Texts of any length are counted in pieces of 16 KiB; in a
/// text without spaces, each border may add a token.
///
/// Requires feature `tiktoken`.
///
/// # Examples
///
/// ```
/// use oa_context::{Tiktoken, TokenCounter};
///
/// assert_eq!(Tiktoken::o200k_base().count_text("Hello, world!"), 4);
/// ```
#[derive(Clone, Copy)]
pub struct Tiktoken {
    costs: Costs,
    name: &'static str,
    vocabulary: &'static CoreBPE,
}

impl Tiktoken {
    /// Creates a counter with `o200k_base`, used by GPT-4o and later models and by gpt-oss.
    #[must_use]
    pub fn o200k_base() -> Self {
        Self::new("o200k_base", tiktoken_rs::o200k_base_singleton())
    }

    /// Creates a counter with `cl100k_base`, used by GPT-4 and GPT-3.5; the vocabularies of Llama 3 and Qwen resemble
    /// it.
    #[must_use]
    pub fn cl100k_base() -> Self {
        Self::new("cl100k_base", tiktoken_rs::cl100k_base_singleton())
    }

    fn new(name: &'static str, vocabulary: &'static CoreBPE) -> Self {
        Self { costs: Costs::default(), name, vocabulary }
    }

    /// Sets the token overhead.
    #[must_use]
    pub fn with_costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }
}

impl TokenCounter for Tiktoken {
    fn count_text(&self, text: &str) -> usize {
        pieces(text).map(|piece| self.vocabulary.count_ordinary(piece)).sum()
    }

    fn costs(&self) -> Costs {
        self.costs
    }
}

impl fmt::Debug for Tiktoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tiktoken")
            .field("name", &self.name)
            .field("costs", &self.costs)
            .finish_non_exhaustive()
    }
}
