//! Turns that take ten times the context of the server.

use std::sync::{Arc, Mutex};

use oa_testkit::Strict;
use open_agent::{
    AgentEvent, Client, ContentBlock, ContextPolicy, FinishReason, FnTool, HowShortened, Overflow,
    Provider, ToolChoice, count_text_tokens, json, tool,
};
use serde_json::Value;
use tower::service_fn;

use crate::loops::check_pairing;
use crate::server::{Server, Wanted, check};
use crate::wire::{Exchange, Exchanges};

/// The context of the server.
const CONTEXT: u64 = 2_048;
const CALLS: usize = 40;

#[test]
fn long_turns_end_by_clearing_and_dropping() {
    check(Wanted::Short, async |server| {
        let (how, largest) = run(server, Overflow::DropOldest).await;
        println!("at most {largest} tokens at once: {how:?}");
        assert!(how.results_cleared > 0 && how.messages_dropped > 0, "{how:?}");
        assert_eq!(how.messages_summarized, 0);
    });
}

#[test]
fn long_turns_end_by_clearing_and_summaries() {
    check(Wanted::Short, async |server| {
        let (how, largest) = run(server, Overflow::Summarize).await;
        println!("at most {largest} tokens at once: {how:?}");
        assert!(how.results_cleared > 0 && how.messages_summarized > 0, "{how:?}");
        assert_eq!((how.messages_dropped, how.summary_error), (0, None));
    });
}

/// Runs a turn to its end and checks it. Returns the sums of how it was shortened, and the tokens of the longest prompt.
async fn run(server: &Server, overflow: Overflow) -> (HowShortened, u64) {
    let (pages, exchanges) = (Arc::default(), Exchanges::default());
    let record = exchanges.clone();
    // A third of the context is a result, so only the last one stays: there is something to clear.
    let policy = ContextPolicy::new(CONTEXT as usize)
        .with_overflow(overflow)
        .with_kept_results(1)
        .with_target(0.7);
    let options = server
        .options()
        .seed(9)
        .transport(service_fn(move |request| record.clone().send(request)))
        .tool(reader(&pages))
        .auto_execute_tools(true)
        .repeat_guard(None)
        .max_tool_iterations(2 * CALLS as u32)
        .before_step(|step| async move {
            if step.number() as usize <= CALLS {
                step.tool_choice(ToolChoice::Required)
            } else {
                // With tools this model would write a call, even where it must not.
                step.only_tools(Vec::<String>::new())
            }
        })
        .context(policy)
        .build()
        .expect("the options fit");
    let mut client = Client::new(options).expect("the options fit");
    client.send("Read all pages. [rounds=max]").await.expect("it is sent");

    let mut sum = HowShortened::default();
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    while let Some(event) = client.next_event().await.expect("the turn goes on") {
        match event {
            AgentEvent::Block(ContentBlock::ToolUse(call)) => calls.push(call.id),
            AgentEvent::Block(ContentBlock::ToolResult(result)) => results.push(result.tool_use_id),
            AgentEvent::ContextShortened(event) => {
                sum.results_cleared += event.how.results_cleared;
                sum.messages_dropped += event.how.messages_dropped;
                sum.messages_summarized += event.how.messages_summarized;
                sum.summary_error = sum.summary_error.or(event.how.summary_error);
            }
            _ => {}
        }
    }
    assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
    let last = client.history().last().expect("an answer");
    assert!(!last.text().is_empty(), "{last:#?}");
    check_pairing(client.history());
    assert_eq!(calls, results, "each call has its result, in order");
    let pages = pages.lock().expect("no tool panics").clone();
    assert_eq!((calls.len(), pages.len()), (CALLS, CALLS));

    let counter = server.options().provider(Provider::LlamaCpp).build().expect("the options fit");
    let whole = count_text_tokens(&counter, &pages.concat()).await.expect("a count");
    assert!(whole >= 10 * CONTEXT, "{whole} tokens are too few");
    let (rules, mut largest, mut forced, mut others) = (Strict::new(), 0, 0, 0);
    for Exchange { request, answer } in exchanges.take() {
        rules.check_bytes(&request).unwrap_or_else(|wrong| panic!("{wrong}: {request:?}"));
        // A refused request has none.
        let tokens = prompt_tokens(&answer).unwrap_or_else(|| panic!("{request:?}: {answer:?}"));
        assert!(tokens <= CONTEXT, "{tokens} tokens: {request:?}");
        largest = largest.max(tokens);
        let request: Value = serde_json::from_slice(&request).expect("JSON");
        *(if request.get("tools").is_some() { &mut forced } else { &mut others }) += 1;
    }
    assert_eq!(forced, CALLS);
    // The last request, and those for summaries.
    assert_eq!(others > 1, sum.messages_summarized > 0, "{others}");
    (sum, largest)
}

/// A tool whose pages take about 600 tokens each, and are kept.
fn reader(pages: &Arc<Mutex<Vec<String>>>) -> FnTool {
    let pages = Arc::clone(pages);
    tool("read", "Reads the next page").param("book", "string").build(move |_| {
        let mut pages = pages.lock().expect("no tool panics");
        let page = format!("Page {}. {}", pages.len() + 1, "Bees live in hives. ".repeat(36));
        pages.push(page.clone());
        async move { Ok(json!(page)) }
    })
}

/// Returns the tokens of the prompt, as the server reports them in its stream.
fn prompt_tokens(answer: &[u8]) -> Option<u64> {
    let text = str::from_utf8(answer).ok()?;
    text.lines().rev().find_map(|line| {
        let chunk: Value = serde_json::from_str(line.strip_prefix("data: ")?).ok()?;
        chunk["usage"]["prompt_tokens"].as_u64()
    })
}
