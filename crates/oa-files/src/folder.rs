//! Tools that read files in a folder, and nothing outside it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oa_tools::{FnTool, ToolError, tool};
use oa_types::Error;
use serde_json::{Value, json};

/// The maximum number of names in a list, of lines found, and of files and folders searched.
const MOST_NAMES: usize = 500;
const MOST_LINES: usize = 100;
const MOST_FILES: usize = 20_000;
/// The maximum length of the texts in a result, in characters of JSON. By default, an executor truncates results to
/// 10,000 characters, and would remove what says how to continue.
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
            if root.is_dir() { Ok(root) } else { Err(io::ErrorKind::NotADirectory.into()) }
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
        .param("first_byte", "integer")
        .describe("first_byte", "The next_byte of a result that ended within a line")
        .optional("first_byte")
        .category("read")
        .build_blocking(move |args| {
            let line = args["first_line"].as_u64().unwrap_or(1);
            let byte = args["first_byte"].as_u64().unwrap_or_default();
            read.read(&text(&args, "path"), line, byte)
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
        let failed = |error: io::Error| ToolError::new(format!("{path}: {error}"));
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

    /// Reads lines from a line on, or the rest of that line from a byte on.
    fn read(&self, path: &str, line: u64, byte: u64) -> Result<Value, ToolError> {
        let failed = |error: io::Error| ToolError::new(format!("{path}: {error}"));
        let resolved = self.resolve(path)?;
        if !fs::metadata(&resolved).map_err(failed)?.is_file() {
            return Err(ToolError::new(format!("{path} is not a regular file")));
        }
        let line = line.max(1);
        let mut reader = BufReader::new(File::open(&resolved).map_err(failed)?);
        for _ in 1..line {
            if reader.skip_until(b'\n').map_err(failed)? == 0 {
                return Err(ToolError::new(format!("{path} has fewer than {line} lines")));
            }
        }
        if !skip_in_line(&mut reader, byte).map_err(failed)? {
            return Err(ToolError::new(format!("line {line} of {path} ends before byte {byte}")));
        }
        let mut bytes = Vec::new();
        // A character has at most four bytes, and the last one may be cut.
        let longest = 4 * LONGEST_RESULT as u64 + 4;
        reader.by_ref().take(longest).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.contains(&0) {
            return Err(ToolError::new(format!("{path} is not a text file")));
        }
        let fitting = Room::default().bytes_of(&bytes);
        let has_more = fitting < bytes.len() || !reader.fill_buf().map_err(failed)?.is_empty();
        bytes.truncate(fitting);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if !has_more {
            return Ok(json!({ "text": text(&bytes) }));
        }
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            let next = byte + fitting as u64;
            return Ok(json!({ "text": text(&bytes), "next_line": line, "next_byte": next }));
        };
        // The next line is cut somewhere: it is left to the next call.
        bytes.truncate(end + 1);
        let next = line + bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        Ok(json!({ "text": text(&bytes), "next_line": next }))
    }

    fn find(&self, wanted: &str, path: &str) -> Result<Value, ToolError> {
        if wanted.is_empty() {
            return Err(ToolError::new("text must not be empty"));
        }
        let mut to_visit = vec![self.resolve(path)?];
        let (mut found, mut looked_into) = (Found::default(), 0);
        while !found.has_more
            && let Some(at) = to_visit.pop()
        {
            looked_into += 1;
            if looked_into > MOST_FILES {
                found.has_more = true;
                break;
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
        self.take(item.to_string().chars().count() + ",".len())
    }

    /// Returns how much of a file fits as text, in bytes.
    fn bytes_of(mut self, bytes: &[u8]) -> usize {
        let mut fitting = 0;
        for chunk in bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                if !self.takes_char(c) {
                    return fitting;
                }
                fitting += c.len_utf8();
            }
            if !chunk.invalid().is_empty() {
                if !self.takes_char(char::REPLACEMENT_CHARACTER) {
                    return fitting;
                }
                fitting += chunk.invalid().len();
            }
        }
        fitting
    }

    fn takes_char(&mut self, c: char) -> bool {
        self.take(match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => r"\u0000".len(),
            _ => 1,
        })
    }

    fn take(&mut self, length: usize) -> bool {
        let rest = self.0.checked_sub(length);
        self.0 = rest.unwrap_or_default();
        rest.is_some()
    }
}

