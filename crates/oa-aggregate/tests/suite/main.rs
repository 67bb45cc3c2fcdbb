//! The aggregator through its public interface.

mod allocations;
mod endings;
mod laws;
mod linear;
mod lines;
mod prompt_progress;
mod repair;
mod rules;

use std::collections::HashSet;
use std::mem::take;

use oa_aggregate::{
    AggregatedAnswer, Aggregator, ContentBlock, Delta, ErrorKind, Options, Problem, TemplateCache,
};
use oa_types::PromptProgress;

/// A delta that can be kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Text(String),
    Thinking(String),
    Refusal(String),
    /// The number, the id and the name.
    CallStart(usize, String, String),
    CallArguments(usize, String),
    Problem(Problem),
    PromptProgress(PromptProgress),
}

impl From<Delta<'_>> for Told {
    fn from(delta: Delta<'_>) -> Self {
        match delta {
            Delta::Text(text) => Self::Text(text.to_owned()),
            Delta::Thinking(text) => Self::Thinking(text.to_owned()),
            Delta::Refusal(text) => Self::Refusal(text.to_owned()),
            Delta::CallStart { call, id, name } => {
                Self::CallStart(call, id.to_owned(), name.to_owned())
            }
            Delta::CallArguments { call, fragment } => {
                Self::CallArguments(call, fragment.to_owned())
            }
            Delta::Problem(problem) => Self::Problem(problem.clone()),
            Delta::PromptProgress(progress) => Self::PromptProgress(progress),
            _ => panic!("a delta this suite does not know"),
        }
    }
}

/// Everything that came out of a list of payloads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) told: Vec<Told>,
    /// The limit that was passed; nothing was pushed after that.
    pub(crate) error: Option<ErrorKind>,
    pub(crate) answer: AggregatedAnswer,
}

impl Outcome {
    /// All text, joined.
    pub(crate) fn text(&self) -> String {
        self.joined(|told| match told {
            Told::Text(text) => Some(text),
            _ => None,
        })
    }

    /// All thinking, joined.
    pub(crate) fn thinking(&self) -> String {
        self.joined(|told| match told {
            Told::Thinking(text) => Some(text),
            _ => None,
        })
    }

    fn joined(&self, of: impl Fn(&Told) -> Option<&String>) -> String {
        self.told.iter().filter_map(of).map(String::as_str).collect()
    }

    /// Checks that the first delta of each call has the id and the name of its block, and that a call without a name
    /// has no deltas. Returns the calls that started.
    pub(crate) fn check_starts(&self) -> Vec<usize> {
        let call = |block: &ContentBlock| match block {
            ContentBlock::ToolUse(call) => Some((call.id.clone(), Some(call.name.clone()))),
            ContentBlock::ToolUseError(call) => {
                Some((call.id.clone().unwrap_or_default(), call.name.clone()))
            }
            _ => None,
        };
        let calls: Vec<(String, Option<String>)> =
            self.answer.blocks.iter().filter_map(call).collect();
        let mut started = Vec::new();
        for told in &self.told {
            match told {
                Told::CallStart(call, id, name) => {
                    assert_eq!((id, Some(name)), (&calls[*call].0, calls[*call].1.as_ref()));
                    assert!(!started.contains(call), "call {call} starts once");
                    started.push(*call);
                }
                Told::CallArguments(call, _) => assert!(started.contains(call)),
                _ => {}
            }
        }
        if self.error.is_none() {
            let named = calls.iter().filter(|(_, name)| name.is_some()).count();
            assert_eq!(started.len(), named, "every call with a name starts");
        }
        let ids: HashSet<&String> = calls.iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), calls.len(), "ids differ");
        started
    }

    /// The blocks, one per line.
    pub(crate) fn blocks(&self) -> String {
        let lines: Vec<String> = self.answer.blocks.iter().map(show).collect();
        lines.join("\n")
    }
}

fn show(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(block) => format!("text {:?}", block.text),
        ContentBlock::Thinking(block) => format!("thinking {:?}", block.thinking),
        ContentBlock::ToolUse(call) => format!("call {} {} {}", call.id, call.name, call.input),
        ContentBlock::ToolUseError(call) => format!(
            "error {} {} {:?}: {}",
            call.id.as_deref().unwrap_or_default(),
            call.name.as_deref().unwrap_or_default(),
            call.raw_data,
            call.error,
        ),
        other => format!("{other:?}"),
    }
}

pub(crate) fn drain(aggregator: &mut Aggregator, told: &mut Vec<Told>) {
    while let Some(delta) = aggregator.next_delta() {
        told.push(delta.into());
    }
}

/// Pushes payloads, taking deltas after each, up to the end or a limit.
pub(crate) fn run(
    options: Options,
    payloads: impl IntoIterator<Item = impl AsRef<[u8]>>,
) -> Outcome {
    drive(Aggregator::with_options(options), payloads).0
}

/// Runs payloads as [`run`] does, with the templates of earlier streams, to which it adds its own.
pub(crate) fn run_with(
    options: Options,
    templates: &mut TemplateCache,
    payloads: impl IntoIterator<Item = impl AsRef<[u8]>>,
) -> Outcome {
    let (outcome, learned) = drive(Aggregator::with_templates(options, take(templates)), payloads);
    *templates = learned;
    outcome
}

fn drive(
    mut aggregator: Aggregator,
    payloads: impl IntoIterator<Item = impl AsRef<[u8]>>,
) -> (Outcome, TemplateCache) {
    let mut told = Vec::new();
    let mut error = None;
    for payload in payloads {
        let pushed = aggregator.push(payload.as_ref());
        drain(&mut aggregator, &mut told);
        if let Err(limit) = pushed {
            error = Some(limit.kind());
            break;
        }
    }
    if let Err(limit) = aggregator.finish() {
        error.get_or_insert_with(|| limit.kind());
    }
    drain(&mut aggregator, &mut told);
    let templates = aggregator.take_templates();
    (Outcome { told, error, answer: aggregator.into_answer() }, templates)
}

/// A chunk whose only choice has this delta.
pub(crate) fn delta(members: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{{members}}},"finish_reason":null}}]}}"#)
}

/// A chunk of text.
pub(crate) fn text(text: &str) -> String {
    delta(&format!(r#""content":{}"#, serde_json::Value::from(text)))
}

/// A chunk with a fragment of a call.
pub(crate) fn fragment(members: &str) -> String {
    delta(&format!(r#""tool_calls":[{{{members}}}]"#))
}

/// The chunk that ends the choice.
pub(crate) fn finish(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
}
