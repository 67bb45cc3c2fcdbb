//! Tools that read files in a folder, and nothing outside it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oa_tools::{FnTool, ToolError, tool};
use oa_types::Error;
use serde_json::{Value, json};

/// The maximum number of names in a list, of lines found, and of files and folders searched.
const MOST_NAMES: usize = 500;
const MOST_LINES: usize = 100;
const MOST_FILES: usize = 20_000;
/// The maximum length of the texts in a result, in characters of JSON. An executor cuts results after 10,000 characters
/// unless it is told otherwise, and would cut off how to go on.
const LONGEST_RESULT: usize = 9_000;
/// The maximum size of a searched file, in bytes: larger files are rarely text.
const LARGEST_SEARCHED: u64 = 4 * 1024 * 1024;
/// The maximum number of characters of a line that was found.
const LONGEST_LINE: usize = 300;

/// A folder, with all links in its path resolved.
#[derive(Debug)]
struct Folder(PathBuf);

/// Returns tools that list, read and search the files in some folders, and nothing outside them. Each folder has a set:
/// `read_file` for the first, `read_file_2` for the second.
///
/// # Errors
///
/// `InvalidInput` if a path is not a folder, or the folder cannot be read.
pub fn tools(folders: &[PathBuf]) -> Result<Vec<FnTool>, Error> {
    let mut roots: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let root = folder.canonicalize().and_then(|root| {
            if root.is_dir() { Ok(root) } else { Err(std::io::ErrorKind::NotADirectory.into()) }
        });
        let root =
            root.map_err(|error| Error::invalid_input(format!("{}: {error}", folder.display())))?;
        if !roots.contains(&root) {
            roots.push(root);
        }
    }
    let is_one = roots.len() == 1;
    let sets = roots.into_iter().enumerate().flat_map(|(place, root)| {
        let number = if place == 0 { String::new() } else { format!("_{}", place + 1) };
        let shown = dunce::simplified(&root).display();
        let about = if is_one { String::new() } else { format!(" Folder: {shown}") };
        tools_of(root, &number, &about)
    });
    Ok(sets.collect())
}

/// Returns the tools for a folder, with these ends of their names and descriptions.
fn tools_of(root: PathBuf, number: &str, about: &str) -> [FnTool; 3] {
    let folder = Arc::new(Folder(root));
    let named = |name: &str, does: &str| tool(format!("{name}{number}"), format!("{does}{about}"));
    let shared = || Arc::clone(&folder);
    let (list, read, find) = (shared(), shared(), shared());
    let text = |args: &Value, name: &str| args[name].as_str().unwrap_or_default().to_owned();
    [
        named("list_files", "List the names in a folder. Names of folders end in /.")
            .param("path", "string")
            .describe("path", "A path in the folder, such as src; . is the folder itself")
            .default("path", ".")
            .category("read")
            .build_blocking(move |args| list.list(&text(&args, "path"))),
        named(
            "read_file",
            "Read lines of a text file. The result has next_line if there are more.",
        )
        .param("path", "string")
        .param("first_line", "integer")
        .describe("first_line", "The first line to read, from 1")
        .default("first_line", 1)
        .category("read")
        .build_blocking(move |args| {
            let first = args["first_line"].as_u64().unwrap_or(1);
            read.read(&text(&args, "path"), first)
        }),
        named("find_in_files", "Find lines that contain a text, in all text files below a folder.")
            .param("text", "string")
            .param("path", "string")
            .default("path", ".")
            .category("read")
            .build_blocking(move |args| find.find(&text(&args, "text"), &text(&args, "path"))),
    ]
}

impl Folder {
    /// Resolves a path, and rejects it if the target is outside the folder.
    fn resolve(&self, path: &str) -> Result<PathBuf, ToolError> {
        let outside = || ToolError::new(format!("{path} is outside of the folder"));
        // An absolute path replaces the folder in `join`; the check below catches it, like `..` and links.
        let resolved = self.0.join(path).canonicalize();
        let resolved = resolved.map_err(|error| ToolError::new(format!("{path}: {error}")));
        match resolved {
            Ok(resolved) if resolved.starts_with(&self.0) => Ok(resolved),
            // Errors must not reveal whether a path outside exists.
            Ok(_) => Err(outside()),
            Err(_) if self.is_left_by(path) => Err(outside()),
            Err(error) => Err(error),
        }
    }

