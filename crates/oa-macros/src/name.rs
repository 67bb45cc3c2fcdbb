/// The longest name that servers accept.
const LENGTH: usize = 64;

/// Checks a tool name against the strictest server's rules, which `oa_tools` checks again at run time.
///
/// # Errors
///
/// Lists the allowed characters and the length limit.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= LENGTH && name.chars().all(is_allowed) {
        return Ok(());
    }
    Err(format!(
        "a tool's name is 1 to {LENGTH} characters from a-z, A-Z, 0-9, _ and -, not `{name}`"
    ))
}
