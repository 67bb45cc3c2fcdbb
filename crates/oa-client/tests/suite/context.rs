//! Turns that shorten their conversation while they run.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oa_client::{
    AgentEvent, AgentOptions, AgentOptionsBuilder, Client, ErrorKind, OutputMode, ResponseFormat,
};
use oa_context::{ContextPolicy, ContextShortened, Overflow, estimate_text};
use oa_testkit::{MemoryServer, Reply, Request, Script, Strict};
use oa_tools::{Cancel, tool};
use oa_turn::drive;
use oa_types::{ContentBlock, FinishReason, Message, TextBlock};
use serde_json::{Value, json};

const PROMPT: &str = "Read all pages.";

/// The tokens of a request, about.
fn size(request: &Request) -> u64 {
    let body = request.json();
    let tools = body.get("tools").map_or(0, |tools| estimate_text(&tools.to_string()));
    (estimate_text(&body["messages"].to_string()) + tools) as u64
}

/// A server with a small context: it calls `read` page by page, and summarizes when it is asked to.
fn server(pages: u64, context: u64, summary: Reply) -> MemoryServer {
    let answer = move |request: &Request| {
        let used = size(request);
        if used > context {
            let message = format!(
                "request ({used} tokens) exceeds the available context size ({context} tokens)"
            );
            return Reply::json(
                400,
                json!({ "error": {
                    "code": 400,
                    "message": message,
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": used,
                    "n_ctx": context,
                }}),
            );
        }
        if is_summary(request) {
            return summary.clone().usage(used, 20);
        }
        let mut calls = request.messages().iter().rev().filter_map(|message| {
            let arguments = message["tool_calls"][0]["function"]["arguments"].as_str()?;
            serde_json::from_str::<Value>(arguments).ok()?["page"].as_u64()
        });
        let page = calls.next().unwrap_or_default() + 1;
        let reply = match page > pages {
            true => Reply::text("I have read all pages."),
            false => {
                let id = format!("call_{page}");
                Reply::new().call_with_id(id, "read", json!({ "page": page }))
            }
        };
        reply.usage(used, 20)
    };
    MemoryServer::new(Script::new().strict_by(Strict::new()).otherwise(Reply::by(answer)))
}

pub(crate) fn is_summary(request: &Request) -> bool {
    let [only] = request.messages() else { return false };
    only["content"].as_str().is_some_and(|text| text.starts_with("Summarize"))
}

fn bees() -> Reply {
    Reply::text("The pages are about bees. ".repeat(5))
}

fn agent(server: &MemoryServer) -> AgentOptionsBuilder {
    let read = tool("read", "Reads a page").param("page", "integer").build(|input| async move {
        Ok(json!(format!("Page {}. {}", input["page"], "Bees live in hives. ".repeat(75))))
    });
    AgentOptions::builder()
        .model("small")
        .system_prompt("Be brief.")
        .transport(server.clone())
        .tool(read)
        .auto_execute_tools(true)
        .max_tool_iterations(1_000)
}

fn client(options: AgentOptionsBuilder) -> Client {
    Client::new(options.build().expect("the options fit")).expect("the options fit")
}

/// Runs the prompt to its end, and returns what was shortened.
async fn run(client: &mut Client) -> Result<Vec<ContextShortened>, oa_client::Error> {
    client.send(PROMPT).await?;
    let mut shortened = Vec::new();
    while let Some(event) = client.next_event().await? {
        if let AgentEvent::ContextShortened(event) = event {
            shortened.push(event);
        }
    }
    Ok(shortened)
}

fn runs(client: &Client) -> usize {
    let is_call = |block: &&ContentBlock| matches!(block, ContentBlock::ToolUse(_));
    client.history().iter().flat_map(|message| &message.content).filter(is_call).count()
}

