use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

/// The amount of thinking before a model answers. Each provider has its own request member for it (QUIRKS row 146).
///
/// ```
/// use oa_types::wire::Thinking;
///
/// assert_eq!(Thinking::from(false), Thinking::Off);
/// assert_eq!(Thinking::from("low"), Thinking::Effort("low".into()));
/// ```
///
/// In JSON, it is `true`, `false` or the effort.
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

impl Serialize for Thinking {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Effort(effort) => serializer.serialize_str(effort),
            Self::Off => serializer.serialize_bool(false),
            Self::On => serializer.serialize_bool(true),
        }
    }
}

impl<'de> Deserialize<'de> for Thinking {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stored {
            Switch(bool),
            Effort(Box<str>),
        }
        Ok(match Stored::deserialize(deserializer)? {
            Stored::Switch(on) => on.into(),
            Stored::Effort(effort) => Self::Effort(effort),
        })
    }
}

/// The request member that controls how much the model thinks (QUIRKS row 146).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ThinkingField {
    /// `enable_thinking`, a boolean, with an effort in `reasoning_effort`.
    EnableThinking,
    /// `reasoning`, an object.
    Reasoning,
    /// `reasoning_effort`, a word; `none` is off.
    ReasoningEffort {
        /// The word for on. Without one, on is the server's default, and nothing is sent.
        on: Option<&'static str>,
    },
    /// Arguments of the chat template. Each template has its own names for them, and ignores others.
    TemplateArguments,
    /// `thinking`, an object with a type, with an effort in `reasoning_effort`.
    Type,
}

impl ThinkingField {
    /// Sets the amount of thinking in a request's members. A member that is already set is kept.
    pub fn set(self, thinking: &Thinking, members: &mut Map<String, Value>) {
        for (name, said) in self.members(thinking) {
            match (members.get_mut(name), said) {
                // Other template arguments may already be set.
                (Some(Value::Object(given)), Value::Object(said))
                    if self == Self::TemplateArguments =>
                {
                    for (key, value) in said {
                        given.entry(key).or_insert(value);
                    }
                }
                (Some(_), _) => {}
                (None, said) => drop(members.insert(name.to_owned(), said)),
            }
        }
    }

    fn members(self, thinking: &Thinking) -> Vec<(&'static str, Value)> {
        let is_on = *thinking != Thinking::Off;
        let effort = match thinking {
            Thinking::Effort(word) => Some(&**word),
            Thinking::Off | Thinking::On => None,
        };
        let mut members = match self {
            Self::EnableThinking => vec![("enable_thinking", json!(is_on))],
            Self::Reasoning => {
                let how = effort.map(|word| json!({ "effort": word }));
                return vec![("reasoning", how.unwrap_or_else(|| json!({ "enabled": is_on })))];
            }
            Self::ReasoningEffort { on } => {
                let word = effort.or(if is_on { on } else { Some("none") });
                return word.map(|word| ("reasoning_effort", json!(word))).into_iter().collect();
            }
            Self::TemplateArguments => {
                // Qwen, GLM and Gemma read the first; DeepSeek, Kimi and Granite the second.
                let mut arguments = json!({ "enable_thinking": is_on, "thinking": is_on });
                if let Some(word) = effort {
                    arguments["reasoning_effort"] = json!(word);
                }
                vec![("chat_template_kwargs", arguments)]
            }
            Self::Type => {
                vec![("thinking", json!({ "type": if is_on { "enabled" } else { "disabled" } }))]
            }
        };
        // vLLM writes the prompt of gpt-oss without a template. Its older versions refuse all but these words, which
        // templates may know.
        let is_known = |word: &&str| {
            self != Self::TemplateArguments || matches!(*word, "low" | "medium" | "high")
        };
        members.extend(effort.filter(is_known).map(|word| ("reasoning_effort", json!(word))));
        members
    }
}
