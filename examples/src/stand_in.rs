//! A stand-in for a language model: it parses arithmetic in words and symbols, evaluates it with the offered
//! tools, and says what it cannot do.
//!
//! It consists of a few rules and has no memory: like a model, it reads the whole conversation with every
//! request, finds the tool results, and requests the next steps, independent ones in parallel.

pub mod agents;
pub mod commits;
pub mod expression;
pub mod log;

mod cursor;
mod parser;
mod plan;
mod token;

use oa_testkit::Reply;

use crate::chat::Chat;
use parser::{Misread, parse};
use plan::Plan;

/// Begins each reply to a first prompt.
pub const INTRODUCTION: &str = "I am a stand-in, a few rules and no language model";
/// Prompts that it understands, as it lists them.
pub const EXAMPLES: &str = "\"What is 25 + 17, times 3?\", \"divide 10 by 4\" or \"half of 90\"";

/// Answers a request.
pub fn answer(chat: &Chat<'_>) -> Reply {
    let questions = match parse(chat.prompt()) {
        Ok(questions) => questions,
        Err(misread) => return Reply::text(excuse(&misread)),
    };
    let calls: Vec<_> = chat.calls().collect();
    let mut plan = Plan::new(chat.tools(), &calls);
    let answers: Vec<_> =
        questions.iter().map(|question| (question, plan.follow(question))).collect();

    if plan.steps.is_empty() {
        let answers = answers.iter().map(|(question, progress)| format!("{question} {progress}"));
        return Reply::text(format!("{}.", answers.collect::<Vec<_>>().join("; ")));
    }
    let steps: Vec<_> = plan.steps.iter().map(ToString::to_string).collect();
    let steps = list(&steps);
    let words = match calls.is_empty() {
        true if chat.prompts().count() == 1 => {
            format!("{INTRODUCTION}, but arithmetic I can do. First {steps}.")
        }
        true => format!("First {steps}."),
        false => format!("Then {steps}."),
    };
    let reply = Reply::text(words);
    plan.steps.into_iter().fold(reply, |reply, step| reply.call(step.tool, step.arguments))
}

/// "a, b and c"
fn list(things: &[String]) -> String {
    match things {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        things => things.concat(),
    }
}

fn excuse(misread: &Misread) -> String {
    match misread {
        Misread::NoArithmetic => {
            format!("{INTRODUCTION}. All that I can do is arithmetic: ask me {EXAMPLES}.")
        }
        Misread::Unclear => format!(
            "{INTRODUCTION}, and I cannot tell what is to be worked out here. Ask me {EXAMPLES}."
        ),
        Misread::Word(word) => format!(
            "{INTRODUCTION}, and I do not know \"{word}\". I know plus, minus, times and divided by: \
             ask me {EXAMPLES}."
        ),
    }
}