/// 200 calls, whose results take twenty times the context.
#[tokio::test]
async fn runs_of_many_contexts_complete() {
    for overflow in [Overflow::DropOldest, Overflow::Summarize] {
        let server = server(200, 4_096, bees());
        let policy = ContextPolicy::new(4_096).with_overflow(overflow);
        let archived = Arc::<Mutex<Vec<Message>>>::default();
        let archive = Arc::clone(&archived);
        let mut client = client(agent(&server).context(policy).archive_context(move |messages| {
            archive.lock().unwrap().extend(messages);
            std::future::ready(())
        }));
        let shortened = run(&mut client).await.unwrap();
        assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
        assert_eq!(client.history().last().unwrap().text(), "I have read all pages.");
        let requests = server.requests();
        assert!(requests.iter().all(|request| size(request) <= 4_096), "none was refused");
        assert_eq!(requests.iter().filter(|request| !is_summary(request)).count(), 201);
        let archived = archived.lock().unwrap().clone();
        let whole: Vec<Message> = client.history().iter().chain(&archived).cloned().collect();
        for page in [1, 50, 100, 199, 200] {
            let page = format!("Page {page}. Bees");
            let is_page = |block: &ContentBlock| {
                matches!(
                    block,
                    ContentBlock::ToolResult(result)
                        if result.content.as_str().is_some_and(|text| text.starts_with(&page))
                )
            };
            assert!(whole.iter().flat_map(|message| &message.content).any(is_page), "{page}");
        }
        assert!(client.history().iter().any(|message| message.text() == PROMPT));
        assert!(shortened.len() > 10, "{}", shortened.len());
        let (mut cleared, mut dropped, mut summarized) = (0, 0, 0);
        for ContextShortened { before, after, how, .. } in &shortened {
            assert!(*before >= 3_276 && *after <= 2_048, "{before} {after}");
            cleared += how.results_cleared;
            dropped += how.messages_dropped;
            summarized += how.messages_summarized;
            assert_eq!(how.summary_error, None);
        }
        assert!(cleared > 0);
        assert_eq!(
            (dropped > 0, summarized > 0),
            match overflow {
                Overflow::Summarize => (false, true),
                _ => (true, false),
            }
        );
        let summaries = client.history().iter().filter(|m| m.text().contains("about bees"));
        assert_eq!(summaries.count(), usize::from(summarized > 0), "one at a time");
        // All answers are counted, including summaries.
        let spent = client.turn_metadata().total_usage.completion_tokens;
        assert_eq!(spent, Some(20 * requests.len() as u64));
        server.verify();
    }
}

#[tokio::test]
async fn overflow_without_a_policy_is_an_error() {
    let server = server(200, 4_096, bees());
    let error = run(&mut client(agent(&server))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ContextOverflow);
}

/// The policy assumes a larger context than the server has, so requests are rejected.
#[tokio::test]
async fn rejected_requests_are_shortened() {
    let server = server(60, 2_048, bees());
    let policy = ContextPolicy::new(4_096).with_trigger(1.0).with_target(0.6);
    let mut client = client(agent(&server).context(policy));
    let shortened = run(&mut client).await.unwrap();
    let refused = server.requests().iter().filter(|request| size(request) > 2_048).count();
    assert_eq!(refused, shortened.len());
    assert!(refused > 3, "{refused}");
    assert_eq!(client.history().last().unwrap().text(), "I have read all pages.");
    server.verify();
}

/// Some servers report in the stream that a prompt is too long.
fn too_long() -> Reply {
    let message = "request (5000 tokens) exceeds the available context size (2048 tokens)";
    let error = json!({ "code": 400, "message": message, "type": "exceed_context_size_error" });
    Reply::new().without_usage().event(json!({ "error": error }))
}

/// A client with a conversation that can be shortened.
fn talked(server: &MemoryServer) -> Client {
    let bees = TextBlock::new("Bees. ".repeat(500)).into();
    let old = vec![Message::user("Tell me of bees."), Message::assistant(vec![bees])];
    let options =
        agent(server).context(ContextPolicy::new(4_096)).build().expect("the test is set up");
    Client::with_history(options, old).expect("the test is set up")
}

/// A stream with an overflow is not an answer: the shorter request gets the only one.
#[tokio::test]
async fn overflow_in_the_stream_is_not_an_answer() {
    for fails in [false, true] {
        let second = if fails { too_long() } else { Reply::text("Done.") };
        let server = MemoryServer::new([too_long(), second]);
        let mut client = talked(&server);
        client.send("And wasps?").await.unwrap();
        let mut told = Vec::new();
        let error = loop {
            told.push(match client.next_event().await {
                Ok(Some(AgentEvent::AnswerStart)) => "start",
                Ok(Some(AgentEvent::AnswerEnd(_))) => "end",
                Ok(Some(AgentEvent::Block(_))) => "text",
                Ok(Some(AgentEvent::ContextShortened(_))) => "shortened",
                Ok(Some(AgentEvent::TurnEnd(_))) => "over",
                Ok(Some(AgentEvent::Problem(_))) => continue,
                Ok(Some(event)) => panic!("{event:?}"),
                Ok(None) => break None,
                Err(error) => break Some(error.kind()),
            });
        };
        told.dedup();
        match fails {
            false => assert_eq!(told, ["start", "shortened", "text", "end", "over"]),
            true => assert_eq!(told, ["start", "shortened"]),
        }
        assert_eq!(error, fails.then_some(ErrorKind::ContextOverflow));
        assert_eq!(server.requests().len(), 2);
    }
}

