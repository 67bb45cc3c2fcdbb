//! Rules about names of types: one concept has one word, and it is the field's.

use super::Finding;
use super::tree::Tree;
use crate::Result;
use crate::rust::lexer::{self, Kind, Token};

/// Names that no type has, each with what to call it instead.
const REPLACED: &[(&str, &str)] = &[
    ("Asked", "the outcome or the request, such as `AttemptOutcome` or `HostRequest`"),
    ("Asking", "the mechanism, such as `FormatFallback`"),
    ("Chart", "`ProbeContext`"),
    ("Crew", "`RunningTasks`"),
    ("Form", "the thing that has it, such as `ChunkShape` or `WireFormat`"),
    ("Forms", "`TemplateCache`"),
    ("Gauge", "`PromptCutDetector`"),
    ("Hole", "`Slot`"),
    ("Judge", "`Validator`"),
    ("Judged", "`Validation`"),
    ("Judges", "`CallGate`"),
    ("Mailbox", "`EventQueue`"),
    ("Manner", "`WireFormat`"),
    ("Patient", "`ProbeTarget`"),
    ("Seen", "the record it is, such as `Pattern`"),
    ("Spoken", "`TextDialect`"),
    ("Told", "`Matched`"),
    ("Wait", "`Timeout`"),
];

/// Types of the crates are named by the field's words.
pub(super) fn types(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (file, _) in tree.rust() {
        if !file.path.starts_with("crates/") || !file.path.contains("/src/") {
            continue;
        }
        let tokens: Vec<Token<'_>> = lexer::tokens(&file.text)
            .into_iter()
            .filter(|token| token.kind == Kind::Ident)
            .collect();
        for pair in tokens.windows(2) {
            let [keyword, name] = pair else { continue };
            if !["enum", "struct", "trait", "type", "union"].contains(&keyword.text) {
                continue;
            }
            if let Some((_, better)) = REPLACED.iter().find(|(old, _)| *old == name.text) {
                let message = format!("a type called `{}`: call it {better}", name.text);
                findings.push(Finding::line(&file.path, name.line, message));
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::tree::File;
    use super::*;
    use crate::workspace::Workspace;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let workspace =
            Workspace { root: PathBuf::new(), target: PathBuf::new(), packages: Vec::new() };
        let tree = Tree { workspace: &workspace, files: vec![File::new(path, text)] };
        types(&tree).unwrap_or_default().iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn types_with_replaced_names_are_found() {
        let text = "struct Crew;\npub(crate) enum Asked { A }\ntype Told = u8;\n";
        assert_eq!(lines("crates/a/src/b.rs", text), [1, 2, 3]);
    }

    #[test]
    fn other_names_and_other_places_are_not() {
        let text =
            "struct Crews;\nfn asked() -> Asked {}\n// struct Crew;\nlet a = \"struct Crew\";";
        assert!(lines("crates/a/src/b.rs", text).is_empty());
        assert!(lines("crates/a/tests/suite/b.rs", "struct Asked;").is_empty());
    }
}
