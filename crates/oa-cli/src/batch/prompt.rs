//! A line of the input.

use open_agent::Value;

/// A prompt, with the id that its reply repeats; `None` for an empty line.
#[derive(Debug, PartialEq)]
pub(super) struct Prompt(Option<(String, Option<Value>)>);

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
        let (prompt, id) = match serde_json::from_str(line).map_err(not_json)? {
            Value::String(prompt) => (prompt, None),
            Value::Object(mut members) => match members.remove("prompt") {
                Some(Value::String(prompt)) => (prompt, members.remove("id")),
                Some(_) => return Err("\"prompt\" is not a string".to_owned()),
                None => return Err("\"prompt\" is missing".to_owned()),
            },
            _ => return Err("neither a string nor an object".to_owned()),
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
    pub(super) fn into_id(self) -> Option<Option<Value>> {
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
        let prompt = |text: &str, id| Ok(Prompt(Some((text.to_owned(), id))));
        assert_eq!(Prompt::parse(b"\"Why?\"\n"), prompt("Why?", None));
        assert_eq!(
            Prompt::parse(br#"{"prompt": "Why?", "id": 7}"#),
            prompt("Why?", Some(json!(7)))
        );
        assert_eq!(Prompt::parse(b" \r\n"), Ok(Prompt(None)));
        for (line, why) in [
            ("7", "neither a string nor an object"),
            ("{}", "\"prompt\" is missing"),
            (r#"{"prompt": 7}"#, "\"prompt\" is not a string"),
            ("\" \"", "the prompt is empty"),
        ] {
            assert_eq!(Prompt::parse(line.as_bytes()), Err(why.to_owned()));
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
