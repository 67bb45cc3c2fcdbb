//! Suggestions for mistyped names.

use std::cmp::Reverse;

/// The minimum similarity of a suggestion.
const ALIKE: f64 = 0.6;

/// Returns the name most similar to a mistyped one, if any is similar enough.
pub(crate) fn closest<'a>(
    mistyped: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let rated = names.into_iter().filter_map(|name| {
        let likeness = strsim::normalized_damerau_levenshtein(name, mistyped);
        (likeness >= ALIKE).then_some((likeness, name))
    });
    // Of two equally similar names, prefer the one of the same length: letters are swapped more often than left out.
    let key = |name: &str| Reverse(name.len().abs_diff(mistyped.len()));
    rated.max_by(|a, b| a.0.total_cmp(&b.0).then(key(a.1).cmp(&key(b.1)))).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn only_similar_names_are_suggested() {
        let names = ["mode", "model", "max_tokens", "max_rounds"];
        assert_eq!(closest("modle", names), Some("model"));
        assert_eq!(closest("mod", names), Some("mode"));
        assert_eq!(closest("max_token", names), Some("max_tokens"));
        assert_eq!(closest("xyzzy", names), None);
        assert_eq!(closest("", names), None);
    }
}
