//! Changelogs: each changed crate must have an entry.

/// Returns the problem with a crate's changelog, if the crate has changed since its last release. `version` is the one
/// that would be published.
pub(crate) fn complaint(text: Option<&str>, version: &str) -> Option<String> {
    let Some(text) = text else { return Some("has no CHANGELOG.md".to_owned()) };
    let mut sections = text.split("\n## ").skip(1);
    let has_entry = sections.any(|section| {
        let (title, body) = section.split_once('\n').unwrap_or((section, ""));
        is_next(title, version) && body.lines().any(|line| line.starts_with("- "))
    });
    (!has_entry).then(|| {
        format!("has changed, and no entry in its CHANGELOG.md is under `## Unreleased` or `## {version}`")
    })
}

/// Returns true for the title of the unreleased section: `Unreleased`, or the version with or without a date.
fn is_next(title: &str, version: &str) -> bool {
    let word = title.split_whitespace().next().unwrap_or_default();
    word == "Unreleased" || word.trim_matches(['[', ']']) == version
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_stands_under_the_next_version() {
        for title in ["Unreleased", "0.2.0", "[0.2.0] - 2026-12-01", "0.2.0 (2026-12-01)"] {
            let text = format!(
                "# Changelog\n\n## {title}\n\n- **added**: `b`.\n\n## 0.1.0\n\n- **added**: `a`.\n"
            );
            assert_eq!(complaint(Some(&text), "0.2.0"), None, "{title}");
        }
        for text in [
            "# Changelog\n",
            "# Changelog\n\n## Unreleased\n",
            "# Changelog\n\n## Unreleased\n\nSoon.\n",
            "# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n- **added**: `a`.\n",
            "# Changelog\n\n## 0.1.0\n\n- **added**: `a`.\n",
            "# Changelog\n\n- **added**: `a`.\n",
        ] {
            let complaint = complaint(Some(text), "0.2.0").unwrap_or_default();
            assert!(complaint.ends_with("`## Unreleased` or `## 0.2.0`"), "{text}: {complaint}");
        }
        assert_eq!(complaint(None, "0.2.0").as_deref(), Some("has no CHANGELOG.md"));
    }
}
