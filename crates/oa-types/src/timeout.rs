use std::time::Duration;

/// A timeout: seconds, a `Duration`, or `None` for no limit.
///
/// ```
/// use std::time::Duration;
///
/// use oa_types::Timeout;
///
/// assert_eq!(Timeout::from(5).duration(), Some(Duration::from_secs(5)));
/// assert_eq!(Timeout::from(0.5).duration(), Some(Duration::from_millis(500)));
/// assert_eq!(Timeout::from(Duration::from_millis(10)).duration(), Some(Duration::from_millis(10)));
/// assert_eq!(Timeout::from(None).duration(), None);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timeout(Option<Duration>);

impl Timeout {
    /// Returns the duration; `None` means no limit.
    #[must_use]
    pub fn duration(self) -> Option<Duration> {
        self.0
    }

    /// Returns `true` for a duration of zero, in which nothing could happen.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == Some(Duration::ZERO)
    }

    /// Returns the duration; [`Duration::MAX`] if there is no limit.
    #[must_use]
    pub fn or_max(self) -> Duration {
        self.0.unwrap_or(Duration::MAX)
    }

    /// Returns the error message for an option that was set to zero.
    #[doc(hidden)]
    #[must_use]
    pub fn zero(option: &str) -> String {
        format!("{option} must be above 0; use None for no limit")
    }
}

impl From<Duration> for Timeout {
    fn from(wait: Duration) -> Self {
        Self(Some(wait))
    }
}

impl From<Option<Duration>> for Timeout {
    fn from(wait: Option<Duration>) -> Self {
        Self(wait)
    }
}

impl From<u64> for Timeout {
    fn from(seconds: u64) -> Self {
        Self(Some(Duration::from_secs(seconds)))
    }
}

impl From<u32> for Timeout {
    fn from(seconds: u32) -> Self {
        Self::from(u64::from(seconds))
    }
}

impl From<i32> for Timeout {
    /// Converts an integer literal; negative values become 0.
    fn from(seconds: i32) -> Self {
        Self::from(u64::try_from(seconds).unwrap_or(0))
    }
}

impl From<f64> for Timeout {
    /// Converts seconds; negative values and NaN become 0, and values beyond the range of `Duration` its maximum.
    fn from(seconds: f64) -> Self {
        let beyond = if seconds > 0.0 { Duration::MAX } else { Duration::ZERO };
        Self(Some(Duration::try_from_secs_f64(seconds).unwrap_or(beyond)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_may_have_a_fraction() {
        let seconds = |seconds: f64| Timeout::from(seconds).duration();
        assert_eq!(seconds(1.25), Some(Duration::from_millis(1_250)));
        for nothing in [0.0, -0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            assert!(Timeout::from(nothing).is_zero(), "{nothing}");
        }
        for much in [f64::INFINITY, f64::MAX, 1e30] {
            assert_eq!(seconds(much), Some(Duration::MAX), "{much}");
        }
    }
}
