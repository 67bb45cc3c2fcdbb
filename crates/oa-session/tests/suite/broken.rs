//! Files damaged by crashes, disks and editors.

use std::fs;

use oa_session::contract::block_on;
use oa_session::{ErrorKind, List, SessionStore};
use proptest::prelude::*;

use crate::{Files, append, create, id, kind, turn, turns};

#[test]
fn incomplete_last_line_is_dropped() {
    let files = Files::new(3);
    let whole = files.read();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for end in last..whole.len() - 1 {
        files.write(&whole[..end]);
        assert_eq!(files.load().unwrap(), turns(2), "cut at {end}");
        assert_eq!(files.read(), &whole[..end], "reading changes nothing");
    }
    // Only the newline is missing, so the record counts.
    files.write(&whole[..whole.len() - 1]);
    assert_eq!(files.load().unwrap(), turns(3));
    files.go_on(3);
    assert_eq!(files.load().unwrap(), turns(4));

    files.write(&whole[..whole.len() - 9]);
    files.go_on(2);
    assert_eq!(files.load().unwrap(), turns(3));
    assert_eq!(files.read().iter().filter(|byte| **byte == b'\n').count(), 4);
}

/// Continued, the file would have records without a beginning, and could never be read again.
#[test]
fn an_incomplete_only_message_is_no_session() {
    let files = Files::new(0);
    let bytes = br#"{"role":"robot","content":[]}"#;
    files.write(bytes);
    assert_eq!(kind(files.load()), ErrorKind::Corrupt);
    let patch = serde_json::Map::new();
    let changed = block_on(files.open().set_metadata(&id("a"), patch, crate::at(3)));
    assert_eq!(kind(changed), ErrorKind::Corrupt);
    assert_eq!(files.read(), bytes);
}

#[test]
fn trailing_zero_bytes_are_dropped() {
    let files = Files::new(2);
    let mut bytes = files.read();
    let half = bytes.len() - 20;
    bytes[half..].fill(0);
    for end in [&b""[..], b"\n"] {
        files.write(&[&bytes, end].concat());
        assert_eq!(files.load().unwrap(), turns(1));
    }
    files.go_on(1);
    assert_eq!(files.load().unwrap(), turns(2));
}

#[test]
fn cached_files_are_reread_after_changes() {
    let files = Files::new(1);
    let (one, other) = (files.open(), files.open());
    let info = block_on(one.load(&id("a"))).unwrap().info;
    let second = append(&other, &info, turn(1)).unwrap();
    assert_eq!(kind(append(&one, &info, turn(9))), ErrorKind::Conflict);
    let third = append(&one, &second, turn(2)).unwrap();
    append(&other, &third, turn(3)).unwrap();
    assert_eq!(kind(append(&one, &third, turn(9))), ErrorKind::Conflict);
    assert_eq!(files.load().unwrap(), turns(4));
    // The same length, but a different session.
    block_on(other.delete(&id("a"))).unwrap();
    let info = create(&other, "a");
    let mut info = append(&other, &info, turn(7)).unwrap();
    for number in 1..4 {
        info = append(&other, &info, turn(number)).unwrap();
    }
    append(&one, &info, turn(4)).unwrap();
    let expected: Vec<_> = [7, 1, 2, 3, 4].into_iter().flat_map(turn).collect();
    assert_eq!(files.load().unwrap(), expected);
}

#[test]
fn errors_name_the_file_and_the_line() {
    let files = Files::new(3);
    let whole = String::from_utf8(files.read()).unwrap();
    files.write(whole.replace("answer 1", "Answer 1").as_bytes());
    let error = files.load().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let text = error.to_string();
    let path = files.path();
    let expected = "checksum mismatch: this or an earlier line was changed";
    assert_eq!(text, format!("{}, line 3: {expected}", path.display()));

    let mut lines: Vec<&str> = whole.lines().collect();
    lines[1] = "{\"v\":1,\"op\":\"append\"";
    files.write(lines.join("\n").as_bytes());
    let error = files.load().unwrap_err();
    assert_eq!(error.to_string(), format!("{}, line 2: the line is damaged", path.display()));
    assert!(std::error::Error::source(&error).is_some());
}

/// Then two records are one line. Both were acknowledged, so they are not ignored as an incomplete one.
#[test]
fn a_damaged_newline_loses_no_record() {
    let files = Files::new(3);
    let whole = files.read();
    let newlines: Vec<usize> = (0..whole.len()).filter(|place| whole[*place] == b'\n').collect();
    for place in &newlines[..newlines.len() - 1] {
        for byte in [0, 1, b' ', b'x', 0xff] {
            let mut bytes = whole.clone();
            bytes[*place] = byte;
            files.write(&bytes);
            let error = files.load().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{byte} at {place}");
        }
    }
    // The last record was not acknowledged without its newline.
    let mut bytes = whole;
    *bytes.last_mut().unwrap() = 0;
    files.write(&bytes);
    assert_eq!(files.load().unwrap(), turns(2));
}

#[test]
fn unreadable_files_are_listed_separately() {
    let files = Files::new(1);
    let put = |name: &str, text: &str| fs::write(files.folder.path().join(name), text).unwrap();
    put("session-b.jsonl", "");
    put("session-c.jsonl", "nonsense\n");
    put("session-D.jsonl", "{}\n");
    put("session-e.jsonl", std::str::from_utf8(&files.read()).unwrap());
    put("session-f.jsonl", "{\"v\":1,\"op\":\"sing\"}\n");
    put("session-g.jsonl", "[1,2]\n");
    put("session-h.jsonl.new", "half");
    put("notes.txt", "mine");
    let page = block_on(files.open().list(List::new(10))).unwrap();
    assert_eq!(page.sessions.len(), 1);
    let names: Vec<&str> = page.unreadable.iter().map(|found| &*found.name).collect();
    let expected = ["D", "b", "c", "e", "f", "g"].map(|name| format!("session-{name}.jsonl"));
    assert_eq!(names, expected);
    for unreadable in &page.unreadable {
        assert_eq!(unreadable.error.kind(), ErrorKind::Corrupt, "{unreadable:?}");
    }
    // Damaged sessions are not overwritten, but can be deleted.
    let store = files.open();
    let again = oa_session::NewSession::new(id("c"), crate::at(1));
    assert_eq!(kind(block_on(store.create(again))), ErrorKind::AlreadyExists);
    block_on(store.delete(&id("c"))).unwrap();
    create(&store, "c");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// One wrong byte anywhere: an error or the original messages, except for a damaged last line.
    #[test]
    fn changed_bytes_never_alter_a_session(place in any::<prop::sample::Index>(), byte: u8) {
        let files = Files::new(3);
        let whole = files.read();
        let mut bytes = whole.clone();
        let place = place.index(bytes.len());
        prop_assume!(bytes[place] != byte);
        bytes[place] = byte;
        files.write(&bytes);
        match files.load() {
            Ok(messages) => {
                let last = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').unwrap();
                prop_assert!(place > last, "a change at {} was not noticed", place);
                prop_assert!(messages == turns(2) || messages == turns(3));
            }
            Err(error) => {
                let kinds = [ErrorKind::Corrupt, ErrorKind::NewerVersion];
                prop_assert!(kinds.contains(&error.kind()), "{:?}", error);
                // Nothing is written to a damaged file.
                let store = files.open();
                let patch = serde_json::Map::new();
                prop_assert!(block_on(store.set_metadata(&id("a"), patch, crate::at(3))).is_err());
            }
        }
        prop_assert_eq!(files.read(), bytes);
    }
}
