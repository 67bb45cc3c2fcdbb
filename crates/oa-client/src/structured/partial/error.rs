use std::fmt;

/// What was wrong with JSON text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PartialJsonError {
    pub(super) path: String,
    pub(super) what: String,
}

impl PartialJsonError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { path: String::new(), what: what.into() }
    }

    /// Returns where: `city`, `stops[2].name`; empty for the text as a whole.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for PartialJsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.path {
            "" => f.write_str(&self.what),
            path => write!(f, "`{path}`: {}", self.what),
        }
    }
}

impl std::error::Error for PartialJsonError {}
