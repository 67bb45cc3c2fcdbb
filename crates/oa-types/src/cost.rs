use std::fmt;
use std::ops::AddAssign;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

use crate::error::Error;
use crate::usage::Usage;

/// An amount of money, in the currency of the prices.
///
/// Stored as an integer number of 10⁻¹² units: the price of one token where a million tokens cost one millionth
/// of a unit. So the cost of a single token is exact, sums do not depend on their order, and a budget runs out
/// at the same answer every time. Saturates at 18 million units.
///
/// ```
/// use oa_types::Cost;
///
/// let mut cost = Cost::new(0.1)?;
/// cost += Cost::new(0.2)?;
/// assert_eq!(cost, Cost::new(0.3)?);
/// assert_eq!((cost.to_f64(), cost.to_string()), (0.3, "0.3".to_owned()));
/// # Ok::<(), oa_types::Error>(())
/// ```
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Cost(u64);

/// Steps of [`Cost`]'s integer per unit of the currency.
const UNIT: f64 = 1e12;

impl Cost {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Creates an amount, rounded to the nearest 10⁻¹².
    ///
    /// # Errors
    ///
    /// `Config` if it is negative or not finite.
    pub fn new(amount: f64) -> Result<Self, Error> {
        if amount.is_finite() && amount >= 0.0 {
            // A conversion to an integer saturates.
            Ok(Self((amount * UNIT).round() as u64))
        } else {
            Err(Error::config(format!("a cost must be a finite number of 0 or more, not {amount}")))
        }
    }

    /// Returns the amount as a float, for display and statistics.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / UNIT
    }

    /// Returns the sum, saturating at the maximum.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// The same as [`saturating_add`](Cost::saturating_add).
impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = self.saturating_add(other);
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match f.precision() {
            Some(_) => self.to_f64().fmt(f),
            None => {
                let (units, rest) = (self.0 / UNIT as u64, self.0 % UNIT as u64);
                let digits = format!("{units}.{rest:012}");
                f.pad(digits.trim_end_matches('0').trim_end_matches('.'))
            }
        }
    }
}

impl fmt::Debug for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cost({self})")
    }
}

/// Serialized as a number of units.
impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.to_f64())
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amount = f64::deserialize(deserializer)?;
        Self::new(amount).map_err(D::Error::custom)
    }
}

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
    /// The price of one request token.
    input: Cost,
    /// The price of one answer token.
    output: Cost,
}

impl Price {
    /// Creates a price from the prices of a million request tokens and a million answer tokens.
    ///
    /// # Errors
    ///
    /// `Config` if either is negative or not finite.
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

    /// Returns true if all tokens are free.
    #[must_use]
    pub fn is_free(&self) -> bool {
        *self == Self { input: Cost::ZERO, output: Cost::ZERO }
    }

    /// Returns the cost of an answer, or `None` if the server did not count its tokens.
    ///
    /// Cached tokens cost as much as others. If only the total is known, all tokens count at the higher price, so the
    /// result is never below the actual cost.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<Cost> {
        let times = |price: Cost, tokens: u64| Cost(price.0.saturating_mul(tokens));
        let rest = |part: u64| usage.total_tokens.map_or(0, |total| total.saturating_sub(part));
        let (input, output) = match (usage.prompt_tokens, usage.completion_tokens) {
            (Some(input), Some(output)) => (input, output),
            (Some(input), None) => (input, rest(input)),
            (None, Some(output)) => (rest(output), output),
            (None, None) => return Some(times(self.input.max(self.output), usage.total_tokens?)),
        };
        Some(times(self.input, input).saturating_add(times(self.output, output)))
    }
}
