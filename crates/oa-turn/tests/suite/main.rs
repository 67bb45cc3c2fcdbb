//! The rules of a turn, as laws and one by one.

mod answers;
mod approvals;
mod corrections;
mod cuts;
mod events;
mod failures;
mod histories;
mod images;
mod inline_results;
mod journal;
mod laws;
mod opened;
mod prompts;
mod recorded;
mod rules;
mod shapes;
mod shared;
mod shorten;
mod snapshots;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use oa_turn::{Action, Answer, Decision, Turn};
use oa_types::{ContentBlock, ImageBlock, Outcome, TextBlock, ToolUseBlock, ToolUseError};
use serde_json::json;

pub(crate) fn call(id: &str, name: &str) -> ContentBlock {
    ToolUseBlock::new(id, name, json!({ "a": 1 })).into()
}

pub(crate) fn image() -> ImageBlock {
    ImageBlock::from_url("https://host/a.png").expect("it is an address")
}

pub(crate) fn text(text: &str) -> ContentBlock {
    TextBlock::new(text).into()
}

pub(crate) fn malformed(id: &str, name: Option<&str>) -> ContentBlock {
    let mut error = ToolUseError::new("the arguments are not valid JSON", "{\"a\":");
    error.id = Some(id.to_owned());
    error.name = name.map(str::to_owned);
    error.into()
}

/// Performs everything up to the next request or the end; each call that runs answers "ok".
pub(crate) fn perform(turn: &mut Turn) -> Action {
    loop {
        match turn.next_action().expect("something is in progress") {
            Action::Decide { call } => {
                let input = turn.calls()[call].block.input.clone();
                turn.decide(call, Decision::Run(input));
            }
            Action::Run { calls } => {
                for call in calls.into_iter().rev() {
                    let is_handed = turn.await_result(call);
                    assert!(is_handed || turn.finish_call(call, json!("ok"), Outcome::Ok));
                }
            }
            Action::Show { .. } => {}
            Action::Review { call } => {
                let content = content(turn, call);
                turn.review(call, content);
            }
            action => return action,
        }
    }
}

pub(crate) fn content(turn: &Turn, call: usize) -> serde_json::Value {
    match &turn.calls()[call].state {
        oa_turn::CallState::Answered { content, .. } => content.clone(),
        state => panic!("{state:?} has no result"),
    }
}

pub(crate) fn answer(turn: &mut Turn, blocks: Vec<ContentBlock>) {
    turn.answer(Answer::new(blocks));
}

pub(crate) fn line(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(block) => block.text.clone(),
        ContentBlock::ToolUse(call) => format!("[{} {}]", call.id, call.input),
        ContentBlock::ToolUseError(error) => {
            format!("{}?{}", error.id.as_deref().unwrap_or_default(), error.error)
        }
        ContentBlock::ToolResult(result) => {
            let mark = if result.is_error { "!" } else { "=" };
            format!("{}{mark}{}", result.tool_use_id, result.content)
        }
        other => format!("{other:?}"),
    }
}

/// Roles, texts, calls and results in one line each.
pub(crate) fn told(turn: &Turn) -> Vec<String> {
    let told = |message: &oa_types::Message| {
        let blocks: Vec<String> = message.content.iter().map(line).collect();
        let mark = if message.interrupted { " (interrupted)" } else { "" };
        format!("{}: {}{mark}", message.role.as_str(), blocks.join(" "))
    };
    turn.history().iter().map(told).collect()
}

/// Runs a future that never waits.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("nothing here waits"),
    }
}
