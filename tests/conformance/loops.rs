//! Whole turns: tools run, results go back, and the server accepts every resulting history.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use open_agent::{
    AgentOptionsBuilder, Client, ContentBlock, ErrorKind, FinishReason, FnTool, Message,
    MessageRole, ToolChoice, json, tool,
};

use crate::server::{Server, Wanted, check, lacking};

const PROMPT: &str = "What is the weather in Paris? Use the tool.";

fn weather(runs: &Arc<AtomicU32>) -> FnTool {
    let runs = Arc::clone(runs);
    tool("get_weather", "Weather for a city")
        .param("city", "string")
        .param_with("days", json!({ "type": "integer", "optional": true }))
        .param_with("unit", json!({ "type": "string", "enum": ["celsius", "fahrenheit"] }))
        .build(move |_| {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            async move { Ok(json!({ "sky": "clear", "degrees": run })) }
        })
}

pub(crate) fn options(server: &Server, runs: &Arc<AtomicU32>) -> AgentOptionsBuilder {
    server.options().tool(weather(runs)).auto_execute_tools(true)
}

/// Reads to the end; returns the text and the numbers of calls and results.
pub(crate) async fn read(client: &mut Client) -> open_agent::Result<(String, usize, usize)> {
    let (mut text, mut calls, mut results) = (String::new(), 0, 0);
    while let Some(block) = client.receive().await? {
        match block {
            ContentBlock::Text(block) => text += &block.text,
            ContentBlock::ToolUse(_) => calls += 1,
            ContentBlock::ToolResult(_) => results += 1,
            _ => {}
        }
    }
    Ok((text, calls, results))
}

/// Checks that every call is followed by its result, in order.
pub(crate) fn check_pairing(history: &[Message]) {
    let mut open: Vec<&str> = Vec::new();
    for message in history {
        for block in &message.content {
            match block {
                ContentBlock::ToolUse(call) => open.push(&call.id),
                ContentBlock::ToolResult(result) => assert_eq!(open.remove(0), result.tool_use_id),
                _ => {}
            }
        }
        assert!(open.is_empty() || message.role != MessageRole::User, "calls without a result");
    }
    assert!(open.is_empty(), "calls without a result: {open:?}");
}

#[test]
fn several_rounds_end_in_text() {
    check(Wanted::Tiny, async |server| {
        let mut most = 0;
        for rounds in 1..=3 {
            for seed in 1..=5 {
                let runs = Arc::default();
                let options = options(server, &runs).seed(seed).build().unwrap();
                let mut client = Client::new(options).unwrap();
                client.send(&format!("{PROMPT} [rounds={rounds}]")).await.unwrap();
                let (text, calls, results) = read(&mut client).await.unwrap();
                assert!(!text.is_empty(), "rounds {rounds}, seed {seed}");
                assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
                assert_eq!(client.turn_metadata().rounds, rounds);
                assert_eq!((calls, results), (runs.load(Ordering::Relaxed) as usize, calls));
                check_pairing(client.history());
                most = most.max(calls);
            }
        }
        println!("up to {most} calls in a turn");
        assert!(most > 3, "no answer had several calls");
    });
}

#[test]
fn turns_of_any_model_end() {
    check(Wanted::Any, async |server| {
        let runs = Arc::default();
        let options = options(server, &runs).build().unwrap();
        let mut client = Client::new(options).unwrap();
        match client.ask(PROMPT).await {
            Ok(_) => check_pairing(client.history()),
            Err(error) if error.kind() == ErrorKind::Api && !server.is_tiny => {
                return lacking(&format!("tools ({error})"));
            }
            Err(error) => panic!("{error:?}"),
        }
        println!("{} calls, ended by {:?}", runs.load(Ordering::Relaxed), client.finish_reason());
    });
}

