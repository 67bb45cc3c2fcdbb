use std::fmt;
use std::ops::AddAssign;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Error;
use crate::usage::Usage;

/// An amount of money, in the currency in which prices are given.
///
/// Counted in integers, in millionths of a millionth of the unit. That is the price of one token where a million cost a
/// millionth, so that costs of single tokens are exact, sums do not depend on their order, and a budget ends at the
/// same answer each time. Amounts beyond 18 million units stay at that maximum.
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

/// How many of [`Cost`]'s integers are one unit of the currency.
const UNIT: f64 = 1e12;

impl Cost {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// Creates an amount, rounded to what can be counted.
    ///
    /// # Errors
    ///
    /// `Config` if it is negative or not a finite number.
    pub fn new(amount: f64) -> Result<Self, Error> {
        if amount.is_finite() && amount >= 0.0 {
            // A conversion to an integer saturates.
            Ok(Self((amount * UNIT).round() as u64))
        } else {
            Err(Error::config(format!("not an amount of money: {amount}")))
        }
    }

    /// Returns the amount as a number, for output and for statistics.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / UNIT
    }

    /// Reads the digits that [`Display`](fmt::Display) has written.
    fn from_digits(digits: &str) -> Option<Self> {
        let (units, rest) = digits.split_once('.').unwrap_or((digits, ""));
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if units.is_empty() || rest.len() > 12 || !is_digits(units) || !is_digits(rest) {
            return None;
        }
        let units: u64 = units.parse().ok()?;
        let rest: u64 = format!("{rest:0<12}").parse().ok()?;
        units.checked_mul(UNIT as u64)?.checked_add(rest).map(Self)
    }

    /// Returns the sum, or the maximum if it is larger than that.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// As [`saturating_add`](Cost::saturating_add) does.
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

/// As a number of units, or as its digits in a string where a number would not be exact.
impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let amount = self.to_f64();
        if Self::new(amount).is_ok_and(|read| read == *self) {
            serializer.serialize_f64(amount)
        } else {
            serializer.collect_str(self)
        }
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Amount {
            Number(f64),
            Digits(String),
        }
        match Amount::deserialize(deserializer)? {
            Amount::Number(amount) => Self::new(amount).map_err(D::Error::custom),
            Amount::Digits(digits) => Self::from_digits(&digits)
                .ok_or_else(|| D::Error::custom(format!("not an amount of money: {digits:?}"))),
        }
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
    /// Of one token of a request.
    input: Cost,
    /// Of one token of an answer.
    output: Cost,
}

impl Price {
    /// Creates a price from that of a million tokens of requests, and of answers.
    ///
    /// # Errors
    ///
    /// `Config` if one of them is negative or not a finite number.
    pub fn per_million(input: f64, output: f64) -> Result<Self, Error> {
        let of_one = |amount: f64| {
            Cost::new(amount / 1e6)
                .map_err(|_| Error::config(format!("not the price of a million tokens: {amount}")))
        };
        Ok(Self { input: of_one(input)?, output: of_one(output)? })
    }

    /// Returns whether tokens cost nothing.
    #[must_use]
    pub fn is_free(&self) -> bool {
        *self == Self { input: Cost::ZERO, output: Cost::ZERO }
    }

    /// Returns what an answer costs; `None` if the server did not count its tokens.
    ///
    /// Tokens from the server's cache cost as much as others. If only the total is known, all tokens count at the
    /// higher price, so that the result is never less than the real cost.
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