    /// Returns true if a path that cannot be resolved leaves the folder on its way, or may do so in a broken link.
    fn is_left_by(&self, path: &str) -> bool {
        let mut at = self.0.clone();
        for part in Path::new(path).components() {
            at.push(part);
            match at.canonicalize() {
                Ok(resolved) if resolved.starts_with(&self.0) => at = resolved,
                Ok(_) => return true,
                Err(_) if fs::symlink_metadata(&at).is_ok_and(|kind| kind.is_symlink()) => {
                    return true;
                }
                // On Windows, a later `..` takes a missing part back.
                Err(_) => {}
            }
        }
        false
    }

    fn list(&self, path: &str) -> Result<Value, ToolError> {
        let failed = |error: std::io::Error| ToolError::new(format!("{path}: {error}"));
        let mut names = Vec::new();
        for entry in fs::read_dir(self.resolve(path)?).map_err(failed)?.take(MOST_FILES) {
            let entry = entry.map_err(failed)?;
            let slash = if entry.file_type().map_err(failed)?.is_dir() { "/" } else { "" };
            names.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
        }
        names.sort();
        let mut room = Room::default();
        let fitting = names.iter().take(MOST_NAMES).take_while(|name| room.takes(&json!(name)));
        let count = fitting.count();
        let more = names.len() - count;
        names.truncate(count);
        Ok(if more == 0 {
            json!({ "names": names })
        } else {
            json!({ "names": names, "more": more })
        })
    }

    fn read(&self, path: &str, first: u64) -> Result<Value, ToolError> {
        let failed = |error: std::io::Error| ToolError::new(format!("{path}: {error}"));
        let resolved = self.resolve(path)?;
        if !fs::metadata(&resolved).map_err(failed)?.is_file() {
            return Err(ToolError::new(format!("{path} is not a regular file")));
        }
        let mut reader = BufReader::new(File::open(&resolved).map_err(failed)?);
        for _ in 1..first.max(1) {
            if reader.skip_until(b'\n').map_err(failed)? == 0 {
                return Err(ToolError::new(format!("{path} has fewer than {first} lines")));
            }
        }
        let mut bytes = Vec::new();
        // A character has at most four bytes.
        let longest = 4 * LONGEST_RESULT as u64;
        reader.by_ref().take(longest).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.contains(&0) {
            return Err(ToolError::new(format!("{path} is not a text file")));
        }
        let has_more = !reader.fill_buf().map_err(failed)?.is_empty();
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        let fitting = Room::default().length_of(&text);
        if !has_more && fitting == text.len() {
            return Ok(json!({ "text": text }));
        }
        text.truncate(fitting);
        let Some(end) = text.rfind('\n') else {
            // The rest of an overlong line is omitted.
            return Ok(json!({ "text": text, "is_cut": true, "next_line": first.max(1) + 1 }));
        };
        // The next line is cut somewhere, maybe within a character: it is left to the next call.
        text.truncate(end + 1);
        let next = first.max(1) + text.matches('\n').count() as u64;
        Ok(json!({ "text": text, "next_line": next }))
    }

    fn find(&self, wanted: &str, path: &str) -> Result<Value, ToolError> {
        if wanted.is_empty() {
            return Err(ToolError::new("text must not be empty"));
        }
        let mut to_visit = vec![self.resolve(path)?];
        let (mut found, mut looked_into) = (Found::default(), 0);
        while let Some(at) = to_visit.pop() {
            looked_into += 1;
            found.has_more |= looked_into > MOST_FILES;
            if found.has_more {
                return Ok(json!({ "lines": found.lines, "more": true }));
            }
            // Links are not followed: they may lead outside the folder, or form cycles.
            let Ok(kind) = fs::symlink_metadata(&at) else { continue };
            if kind.is_dir() {
                let Ok(entries) = fs::read_dir(&at) else { continue };
                let mut below: Vec<_> = entries
                    .take(MOST_FILES)
                    .flatten()
                    .filter(|entry| entry.file_name() != ".git")
                    .map(|entry| entry.path())
                    .collect();
                // In reverse order, because the next one is taken from the end.
                below.sort_by(|a, b| b.cmp(a));
                to_visit.extend(below);
            } else if kind.is_file() && kind.len() <= LARGEST_SEARCHED {
                self.find_in(&at, wanted, &mut found);
            }
        }
        Ok(if found.has_more {
            json!({ "lines": found.lines, "more": true })
        } else {
            json!({ "lines": found.lines })
        })
    }

    fn find_in(&self, file: &Path, wanted: &str, found: &mut Found) {
        let Ok(bytes) = fs::read(file) else { return };
        if bytes.contains(&0) {
            return;
        }
        // With slashes on every platform, as the model writes paths.
        let parts = file.strip_prefix(&self.0).unwrap_or(file).iter();
        let name = parts.map(OsStr::to_string_lossy).collect::<Vec<_>>().join("/");
        let text = String::from_utf8_lossy(&bytes);
        for (place, line) in text.lines().enumerate() {
            if line.contains(wanted) {
                let line = line.trim();
                let text = match line.char_indices().nth(LONGEST_LINE) {
                    Some((end, _)) => format!("{}…", &line[..end]),
                    None => line.to_owned(),
                };
                found.push(json!({ "file": name, "line": place + 1, "text": text }));
            }
            if found.has_more {
                return;
            }
        }
    }
}

