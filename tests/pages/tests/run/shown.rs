//! The lines that the manual shows, without those that it hides: a program is typed from them.

use crate::{files, read};

/// Imported for their methods, so that no line names them again.
const TRAITS: [&str; 2] = ["Service", "StreamExt"];

/// Returns the shown lines of each program of a page.
fn shown(page: &str) -> Vec<String> {
    let mut programs = Vec::new();
    let mut program: Option<String> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut program) {
            (Some(_), Some(_)) => programs.extend(program.take()),
            (Some(kind), None) => {
                let is_rust = kind.is_empty() || kind.starts_with("rust");
                // Others are read to their end, too, but have no imports.
                program = Some(if is_rust { "\n".to_owned() } else { String::new() });
            }
            (None, Some(text)) if !text.is_empty() && !line.starts_with("# ") && line != "#" => {
                text.push_str(line);
                text.push('\n');
            }
            _ => {}
        }
    }
    programs
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Returns the names that a program imports and then does not use.
fn unused_imports(program: &str) -> Vec<String> {
    let (mut imports, mut rest) = (String::new(), String::new());
    let mut is_import = false;
    for line in program.lines() {
        is_import |= line.starts_with("use ");
        let text = if is_import { &mut imports } else { &mut rest };
        text.push_str(line);
        text.push('\n');
        is_import &= !line.ends_with(';');
    }
    let names =
        imports.split([',', ';', '{', '}', '\n']).filter_map(|path| path.split("::").last());
    let names = names.map(|name| name.trim().trim_start_matches("use ")).filter(|name| {
        !name.is_empty() && *name != "self" && !TRAITS.contains(name) && !name.contains(' ')
    });
    names.filter(|name| !words(&rest).any(|word| word == *name)).map(str::to_owned).collect()
}

#[test]
fn shown_lines_use_what_they_import() {
    let guide = "crates/open-agent/src/guide";
    let mut count = 0;
    for file in files(guide, ".md") {
        for program in shown(&read(&format!("{guide}/{file}"))) {
            count += 1;
            assert_eq!(unused_imports(&program), [""; 0], "{file}:\n{program}");
        }
    }
    assert!(count > 60, "{count} programs");
}

/// Returns the crates of the first segments of a program's paths, out of those that the manual's programs may use.
fn crates_in(program: &str) -> Vec<String> {
    let manifest = read("crates/open-agent/Cargo.toml");
    let names = manifest.lines().filter_map(|line| {
        let is_own = line.starts_with("oa-") && !line.starts_with("oa-testkit");
        // `getting_started` has it, for all pages.
        let is_known = is_own || line.starts_with("tokio") || line.starts_with('#');
        let name =
            line.split(['.', ' ']).next().filter(|_| !is_known && line.contains("workspace"))?;
        Some(name.to_owned())
    });
    let code: Vec<&str> =
        program.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let is_used = |name: &String| {
        let path = format!("{}::", name.replace('-', "_"));
        code.match_indices(&path).any(|(at, _)| !code[..at].ends_with(is_word))
    };
    names.filter(is_used).collect()
}

/// A page lists the dependencies that its programs have beyond those of `getting_started`.
#[test]
fn programs_have_their_dependency_lines() {
    let guide = "crates/open-agent/src/guide";
    let mut count = 0;
    for file in files(guide, ".md") {
        let page = read(&format!("{guide}/{file}"));
        for program in shown(&page) {
            for name in crates_in(&program) {
                count += 1;
                let is_there =
                    ["\n", "`"].iter().any(|mark| page.contains(&format!("{mark}{name} = ")));
                assert!(is_there, "{file}: {name}");
            }
        }
    }
    assert!(count > 10, "{count} dependencies");
}

#[test]
fn unused_imports_are_found() {
    let page = "```\nuse a::{B, C,\n    d};\nuse e::F;\n# use g::H;\n# B;\nC; F;\n```\n";
    assert_eq!(
        shown(page).iter().map(|text| unused_imports(text)).collect::<Vec<_>>(),
        [["B", "d"]]
    );
}