/// On the way to a checkpoint, events are kept, but not those of a shortening that was undone.
#[tokio::test]
async fn checkpoints_pass_no_undone_shortening() {
    let status = Reply::json(400, json!({ "error": { "message": "maximum context length" } }));
    for second in [too_long(), status] {
        let server = MemoryServer::new([too_long(), second]);
        let mut client = talked(&server);
        let before = client.history().to_vec();
        client.send("And wasps?").await.unwrap();
        let error = client.next_checkpoint().await.unwrap_err();
        assert_eq!((error.kind(), client.history()), (ErrorKind::ContextOverflow, &before[..]));
        assert_eq!(server.requests().len(), 2);
        let mut passed = Vec::new();
        while let Some(event) = client.next_event().await.unwrap() {
            passed.push(event);
        }
        assert!(matches!(passed[..], [AgentEvent::AnswerStart, ..]), "{passed:?}");
        let is_shortening = |event: &AgentEvent| matches!(event, AgentEvent::ContextShortened(_));
        assert!(!passed.iter().any(is_shortening), "{passed:?}");
    }
}

#[tokio::test]
async fn a_second_overflow_is_an_error() {
    let server = server(60, 300, bees());
    let mut client = client(agent(&server).context(ContextPolicy::new(4_096)));
    let error = run(&mut client).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ContextOverflow);
    assert_eq!(server.requests().len(), 3, "the call, and its result twice");
    assert_eq!(runs(&client), 1);
    assert_eq!(client.continue_turn().await.unwrap_err().kind(), ErrorKind::ContextOverflow);
    assert_eq!(client.history().len(), 3);
}

/// A prompt that is rejected even with nothing before it takes nothing with it.
#[tokio::test]
async fn prompts_too_long_leave_the_history() {
    for (overflow, length) in
        [(Overflow::DropOldest, 60), (Overflow::Summarize, 60), (Overflow::Summarize, 400)]
    {
        let server = server(0, 1_200, bees());
        let policy = ContextPolicy::new(4_096).with_overflow(overflow);
        let mut client = client(agent(&server).context(policy));
        for number in 0..5 {
            client.ask(format!("Fact {number}. {}", "Remember it. ".repeat(20))).await.unwrap();
        }
        let before = client.history().to_vec();
        let error = client.ask("A line of a log. ".repeat(length * 5)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ContextOverflow);
        assert_eq!(client.history(), before);
        assert_eq!(client.next_event().await.unwrap(), None, "nothing was shortened after all");
        let reply = client.ask("Go on.").await.unwrap();
        assert_eq!(reply.text, "I have read all pages.");
        assert_eq!(client.history().len(), 12);
    }
}

#[tokio::test]
async fn failed_summaries_drop_messages() {
    let server = server(40, 4_096, Reply::new().refuse("I cannot."));
    let policy = ContextPolicy::new(4_096).with_overflow(Overflow::Summarize);
    let mut client = client(agent(&server).context(policy));
    let shortened = run(&mut client).await.unwrap();
    let failed = shortened.iter().filter(|event| event.how.summary_error.is_some());
    assert!(failed.count() > 0);
    for ContextShortened { how, .. } in &shortened {
        assert_eq!(how.messages_summarized, 0);
        if let Some(error) = &how.summary_error {
            assert_eq!(error, "the model refused to summarize");
            assert!(how.messages_dropped > 0);
        }
    }
    assert_eq!(client.history().last().unwrap().text(), "I have read all pages.");
}

