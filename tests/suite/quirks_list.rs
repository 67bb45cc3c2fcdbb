//! The manual's list of server quirks compared with its citations.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const LIST: &str = include_str!("../../crates/open-agent/src/guide/quirks.md");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the number of a row, if the line is one.
fn number(line: &str) -> Option<u32> {
    line.strip_prefix("| ")?.split(' ').next()?.parse().ok()
}

/// The numbers of the rows, in order.
fn listed() -> Vec<u32> {
    LIST.lines().filter_map(number).collect()
}

/// The numbers cited in a text as `row 12`, `rows 3 and 4`, `rows 3, 4` or `rows 16 to 23`, also across lines
/// of a comment.
fn cited(text: &str) -> BTreeSet<u32> {
    let words = text.split_whitespace().filter(|word| !["//", "///", "//!", "#"].contains(word));
    let (mut numbers, mut rows, mut span) = (BTreeSet::new(), false, None);
    for word in words {
        let bare = word.trim_start_matches(|c: char| !c.is_alphanumeric());
        if ["row", "rows"].contains(&&*bare.to_lowercase()) {
            (rows, span) = (true, None);
            continue;
        }
        let digits = bare.len() - bare.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match (rows, bare[..digits].parse::<u32>(), &bare[digits..]) {
            (true, Ok(number), end) if !end.starts_with(char::is_alphanumeric) => {
                numbers.extend(span.take().unwrap_or(number)..=number);
                rows = matches!(end, "" | ",");
            }
            (true, Err(_), "and" | "or") => {}
            (true, Err(_), "to") => span = numbers.last().copied(),
            _ => rows = false,
        }
    }
    numbers
}

/// All texts of the repository that may cite a row, with their paths.
fn texts(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry of it").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // Except build output and fuzzing results.
        if name.starts_with('.') || ["target", "corpus"].contains(&name) {
            continue;
        }
        let kind = path.extension().and_then(|kind| kind.to_str());
        if path.is_dir() {
            texts(&path, found);
        } else if matches!(kind, Some("rs" | "md" | "toml" | "json" | "py")) {
            let text = fs::read_to_string(&path).expect("UTF-8");
            found.insert(path, text);
        }
    }
}

#[test]
fn row_numbers_are_unique_and_sorted() {
    for table in LIST.split("\n## ") {
        let numbers: Vec<u32> = table.lines().filter_map(number).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
    }
    // A later row is in the table that it belongs to.
    let mut listed = listed();
    assert!(listed.len() > 100, "{} rows", listed.len());
    listed.sort_unstable();
    // Gaps are allowed, because a number is never reused.
    assert!(listed.windows(2).all(|pair| pair[0] < pair[1]), "{listed:?}");
}

#[test]
fn cited_rows_exist() {
    let listed: BTreeSet<u32> = listed().into_iter().collect();
    let mut found = BTreeMap::new();
    for folder in ["crates", "examples", "tests", "xtask"] {
        texts(&root().join(folder), &mut found);
    }
    for file in ["ARCHITECTURE.md", "CHANGELOG.md", "README.md"] {
        found.insert(file.into(), fs::read_to_string(root().join(file)).unwrap());
    }
    let mut all = BTreeSet::new();
    for (path, text) in found {
        let cited = cited(&text);
        let strange: Vec<_> = cited.difference(&listed).collect();
        assert!(strange.is_empty(), "{} cites {strange:?}", path.display());
        all.extend(cited);
    }
    assert!(all.len() > 80, "only {} rows are cited: the search misses some", all.len());
}

#[test]
fn named_fixtures_exist() {
    let names = LIST.split(['`', ' ']);
    let names = names.filter(|name| name.starts_with("own/") || name.starts_with("made/"));
    let fixtures = root().join("tests/fixtures");
    let mut count = 0;
    for name in names {
        assert!(fixtures.join(name).is_file(), "{name}");
        count += 1;
    }
    assert!(count > 50, "{count}");
}

#[test]
fn every_form_of_citation_is_found() {
    let numbers = |text: &str| cited(text).into_iter().collect::<Vec<_>>();
    assert_eq!(numbers("(QUIRKS row 7), Row 9: why. Two rows of 5."), [7, 9]);
    assert_eq!(numbers("/// as is (QUIRKS\n/// row 101); rows\n    /// 3 and 4."), [3, 4, 101]);
    assert_eq!(numbers("\"(rows 54, 60).\" then 8"), [54, 60]);
    assert_eq!(numbers("rows 16 to 19 (30)"), [16, 17, 18, 19, 30]);
}
