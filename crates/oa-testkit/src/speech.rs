//! The content of a model's answer, before it is written in either format.

use serde_json::Value;

use crate::requests::{excerpt, quoted};

/// The content of a model's answer.
#[derive(Clone)]
pub(crate) struct Speech {
    pub(crate) comment_every: usize,
    pub(crate) done: bool,
    pub(crate) finish: Option<String>,
    pub(crate) finishes: bool,
    pub(crate) parts: Vec<Part>,
    pub(crate) usage: Usage,
}

impl Default for Speech {
    fn default() -> Self {
        Self {
            comment_every: 0,
            done: true,
            finish: None,
            finishes: true,
            parts: Vec::new(),
            usage: Usage::Counted,
        }
    }
}

#[derive(Clone)]
pub(crate) enum Part {
    Call { arguments: String, id: Option<String>, name: String },
    Event(Value),
    Refuse(String),
    Say(String),
    Think(String),
}

impl Part {
    pub(crate) fn call(id: Option<String>, name: String, arguments: Value) -> Self {
        let arguments = match arguments {
            Value::String(text) => text,
            arguments => arguments.to_string(),
        };
        Self::Call { arguments, id, name }
    }

    /// Counts the characters of the answer.
    pub(crate) fn characters(&self) -> usize {
        match self {
            Self::Call { arguments, name, .. } => name.chars().count() + arguments.chars().count(),
            Self::Event(_) => 0,
            Self::Refuse(text) | Self::Say(text) | Self::Think(text) => text.chars().count(),
        }
    }

    /// Describes the part in a few words.
    pub(crate) fn summary(&self) -> String {
        match self {
            Self::Call { arguments, name, .. } => format!("call {name}({})", excerpt(arguments)),
            Self::Event(payload) => format!("event {}", excerpt(&payload.to_string())),
            Self::Refuse(text) => format!("refusal {}", quoted(text)),
            Self::Say(text) => format!("text {}", quoted(text)),
            Self::Think(text) => format!("thinking {}", quoted(text)),
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Usage {
    Absent,
    Counted,
    Given { prompt: u64, completion: u64 },
}
