//! The environment of the program: the only place that reads it.

/// Returns a variable, if it is set and is text.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns true if the person wants no colors anywhere: <https://no-color.org>.
pub(crate) fn wants_no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