#[tokio::test(start_paused = true)]
async fn interrupts_reach_a_summary() {
    let server = server(40, 4_096, bees().stall_after(100));
    let policy = ContextPolicy::new(4_096).with_overflow(Overflow::Summarize);
    let mut client = client(agent(&server).context(policy));
    let handle = client.interrupt_handle();
    let (done, ()) = tokio::join!(run(&mut client), async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        handle.interrupt();
    });
    done.unwrap();
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
    assert!(is_summary(server.requests().last().unwrap()));
    // It can go on, and is shortened then.
    client.continue_turn().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn interrupted_summaries_count_their_usage() {
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 900, "completion_tokens": 7 } });
    let half = Reply::new().event(usage).say("Bees").say("z".repeat(5_000)).stall_after(2_000);
    let policy = ContextPolicy::new(4_096).with_overflow(Overflow::Summarize);
    let is_half = |request: &&Request| is_summary(request);
    // In the middle of a turn.
    let first = server(40, 4_096, half.clone());
    let mut client = client(agent(&first).context(policy.clone()));
    let handle = client.interrupt_handle();
    let interrupt = || async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        handle.interrupt();
    };
    let (done, ()) = tokio::join!(run(&mut client), interrupt());
    done.unwrap();
    let requests = first.requests();
    let asked: u64 = requests.iter().filter(|one| !is_summary(one)).map(|one| size(one) + 20).sum();
    assert_eq!(requests.iter().filter(is_half).count(), 1);
    assert_eq!(client.turn_metadata().total_usage.total(), Some(asked + 907));
    // On request.
    let before = client.turn_metadata().total_usage.total().unwrap();
    let small = ContextPolicy::new(1_000).with_overflow(Overflow::Summarize);
    let (done, ()) = tokio::join!(client.compact(&small), interrupt());
    assert_eq!(done.unwrap(), oa_client::Compaction::Interrupted);
    assert_eq!(client.turn_metadata().total_usage.total(), Some(before + 907));
    // As a step.
    let second = server(40, 4_096, half);
    let options = agent(&second).context(policy).build().unwrap();
    let cancel = Cancel::new();
    let (mut turn, steps) = (options.turn(), options.steps().with_cancel(cancel.clone()));
    turn.prompt(Message::user(PROMPT)).unwrap();
    let (done, ()) = tokio::join!(drive(&mut turn, &steps), async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        cancel.cancel();
    });
    assert_eq!(done.unwrap(), FinishReason::Interrupted);
    assert_eq!(turn.spent().tokens, asked + 907);
}

/// The format of structured output is that of the answer. A summary is text.
#[tokio::test]
async fn summaries_are_not_structured() {
    let server = server(40, 4_096, bees());
    let policy = ContextPolicy::new(4_096).with_overflow(Overflow::Summarize);
    let mut client = client(agent(&server).context(policy));
    let format = ResponseFormat::new("pages", json!({"type": "object", "properties": {}}));
    let sent = client.send_for_format(PROMPT, format).mode(OutputMode::Prompt);
    assert_eq!(sent.await.unwrap_err().kind(), ErrorKind::Output);
    let requests = server.requests();
    let asks = |request: &&Request| {
        let last = request.messages().last().and_then(|last| last["content"].as_str());
        last.is_some_and(|text| text.starts_with("Summarize"))
    };
    let asked: Vec<&Request> = requests.iter().filter(asks).collect();
    assert!(!asked.is_empty());
    assert!(asked.into_iter().all(is_summary), "without a system prompt");
}

/// The server's error reports its context size, which is a quarter of the policy's.
#[tokio::test]
async fn shortening_uses_the_servers_size() {
    let server = server(40, 2_048, bees());
    let mut client = client(agent(&server).context(ContextPolicy::new(8_192)));
    let shortened = run(&mut client).await.unwrap();
    assert_eq!(client.history().last().unwrap().text(), "I have read all pages.");
    let refused = server.requests().iter().filter(|request| size(request) > 2_048).count();
    assert_eq!(refused, shortened.len(), "each refusal was followed by a request that fits");
    assert!(shortened.iter().all(|event| event.before > 2_048 && event.after <= 1_100));
}

#[tokio::test]
async fn summaries_count_towards_the_budget() {
    let server = server(100, 4_096, bees());
    let policy = ContextPolicy::new(4_096).with_overflow(Overflow::Summarize);
    let mut client = client(agent(&server).context(policy).max_run_tokens(60_000));
    run(&mut client).await.unwrap();
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxRunTokens));
    let all: u64 = server.requests().iter().map(|request| size(request) + 20).sum();
    let last = size(server.requests().last().unwrap()) + 20;
    assert!(server.requests().iter().any(is_summary));
    assert!(all >= 60_000 && all - last < 60_000, "{all}, {last} for the last");
}

