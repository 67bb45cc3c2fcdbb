//! Files of prompts.

use std::fs;
use std::path::Path;

use oa_files::{Prompt, Prompts};
use proptest::prelude::*;
use serde_json::json;

fn read(text: &[u8]) -> Result<Vec<Prompt>, String> {
    Prompts::new(text).collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn why(line: &str) -> String {
    let told = read(line.as_bytes()).expect_err("it is wrong");
    told.strip_prefix("line 1: ").map(str::to_owned).unwrap_or(told)
}

#[test]
fn lines_are_texts_or_objects() {
    let prompts = read(
        b"\xef\xbb\xbf\"One\"\n \r\n{\"prompt\": \"Why\\u003f\", \"id\": 7}\n{\"attach\": [\"a\"], \"prompt\": \"b\"}",
    );
    let prompts: Vec<_> =
        prompts.unwrap().into_iter().map(|it| (it.line, it.text, it.id, it.attach)).collect();
    let text = |text: &str| text.to_owned();
    assert_eq!(
        prompts,
        [
            (1, text("One"), None, vec![]),
            (3, text("Why?"), Some(text("7")), vec![]),
            (4, text("b"), None, vec![text("a")]),
        ]
    );
    for (line, wanted) in [
        ("7", "neither a string nor an object"),
        ("[]", "neither a string nor an object"),
        ("{}", "\"prompt\" is missing"),
        (r#"{"prompt": 7}"#, "\"prompt\" is not a string"),
        ("\" \"", "the prompt is empty"),
        (r#"{"prompt": "a", "attach": "b"}"#, "\"attach\" is not a list of strings"),
        (r#"{"prompt": "a", "attach": [7]}"#, "\"attach\" is not a list of strings"),
    ] {
        assert_eq!(why(line), wanted);
    }
    for line in ["{", "\"Why?", "7 8", r#"{"prompt": "\ud800"}"#, r#"{"prompt": "Why?", "id": 01}"#]
    {
        assert!(why(line).starts_with("expected JSON like"), "{line}");
    }
    // Plain text is a plausible first attempt, so the error shows the expected form.
    let told = why("Why?");
    assert!(told.starts_with(r#"expected JSON like {"prompt": "Why?"} or "Why?": "#), "{told}");
    assert!(told.ends_with("expected value at column 1"), "{told}");
    let second = read(b"\"One\"\n\xff\n").unwrap_err();
    assert_eq!(second, "line 2: not valid UTF-8");
}

#[test]
fn files_of_a_prompt_are_read_with_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "one").unwrap();
    let attach = json!({"prompt": "Why?", "attach": ["a.txt", "https://example.org/a.png"]});
    let prompts = read(format!("\n{attach}").as_bytes()).unwrap();
    let message = || prompts[0].message(|path| folder.path().join(Path::new(path)));
    let parts: Vec<_> = message().unwrap().content;
    assert_eq!(parts[1].as_text(), Some("\n<file name=\"a.txt\">\none\n</file>"));
    assert!(parts[2].is_media());
    fs::remove_file(folder.path().join("a.txt")).unwrap();
    let told = message().unwrap_err().to_string();
    assert!(told.starts_with("line 2: ") && told.contains("a.txt: "), "{told}");
}

proptest! {
    #[test]
    fn any_text_is_a_prompt(text in "\\PC{1,40}") {
        prop_assume!(!text.trim().is_empty());
        let parsed = read(json!(text).to_string().as_bytes()).unwrap();
        prop_assert_eq!(&parsed[0].text, &text);
    }
}
