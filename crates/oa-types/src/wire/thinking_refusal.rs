use super::rejected::REJECTED;
use super::thinking::Thinking;

/// A statement of an error about the amount of thinking in the request (QUIRKS row 147).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ThinkingRefusal {
    /// The model has no thinking to control.
    Any,
    /// The model always thinks.
    Off,
}

impl ThinkingRefusal {
    /// Reads an error message, which must be in lower case.
    pub(super) fn read(message: &str, thinking: &Thinking) -> Option<Self> {
        let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
        let names_it = says(&MEMBERS);
        let is_about_value = says(&VALUE);
        if *thinking == Thinking::Off && (says(&ALWAYS_ON) || names_it && is_about_value) {
            return Some(Self::Off);
        }
        // The caller chose the word of an effort, and can choose another.
        let is_ours = !matches!(thinking, Thinking::Effort(_));
        let lacks = says(&LACKING) || names_it && says(&REJECTED) && !is_about_value;
        (lacks || is_ours && names_it && is_about_value).then_some(Self::Any)
    }
}

/// The members in errors, as servers quote them, and not as parts of other names.
const MEMBERS: [&str; 13] = [
    "\"reasoning\"",
    "\"thinking\"",
    "'reasoning'",
    "'thinking'",
    "`reasoning`",
    "`thinking`",
    "chat_template",
    "enable_thinking",
    "parameter: thinking",
    "reasoning effort",
    "reasoning_effort",
    "reasoningeffort",
    "think value",
];

/// Words about a value rather than a member.
const VALUE: [&str; 6] = [
    "expected one of",
    "input should be",
    "invalid",
    "must be one of",
    "supported values",
    "value",
];

/// Words with which Ollama, Gemini and gateways say that a model does not think.
const LACKING: [&str; 6] = [
    "does not support reasoning",
    "does not support thinking",
    "doesn't support thinking",
    "reasoning is not supported",
    "thinking is not enabled for",
    "thinking is not supported",
];

/// Words with which OpenRouter, OpenAI and Gemini say that a model cannot stop thinking.
const ALWAYS_ON: [&str; 6] = [
    "budget 0 is invalid",
    "cannot be disabled",
    "cannot disable",
    "does not support 'none'",
    "only works in thinking mode",
    "reasoning is mandatory",
];
