//! Paths as people type them and terminals paste them.

use std::fs;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use oa_files::{complete, paths};
use proptest::prelude::*;

/// Finds paths in a folder, and `~` in its folder `home`.
fn within(folder: &Path) -> impl Fn(&str) -> PathBuf {
    move |path| match path.strip_prefix("~/") {
        Some(rest) => folder.join("home").join(rest),
        None => folder.join(path),
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("home")).expect("a folder");
    folder
}

#[test]
fn lines_are_words_as_in_a_shell() {
    let folder = folder();
    let found = |line: &str| -> Vec<String> {
        let found = paths(line, within(folder.path())).unwrap();
        let inner = |path: PathBuf| match path.strip_prefix(folder.path()) {
            Ok(inner) => inner.to_string_lossy().replace(MAIN_SEPARATOR, "/"),
            Err(_) => path.to_string_lossy().into_owned(),
        };
        found.into_iter().map(inner).collect()
    };
    assert_eq!(found(" a.png \t b.png "), ["a.png", "b.png"]);
    assert_eq!(found("'a b.png' \"c d.png\""), ["a b.png", "c d.png"]);
    assert_eq!(found("'it''s'"), ["its"]);
    assert_eq!(found("~/a.png"), ["home/a.png"]);
    assert_eq!(found("at\u{202f}4.png"), ["at\u{202f}4.png"]);
    assert_eq!(found("https://example.org/a%20b.png").len(), 1);
    if cfg!(windows) {
        assert_eq!(found(r"C:\a\b.png"), [r"C:\a\b.png"]);
        assert_eq!(found(r#""C:\a b\c.png""#), [r"C:\a b\c.png"]);
    } else {
        assert_eq!(found(r"My\ Photo\ \(1\).png"), ["My Photo (1).png"]);
        assert_eq!(found(r"com\~apple/it\'s.png"), ["com~apple/it's.png"]);
        assert_eq!(found(r"'it'\''s.png'"), ["it's.png"]);
        assert_eq!(found(r#""a \"b\" \c""#), [r#"a "b" \c"#]);
        assert_eq!(found("file:///a%20b/%C3%A9.png"), ["/a b/é.png"]);
        assert_eq!(found("file://host/100%/%zz"), ["/100%/%zz"]);
    }
    assert_eq!(paths("", within(folder.path())).unwrap(), Vec::<PathBuf>::new());
}

#[test]
fn a_file_with_spaces_needs_no_quotes() {
    let folder = folder();
    for name in ["My Photo.png", "don't.png", "home/a b"] {
        fs::write(folder.path().join(name), "x").unwrap();
    }
    for (line, wanted) in
        [("My Photo.png ", "My Photo.png"), ("don't.png", "don't.png"), ("~/a b", "home/a b")]
    {
        assert_eq!(paths(line, within(folder.path())).unwrap(), [folder.path().join(wanted)]);
    }
    let told = paths("a 'b c", within(folder.path())).unwrap_err().to_string();
    assert_eq!(told, "a quote does not end: 'b c");
}

#[cfg(unix)]
#[test]
fn the_last_path_is_completed() {
    let folder = folder();
    fs::create_dir_all(folder.path().join("My Pictures")).unwrap();
    for name in ["My Pictures/it's.png", "My notes.txt", ".hidden", "other", "home/a"] {
        fs::write(folder.path().join(name), "x").unwrap();
    }
    let complete = |line: &str| complete(line, within(folder.path()));
    for (line, begin, names) in [
        ("", 0, vec![r"My\ Pictures/", r"My\ notes.txt", "home/", "other"]),
        ("other ", 6, vec![r"My\ Pictures/", r"My\ notes.txt", "home/", "other"]),
        ("other My", 6, vec![r"My\ Pictures/", r"My\ notes.txt"]),
        (r"My\ P", 0, vec![r"My\ Pictures/"]),
        ("'My P", 0, vec![r"My\ Pictures/"]),
        (r"My\ Pictures/", 0, vec![r"My\ Pictures/it\'s.png"]),
        ("~/", 0, vec!["~/a"]),
        (".h", 0, vec![".hidden"]),
        ("https://example.org/", 0, vec![]),
        ("nowhere/", 0, vec![]),
    ] {
        let names = names.into_iter().map(str::to_owned).collect();
        assert_eq!(complete(line), (begin, names), "{line}");
    }
}

proptest! {
    /// Each name that is offered leads to the file.
    #[cfg(unix)]
    #[test]
    fn what_is_offered_is_the_file(name in "[^/\0]{1,12}") {
        prop_assume!(!name.starts_with('.'));
        let folder = folder();
        fs::remove_dir(folder.path().join("home")).unwrap();
        fs::write(folder.path().join(&name), "x").unwrap();
        let (_, offered) = complete("", within(folder.path()));
        let found = paths(&offered[0], within(folder.path())).unwrap();
        prop_assert_eq!(found, [folder.path().join(&name)]);
    }

    #[test]
    fn no_line_panics(line in "[\\\\'\"%a/~é ]{0,20}|file://[%/a-f0-9é]{0,12}") {
        let folder = folder();
        let _ = paths(&line, within(folder.path()));
        let (begin, _) = complete(&line, within(folder.path()));
        prop_assert!(line.is_char_boundary(begin));
    }
}