/// Skips bytes of a line; returns false if it has fewer.
fn skip_in_line(reader: &mut impl BufRead, mut bytes: u64) -> io::Result<bool> {
    while bytes > 0 {
        let buffer = reader.fill_buf()?;
        let length = buffer.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
        if length == 0 || buffer[..length].contains(&b'\n') {
            return Ok(false);
        }
        reader.consume(length);
        bytes -= length as u64;
    }
    Ok(true)
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
        assert_eq!(folder.read("a.txt", 2, 0).unwrap(), json!({"text": "two\nthree\n"}));
        let found = folder.find("two", ".").unwrap();
        assert_eq!(
            found["lines"],
            json!([{"file": "a.txt", "line": 2, "text": "two"}, {"file": "sub/b.txt", "line": 1, "text": "two too"}])
        );
        assert!(folder.read("data.bin", 1, 0).unwrap_err().message().contains("not a text file"));
        assert!(folder.read("a.txt", 9, 0).unwrap_err().message().contains("fewer than 9 lines"));
        assert!(folder.read("sub", 1, 0).unwrap_err().message().contains("not a regular file"));
    }

    #[test]
    fn paths_outside_are_rejected() {
        let (outer, folder) = folder();
        let secret = outer.path().join("secret.txt");
        for path in
            ["../secret.txt", "sub/../../secret.txt", "../nothing", &secret.to_string_lossy()]
        {
            assert!(folder.read(path, 1, 0).unwrap_err().message().contains("outside"), "{path}");
        }
        assert!(folder.list("..").unwrap_err().message().contains("outside"));
        assert!(folder.find("secret", "..").unwrap_err().message().contains("outside"));
    }

    #[cfg(unix)]
    #[test]
    fn links_do_not_lead_outside() {
        let (outer, folder) = folder();
        std::os::unix::fs::symlink(outer.path(), folder.0.join("link")).unwrap();
        assert!(folder.read("link/secret.txt", 1, 0).unwrap_err().message().contains("outside"));
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
            let error = folder.read(path, 1, 0).unwrap_err();
            assert_eq!(error.message(), format!("{path} is outside of the folder"));
        }
        for path in ["nothing", "a..b", "sub/nothing", "sub/../nothing", "a.txt/below"] {
            assert!(!folder.read(path, 1, 0).unwrap_err().message().contains("outside"), "{path}");
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
            let read = folder.read("long.txt", 1, 0).unwrap();
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

    /// Reads `long.txt` to its end, as the results say.
    fn read_all(folder: &Folder) -> Vec<String> {
        let (mut pieces, mut at) = (Vec::new(), (Some(1), 0));
        while let (Some(line), byte) = at {
            let piece = folder.read("long.txt", line, byte).unwrap();
            assert!(piece.to_string().chars().count() < EXECUTOR, "line {line}, byte {byte}");
            pieces.push(piece["text"].as_str().unwrap().to_owned());
            at = (piece["next_line"].as_u64(), piece["next_byte"].as_u64().unwrap_or_default());
        }
        pieces
    }

    #[test]
    fn long_lines_are_read_in_pieces() {
        let (_outer, folder) = folder();
        let long = "\"wörld\" 🌧\\ ".repeat(5_000);
        for text in [long.clone(), format!("one\n{long}\ntwo\n"), format!("{long}\n\n{long}")] {
            fs::write(folder.0.join("long.txt"), &text).unwrap();
            let read = read_all(&folder);
            assert!(read.len() >= 8 && read.concat() == text);
        }
        // Latin-1, in which no character is lost either.
        fs::write(folder.0.join("long.txt"), b"gr\xfc\xdfe\x80".repeat(5_000)).unwrap();
        assert_eq!(read_all(&folder).concat(), "gr\u{fffd}\u{fffd}e\u{fffd}".repeat(5_000));
        let error = folder.read("a.txt", 2, 4).unwrap_err();
        assert_eq!(error.message(), "line 2 of a.txt ends before byte 4");
    }

    #[test]
    fn long_files_are_read_in_whole_lines() {
        let (_outer, folder) = folder();
        let text: String = (1..=20_000).map(|n| format!("line {n}\n")).collect();
        fs::write(folder.0.join("long.txt"), &text).unwrap();
        let read = read_all(&folder);
        assert_eq!(read.concat(), text);
        assert!(read.iter().all(|piece| piece.ends_with('\n')));
    }
}
