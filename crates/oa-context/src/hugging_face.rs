use std::fmt;
use std::sync::Arc;

use tokenizers::Tokenizer;

use crate::counter::{Costs, TokenCounter};
use crate::error::Error;
use crate::estimate::estimate_text;
use crate::pieces::pieces;

/// An exact counter that uses a model's own `tokenizer.json` (feature `tokenizers`).
///
/// Ignores the file's truncation and padding settings and adds no special tokens: only the text is counted.
/// Texts of any length are counted in pieces of 16 KiB; each border may add a token. If the tokenizer fails on
/// a piece, it is estimated. Clones share the vocabulary.
///
/// Requires feature `tokenizers`.
#[derive(Clone)]
pub struct HuggingFace {
    costs: Costs,
    tokenizer: Arc<Tokenizer>,
}

impl HuggingFace {
    /// Parses a `tokenizer.json`.
    ///
    /// # Errors
    ///
    /// `InvalidTokenizer` if it does not describe a tokenizer.
    pub fn from_bytes(json: &[u8]) -> Result<Self, Error> {
        let mut tokenizer = Tokenizer::from_bytes(json).map_err(Error::invalid_tokenizer)?;
        tokenizer.with_truncation(None).map_err(Error::invalid_tokenizer)?;
        tokenizer.with_padding(None);
        Ok(Self { costs: Costs::default(), tokenizer: Arc::new(tokenizer) })
    }

    /// Sets the token overhead.
    #[must_use]
    pub fn with_costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }
}

impl TokenCounter for HuggingFace {
    fn count_text(&self, text: &str) -> usize {
        let count = |piece| match self.tokenizer.encode_fast(piece, false) {
            Ok(encoding) => encoding.len(),
            Err(_) => estimate_text(piece),
        };
        pieces(text).map(count).sum()
    }

    fn costs(&self) -> Costs {
        self.costs
    }
}

impl fmt::Debug for HuggingFace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HuggingFace")
            .field("tokens", &self.tokenizer.get_vocab_size(true))
            .field("costs", &self.costs)
            .finish_non_exhaustive()
    }
}
