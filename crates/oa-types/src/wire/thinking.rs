use serde_json::{Map, Value, json};

/// The amount of thinking before a model answers. Each provider has its own request member for it.
///
/// ```
/// use oa_types::wire::Thinking;
///
/// assert_eq!(Thinking::from(false), Thinking::Off);
/// assert_eq!(Thinking::from("low"), Thinking::Effort("low".into()));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Thinking {
    /// At this effort, in the server's terms: `low`, `medium`, `high`.
    Effort(Box<str>),
    /// Not at all.
    Off,
    /// With the model's default effort.
    On,
}

impl From<bool> for Thinking {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

impl From<&str> for Thinking {
    fn from(effort: &str) -> Self {
        Self::Effort(effort.into())
    }
}

/// The request member that controls how much the model thinks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ThinkingField {
    /// `reasoning`, an object.
    Reasoning,
    /// `reasoning_effort`, a word; `none` is off.
    ReasoningEffort,
    /// Arguments of the chat template.
    TemplateArguments,
    /// `thinking`, an object with a type and no effort.
    Type,
}

impl ThinkingField {
    /// Sets the amount of thinking in a request's members; `None` if this field cannot express it. A member that is
    /// already set is kept.
    pub fn set(self, thinking: &Thinking, members: &mut Map<String, Value>) -> Option<()> {
        let (name, said) = self.member(thinking)?;
        match (members.get_mut(name), said) {
            // Other template arguments may already be set.
            (Some(Value::Object(given)), Value::Object(said)) => {
                for (key, value) in said {
                    given.entry(key).or_insert(value);
                }
            }
            (Some(_), _) => {}
            (None, said) => drop(members.insert(name.to_owned(), said)),
        }
        Some(())
    }

    fn member(self, thinking: &Thinking) -> Option<(&'static str, Value)> {
        Some(match (self, thinking) {
            (Self::Reasoning, Thinking::Effort(word)) => ("reasoning", json!({ "effort": word })),
            (Self::Reasoning, Thinking::Off) => ("reasoning", json!({ "enabled": false })),
            (Self::Reasoning, Thinking::On) => ("reasoning", json!({ "enabled": true })),
            (Self::ReasoningEffort, Thinking::Effort(word)) => ("reasoning_effort", json!(word)),
            (Self::ReasoningEffort, Thinking::Off) => ("reasoning_effort", json!("none")),
            (Self::ReasoningEffort, Thinking::On) => ("reasoning_effort", json!("medium")),
            (Self::TemplateArguments, thinking) => {
                let mut arguments = json!({ "enable_thinking": *thinking != Thinking::Off });
                if let Thinking::Effort(effort) = thinking {
                    arguments["reasoning_effort"] = json!(effort);
                }
                ("chat_template_kwargs", arguments)
            }
            (Self::Type, Thinking::Off) => ("thinking", json!({ "type": "disabled" })),
            (Self::Type, Thinking::On) => ("thinking", json!({ "type": "enabled" })),
            (Self::Type, Thinking::Effort(_)) => return None,
        })
    }
}
