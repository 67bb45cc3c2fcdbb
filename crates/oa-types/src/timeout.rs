use std::time::Duration;

/// A timeout: whole seconds, a `Duration`, or `None` for no limit.
///
/// ```
/// use std::time::Duration;
///
/// use oa_types::Timeout;
///
/// assert_eq!(Timeout::from(5).duration(), Some(Duration::from_secs(5)));
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
