//! Environment variables; only this module reads them.

/// Returns a variable, if it is set and valid Unicode.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns true if the user wants no colors: <https://no-color.org>.
pub(crate) fn wants_no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
