use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The progress of a server that reads a prompt, before it answers (QUIRKS row 122).
///
/// The share of the whole prompt that is read is `processed / total`. The tokens that were in the cache took no time, so
/// the speed is `(processed - cached) / elapsed`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PromptProgress {
    /// The number of tokens in the prompt.
    pub total: u64,
    /// The tokens that were in the prompt cache.
    pub cached: u64,
    /// The tokens read so far, cached ones included.
    pub processed: u64,
    /// The time spent so far, by the server's clock. In JSON it is `elapsed_ms`, in whole milliseconds.
    #[serde(rename = "elapsed_ms", with = "millis")]
    pub elapsed: Duration,
}

impl PromptProgress {
    /// Creates a progress from token counts and a time.
    #[must_use]
    pub fn new(total: u64, cached: u64, processed: u64, elapsed: Duration) -> Self {
        Self { total, cached, processed, elapsed }
    }

    /// Reads the member `prompt_progress` of a chunk, as llama.cpp sends it; `None` if it is anything other than an object
    /// of numbers.
    #[must_use]
    pub fn from_wire(raw: &str) -> Option<Self> {
        // Many times the length of a server's.
        const LONGEST: usize = 1024;

        if raw.len() > LONGEST || !raw.starts_with('{') {
            return None;
        }
        let Ok(Value::Object(members)) = raw.parse() else { return None };
        let count = |name| match members.get(name) {
            Some(count) => count.as_u64().filter(|count| *count <= u32::MAX.into()),
            None => Some(0),
        };
        let milliseconds = members.get("time_ms").map_or(Some(0.0), Value::as_f64)?;
        let elapsed = Duration::try_from_secs_f64(milliseconds / 1000.0).ok()?;
        Some(Self::new(count("total")?, count("cache")?, count("processed")?, elapsed))
    }
}

mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}
