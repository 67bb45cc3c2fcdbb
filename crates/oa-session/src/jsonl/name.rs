//! Session ids as file names, identical on every file system regardless of its treatment of case and Unicode.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;

use crate::id::SessionId;

const BEFORE: &str = "session-";
const AFTER: &str = ".jsonl";
const DRAFT: &str = ".new";

/// The file that is locked while a folder is in use.
pub(crate) const LOCK: &str = ".lock";

/// Returns the file name of a session.
pub(crate) fn file_name(id: &SessionId) -> String {
    let mut name = String::from(BEFORE);
    for byte in id.as_str().bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => {
                let _ = write!(name, "%{byte:02x}");
            }
        }
    }
    name.push_str(AFTER);
    name
}

/// Returns true if the name looks like a session's file.
pub(crate) fn is_session(name: &str) -> bool {
    name.starts_with(BEFORE) && name.ends_with(AFTER)
}

/// Returns the temporary name under which a session's file is written.
pub(crate) fn draft_name(name: &OsStr) -> OsString {
    let mut draft = name.to_owned();
    draft.push(DRAFT);
    draft
}

/// Returns true if a store may have created a file with this name.
pub(crate) fn is_own(name: &str) -> bool {
    name == LOCK || is_session(name.strip_suffix(DRAFT).unwrap_or(name))
}

/// Returns the id of the session with this file name.
pub(crate) fn session_id(name: &str) -> Option<SessionId> {
    let mut bytes = Vec::new();
    let mut rest = name.strip_prefix(BEFORE)?.strip_suffix(AFTER)?.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                high << 4 | low
            }
            byte => byte,
        });
    }
    let id = SessionId::new(String::from_utf8(bytes).ok()?).ok()?;
    // Reject other spellings: each id has exactly one file name.
    (file_name(&id) == name).then_some(id)
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_round_trip_through_safe_file_names(text in ".{1,16}") {
            let Ok(id) = SessionId::new(text) else {
                return Ok(());
            };
            let name = file_name(&id);
            prop_assert!(is_session(&name) && is_own(&name));
            let draft = draft_name(name.as_ref());
            prop_assert!(draft.to_str().is_some_and(|draft| is_own(draft) && !is_session(draft)));
            prop_assert!(name.len() < 250);
            let safe = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_%.".contains(c);
            prop_assert!(name.chars().all(safe), "{}", name);
            prop_assert_eq!(name.to_lowercase(), name.clone());
            prop_assert_eq!(session_id(&name), Some(id));
        }
    }

    #[test]
    fn malformed_file_names_have_no_id() {
        for name in ["session-.jsonl", "session-A.jsonl", "session-%4.jsonl", "session-%61.jsonl"] {
            assert!(is_session(name));
            assert_eq!(session_id(name), None, "{name}");
        }
        for name in ["notes.jsonl", "session-a.jsonl.new", ".lock"] {
            assert!(!is_session(name), "{name}");
        }
    }
}
