/// Replaces `${NAME}` and `${env:NAME}` by the value that `variable` returns for the name; `${NAME:-text}` falls back
/// to the text if it returns `None`. Replacements are not expanded again.
///
/// ```
/// use oa_mcp_data::fill_variables;
///
/// let variable = |name: &str| (name == "KEY").then(|| "sk-0".to_owned());
/// assert_eq!(fill_variables("Bearer ${KEY}", &variable), Ok("Bearer sk-0".to_owned()));
/// assert_eq!(fill_variables("${HOST:-localhost}", &variable), Ok("localhost".to_owned()));
/// ```
///
/// # Errors
///
/// A message with the name of a variable that is not set.
pub fn fill_variables(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        // Without an end, it is ordinary text.
        let Some((inside, after)) = after.split_once('}') else { break };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        let value = variable(name).or_else(|| default.map(str::to_owned));
        let value = value.ok_or_else(|| format!("the variable {name} is not set"))?;
        filled.push_str(before);
        filled.push_str(&value);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> String {
        let variable = |name: &str| (name == "KEY").then(|| "${KEY}-sk-canary".to_owned());
        fill_variables(text, &variable).unwrap_or_else(|error| error)
    }

    #[test]
    fn variables_are_not_expanded_again() {
        assert_eq!(check("Bearer ${KEY}"), "Bearer ${KEY}-sk-canary");
        assert_eq!(check("${env:KEY}/${KEY}"), "${KEY}-sk-canary/${KEY}-sk-canary");
        assert_eq!(check("${OTHER:-none}"), "none");
        assert_eq!(check("${OTHER}"), "the variable OTHER is not set");
        assert_eq!(check("$KEY ${KEY"), "$KEY ${KEY");
    }
}