/// Lines that were found.
#[derive(Default)]
struct Found {
    lines: Vec<Value>,
    room: Room,
    /// True if another line was found, or may be.
    has_more: bool,
}

impl Found {
    fn push(&mut self, line: Value) {
        if self.lines.len() < MOST_LINES && self.room.takes(&line) {
            self.lines.push(line);
        } else {
            self.has_more = true;
        }
    }
}

/// The room that is left in a result, in characters of JSON.
struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(LONGEST_RESULT)
    }
}

impl Room {
    /// Takes the room of an item in a list; returns false if there is not enough.
    fn takes(&mut self, item: &Value) -> bool {
        let length = item.to_string().chars().count() + ",".len();
        let rest = self.0.checked_sub(length);
        self.0 = rest.unwrap_or_default();
        rest.is_some()
    }

    /// Returns how much of a text fits, in bytes.
    fn length_of(mut self, text: &str) -> usize {
        let does_not_fit = |(_, c): &(usize, char)| {
            let length = match c {
                '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
                '\0'..='\u{1f}' => r"\u0000".len(),
                _ => 1,
            };
            let rest = self.0.checked_sub(length);
            self.0 = rest.unwrap_or_default();
            rest.is_none()
        };
        text.char_indices().find(does_not_fit).map_or(text.len(), |(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("inner");
        fs::create_dir_all(inner.join("sub")).unwrap();
        fs::write(outer.path().join("secret.txt"), "secret").unwrap();
        fs::write(inner.join("a.txt"), "one\ntwo\nthree\n").unwrap();
        fs::write(inner.join("sub/b.txt"), "two too").unwrap();
        fs::write(inner.join("data.bin"), [0, 1, 2]).unwrap();
        let folder = Folder(inner.canonicalize().unwrap());
        (outer, folder)
    }

    #[test]
    fn each_folder_has_its_tools() {
        let (outer, folder) = folder();
        let names = |folders: &[PathBuf]| -> Vec<String> {
            let tools = tools(folders).unwrap();
            tools.iter().map(|tool| oa_tools::Tool::name(tool).to_owned()).collect()
        };
        let one = ["list_files", "read_file", "find_in_files"];
        assert_eq!(names(&[folder.0.clone(), folder.0.join("sub/..")]), one);
        let both = names(&[folder.0.clone(), outer.path().to_owned()]);
        assert_eq!(both[..3], one);
        assert_eq!(both[3..], ["list_files_2", "read_file_2", "find_in_files_2"]);
        // The model must know which is which.
        for (tool, root) in tools(&[folder.0.clone(), folder.0.join("sub")]).unwrap().iter().zip([
            &folder.0,
            &folder.0,
            &folder.0,
            &folder.0.join("sub"),
        ]) {
            let about = oa_tools::Tool::description(tool);
            let root = root.to_string_lossy();
            // The prefix of resolved paths on Windows, which nobody writes.
            let root = root.strip_prefix(r"\\?\").unwrap_or(&root);
            assert!(about.ends_with(&format!("Folder: {root}")), "{about}");
        }
    }

    #[test]
    fn files_are_listed_read_and_searched() {
        let (_outer, folder) = folder();
        assert_eq!(folder.list(".").unwrap(), json!({"names": ["a.txt", "data.bin", "sub/"]}));
        assert_eq!(folder.read("a.txt", 2).unwrap(), json!({"text": "two\nthree\n"}));
        let found = folder.find("two", ".").unwrap();
        assert_eq!(
            found["lines"],
            json!([{"file": "a.txt", "line": 2, "text": "two"}, {"file": "sub/b.txt", "line": 1, "text": "two too"}])
        );
        assert!(folder.read("data.bin", 1).unwrap_err().message().contains("not a text file"));
        assert!(folder.read("a.txt", 9).unwrap_err().message().contains("fewer than 9 lines"));
        assert!(folder.read("sub", 1).unwrap_err().message().contains("not a regular file"));
    }

    #[test]
    fn paths_outside_are_rejected() {
        let (outer, folder) = folder();
        let secret = outer.path().join("secret.txt");
        for path in
            ["../secret.txt", "sub/../../secret.txt", "../nothing", &secret.to_string_lossy()]
        {
            assert!(folder.read(path, 1).unwrap_err().message().contains("outside"), "{path}");
        }
        assert!(folder.list("..").unwrap_err().message().contains("outside"));
        assert!(folder.find("secret", "..").unwrap_err().message().contains("outside"));
    }

    #[cfg(unix)]
    #[test]
    fn links_do_not_lead_outside() {
        let (outer, folder) = folder();
        std::os::unix::fs::symlink(outer.path(), folder.0.join("link")).unwrap();
        assert!(folder.read("link/secret.txt", 1).unwrap_err().message().contains("outside"));
        assert_eq!(folder.find("secret", ".").unwrap()["lines"], json!([]));
    }

    #[cfg(unix)]
    #[test]
    fn errors_do_not_reveal_paths_outside() {
        let (outer, folder) = folder();
        let link = |target: &Path, name: &str| {
            std::os::unix::fs::symlink(target, folder.0.join(name)).unwrap();
        };
        link(outer.path(), "link");
        link(&outer.path().join("nothing"), "broken");
        link(Path::new("sub/nowhere"), "inside");
        for path in [
            "link/secret.txt",
            "link/nothing",
            "link/nothing/below",
            "link/secret.txt/below",
            "sub/../link/nothing",
            "broken",
            "broken/below",
            "inside",
            "../secret.txt",
            "../nothing",
            "/nothing",
        ] {
            let error = folder.read(path, 1).unwrap_err();
            assert_eq!(error.message(), format!("{path} is outside of the folder"));
        }
        for path in ["nothing", "a..b", "sub/nothing", "sub/../nothing", "a.txt/below"] {
            assert!(!folder.read(path, 1).unwrap_err().message().contains("outside"), "{path}");
        }
    }

    #[test]
    fn more_is_reported_only_if_there_is_more() {
        let (_outer, folder) = folder();
        let check = |a: usize, b: usize| {
            fs::write(folder.0.join("a.txt"), "rain\n".repeat(a)).unwrap();
            fs::write(folder.0.join("b.txt"), "rain\n".repeat(b)).unwrap();
            let found = folder.find("rain", ".").unwrap();
            (found["lines"].as_array().map(Vec::len), found.get("more").is_some())
        };
        assert_eq!(check(150, 0), (Some(100), true));
        assert_eq!(check(100, 0), (Some(100), false));
        assert_eq!(check(100, 1), (Some(100), true));
        assert_eq!(check(99, 1), (Some(100), false));
    }

    /// The characters of a result that an executor keeps by default.
    const EXECUTOR: usize = 10_000;

    #[test]
    fn no_result_is_cut_by_an_executor() {
        let (_outer, folder) = folder();
        let lines = |line: &str| line.repeat(30_000 / line.len());
        for line in ["rain\n", "\"rain\"\t\\ \u{1b}[1m\n", "🌧 rain\n", "rain ", "\u{1}rain"] {
            fs::write(folder.0.join("long.txt"), lines(line)).unwrap();
            let read = folder.read("long.txt", 1).unwrap();
            assert!(read["next_line"].is_u64(), "{line:?}");
            let found = folder.find("rain", ".").unwrap();
            for (result, least) in [(read, 8_500), (found, 200)] {
                let size = result.to_string().chars().count();
                assert!((least..EXECUTOR).contains(&size), "{size} of {line:?}");
            }
        }
        let long = format!("{} rain\n", "\"x\" ".repeat(60));
        fs::write(folder.0.join("long.txt"), lines(&long)).unwrap();
        let found = folder.find("rain", ".").unwrap();
        assert_eq!(found["more"], true);
        assert!((8_500..EXECUTOR).contains(&found.to_string().chars().count()));

        for number in 0..300 {
            fs::write(folder.0.join(format!("sub/{}-{number:03}", "long name ".repeat(8))), "")
                .unwrap();
        }
        let list = folder.list("sub").unwrap();
        assert!((8_500..EXECUTOR).contains(&list.to_string().chars().count()));
        let count = list["names"].as_array().unwrap().len() as u64;
        assert_eq!(count + list["more"].as_u64().unwrap(), 301);
    }

    #[test]
    fn long_files_are_read_in_whole_lines() {
        let (_outer, folder) = folder();
        let text: String = (1..=20_000).map(|n| format!("line {n}\n")).collect();
        fs::write(folder.0.join("long.txt"), &text).unwrap();
        let (mut read, mut next) = (String::new(), Some(1));
        while let Some(first) = next {
            let piece = folder.read("long.txt", first).unwrap();
            assert!(piece.to_string().chars().count() < EXECUTOR, "line {first}");
            read.push_str(piece["text"].as_str().unwrap());
            next = piece["next_line"].as_u64();
        }
        assert_eq!(read, text);
    }
}
