use std::sync::atomic::{AtomicU8, Ordering};

use oa_tools::LogLevel;

use crate::client::LEVELS;

/// The lowest level of log notifications that a client wants.
///
/// ```
/// use oa_mcp_data::client::{Level, level_place};
/// use oa_tools::LogLevel;
/// use serde_json::json;
///
/// let level = Level::new(level_place(&json!("warning")));
/// assert_eq!(level.admit(LogLevel::Info), None);
/// assert_eq!(level.admit(LogLevel::Error), Some("error"));
/// ```
#[derive(Debug)]
pub struct Level(AtomicU8);

impl Level {
    /// Creates the level at a place in [`LEVELS`]; without one, the client wants no notifications.
    #[must_use]
    pub fn new(place: Option<u8>) -> Self {
        Self(AtomicU8::new(place.unwrap_or(u8::MAX)))
    }

    /// Changes the level.
    pub fn set(&self, place: u8) {
        self.0.store(place, Ordering::Relaxed);
    }

    /// Returns the protocol's name of a level, if the client wants its lines.
    #[must_use]
    pub fn admit(&self, level: LogLevel) -> Option<&'static str> {
        let place = match level {
            LogLevel::Debug => 0,
            LogLevel::Warn => 3,
            LogLevel::Error => 4,
            _ => 1,
        };
        (place >= self.0.load(Ordering::Relaxed)).then(|| LEVELS[usize::from(place)])
    }
}
