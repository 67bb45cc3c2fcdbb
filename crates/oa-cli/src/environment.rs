//! Environment variables; only this module reads them.

use std::path::PathBuf;

/// Returns a variable, if it is set and valid Unicode.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns true if a variable is set and is not valid Unicode.
pub(crate) fn is_unreadable(name: &str) -> bool {
    matches!(std::env::var(name), Err(std::env::VarError::NotUnicode(_)))
}

/// Returns the path in a variable, unless it is blank.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os(name)?;
    (!path.to_string_lossy().trim().is_empty()).then(|| path.into())
}

/// Returns true if the user wants no colors (<https://no-color.org>), or the terminal can show none.
pub(crate) fn wants_no_color() -> bool {
    let is_set = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    is_set || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
