//! A real model of 135 million parameters: what it gets right with our help, as a table.
//!
//! Which answers are right is up to the model, and only printed. What the client promises whatever the model says is
//! asserted: calls under a schema are well-formed and of an offered tool, text streams, counts agree, an interrupt
//! frees the slot.

mod prompts;
mod tools;

use std::time::{Duration, Instant};

use oa_tools::check_arguments;
use open_agent::{
    AgentOptions, AgentOptionsBuilder, Client, ContentBlock, FinishReason, Message, Provider,
    ToolMode, count_text_tokens, count_tokens, json, query_for,
};
use schemars::JsonSchema;
use serde::Deserialize;

use self::prompts::PROMPTS;
use self::tools::{calculator, tools};
use crate::answer::ask;
use crate::connections::busy;
use crate::server::{Server, Wanted, check_alone};

/// The number of seeds that each row is asked with.
const SEEDS: u64 = 10;

#[test]
fn a_small_model_is_scored() {
    check_alone(Wanted::Small, async |server| {
        line("SmolLM2-135M-Instruct, 10 seeds", "right", "seconds");
        line("---", "---", "---");
        macro_rules! row {
            ($what:literal, $work:expr) => {
                let began = Instant::now();
                let (right, of) = $work.await;
                let seconds = format!("{:.1}", began.elapsed().as_secs_f64());
                line($what, &format!("{right}/{of}"), &seconds);
            };
        }
        row!("text: the capital of France is Paris", text(server));
        row!("structured output: the city and its country", structured(server));
        row!("usage as the server's tokenizer counts", usage(server));
        row!("after an interrupt the slot is free", interrupt(server));
        let began = Instant::now();
        let [tool, arguments] = forced(server).await;
        let (of, seconds) = (PROMPTS.len(), format!("{:.1}", began.elapsed().as_secs_f64()));
        line("forced calls: well-formed, of an offered tool", &format!("{of}/{of}"), &seconds);
        line("forced calls: of the right tool", &format!("{tool}/{of}"), "");
        line("forced calls: with the right arguments, too", &format!("{arguments}/{of}"), "");
        row!("constrained: calls add(25, 17)", dialect(server, ToolMode::Constrained));
        row!("ReAct: calls add(25, 17)", dialect(server, ToolMode::React));
        row!("markers: call add(25, 17)", dialect(server, ToolMode::Markers));
        row!("tagged JSON: calls add(25, 17)", dialect(server, ToolMode::TaggedJson));
        row!("calculator: calls, and says the result", calculate(server));
    });
}

/// Prints a line of the table.
#[expect(clippy::print_stdout, reason = "the table is what this is for")]
fn line(what: &str, right: &str, seconds: &str) {
    println!("| {what:<45} | {right:>5} | {seconds:>7} |");
}

/// Options with short answers; a higher temperature for answers that differ from seed to seed.
fn options(server: &Server, seed: u64) -> AgentOptionsBuilder {
    server.options().seed(seed).temperature(0.5).max_tokens(120)
}

fn built(options: AgentOptionsBuilder) -> AgentOptions {
    options.build().expect("options")
}

