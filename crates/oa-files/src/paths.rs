//! Paths as people type them and terminals paste them.

use std::fs;
use std::path::{MAIN_SEPARATOR, MAIN_SEPARATOR_STR, PathBuf, is_separator};

use oa_types::{Error, percent_decoded};

use crate::attachment::is_address;

/// The most names that are offered.
const OFFERED: usize = 200;

/// Returns the paths of a line: one path with spaces if there is such a file, or else words as in a shell, with quotes and
/// backslashes, as terminals paste files that are dropped on them. Addresses that begin with `file://` are paths, too.
///
/// `expand` turns each into a path, such as `~/photo.png` into one in the home folder.
///
/// # Errors
///
/// `InvalidInput` if a quote does not end.
pub fn paths(line: &str, expand: impl Fn(&str) -> PathBuf) -> Result<Vec<PathBuf>, Error> {
    let whole = Some(line.trim()).filter(|line| !line.is_empty()).map(&expand);
    if let Some(whole) = whole.filter(|whole| fs::symlink_metadata(whole).is_ok()) {
        return Ok(vec![whole]);
    }
    let words = words(line);
    if let Some(open) = words.iter().find(|word| word.is_open) {
        let quoted = &line[open.begin..];
        return Err(Error::invalid_input(format!("a quote does not end: {quoted}")));
    }
    Ok(words.into_iter().map(|word| path_of(&word.text, &expand)).collect())
}

fn path_of(word: &str, expand: impl Fn(&str) -> PathBuf) -> PathBuf {
    let Some(rest) = word.strip_prefix("file://") else { return expand(word) };
    // The host may be named: it is this one.
    let path = &rest[rest.find('/').unwrap_or(0)..];
    let path = percent_decoded(path).unwrap_or_else(|| path.to_owned());
    // On Windows, a letter of a drive follows.
    expand(if MAIN_SEPARATOR == '\\' { path.trim_start_matches('/') } else { &path })
}

/// Returns the names that continue the last path of a line, as they are typed, and where that path begins.
pub fn complete(line: &str, expand: impl Fn(&str) -> PathBuf) -> (usize, Vec<String>) {
    let last = words(line).pop().filter(|word| word.end == line.len());
    let (begin, path) = last.map_or((line.len(), String::new()), |word| (word.begin, word.text));
    if is_address(&path) {
        return (begin, Vec::new());
    }
    let (folder, name) = path.split_at(path.rfind(is_separator).map_or(0, |at| at + 1));
    let at = expand(if folder.is_empty() { "." } else { folder });
    let mut names = Vec::new();
    for entry in fs::read_dir(at).into_iter().flatten().flatten() {
        let Ok(found) = entry.file_name().into_string() else { continue };
        let is_hidden = found.starts_with('.') && !name.starts_with('.');
        if is_hidden || !found.starts_with(name) {
            continue;
        }
        // Of what a link leads to.
        let is_folder = fs::metadata(entry.path()).is_ok_and(|it| it.is_dir());
        names.push(typed(&format!("{folder}{found}"), is_folder));
    }
    names.sort();
    names.truncate(OFFERED);
    (begin, names)
}

/// Writes a path as a word. The quote around a folder stays open for what is in it.
fn typed(path: &str, is_folder: bool) -> String {
    let is_special = |c: char| c.is_whitespace() || matches!(c, '\'' | '"');
    let slash = if is_folder { MAIN_SEPARATOR_STR } else { "" };
    if !path.contains(|c| is_special(c) || is_escape(c)) {
        return format!("{path}{slash}");
    }
    if MAIN_SEPARATOR == '\\' {
        return format!("\"{path}{slash}{}", if is_folder { "" } else { "\"" });
    }
    let mut word = String::new();
    for c in path.chars() {
        if is_special(c) || is_escape(c) {
            word.push('\\');
        }
        word.push(c);
    }
    word + slash
}

/// A word of a line.
struct Word {
    /// Where it begins and ends in the line.
    begin: usize,
    end: usize,
    /// It, without quotes and escapes.
    text: String,
    /// True if a quote in it does not end.
    is_open: bool,
}

/// Splits a line into words as a shell does.
fn words(line: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut letters = line.char_indices().peekable();
    let mut quote = None;
    let mut is_within = false;
    while let Some((at, c)) = letters.next() {
        // Others are parts of names, such as the narrow ones of screenshots on macOS.
        let is_blank = matches!(c, ' ' | '\t' | '\n' | '\r');
        if is_blank && quote.is_none() {
            is_within = false;
            continue;
        }
        if !is_within {
            words.push(Word { begin: at, end: at, text: String::new(), is_open: false });
        }
        is_within = true;
        let Some(word) = words.last_mut() else { continue };
        let next = letters.peek().map(|(_, next)| *next);
        let escaped = match quote {
            Some('\'') => None,
            Some(_) => next.filter(|next| matches!(next, '"' | '\\' | '$' | '`')),
            None => next,
        };
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            (c, _) if is_escape(c) && escaped.is_some() => {
                word.text.extend(escaped);
                letters.next();
            }
            _ => word.text.push(c),
        }
        word.end = letters.peek().map_or(line.len(), |(at, _)| *at);
        word.is_open = quote.is_some();
    }
    words
}

/// Returns true for the character before one that is meant as it is: on Windows none, because it separates folders.
fn is_escape(c: char) -> bool {
    c == '\\' && MAIN_SEPARATOR != '\\'
}
