use oa_types::Message;
use serde_json::Value;

/// A prompt of a server: a message template.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prompt {
    /// The name.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The arguments.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a [`Prompt`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// The description.
    pub description: Option<String>,
    /// True if the argument is required.
    pub is_required: bool,
}

/// The messages of a [`Prompt`], with its arguments filled in.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FilledPrompt {
    /// The description.
    pub description: Option<String>,
    /// The messages of the user and the assistant. Content that a message cannot contain, such as audio, is replaced by
    /// a note. The role `system`, which the protocol does not have, counts as the user's.
    pub messages: Vec<Message>,
}

impl Prompt {
    /// Reads an entry of a list; `None` without a name.
    #[must_use]
    pub fn read(entry: &Value) -> Option<Self> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
        let arguments = entry.get("arguments").and_then(Value::as_array).into_iter().flatten();
        let arguments = arguments.filter_map(|argument| {
            Some(PromptArgument {
                name: argument.get("name").and_then(Value::as_str)?.to_owned(),
                description: argument.get("description").and_then(Value::as_str).map(str::to_owned),
                is_required: argument.get("required") == Some(&Value::Bool(true)),
            })
        });
        Some(Self {
            name: text("name").filter(|name| !name.is_empty())?,
            title: text("title"),
            description: text("description"),
            arguments: arguments.collect(),
        })
    }
}

impl FilledPrompt {
    /// Reads the result of `prompts/get`; `None` if it is not one.
    #[must_use]
    pub fn read(result: &Value) -> Option<Self> {
        let messages = result.get("messages")?.as_array()?;
        Some(Self {
            description: result.get("description").and_then(Value::as_str).map(str::to_owned),
            messages: messages.iter().map(crate::message::read_message).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prompts_are_read_with_their_arguments() {
        let prompt = Prompt::read(&json!({
            "name": "greet",
            "arguments": [{ "name": "who", "required": true }, { "name": "how" }, { "nothing": 1 }],
        }));
        let prompt = prompt.unwrap();
        let needed: Vec<_> = prompt
            .arguments
            .iter()
            .map(|argument| (&*argument.name, argument.is_required))
            .collect();
        assert_eq!(needed, [("who", true), ("how", false)]);
        assert_eq!(Prompt::read(&json!({ "name": "" })), None);
    }

    #[test]
    fn filled_prompt_has_its_messages() {
        let said = json!({ "role": "user", "content": { "type": "text", "text": "Hi." } });
        let filled = FilledPrompt::read(&json!({ "messages": [said] })).unwrap();
        assert_eq!(filled.messages, [Message::user("Hi.")]);
        assert_eq!(FilledPrompt::read(&json!({ "messages": [{ "role": "nobody" }] })), None);
        assert_eq!(FilledPrompt::read(&json!({})), None);
    }
}
