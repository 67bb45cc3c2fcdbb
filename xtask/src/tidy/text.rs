//! Rules about names and lines.

use super::Finding;
use super::tree::{File, Tree};
use crate::Result;

const LONGEST: usize = 600;

/// File names without meaning, which attract unrelated code.
const NAMELESS: [&str; 4] = ["common", "helpers", "misc", "utils"];

/// Markers of unfinished work.
const UNFINISHED: [&str; 3] = ["#[ignore", "todo!(", "unimplemented!("];

const PROVIDERS: [&str; 3] = ["lmstudio", "ollama", "vllm"];

/// The one module that knows servers by name, and the one that reads the environment.
const PROVIDER_FILES: [&str; 4] = [
    "crates/oa-chat/src/provider.rs",
    "crates/oa-cli/src/advice.rs",
    "crates/oa-doctor/src/advice.rs",
    "crates/oa-doctor/src/signs.rs",
];
const ENVIRONMENT_FILES: [&str; 4] = [
    "crates/oa-chat/src/env.rs",
    "crates/oa-chat/src/provider.rs",
    // What a child process gets of it.
    "crates/oa-cli/src/environment.rs",
    "crates/oa-mcp/src/child.rs",
];

/// Root folders of a particular machine.
const MACHINE_FOLDERS: [&str; 3] = ["home", "root", "work"];

pub(super) fn file_names(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let nameless = |file: &&File| {
        let stems = file.path.split('/').map(|part| part.split('.').next().unwrap_or(part));
        stems.into_iter().any(|stem| NAMELESS.contains(&stem))
    };
    let files = tree.files.iter().filter(nameless);
    Ok(files.map(|file| Finding::file(&file.path, "needs a noun as its name")).collect())
}

pub(super) fn file_length(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let long = tree.rust().filter_map(|(file, _)| {
        let lines = file.text.lines().count();
        let message = || format!("has {lines} lines, the limit is {LONGEST}: split by noun");
        (lines > LONGEST).then(|| Finding::file(&file.path, message()))
    });
    Ok(long.collect())
}

pub(super) fn unfinished(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        for mark in UNFINISHED {
            let lines = lines_with(&source.bare, |line| line.contains(mark));
            findings.extend(lines.map(|line| Finding::line(&file.path, line, format!("`{mark}`"))));
        }
    }
    Ok(findings)
}

/// A server's oddity is a named tolerance, never an `if` about the server.
pub(super) fn provider_names(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        let allowed = PROVIDER_FILES.contains(&file.path.as_str())
            || !file.path.starts_with("crates/")
            || file.path.starts_with("crates/oa-testkit/")
            || file.is_test();
        if allowed {
            continue;
        }
        let code = source.code_before_tests().to_lowercase();
        for name in PROVIDERS {
            let message = format!("`{name}` belongs in {}", PROVIDER_FILES[0]);
            let lines = lines_with(&code, |line| line.contains(name));
            findings.extend(lines.map(|line| Finding::line(&file.path, line, &message)));
        }
    }
    Ok(findings)
}

pub(super) fn environment(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        let allowed = ENVIRONMENT_FILES.contains(&file.path.as_str())
            || file.path.starts_with("xtask/")
            || file.is_test();
        if !allowed {
            let message = format!("only {} reads the environment", ENVIRONMENT_FILES.join(" or "));
            let lines = lines_with(&source.bare, |line| line.contains("env::var"));
            findings.extend(lines.map(|line| Finding::line(&file.path, line, &message)));
        }
    }
    Ok(findings)
}

/// No file may depend on a particular machine or mention one.
pub(super) fn machine_paths(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let lines = lines_with(&file.text, has_machine_path);
        findings.extend(lines.map(|line| Finding::line(&file.path, line, "a path of one machine")));
    }
    Ok(findings)
}

fn has_machine_path(line: &str) -> bool {
    MACHINE_FOLDERS.iter().any(|folder| {
        let path = format!("/{folder}/");
        // `examples/work/` and `$X/work/` go on from somewhere else.
        let goes_on = |c: char| c.is_alphanumeric() || ")]}>*._-~".contains(c);
        line.match_indices(&path)
            .any(|(at, _)| !line[..at].chars().next_back().is_some_and(goes_on))
    })
}

/// Numbers, from 1, of the lines of which `is` holds.
fn lines_with(text: &str, is: impl Fn(&str) -> bool) -> impl Iterator<Item = usize> {
    text.lines().enumerate().filter(move |(_, line)| is(line)).map(|(number, _)| number + 1)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::workspace::Workspace;

    #[track_caller]
    fn check(rule: fn(&Tree<'_>) -> Result<Vec<Finding>>, path: &str, text: &str, lines: &[usize]) {
        let workspace =
            Workspace { root: PathBuf::new(), target: PathBuf::new(), packages: Vec::new() };
        let tree = Tree { workspace: &workspace, files: vec![File::new(path, text)] };
        let found: Vec<usize> = rule(&tree).unwrap().iter().map(|finding| finding.line).collect();
        assert_eq!(found, lines, "{path}");
    }

    #[test]
    fn files_with_names_without_meaning_are_found() {
        check(file_names, "crates/a/src/utils.rs", "", &[0]);
        check(file_names, "tests/common/mod.rs", "", &[0]);
        check(file_names, "crates/a/src/commons.rs", "", &[]);
    }

    #[test]
    fn files_longer_than_600_lines_are_found() {
        check(file_length, "a.rs", &"\n".repeat(600), &[]);
        check(file_length, "a.rs", &"\n".repeat(601), &[0]);
        check(file_length, "a.md", &"\n".repeat(601), &[]);
    }

    #[test]
    fn unfinished_work_is_found_only_in_code() {
        let text = "todo!();\n// todo!()\n\"todo!()\"\n#[ignore = \"why\"]\nunimplemented!()";
        check(unfinished, "a.rs", text, &[4, 1, 5]);
    }

    #[test]
    fn providers_are_named_in_one_file() {
        let text = "/// For Ollama.\nfn a() { b(Provider::Ollama, \"http://vllm\") }\n";
        check(provider_names, "crates/oa-client/src/options.rs", text, &[2, 2]);
        check(provider_names, "crates/oa-chat/src/provider.rs", text, &[]);
        check(provider_names, "crates/oa-doctor/src/advice.rs", text, &[]);
        check(provider_names, "crates/oa-doctor/src/more_advice.rs", text, &[2, 2]);
        check(provider_names, "crates/oa-client/tests/a.rs", text, &[]);
        check(provider_names, "examples/query.rs", text, &[]);
        let text = "#[cfg(test)]\nmod tests {\n    f(\"ollama\");\n}\n";
        check(provider_names, "crates/oa-client/src/options.rs", text, &[]);
    }

    #[test]
    fn the_environment_is_read_in_one_place() {
        let text = "// std::env::var\nstd::env::var(a);\nenv::var_os(b);\nenv!(\"C\");\n";
        check(environment, "crates/oa-types/src/name.rs", text, &[2, 3]);
        check(environment, "crates/oa-chat/src/provider.rs", text, &[]);
        check(environment, "crates/oa-sse/benches/parse.rs", text, &[]);
    }

    #[test]
    fn paths_of_a_machine_are_told_from_others() {
        let path = |before: &str, folder: &str| has_machine_path(&format!("{before}/{folder}/a"));
        for before in ["", "see ", "\"", "(", "=", "file://"] {
            assert!(path(before, "home"), "{before}");
        }
        for before in ["examples", "$X", "..", "{a}"] {
            assert!(!path(before, "work"), "{before}");
        }
        assert!(!path("", "workspace"));
    }
}
