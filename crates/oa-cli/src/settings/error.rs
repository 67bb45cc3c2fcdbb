use std::fmt;

/// An error in the settings. It names the location, and contains no secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SettingsError(String);

impl SettingsError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}
