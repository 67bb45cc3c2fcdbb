//! Transcripts of small models, well-formed and malformed, as files in `tests/fixtures`.
//!
//! ```text
//! == what is odd about it
//! what the model wrote
//! -- text
//! what goes to the user
//! -- call add {"a":1,"b":2}
//! -- malformed add: a part of what is said about it
//! ```
//!
//! `-- all text` means that the whole answer goes to the user. Each transcript is split at every byte.

use oa_fallback::{Constrained, Dialect, Markers, React, TaggedJson};
use serde_json::Value;

use crate::{Found, Written, read, scanner};

struct Transcript {
    title: String,
    answer: String,
    expected: Vec<String>,
}

fn transcripts(file: &str) -> Vec<Transcript> {
    let mut transcripts: Vec<Transcript> = Vec::new();
    for case in format!("\n{file}").split("\n== ").skip(1) {
        let mut parts = case.trim_end_matches('\n').split("\n-- ");
        let (title, answer) = parts.next().and_then(|part| part.split_once('\n')).expect("a title");
        let (title, answer) = (title.to_owned(), answer.to_owned());
        let expected: Vec<String> = parts.map(str::to_owned).collect();
        assert!(!expected.is_empty(), "nothing is expected of: {title}");
        assert!(transcripts.iter().all(|one| one.title != title), "twice: {title}");
        transcripts.push(Transcript { title, answer, expected });
    }
    transcripts
}

/// Returns what was found, in the notation of a transcript file.
fn told(found: &Found, answer: &str) -> Vec<String> {
    let mut told = Vec::new();
    match &*found.text {
        "" => {}
        text if text == answer => told.push("all text".to_owned()),
        text => told.push(format!("text\n{text}")),
    }
    told.extend(found.calls.iter().map(|call| match call {
        Written::Call { name, input, .. } => format!("call {name} {input}"),
        Written::Malformed { name, error, .. } => {
            format!("malformed {}: {error}", name.as_deref().unwrap_or("?"))
        }
    }));
    told
}

fn is_as_expected(told: &[String], expected: &[String]) -> bool {
    told.len() == expected.len()
        && told.iter().zip(expected).all(|(told, expected)| match expected.split_once(": ") {
            Some((what, part)) if what.starts_with("malformed ") => {
                told.starts_with(&format!("{what}: ")) && told.contains(part)
            }
            _ => told == expected || call(told).is_some_and(|it| Some(it) == call(expected)),
        })
}

/// The name and the arguments of a call, whose order says nothing.
fn call(line: &str) -> Option<(&str, Value)> {
    let (name, input) = line.strip_prefix("call ")?.split_once(' ')?;
    Some((name, serde_json::from_str(input).ok()?))
}

/// Returns how many transcripts there are.
#[track_caller]
fn check(dialect: &dyn Dialect, file: &str) -> usize {
    let transcripts = transcripts(file);
    for Transcript { title, answer, expected } in &transcripts {
        let whole = read(scanner(dialect), [&**answer]).settled();
        let told = told(&whole, answer);
        assert!(is_as_expected(&told, expected), "{title}:\n{answer}\n{told:#?}\n{expected:#?}");
        for at in (0..=answer.len()).filter(|&at| answer.is_char_boundary(at)) {
            let (one, other) = answer.split_at(at);
            let halves = read(scanner(dialect), [one, other]).settled();
            assert_eq!(halves, whole, "{title}, cut at {at}: {one:?} {other:?}");
        }
        let characters: Vec<String> = answer.chars().map(String::from).collect();
        let bitwise = read(scanner(dialect), characters.iter().map(String::as_str)).settled();
        assert_eq!(bitwise, whole, "{title}, in characters");
    }
    transcripts.len()
}

#[test]
fn transcripts_of_every_dialect() {
    let react = check(&React::new(), include_str!("../fixtures/react.txt"));
    let markers = check(&Markers::new(), include_str!("../fixtures/markers.txt"));
    let inline = check(&Markers::inline(), include_str!("../fixtures/inline.txt"));
    let tagged = check(&TaggedJson::new(), include_str!("../fixtures/tagged.txt"));
    let constrained = check(&Constrained::new(), include_str!("../fixtures/constrained.txt"));
    assert!(constrained >= 29, "some are lost: {constrained}");
    let all = [react, markers, inline, tagged];
    assert!(all.iter().sum::<usize>() >= 400, "some are lost: {all:?}");
}
