use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cost::Cost;
use crate::micros;

/// The cost of an answer: tokens counted by the server, times measured by the client, and money if a price is
/// set.
///
/// Token counts are the server's own, so the total may differ from the sum of its parts (QUIRKS row 61).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens in the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Tokens in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// Total tokens, including any others that the server counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Request tokens served from the prompt cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Answer tokens spent on reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Time from sending the request to the first text, reasoning or call; of several answers, all these times
    /// together. In JSON it is `time_to_first_token_us`, in whole microseconds.
    #[serde(
        rename = "time_to_first_token_us",
        with = "micros::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub time_to_first_token: Option<Duration>,
    /// Time from the first token to the end, including pauses of a slow reader; of several answers, all these times
    /// together. In JSON it is `generation_time_us`, in whole microseconds.
    #[serde(
        rename = "generation_time_us",
        with = "micros::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub generation_time: Option<Duration>,
    /// The cost of the tokens, if a price is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl Usage {
    /// Creates a usage with token counts, for models and middleware of your own.
    ///
    /// ```
    /// let usage = oa_types::Usage::tokens(20, 5);
    /// assert_eq!((usage.prompt_tokens, usage.completion_tokens), (Some(20), Some(5)));
    /// ```
    #[must_use]
    pub fn tokens(prompt: u64, completion: u64) -> Self {
        Self { prompt_tokens: Some(prompt), completion_tokens: Some(completion), ..Self::default() }
    }

    /// Replaces every number that a later report of the same answer contains; never adds (QUIRKS row 58).
    pub fn merge(&mut self, later: &Self) {
        // Destructured in full, so that no new field is forgotten.
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

    /// Adds the usage of another answer.
    pub fn add(&mut self, other: &Self) {
        fn both<T>(a: Option<T>, b: Option<T>, add: impl FnOnce(T, T) -> T) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(add(a, b)),
                (a, b) => a.or(b),
            }
        }
        let sum = |a, b| both(a, b, u64::saturating_add);
        let time = |a, b| both(a, b, Duration::saturating_add);
        // An answer without a total counts by its parts, which are therefore added after this.
        if self.total_tokens.or(other.total_tokens).is_some() {
            self.total_tokens = sum(self.total(), other.total());
        }
        self.prompt_tokens = sum(self.prompt_tokens, other.prompt_tokens);
        self.completion_tokens = sum(self.completion_tokens, other.completion_tokens);
        self.cached_tokens = sum(self.cached_tokens, other.cached_tokens);
        self.reasoning_tokens = sum(self.reasoning_tokens, other.reasoning_tokens);
        self.time_to_first_token = time(self.time_to_first_token, other.time_to_first_token);
        self.generation_time = time(self.generation_time, other.generation_time);
        self.cost = both(self.cost, other.cost, Cost::saturating_add);
    }

    /// Returns the server's total, or the sum of request and answer tokens.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        let sum = || match (self.prompt_tokens, self.completion_tokens) {
            (Some(prompt), Some(completion)) => Some(prompt.saturating_add(completion)),
            (prompt, completion) => prompt.or(completion),
        };
        self.total_tokens.or_else(sum)
    }

    /// Returns the generation speed in tokens per second, measured from the first token; `None` if the server
    /// reports no token counts or sent everything at once.
    #[must_use]
    pub fn tokens_per_second(&self) -> Option<f64> {
        let seconds = self.generation_time?.as_secs_f64();
        (seconds > 0.0).then_some(self.completion_tokens? as f64 / seconds)
    }
}

/// One line for a person, with what is known: `25 tokens (20 in, 5 out), 31.5 tokens/s, cost 0.003`.
///
/// ```
/// let mut usage = oa_types::Usage::tokens(20, 5);
/// assert_eq!(usage.to_string(), "25 tokens (20 in, 5 out)");
/// usage.cached_tokens = Some(16);
/// assert_eq!(usage.to_string(), "25 tokens (20 in, 16 of them cached, 5 out)");
/// assert_eq!(oa_types::Usage::default().to_string(), "unknown tokens");
/// ```
impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.total() {
            Some(total) => write!(f, "{total} tokens")?,
            None => f.write_str("unknown tokens")?,
        }
        let parts = [
            (self.prompt_tokens, "in"),
            (self.cached_tokens, "of them cached"),
            (self.completion_tokens, "out"),
            (self.reasoning_tokens, "of them reasoning"),
        ];
        let mut before = " (";
        for (count, name) in parts {
            if let Some(count) = count {
                write!(f, "{before}{count} {name}")?;
                before = ", ";
            }
        }
        if before == ", " {
            f.write_str(")")?;
        }
        if let Some(speed) = self.tokens_per_second() {
            write!(f, ", {speed:.1} tokens/s")?;
        }
        match self.cost {
            Some(cost) => write!(f, ", cost {cost}"),
            None => Ok(()),
        }
    }
}

/// The same as [`add`](Usage::add).
impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.add(&other);
    }
}

/// The same as [`add`](Usage::add).
impl AddAssign<&Self> for Usage {
    fn add_assign(&mut self, other: &Self) {
        self.add(other);
    }
}

/// The same as [`add`](Usage::add) for each.
impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), |mut sum, usage| {
            sum += usage;
            sum
        })
    }
}

/// The same as [`add`](Usage::add) for each.
impl<'a> Sum<&'a Self> for Usage {
    fn sum<I: Iterator<Item = &'a Self>>(usages: I) -> Self {
        usages.copied().sum()
    }
}
