use crate::error::Error;

/// The longest name that servers accept.
const LENGTH: usize = 64;

/// Checks a tool name against the strictest server's rules.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let message = if name.is_empty() {
        "the tool name is empty".to_owned()
    } else if !name.chars().all(is_allowed) {
        format!("the tool name {name:?} may contain only a-z, A-Z, 0-9, _ and -")
    } else if name.len() > LENGTH {
        format!("the tool name {name} is longer than {LENGTH} characters")
    } else {
        return Ok(());
    };
    Err(Error::config(message))
}
