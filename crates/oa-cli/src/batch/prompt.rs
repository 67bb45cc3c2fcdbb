//! A line of the input.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// A prompt, and the JSON of the id that its reply repeats.
#[derive(Debug, PartialEq)]
pub(super) struct Prompt {
    pub(super) text: String,
    pub(super) id: Option<String>,
}

impl Prompt {
    /// Parses a line: a JSON string, or an object with `prompt` and `id`; `None` for an empty line.
    pub(super) fn parse(line: &[u8]) -> Result<Option<Self>, String> {
        let line = std::str::from_utf8(line).map_err(|_| "not valid UTF-8".to_owned())?.trim();
        if line.is_empty() {
            return Ok(None);
        }
        let not_json = |error: serde_json::Error| {
            // The caller names the line of the file.
            let error = error.to_string().replace(" at line 1 ", " at ");
            format!(r#"expected JSON like {{"prompt": "Why?"}} or "Why?": {error}"#)
        };
        // Values as they are written, because an id may be a number with more digits than fit.
        let whole: &RawValue = serde_json::from_str(line).map_err(not_json)?;
        let members: BTreeMap<String, &RawValue> = match line.as_bytes()[0] {
            b'"' => BTreeMap::from([("prompt".to_owned(), whole)]),
            b'{' => serde_json::from_str(line).map_err(not_json)?,
            _ => return Err("neither a string nor an object".to_owned()),
        };
        let text = members.get("prompt").ok_or("\"prompt\" is missing")?.get();
        if !text.starts_with('"') {
            return Err("\"prompt\" is not a string".to_owned());
        }
        let text: String = serde_json::from_str(text).map_err(not_json)?;
        if text.trim().is_empty() {
            return Err("the prompt is empty".to_owned());
        }
        Ok(Some(Self { text, id: members.get("id").map(|id| id.get().to_owned()) }))
    }
}

#[cfg(test)]
mod tests {
    use open_agent::json;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_texts_or_objects() {
        let prompt = |text: &str, id: Option<&str>| {
            Ok(Some(Prompt { text: text.to_owned(), id: id.map(str::to_owned) }))
        };
        assert_eq!(Prompt::parse(b"\"Why?\"\n"), prompt("Why?", None));
        let line = br#"{"prompt": "Why\u003f", "id": 7}"#;
        assert_eq!(Prompt::parse(line), prompt("Why?", Some("7")));
        assert_eq!(Prompt::parse(b" \r\n"), Ok(None));
        for (line, why) in [
            ("7", "neither a string nor an object"),
            ("[]", "neither a string nor an object"),
            ("{}", "\"prompt\" is missing"),
            (r#"{"prompt": 7}"#, "\"prompt\" is not a string"),
            ("\" \"", "the prompt is empty"),
        ] {
            assert_eq!(Prompt::parse(line.as_bytes()).unwrap_err(), why);
        }
        for line in [
            "{",
            "\"Why?",
            "7 8",
            "{\"prompt\": \"\\ud800\"}",
            "{\"prompt\": \"Why?\", \"id\": 01}",
        ] {
            let told = Prompt::parse(line.as_bytes()).unwrap_err();
            assert!(told.starts_with("expected JSON like"), "{told}");
        }
        // Plain text is a plausible first attempt, so the error shows the expected form.
        let told = Prompt::parse(b"Why?").unwrap_err();
        assert!(told.starts_with(r#"expected JSON like {"prompt": "Why?"} or "Why?": "#), "{told}");
        // Of which line, the caller says.
        assert!(told.ends_with("expected value at column 1"), "{told}");
    }

    proptest! {
        #[test]
        fn any_text_is_a_prompt(text in "\\PC{1,40}") {
            prop_assume!(!text.trim().is_empty());
            let parsed = Prompt::parse(json!(text).to_string().as_bytes()).unwrap();
            prop_assert_eq!(parsed, Some(Prompt { text, id: None }));
        }
    }
}
