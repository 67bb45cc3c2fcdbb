use crate::cost::Cost;
use crate::error::Error;
use crate::usage::Usage;

/// The price of a model's tokens.
///
/// ```
/// use oa_types::{Price, Usage};
///
/// let price = Price::per_million(0.15, 0.60)?;
/// let mut usage = Usage::default();
/// (usage.prompt_tokens, usage.completion_tokens) = (Some(2_000), Some(100));
/// assert_eq!(price.cost(&usage).unwrap().to_string(), "0.00036");
/// # Ok::<(), oa_types::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Price {
    /// The price of one token of a request.
    input: Cost,
    /// The price of one token of an answer.
    output: Cost,
}

impl Price {
    /// Creates a price from the prices of a million request tokens and of a million answer tokens.
    ///
    /// # Errors
    ///
    /// `Config` if either is negative or not a finite number.
    pub fn per_million(input: f64, output: f64) -> Result<Self, Error> {
        let of_one = |amount: f64| {
            Cost::new(amount / 1e6).map_err(|_| {
                Error::config(format!(
                    "a price per million tokens must be a finite number of 0 or more, not {amount}"
                ))
            })
        };
        Ok(Self { input: of_one(input)?, output: of_one(output)? })
    }

    /// Returns true if tokens cost nothing.
    #[must_use]
    pub fn is_free(&self) -> bool {
        *self == Self { input: Cost::ZERO, output: Cost::ZERO }
    }

    /// Returns the cost of an answer; `None` if the server did not count its tokens.
    ///
    /// Tokens from the server's cache cost as much as others. If only the total is known, all tokens count at the
    /// higher price, so that the result is never less than the real cost.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<Cost> {
        let rest = |part: u64| usage.total_tokens.map_or(0, |total| total.saturating_sub(part));
        let (input, output) = match (usage.prompt_tokens, usage.completion_tokens) {
            (Some(input), Some(output)) => (input, output),
            (Some(input), None) => (input, rest(input)),
            (None, Some(output)) => (rest(output), output),
            (None, None) => {
                return Some(self.input.max(self.output).saturating_mul(usage.total_tokens?));
            }
        };
        Some(self.input.saturating_mul(input).saturating_add(self.output.saturating_mul(output)))
    }
}
