use std::ops::AddAssign;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cost::Cost;

/// The cost of an answer: tokens as counted by the server, time as measured by the client, and money if the price
/// is known.
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
    /// From sending the request until the first of the answer came: text, thinking or a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_first_token: Option<Duration>,
    /// From then to the end, pauses of a slow reader included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation_time: Option<Duration>,
    /// The price of the tokens, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
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
            time_to_first_token,
            generation_time,
            cost,
        } = later;
        self.prompt_tokens = prompt_tokens.or(self.prompt_tokens);
        self.completion_tokens = completion_tokens.or(self.completion_tokens);
        self.total_tokens = total_tokens.or(self.total_tokens);
        self.cached_tokens = cached_tokens.or(self.cached_tokens);
        self.reasoning_tokens = reasoning_tokens.or(self.reasoning_tokens);
        self.time_to_first_token = time_to_first_token.or(self.time_to_first_token);
        self.generation_time = generation_time.or(self.generation_time);
        self.cost = cost.or(self.cost);
    }

    /// Adds the numbers of another answer.
    pub fn add(&mut self, other: &Self) {
        fn both<T>(a: Option<T>, b: Option<T>, add: impl FnOnce(T, T) -> T) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(add(a, b)),
                (a, b) => a.or(b),
            }
        }
        let sum = |a, b| both(a, b, u64::saturating_add);
        let time = |a, b| both(a, b, Duration::saturating_add);
        self.prompt_tokens = sum(self.prompt_tokens, other.prompt_tokens);
        self.completion_tokens = sum(self.completion_tokens, other.completion_tokens);
        self.total_tokens = sum(self.total_tokens, other.total_tokens);
        self.cached_tokens = sum(self.cached_tokens, other.cached_tokens);
        self.reasoning_tokens = sum(self.reasoning_tokens, other.reasoning_tokens);
        self.time_to_first_token = time(self.time_to_first_token, other.time_to_first_token);
        self.generation_time = time(self.generation_time, other.generation_time);
        self.cost = both(self.cost, other.cost, Cost::saturating_add);
    }

    /// Returns the total: the server's, or the sum of what it said of request and answer.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        let sum = || match (self.prompt_tokens, self.completion_tokens) {
            (Some(prompt), Some(completion)) => Some(prompt.saturating_add(completion)),
            (prompt, completion) => prompt.or(completion),
        };
        self.total_tokens.or_else(sum)
    }

    /// Returns how fast the answer was generated, in tokens per second, once its first token had come;
    /// `None` if the server counts no tokens, or sent all at once.
    #[must_use]
    pub fn tokens_per_second(&self) -> Option<f64> {
        let seconds = self.generation_time?.as_secs_f64();
        (seconds > 0.0).then_some(self.completion_tokens? as f64 / seconds)
    }
}

/// As [`add`](Usage::add) does.
impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.add(&other);
    }
}

/// As [`add`](Usage::add) does.
impl AddAssign<&Self> for Usage {
    fn add_assign(&mut self, other: &Self) {
        self.add(other);
    }
}