#[tokio::test]
async fn failed_archives_end_the_turn() {
    let servers = [server(40, 4_096, bees()), server(40, 4_096, bees())];
    let [fails, panics] =
        servers.each_ref().map(|server| agent(server).context(ContextPolicy::new(4_096)));
    let fails =
        fails.archive_context(async |_| io::Result::<()>::Err(io::ErrorKind::StorageFull.into()));
    let panics = panics.archive_context(|_| async { panic!("disk full") });
    let cases = [(fails, "failed: no storage space"), (panics, "panicked: disk full")];
    for ((options, why), server) in cases.into_iter().zip(&servers) {
        let mut client = client(options);
        let error = run(&mut client).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Hook);
        assert_eq!(error.to_string(), format!("archive_context {why}"));
        assert_eq!(runs(&client), server.requests().len(), "what was not archived is not gone");
    }
    let vain = agent(&servers[0]).archive_context(|_| async {}).build().unwrap_err();
    assert_eq!(vain.to_string(), "archive_context has no effect without context");
}

#[tokio::test]
async fn steps_shorten_as_the_client_does() {
    let policy = || ContextPolicy::new(4_096).with_overflow(Overflow::Summarize);
    let first = server(60, 4_096, bees());
    let mut client = client(agent(&first).context(policy()));
    let shortened = run(&mut client).await.unwrap();
    let second = server(60, 4_096, bees());
    let options = agent(&second).context(policy()).build().unwrap();
    let mut turn = options.turn();
    turn.prompt(Message::user(PROMPT)).unwrap();
    let told = Arc::<Mutex<Vec<ContextShortened>>>::default();
    let log = Arc::clone(&told);
    let steps = options.steps().on_event(move |event| {
        if let AgentEvent::ContextShortened(event) = event {
            log.lock().unwrap().push(event);
        }
    });
    assert_eq!(drive(&mut turn, &steps).await.unwrap(), FinishReason::Stop);
    assert_eq!(turn.history().to_vec(), client.history());
    assert_eq!(*told.lock().unwrap(), shortened);
    assert!(shortened.iter().any(|event| event.how.messages_summarized > 0));
}

#[tokio::test]
async fn long_histories_are_shortened_first() {
    let server = server(0, 4_096, bees());
    let mut messages = Vec::new();
    for number in 0..30 {
        messages.push(Message::user(format!("Question {number}? {}", "Really? ".repeat(80))));
        messages.push(Message::assistant(vec![TextBlock::new("Yes.").into()]));
    }
    let options = agent(&server).context(ContextPolicy::new(4_096)).build().unwrap();
    let mut client = Client::with_history(options, messages).unwrap();
    let shortened = run(&mut client).await.unwrap();
    assert_eq!(shortened.len(), 1);
    assert!(shortened[0].how.messages_dropped > 20);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn multipart_summaries_keep_to_the_budget() {
    let answer = |_: &Request| Reply::text("The pages are about bees.").usage(900, 100);
    let server = MemoryServer::new(Script::new().strict().otherwise(Reply::by(answer)));
    let policy = ContextPolicy::new(1_000).with_overflow(Overflow::Summarize);
    let options = AgentOptions::builder().model("any").transport(server.clone());
    let options = options.auto_execute_tools(true).context(policy).max_run_tokens(1_500);
    let exchange = |page: usize| {
        let text = format!("Page {page}. {}", "Bees live in hives. ".repeat(60));
        [Message::user(text), Message::assistant(vec![TextBlock::new("It is read.").into()])]
    };
    let history = (0..12).flat_map(exchange).collect();
    let mut client = Client::with_history(options.build().unwrap(), history).unwrap();
    client.send(PROMPT).await.unwrap();
    while client.receive().await.unwrap().is_some() {}
    assert_eq!(client.turn_metadata().finish_reason, Some(FinishReason::MaxRunTokens));
    let requests = server.requests();
    assert!(requests.iter().all(is_summary), "the turn ends before its first request");
    assert_eq!(requests.len(), 2, "no answer begins after the budget is used up");
}
