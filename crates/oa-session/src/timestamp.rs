use std::time::{SystemTime, UNIX_EPOCH};

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
