use std::fmt;

use tiktoken_rs::CoreBPE;

use crate::counter::{Costs, TokenCounter};
use crate::pieces::pieces;

/// Counts exactly, by a vocabulary of OpenAI's (feature `tiktoken`).
///
/// The vocabulary is read when it is first asked for, which takes some tenths of a second, and kept for
/// the life of the program. Names of special tokens in a text count as the text that they are. Texts
/// are counted in pieces of 16 KiB, so that no text is too long; where one has no spaces, each border may
/// add a token.
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
    /// Counts by `o200k_base`: GPT-4o and later models, and gpt-oss.
    #[must_use]
    pub fn o200k_base() -> Self {
        Self::new("o200k_base", tiktoken_rs::o200k_base_singleton())
    }

    /// Counts by `cl100k_base`: GPT-4 and GPT-3.5; the vocabularies of Llama 3 and Qwen resemble it.
    #[must_use]
    pub fn cl100k_base() -> Self {
        Self::new("cl100k_base", tiktoken_rs::cl100k_base_singleton())
    }

    fn new(name: &'static str, vocabulary: &'static CoreBPE) -> Self {
        Self { costs: Costs::default(), name, vocabulary }
    }

    /// Adds other costs to the texts.
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
