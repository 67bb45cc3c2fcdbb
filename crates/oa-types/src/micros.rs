//! Durations as whole microseconds in JSON, for `#[serde(with = "micros")]`. The names of such members end in `_us`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// Writes a duration, rounded down.
///
/// # Errors
///
/// Those of the serializer.
pub fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(count(*duration))
}

/// Reads a duration.
///
/// # Errors
///
/// Those of the deserializer, for example if it finds no whole number.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_micros)
}

/// Rounds down to what is written.
#[must_use]
pub fn whole(duration: Duration) -> Duration {
    Duration::from_micros(count(duration))
}

fn count(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Durations that may be missing.
pub(crate) mod option {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        duration.map(super::count).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::deserialize(from)?.map(Duration::from_micros))
    }
}
