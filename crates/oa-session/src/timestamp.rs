use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A time that the caller gives: stores have no clock.
///
/// Milliseconds since 1970-01-01T00:00:00Z, which is also what it is in JSON.
///
/// ```
/// use std::time::SystemTime;
///
/// use oa_session::Timestamp;
///
/// assert!(Timestamp::from(SystemTime::now()) > Timestamp::from_millis(1_700_000_000_000));
/// ```
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Creates a time from milliseconds since 1970; earlier ones are negative.
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
    /// Times that milliseconds in 64 bits cannot tell are the nearest that they can.
    fn from(time: SystemTime) -> Self {
        Self(match time.duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => {
                i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |millis| -millis)
            }
        })
    }
}
