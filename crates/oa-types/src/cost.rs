use std::fmt;
use std::ops::AddAssign;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Error;

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

    /// Returns the difference, or zero if `other` is larger.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    pub(crate) fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
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
