use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z, in memory and in JSON.
///
/// Stores never read a clock: the caller supplies the time of every change, from its own clock or from
/// [`now`](Self::now).
///
/// ```
/// use oa_session::Timestamp;
///
/// assert!(Timestamp::now() > Timestamp::from_millis(1_700_000_000_000));
/// ```
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Returns the current time of the system clock, [`SystemTime::now`].
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// Creates a time from milliseconds since 1970; earlier times are negative.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since 1970.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the time as the standard library has it, to show it or to compute an age; `None` if the platform has no
    /// such time.
    ///
    /// ```
    /// use std::time::SystemTime;
    ///
    /// use oa_session::Timestamp;
    ///
    /// assert_eq!(Timestamp::from_millis(0).to_system_time(), Some(SystemTime::UNIX_EPOCH));
    /// ```
    #[must_use]
    pub fn to_system_time(self) -> Option<SystemTime> {
        let distance = Duration::from_millis(self.0.unsigned_abs());
        if self.0 < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
    }
}

impl From<SystemTime> for Timestamp {
    /// Saturates for times out of range.
    fn from(time: SystemTime) -> Self {
        Self(match time.duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => {
                i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |millis| -millis)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_times_convert_both_ways() {
        for millis in [i64::MIN, -1, 0, 1, 1_700_000_000_123, i64::MAX] {
            let time = Timestamp::from_millis(millis);
            let is_usual = millis.unsigned_abs() < 1 << 50;
            match time.to_system_time() {
                Some(system) => assert_eq!(Timestamp::from(system), time),
                None => assert!(!is_usual, "{millis}"), // the range is that of the platform
            }
        }
    }
}
