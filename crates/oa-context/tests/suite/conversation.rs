//! Random valid conversations.

use oa_context::{Estimator, TokenCounter};
use oa_testkit::Strict;
use oa_types::wire::{MessageFormat, write_message};
use oa_types::{ContentBlock, ImageBlock, Message, TextBlock, ThinkingBlock};
use oa_types::{ToolResultBlock, ToolUseBlock};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

/// A prompt and its rounds; the last one may still wait for the model.
#[derive(Clone, Debug)]
struct Exchange {
    prompt: (String, bool),
    /// The number of calls of each round, and its text.
    rounds: Vec<(usize, String)>,
    answer: String,
}

fn exchange() -> impl Strategy<Value = Exchange> {
    ((words(), any::<bool>()), vec((1..4_usize, words()), 0..4), words())
        .prop_map(|(prompt, rounds, answer)| Exchange { prompt, rounds, answer })
}

/// Text that is not blank: a blank message is not sent.
pub(crate) fn words() -> impl Strategy<Value = String> {
    let words = prop_oneof![
        3 => "[a-z]{1,9}( [a-zA-Z]{1,9}){0,12}[.?]",
        1 => "[一-龥]{1,40}。",
        1 => "[ء-ي]{1,9}( [ء-ي]{1,9}){0,9}",
        1 => "\\PC{1,60}",
    ];
    words.prop_filter("it is not blank", |words| !words.trim().is_empty())
}

/// A conversation that a strict server accepts, once a user message comes last.
pub(crate) fn conversation() -> impl Strategy<Value = Vec<Message>> {
    let last =
        prop_oneof![2 => Just(Last::Answer), 1 => Just(Last::Prompt), 1 => Just(Last::Result)];
    (any::<bool>(), vec(exchange(), 1..7), last).prop_map(|(system, exchanges, last)| {
        let mut messages = Vec::new();
        if system {
            messages.push(Message::system("Be brief."));
        }
        let count = exchanges.len();
        for (number, exchange) in exchanges.into_iter().enumerate() {
            let last = if number + 1 == count { last } else { Last::Answer };
            write(exchange, number, last, &mut messages);
        }
        messages
    })
}

#[derive(Clone, Copy, Debug)]
enum Last {
    Answer,
    Prompt,
    Result,
}

fn write(exchange: Exchange, number: usize, last: Last, messages: &mut Vec<Message>) {
    let (prompt, image) = exchange.prompt;
    messages.push(if image {
        let image = ImageBlock::from_url("https://example.com/a.png").expect("an address");
        Message::user_with_image(prompt, image)
    } else {
        Message::user(prompt)
    });
    if matches!(last, Last::Prompt) {
        return;
    }
    for (round, (calls, said)) in exchange.rounds.iter().enumerate() {
        let id = |call: usize| format!("call_{number}_{round}_{call}");
        let mut content: Vec<ContentBlock> = vec![ThinkingBlock::new(said).into()];
        content.push(TextBlock::new(said).into());
        content.extend((0..*calls).map(|call| {
            ContentBlock::from(ToolUseBlock::new(id(call), "add", json!({ "said": said })))
        }));
        messages.push(Message::assistant(content));
        for call in 0..*calls {
            let mut result = ToolResultBlock::new(id(call), json!([call, said]));
            result.name = Some("add".into());
            messages.push(Message::tool(result));
        }
    }
    if matches!(last, Last::Answer) || exchange.rounds.is_empty() {
        messages.push(Message::assistant(vec![TextBlock::new(exchange.answer).into()]));
    }
}

/// Checks the sent messages as a strict server would, after another prompt if the model's message is last.
pub(crate) fn check_sent(messages: &[Message]) -> Result<(), TestCaseError> {
    let further = Message::user("And now?");
    let needs_prompt = !messages.last().is_some_and(|last| {
        matches!(last.role, oa_types::MessageRole::User | oa_types::MessageRole::Tool)
    });
    let mut out = b"{\"model\":\"any\",\"messages\":[".to_vec();
    for message in messages.iter().chain(needs_prompt.then_some(&further)) {
        write_message(message, &MessageFormat::default(), &mut out);
    }
    out.extend_from_slice(b"]}");
    Strict::new().check_bytes(&out).map_err(|violations| {
        TestCaseError::fail(format!("{violations}\n{}", String::from_utf8_lossy(&out)))
    })
}

/// The estimated tokens of the messages.
pub(crate) fn tokens(messages: &[Message]) -> usize {
    Estimator::new().count_messages(messages)
}