async fn text(server: &Server) -> (usize, usize) {
    let (mut right, mut pieces) = (0, 0);
    for seed in 0..SEEDS {
        let options = built(options(server, seed).max_tokens(40));
        let answer = ask(&options, "What is the capital of France?").await.expect("an answer");
        right += usize::from(answer.text().contains("Paris"));
        pieces += answer.pieces() as u64;
        assert!(
            matches!(answer.finish(), FinishReason::Stop | FinishReason::Length),
            "{:?}",
            answer.finish()
        );
    }
    assert!(pieces > 2 * SEEDS, "text does not stream: {pieces} pieces of {SEEDS} answers");
    (right, SEEDS as usize)
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Place {
    #[schemars(length(max = 30))]
    city: String,
    #[schemars(length(max = 30))]
    country: String,
}

async fn structured(server: &Server) -> (usize, usize) {
    let mut right = 0;
    for seed in 0..SEEDS {
        let options = built(options(server, seed));
        let prompt = "Anna lives in Oslo, the capital of Norway. Where does she live?";
        let place = query_for::<Place>(prompt, &options).await.expect("the grammar holds it");
        assert_eq!(place.tries, 1, "{place:?}");
        right += usize::from(place.value.city == "Oslo" && place.value.country == "Norway");
    }
    (right, SEEDS as usize)
}

/// Tokens of prompts and answers, against those of the server's own tokenizer.
async fn usage(server: &Server) -> (usize, usize) {
    for (seed, &(_, prompt, _)) in (0..SEEDS).zip(PROMPTS.iter().step_by(4)) {
        let options = built(options(server, seed).max_tokens(24).provider(Provider::LlamaCpp));
        let answer = ask(&options, prompt).await.expect("an answer");
        let usage = answer.message.usage.expect("usage");
        let counted = count_tokens(&options, &[Message::user(prompt)]).await.expect("a count");
        assert_eq!(usage.prompt_tokens, Some(counted), "{prompt}");
        let counted = count_text_tokens(&options, &answer.text()).await.expect("a count");
        let written = usage.completion_tokens.expect("usage");
        // One more for the end; text may be split in another way than it was generated.
        assert!(written.abs_diff(counted) <= 4, "{written} and {counted}: {answer:?}");
    }
    (SEEDS as usize, SEEDS as usize)
}

/// An interrupted answer of any length leaves the slot to the next request.
async fn interrupt(server: &Server) -> (usize, usize) {
    for seed in 0..SEEDS {
        let endless = json!({ "max_tokens": -1, "ignore_eos": true });
        let endless = options(server, seed).extra_body(endless);
        let mut client = Client::new(built(endless)).expect("a client");
        client.send("Tell me a long story.").await.expect("an answer");
        for _ in 0..5 {
            client.receive().await.expect("no error").expect("it has no end");
        }
        assert_eq!(busy(server).await, Some(1));
        client.interrupt_handle().interrupt();
        while client.receive().await.expect("no error").is_some() {}
        assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
        let began = Instant::now();
        let options = built(options(server, seed).max_tokens(4));
        ask(&options, "Say hello.").await.expect("the only slot is free");
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
    (SEEDS as usize, SEEDS as usize)
}

/// All of 40 forced calls are well-formed and of an offered tool. Returns how many are of the right one, and how many of
/// these have the right arguments.
async fn forced(server: &Server) -> [usize; 2] {
    let mut right = [0, 0];
    for (at, (tool, prompt, wanted)) in PROMPTS.iter().enumerate() {
        let mut options = options(server, at as u64 % SEEDS)
            .temperature(0.0)
            .tool_mode(ToolMode::Constrained)
            .tool_choice("required");
        for tool in tools() {
            options = options.tool(tool);
        }
        let answer = ask(&built(options), prompt).await.expect("an answer");
        let calls = answer.calls();
        assert_eq!((calls.len(), answer.broken_calls().len()), (1, 0), "{prompt}: {answer:?}");
        assert_eq!(answer.text(), "", "{prompt}");
        let known = tools().into_iter().find(|tool| tool.spec().name == calls[0].name);
        let schema =
            known.unwrap_or_else(|| panic!("no such tool: {:?}", calls[0])).spec().parameters;
        assert!(check_arguments(&schema, calls[0].input.clone()).is_ok(), "{calls:?}");
        let input = calls[0].input.to_string().to_lowercase();
        let is_right = calls[0].name == *tool;
        right[0] += usize::from(is_right);
        right[1] += usize::from(is_right && wanted.iter().all(|it| input.contains(it)));
    }
    right
}

/// Counts the right calls of the model with the same tools and prompt, free in what it writes.
async fn dialect(server: &Server, mode: ToolMode) -> (usize, usize) {
    let mut right = 0;
    for seed in 0..SEEDS {
        let mut options = options(server, seed).max_tokens(60).tool_mode(mode.clone());
        for tool in tools() {
            options = options.tool(tool);
        }
        let answer = ask(&built(options), "Add 25 and 17.").await.expect("an answer");
        let is_right = |call: &open_agent::ToolUseBlock| {
            let number = |name: &str| call.input[name].as_f64();
            call.name == "add" && (number("a"), number("b")) == (Some(25.0), Some(17.0))
        };
        right += usize::from(answer.calls().iter().any(is_right));
    }
    (right, SEEDS as usize)
}

/// The calculator of the quickstart: the first step must call, the second must answer.
async fn calculate(server: &Server) -> (usize, usize) {
    let mut right = 0;
    for seed in 0..SEEDS {
        let mut options = options(server, seed)
            .system_prompt("You are a calculator.")
            .tool_mode(ToolMode::Constrained)
            .auto_execute_tools(true)
            .before_step(|step| async move {
                step.tool_choice(if step.number() == 1 { "required" } else { "none" })
            });
        for tool in calculator() {
            options = options.tool(tool);
        }
        let mut client = Client::new(built(options)).expect("a client");
        client.send("Add 25 and 17.").await.expect("an answer");
        let (mut text, mut calls) = (String::new(), 0);
        while let Some(block) = client.receive().await.expect("no error") {
            match block {
                ContentBlock::Text(block) => text.push_str(&block.text),
                ContentBlock::ToolUse(_) => calls += 1,
                ContentBlock::ToolResult(_) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((calls, client.turn_metadata().rounds), (1, 1), "{:?}", client.history());
        assert!(!text.is_empty(), "{:?}", client.history());
        assert_eq!(client.history().len(), 4);
        right += usize::from(text.contains("42"));
    }
    (right, SEEDS as usize)
}
