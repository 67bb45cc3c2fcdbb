//! A line of the input.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// A prompt, with the id that its reply repeats; `None` for an empty line.
#[derive(Debug)]
pub(super) struct Prompt(Option<(String, Option<Box<RawValue>>)>);

impl Prompt {
    /// Parses a line: a JSON string, or an object with `prompt` and `id`.
    pub(super) fn parse(line: &[u8]) -> Result<Self, String> {
        let line = std::str::from_utf8(line).map_err(|_| "not valid UTF-8".to_owned())?.trim();
        if line.is_empty() {
            return Ok(Self(None));
        }
        let not_json = |error: serde_json::Error| {
            format!(r#"expected JSON like {{"prompt": "Why?"}} or "Why?": {error}"#)
        };
        let (prompt, id) = match line.as_bytes()[0] {
            b'"' => (serde_json::from_str::<String>(line).map_err(not_json)?, None),
            b'{' => {
                // Values as they are written, because an id may be a number with more digits than fit.
                let members = serde_json::from_str::<BTreeMap<String, &RawValue>>(line);
                let members = members.map_err(not_json)?;
                let prompt = members.get("prompt").ok_or("\"prompt\" is missing")?.get();
                if !prompt.starts_with('"') {
                    return Err("\"prompt\" is not a string".to_owned());
                }
                let prompt = serde_json::from_str(prompt).map_err(not_json)?;
                (prompt, members.get("id").map(|&id| id.to_owned()))
            }
            _ => {
                serde_json::from_str::<&RawValue>(line).map_err(not_json)?;
                return Err("neither a string nor an object".to_owned());
            }
        };
        if prompt.trim().is_empty() {
            return Err("the prompt is empty".to_owned());
        }
        Ok(Self(Some((prompt, id))))
    }

    pub(super) fn prompt(self) -> Option<String> {
        self.0.map(|(prompt, _)| prompt)
    }

    /// Returns the id, if the line has a prompt.
    pub(super) fn into_id(self) -> Option<Option<Box<RawValue>>> {
        self.0.map(|(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use open_agent::json;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_texts_or_objects() {
        let parse = |line: &[u8]| {
            let parsed = Prompt::parse(line).unwrap().0;
            parsed.map(|(prompt, id)| (prompt, id.map(|id| id.get().to_owned())))
        };
        assert_eq!(parse(b"\"Why?\"\n"), Some(("Why?".to_owned(), None)));
        let line = br#"{"prompt": "Why\u003f", "id": 7}"#;
        assert_eq!(parse(line), Some(("Why?".to_owned(), Some("7".to_owned()))));
        assert_eq!(parse(b" \r\n"), None);
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
    }

    proptest! {
        #[test]
        fn any_text_is_a_prompt(text in "\\PC{1,40}") {
            prop_assume!(!text.trim().is_empty());
            let parsed = Prompt::parse(json!(text).to_string().as_bytes()).unwrap();
            prop_assert_eq!(parsed.prompt(), Some(text));
        }
    }
}
