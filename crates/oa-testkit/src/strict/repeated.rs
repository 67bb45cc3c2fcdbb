//! Finds repeated members, which a parsed value no longer shows.

use std::collections::BTreeSet;

use super::check::at;

/// Returns the paths of repeated members. The text must be valid JSON.
pub(super) fn members(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut around: Vec<Container> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let mut end = first.len_utf8();
        match first {
            '{' => around.push(Container::object(path_of(&around))),
            '[' => around.push(Container::List { index: 0, path: path_of(&around) }),
            '}' | ']' => {
                around.pop();
            }
            ',' => match around.last_mut() {
                Some(Container::List { index, .. }) => *index += 1,
                Some(Container::Object { name, .. }) => *name = None,
                None => {}
            },
            '"' => {
                end = string_end(rest);
                // A string is a name if its object waits for one; every other string is a value. Names are
                // compared decoded, because `"a"` and `"\u0061"` are the same name.
                if let Some(Container::Object { name: name @ None, names, path }) =
                    around.last_mut()
                {
                    let read: String = serde_json::from_str(&rest[..end]).unwrap_or_default();
                    if !names.insert(read.clone()) {
                        found.push(at(path, &read));
                    }
                    *name = Some(read);
                }
            }
            _ => {}
        }
        rest = &rest[end..];
    }
    found
}

/// The container of a value.
enum Container {
    List {
        index: usize,
        path: String,
    },
    Object {
        /// The member being read; `None` before its name.
        name: Option<String>,
        names: BTreeSet<String>,
        path: String,
    },
}

impl Container {
    fn object(path: String) -> Self {
        Self::Object { name: None, names: BTreeSet::new(), path }
    }
}

fn path_of(around: &[Container]) -> String {
    match around.last() {
        Some(Container::List { index, path }) => format!("{path}[{index}]"),
        Some(Container::Object { name, path, .. }) => at(path, name.as_deref().unwrap_or_default()),
        None => String::new(),
    }
}

/// Returns the length of the string at the start, including quotes.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    let closes = |(_, byte): &(usize, u8)| {
        let is_quote = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        is_quote
    };
    let close = text.bytes().enumerate().skip(1).find(closes);
    close.map_or(text.len(), |(at, _)| at + 1)
}
