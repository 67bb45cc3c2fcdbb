use std::time::Duration;

/// How long to wait: whole seconds, a `Duration`, or `None` for ever.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wait(Option<Duration>);

impl Wait {
    /// Returns how long; `None` is for ever.
    #[must_use]
    pub fn duration(self) -> Option<Duration> {
        self.0
    }

    /// Whether it is no wait at all: what would never let anything happen.
    pub(crate) fn is_zero(self) -> bool {
        self.0 == Some(Duration::ZERO)
    }

    pub(crate) fn or(wait: Option<Self>, default: Option<Duration>) -> Option<Duration> {
        wait.map_or(default, |Self(wait)| wait)
    }
}

impl From<Duration> for Wait {
    fn from(wait: Duration) -> Self {
        Self(Some(wait))
    }
}

impl From<Option<Duration>> for Wait {
    fn from(wait: Option<Duration>) -> Self {
        Self(wait)
    }
}

impl From<u64> for Wait {
    fn from(seconds: u64) -> Self {
        Self(Some(Duration::from_secs(seconds)))
    }
}

impl From<i32> for Wait {
    /// What an integer literal is; less than nothing is nothing.
    fn from(seconds: i32) -> Self {
        Self::from(u64::try_from(seconds).unwrap_or(0))
    }
}
