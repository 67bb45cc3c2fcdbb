use std::borrow::Cow;

/// The longest tool name, in characters.
const LONGEST: usize = 64;

/// Returns a name that servers accept: letters, digits, `_` and `-`, at most 64. Registered tools have such
/// names, but a model may make up any name, and a strict server would then reject the whole conversation.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.len() <= LONGEST && !name.is_empty() && name.chars().all(is_allowed) {
        return name.into();
    }
    let written = name.chars().take(LONGEST).map(|c| if is_allowed(c) { c } else { '_' });
    let written: String = written.collect();
    if written.is_empty() { "_".into() } else { written.into() }
}

/// Returns a name of a model's up to the first control token in it, such as gpt-oss writes (QUIRKS row 110).
#[must_use]
pub fn bare_name(name: &str) -> &str {
    control_token(name).map_or(name, |end| name[..end].trim_end())
}

/// Returns the position of the first control token in a name. Hardly any name needs the costly search for a string.
#[must_use]
pub fn control_token(name: &str) -> Option<usize> {
    let start = name.find('<')?;
    name[start..].find("<|").map(|place| start + place)
}

#[cfg(test)]
mod tests {
    use super::tool_name;

    #[test]
    fn only_invalid_names_are_rewritten() {
        for name in ["get_weather", "a", "A-1", &"x".repeat(64)] {
            assert_eq!(tool_name(name), name);
        }
        assert_eq!(tool_name("functions.read file"), "functions_read_file");
        assert_eq!(tool_name("天気"), "__");
        assert_eq!(tool_name(""), "_");
        assert_eq!(tool_name(&"é".repeat(100)), "_".repeat(64));
    }
}
