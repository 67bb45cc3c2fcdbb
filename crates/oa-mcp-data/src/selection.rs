/// The tools of a server that are offered, and their names after the prefix.
///
/// Patterns are names on the server; a `*` at the end matches any suffix.
///
/// ```
/// let mut selection = oa_mcp_data::ToolSelection::default();
/// selection.allow_only(["read_*", "list"]);
/// selection.disallow(["read_secret"]);
/// assert!(selection.offers("read_file"));
/// assert!(!selection.offers("read_secret") && !selection.offers("write_file"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolSelection {
    allowed: Option<Vec<String>>,
    disallowed: Vec<String>,
    /// New names, by the names on the server.
    renamed: Vec<(String, String)>,
}

impl ToolSelection {
    /// Offers only tools that match one of these patterns, or one of those of an earlier call.
    pub fn allow_only(&mut self, patterns: impl IntoIterator<Item = impl Into<String>>) {
        self.allowed.get_or_insert_default().extend(patterns.into_iter().map(Into::into));
    }

    /// Leaves out tools that match one of these patterns, even if they are allowed.
    pub fn disallow(&mut self, patterns: impl IntoIterator<Item = impl Into<String>>) {
        self.disallowed.extend(patterns.into_iter().map(Into::into));
    }

    /// Offers a tool under another name. The last name for a tool counts.
    pub fn rename(&mut self, tool: impl Into<String>, to: impl Into<String>) {
        self.renamed.push((tool.into(), to.into()));
    }

    /// Returns true if the tool with this name on the server is offered.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        let fits = |pattern: &String| fits(pattern, tool);
        self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(fits))
            && !self.disallowed.iter().any(fits)
    }

    /// Returns the name under which the tool is offered, without the prefix.
    #[must_use]
    pub fn renamed<'a>(&'a self, tool: &'a str) -> &'a str {
        let renamed = self.renamed.iter().rfind(|(from, _)| from == tool);
        renamed.map_or(tool, |(_, to)| to)
    }

    /// Returns the patterns that tools have yet to match. A misspelled one would offer a tool that should be left out,
    /// without any sign of it.
    #[must_use]
    pub fn unmatched(&self) -> UnmatchedPatterns<'_> {
        let allowed = self.allowed.iter().flatten().map(|pattern| ("allow_only", pattern));
        let disallowed = self.disallowed.iter().map(|pattern| ("disallow", pattern));
        let renamed = self.renamed.iter().map(|(from, _)| ("rename", from));
        UnmatchedPatterns(allowed.chain(disallowed).chain(renamed).collect())
    }
}

/// The patterns of a [`ToolSelection`] that no tool has matched so far, with the options that set them.
#[derive(Clone, Debug)]
pub struct UnmatchedPatterns<'a>(Vec<(&'static str, &'a String)>);

impl UnmatchedPatterns<'_> {
    /// Removes the patterns that the tool with this name on the server matches.
    pub fn see(&mut self, tool: &str) {
        self.0.retain(|(option, pattern)| match *option {
            "rename" => *pattern != tool,
            _ => !fits(pattern, tool),
        });
    }

    /// Returns a warning for each pattern that is left.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.0
            .iter()
            .map(|(option, pattern)| format!("no tool matches {pattern:?}, which `{option}` names"))
    }
}

fn fits(pattern: &str, tool: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        None => pattern == tool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_new_name_counts() {
        let mut selection = ToolSelection::default();
        selection.rename("a", "b");
        selection.rename("a", "c");
        assert_eq!((selection.renamed("a"), selection.renamed("x")), ("c", "x"));
        assert!(selection.offers("a"));
    }

    #[test]
    fn patterns_without_a_tool_are_named() {
        let mut selection = ToolSelection::default();
        selection.allow_only(["read_*", "wirte_*"]);
        selection.disallow(["delte", "read_secret"]);
        selection.rename("lst", "list");
        let mut unmatched = selection.unmatched();
        for tool in ["read_secret", "write_file", "delete", "list"] {
            unmatched.see(tool);
        }
        let warnings: Vec<_> = unmatched.warnings().collect();
        assert_eq!(
            warnings,
            [
                r#"no tool matches "wirte_*", which `allow_only` names"#,
                r#"no tool matches "delte", which `disallow` names"#,
                r#"no tool matches "lst", which `rename` names"#,
            ]
        );
    }
}
