use serde::{Deserialize, Serialize};

/// What an answer cost, in tokens, as far as the server said.
///
/// The numbers are the server's: a total need not be the sum of its parts (QUIRKS row 61).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Tokens of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// Both, and whatever else the server counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Tokens of the request that the server had in its prompt cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Tokens of the answer that were thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Takes over every number that a later report has; never adds up (QUIRKS row 58).
    pub fn merge(&mut self, later: &Self) {
        let Self {
            prompt_tokens,
            completion_tokens,
            total_tokens,
            cached_tokens,
            reasoning_tokens,
        } = later;
        self.prompt_tokens = prompt_tokens.or(self.prompt_tokens);
        self.completion_tokens = completion_tokens.or(self.completion_tokens);
        self.total_tokens = total_tokens.or(self.total_tokens);
        self.cached_tokens = cached_tokens.or(self.cached_tokens);
        self.reasoning_tokens = reasoning_tokens.or(self.reasoning_tokens);
    }
}
