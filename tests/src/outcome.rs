use std::mem::take;

use bytes::Bytes;
use oa_aggregate::{AggregatedAnswer, ContentBlock, Delta, FinishReason, Problem, TemplateCache};
use oa_chat::{Pipeline, PipelineOptions};
use serde_json::{Value, json};

use crate::fixture::Fixture;

/// Everything that came out of a stream: the deltas in order, and the answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// All text, joined.
    pub text: String,
    /// All thinking, joined.
    pub thinking: String,
    /// All refusal text, joined.
    pub refusal: String,
    /// The sources of the deltas ("text", "thinking" or a call) in order of arrival, with runs collapsed.
    pub order: Vec<String>,
    /// The answer.
    pub answer: AggregatedAnswer,
}

impl Outcome {
    /// Runs chunks of a body through a pipeline, taking deltas after each.
    #[must_use]
    pub fn of(options: PipelineOptions, chunks: impl IntoIterator<Item = Bytes>) -> Self {
        Self::through(Pipeline::new(options), chunks).0
    }

    /// Like [`of`](Self::of), with templates learned from earlier streams, adding those of this one.
    #[must_use]
    pub fn with_templates(
        options: PipelineOptions,
        templates: &mut TemplateCache,
        chunks: impl IntoIterator<Item = Bytes>,
    ) -> Self {
        let pipeline = Pipeline::with_templates(options, take(templates));
        let (outcome, learned) = Self::through(pipeline, chunks);
        *templates = learned;
        outcome
    }

    fn through(
        mut pipeline: Pipeline,
        chunks: impl IntoIterator<Item = Bytes>,
    ) -> (Self, TemplateCache) {
        let mut outcome = Builder::default();
        for chunk in chunks {
            pipeline.push(chunk).expect("no fixture passes a limit");
            outcome.drain(&mut pipeline);
        }
        pipeline.finish().expect("no fixture passes a limit");
        outcome.drain(&mut pipeline);
        let templates = pipeline.take_templates();
        let Builder { text, thinking, refusal, mut order } = outcome;
        let answer = pipeline.into_answer();
        // A call whose name never arrived has no deltas.
        let calls = answer.blocks.iter().filter(|block| is_call(block)).count();
        if !order.is_empty() && (0..calls).any(|call| !order.contains(&format!("tool {call}"))) {
            order = order_of_blocks(&answer.blocks);
        }
        (Self { text, thinking, refusal, order, answer }, templates)
    }

    /// Panics unless this is the outcome in the fixture's entry.
    #[track_caller]
    pub fn assert_expected(&self, fixture: &Fixture, split: bool) {
        let expect = fixture.expect();
        let name = &fixture.name;
        let seen = self.to_value(expect);
        for (member, seen) in seen.as_object().expect("an object") {
            if split && matches!(&**member, "order" | "text" | "thinking") {
                continue;
            }
            let expected = expect.get(member).cloned().unwrap_or_default();
            assert_eq!(*seen, expected, "{member} of {name}");
        }
        if split {
            let parts = &expect["think_split"];
            assert_eq!(self.text, parts["text"], "text of {name}, split");
            let thinking =
                format!("{}{}", as_text(&expect["thinking"]), as_text(&parts["thinking"]));
            assert_eq!(self.thinking, thinking, "thinking of {name}, split");
        }
        for kept in fixture.entry["keeps"].as_array().into_iter().flatten() {
            let message = format!("{:?}{:?}", self.answer.extra, self.answer.blocks);
            assert!(message.contains(as_text(kept)), "{name} loses {kept}");
        }
        self.assert_blocks_agree(name);
    }

    /// The blocks of the answer must equal the deltas.
    #[track_caller]
    fn assert_blocks_agree(&self, name: &str) {
        let (mut text, mut thinking) = (String::new(), String::new());
        for block in &self.answer.blocks {
            match block {
                ContentBlock::Text(block) => text.push_str(&block.text),
                ContentBlock::Thinking(block) => thinking.push_str(&block.thinking),
                _ => {}
            }
            assert_ne!(block.as_text(), Some(""), "an empty block in {name}");
        }
        assert_eq!(thinking, self.thinking, "thinking blocks of {name}");
        if self.refusal.is_empty() {
            assert_eq!(text, self.text, "text blocks of {name}");
        }
        assert_eq!(self.answer.refusal.clone().unwrap_or_default(), self.refusal);
    }