#[test]
fn the_round_limit_ends_endless_turns() {
    check(Wanted::Tiny, async |server| {
        let runs = Arc::default();
        let prompt = format!("{PROMPT} [rounds=max]");
        let limited = || options(server, &runs).seed(2).max_tool_iterations(2).repeat_guard(None);
        let mut client = Client::new(limited().build().unwrap()).unwrap();
        client.send(&prompt).await.unwrap();
        let (_, calls, results) = read(&mut client).await.unwrap();
        assert_eq!(client.finish_reason(), Some(&FinishReason::MaxToolIterations));
        assert!(calls > runs.load(Ordering::Relaxed) as usize, "the last are not run");
        assert_eq!(calls, results);
        check_pairing(client.history());

        client.continue_turn().await.unwrap();
        read(&mut client).await.unwrap();
        assert_eq!(client.finish_reason(), Some(&FinishReason::MaxToolIterations));
        check_pairing(client.history());

        // The limit is the reason with or without tools; here the last message is prose.
        let last = limited().last_answer_without_tools(true).build().unwrap();
        let mut client = Client::new(last).unwrap();
        client.send(&prompt).await.unwrap();
        let (text, ..) = read(&mut client).await.unwrap();
        assert!(!text.is_empty());
        assert_eq!(client.finish_reason(), Some(&FinishReason::MaxToolIterations));
        check_pairing(client.history());
    });
}

#[test]
fn turns_continue_after_cut_calls() {
    check(Wanted::Tiny, async |server| {
        let runs = Arc::default();
        let cut = options(server, &runs).seed(3).max_tokens(25).max_tool_iterations(1);
        let cut = cut.tool_choice(ToolChoice::Required).build().unwrap();
        let mut client = Client::new(cut).unwrap();
        client.send(&format!("{PROMPT} [rounds=3]")).await.unwrap();
        let mut errors = 0;
        while let Some(block) = client.receive().await.unwrap() {
            errors += usize::from(matches!(block, ContentBlock::ToolUseError(_)));
        }
        assert!(errors > 0, "{:#?}", client.history());
        assert_eq!(runs.load(Ordering::Relaxed), 0, "what was cut off is not run");
        check_pairing(client.history());

        // The same conversation, with room for a whole call.
        let roomy = options(server, &runs).seed(3).build().unwrap();
        let mut client = Client::with_history(roomy, client.history().to_vec()).unwrap();
        client.continue_turn().await.unwrap();
        let (text, ..) = read(&mut client).await.unwrap();
        assert!(!text.is_empty() && runs.load(Ordering::Relaxed) > 0, "{:#?}", client.history());
        check_pairing(client.history());
    });
}

#[test]
fn turns_continue_after_a_server_error() {
    check(Wanted::Broken, async |server| {
        let runs = Arc::default();
        let mut failures = 0;
        for seed in 1..=5 {
            let options = options(server, &runs).seed(seed).build().unwrap();
            let mut client = Client::new(options).unwrap();
            let Err(error) = client.ask(PROMPT).await else { continue };
            assert_eq!(error.kind(), ErrorKind::Api, "{error:?}");
            check_pairing(client.history());
            // Some thinking was received, so the prompt is kept.
            assert_eq!(client.history().last().map(|last| last.role), Some(MessageRole::User));
            let again = client.continue_turn().await;
            assert!(again.is_ok(), "{again:?}");
            failures += 1;
        }
        assert!(failures > 0, "nothing was broken");
    });
}

#[test]
fn manual_turns_run_with_caller_results() {
    check(Wanted::Tiny, async |server| {
        let tool = weather(&Arc::default());
        let options = server.options().seed(2).tool(tool).build().unwrap();
        let mut client = Client::new(options).unwrap();
        client.send(&format!("{PROMPT} [rounds=2]")).await.unwrap();
        let mut text = String::new();
        let mut answered = 0;
        while let Some(block) = client.receive().await.unwrap() {
            match block {
                ContentBlock::ToolUse(call) => {
                    if answered % 2 == 0 {
                        client.add_tool_result(&call.id, json!("sunny")).unwrap();
                    } else {
                        client.add_tool_error(&call.id, "no forecast today").unwrap();
                    }
                    answered += 1;
                    client.send("").await.unwrap();
                }
                ContentBlock::Text(block) => text += &block.text,
                _ => {}
            }
        }
        assert!(answered >= 2 && !text.is_empty(), "{:#?}", client.history());
        check_pairing(client.history());
    });
}