    /// The outcome in the format of `index.json`.
    fn to_value(&self, expect: &Value) -> Value {
        let answer = &self.answer;
        let (mut calls, mut errors) = (Vec::new(), Vec::new());
        for block in &answer.blocks {
            match block {
                ContentBlock::ToolUse(call) => {
                    let id = known_id(&call.id, &expect["tool_calls"][calls.len()]["id"]);
                    calls.push(json!({ "id": id, "name": call.name, "arguments": call.input }));
                }
                ContentBlock::ToolUseError(error) => {
                    let id = error.id.as_deref().unwrap_or_default();
                    let id = known_id(id, &expect["tool_errors"][errors.len()]["id"]);
                    errors.push(json!({ "id": id, "name": error.name, "raw": error.raw_data }));
                }
                _ => {}
            }
        }
        let problems: Vec<Value> = answer.problems.iter().map(problem).collect();
        let finish = Some(answer.finish_reason.as_str())
            .filter(|_| answer.finish_reason != FinishReason::Unspecified);
        let usage = answer.usage.map(|usage| {
            json!({
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "total_tokens": usage.total_tokens,
            })
        });
        json!({
            "text": self.text,
            "thinking": self.thinking,
            "tool_calls": calls,
            "tool_errors": errors,
            "errors": errors.len(),
            "order": self.order,
            "stream_errors": problems,
            "finish_reason": finish,
            "usage": usage,
            "done": answer.done,
        })
    }
}

fn is_call(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::ToolUse(_) | ContentBlock::ToolUseError(_))
}

fn order_of_blocks(blocks: &[ContentBlock]) -> Vec<String> {
    let mut calls = 0..;
    let mut order: Vec<String> = blocks
        .iter()
        .map(|block| match block {
            ContentBlock::Thinking(_) => "thinking".to_owned(),
            block if is_call(block) => format!("tool {}", calls.next().unwrap_or_default()),
            _ => "text".to_owned(),
        })
        .collect();
    order.dedup();
    order
}

#[derive(Default)]
struct Builder {
    text: String,
    thinking: String,
    refusal: String,
    order: Vec<String>,
}

impl Builder {
    fn drain(&mut self, pipeline: &mut Pipeline) {
        while let Some(delta) = pipeline.next_delta() {
            let speaker = match delta {
                Delta::Text(text) => {
                    self.text.push_str(text);
                    "text".to_owned()
                }
                Delta::Thinking(thinking) => {
                    self.thinking.push_str(thinking);
                    "thinking".to_owned()
                }
                Delta::Refusal(refusal) => {
                    self.refusal.push_str(refusal);
                    continue;
                }
                Delta::CallStart { call, .. } | Delta::CallArguments { call, .. } => {
                    format!("tool {call}")
                }
                _ => continue,
            };
            if self.order.last() != Some(&speaker) {
                self.order.push(speaker);
            }
        }
    }
}

/// Ids not sent by the server are generated: null where the expectation is null.
fn known_id(id: &str, expected: &Value) -> Value {
    let made_up = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if expected.is_null() && made_up { Value::Null } else { id.into() }
}

fn problem(problem: &Problem) -> Value {
    match problem {
        Problem::Server(error) => {
            let code = error.raw.get("code").filter(|code| !code.is_null()).cloned();
            let kind = error.raw.get("type").filter(|kind| !kind.is_null()).cloned();
            let message = error.raw.get("message").cloned();
            let message = message.unwrap_or_else(|| error.message.clone().into());
            json!({ "code": code.or(kind), "message": message })
        }
        Problem::Unreadable(error) => json!({ "code": null, "message": error.excerpt() }),
        other => json!({ "code": null, "message": other.to_string() }),
    }
}

fn as_text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
