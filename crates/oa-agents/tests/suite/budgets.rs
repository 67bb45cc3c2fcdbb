//! Budgets that an agent and its sub-agents share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use oa_client::{AgentEvent, Client};
use oa_executor::ExecutorOptions;
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::tool;
use oa_turn::drive;
use oa_types::{FinishReason, Message, MessageRole};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::nested::{agent, ask, auto};

/// A server whose model never stops calling, for 10 tokens an answer.
fn endless() -> MemoryServer {
    let reply = |_: &_| Reply::text("On.").call("work", json!({})).usage(8, 2);
    MemoryServer::new(Script::new().otherwise(Reply::by(reply)))
}

fn work() -> impl oa_tools::Tool {
    tool("work", "Works").build(|_| async { Ok(json!("done")) })
}

/// A model that asks two agents at once, for 10 tokens.
fn asks_two() -> MemoryServer {
    let prompt = json!({ "prompt": "Go." });
    let two = Reply::new().call("one", prompt.clone()).call("two", prompt).usage(8, 2);
    let script = Script::new().reply(two).otherwise(Reply::text("Enough.").usage(8, 2));
    MemoryServer::new(script)
}

fn two_endless(servers: &[MemoryServer; 2]) -> [oa_agents::AgentTool; 2] {
    let one = |name, server| {
        let options = auto(server).tool(work()).max_tool_iterations(1_000).price(1e6, 1e6);
        agent(name, options.repeat_guard(None))
    };
    [one("one", &servers[0]), one("two", &servers[1])]
}

/// Returns the results of the calls in history.
fn results(client: &Client) -> Vec<Value> {
    let tools = client.history().iter().flat_map(|message| &message.content);
    let results = tools.filter_map(|block| match block {
        oa_types::ContentBlock::ToolResult(result) => Some(result.content.clone()),
        _ => None,
    });
    results.collect()
}

#[tokio::test]
async fn tokens_are_shared() {
    let (servers, model) = ([endless(), endless()], asks_two());
    let [one, two] = two_endless(&servers);
    let options = auto(&model).tool(one).tool(two).max_run_tokens(100).build().unwrap();
    let mut client = Client::new(options).unwrap();
    client.ask("Go.").await.unwrap();
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxRunTokens));
    let answers: usize = servers.iter().map(|server| server.requests().len()).sum();
    // 10 of its own and 90 of theirs, and at most one answer of each that was on its way.
    assert!((9..=11).contains(&answers), "{answers}");
    assert_eq!(model.requests().len(), 1, "the outer agent ends, too");
    let incomplete = json!({ "text": "On.", "incomplete": "max_run_tokens" });
    assert_eq!(results(&client), [incomplete.clone(), incomplete]);
    // The next prompt has its budget again.
    assert_eq!(client.ask("On.").await.unwrap().text, "Enough.");
}

#[tokio::test]
async fn money_is_shared_by_the_price_of_each() {
    let (servers, model) = ([endless(), endless()], asks_two());
    let [one, two] = two_endless(&servers);
    // An answer of the sub-agents costs 10; the outer agent's cost next to nothing.
    let options = auto(&model).tool(one).tool(two).price(1e-3, 1e-3).max_run_cost(55.0);
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.ask("Go.").await.unwrap();
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxRunCost));
    let answers: usize = servers.iter().map(|server| server.requests().len()).sum();
    assert!((6..=7).contains(&answers), "{answers}");
}

#[tokio::test]
async fn calls_are_shared() {
    let (servers, model) = ([endless(), endless()], asks_two());
    let [one, two] = two_endless(&servers);
    let options = auto(&model).tool(one).tool(two).max_tool_calls(7).build().unwrap();
    let mut client = Client::new(options).unwrap();
    client.ask("Go.").await.unwrap();
    // Two are the calls of the agents themselves, and the answer at which each ends runs none.
    let ran: usize = servers.iter().map(|server| server.requests().len() - 1).sum();
    assert!((5..=6).contains(&ran), "{ran}");
    for result in results(&client) {
        assert_eq!(result["incomplete"], "max_tool_calls");
    }
}

#[tokio::test]
async fn a_budget_reaches_two_levels_down() {
    let server = endless();
    let inner = auto(&server).tool(work()).max_tool_iterations(1_000).repeat_guard(None);
    let middle = MemoryServer::new([ask("inner").usage(5, 5)]);
    let middle_options = auto(&middle).tool(agent("inner", inner));
    let outer = MemoryServer::new([ask("middle").usage(5, 5)]);
    let options = auto(&outer).tool(agent("middle", middle_options)).max_run_tokens(60);
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.ask("Go.").await.unwrap();
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxRunTokens));
    let asked = [&server, &middle, &outer].map(|server| server.requests().len());
    assert_eq!(asked, [4, 1, 1]);
}

/// The usage of the agents below is told apart from the agent's own.
#[tokio::test]
async fn usage_of_sub_agents_is_told() {
    let text = |text: &str, tokens| MemoryServer::new([Reply::text(text).usage(tokens, 0)]);
    let [inner, broken] = [text("Found.", 1_000), MemoryServer::new([Reply::error(400, "no")])];
    let middle = MemoryServer::new([ask("inner").usage(10, 0), Reply::text("Read.").usage(20, 0)]);
    let middle_options = auto(&middle).tool(agent("inner", auto(&inner).price(1e6, 1e6)));
    let replies =
        [ask("middle").usage(1, 0), ask("broken").usage(2, 0), Reply::text("So.").usage(3, 0)];
    let outer = MemoryServer::new(Script::from(replies.to_vec()).reply(Reply::text("Hi.")));
    let options = auto(&outer).tool(agent("middle", middle_options));
    let options = options.tool(agent("broken", auto(&broken)));
    let mut client = Client::new(options.build().unwrap()).unwrap();
    let reply = client.ask("Go.").await.unwrap();
    let told = |usage: oa_types::Usage| (usage.total(), usage.cost.map(oa_types::Cost::to_f64));
    assert_eq!(told(reply.turn_usage), (Some(6), None));
    assert_eq!(told(reply.sub_agents), (Some(1_030), Some(1_000.0)));
    assert_eq!(client.turn_metadata().sub_agents, reply.sub_agents);
    let next = client.ask("Hello.").await.unwrap();
    assert_eq!(told(next.sub_agents), (None, None), "each turn has its own");
}

#[tokio::test]
async fn performed_steps_share_the_budgets() {
    let (servers, model) = ([endless(), endless()], asks_two());
    let [one, two] = two_endless(&servers);
    let options = auto(&model).tool(one).tool(two).max_run_tokens(100).build().unwrap();
    let nested = Arc::<Mutex<usize>>::default();
    let seen = Arc::clone(&nested);
    let steps = options.steps().on_event(move |event| {
        *seen.lock().unwrap() += usize::from(matches!(event, AgentEvent::Nested(_)));
    });
    let mut turn = options.turn();
    turn.prompt(Message::user("Go.")).unwrap();
    let reason = drive(&mut turn, &steps).await.unwrap();
    assert_eq!(reason, FinishReason::MaxRunTokens);
    let answers: usize = servers.iter().map(|server| server.requests().len()).sum();
    assert!((9..=11).contains(&answers), "{answers}");
    assert_eq!(turn.spent().tokens, 10 + 10 * answers as u64);
    assert!(*nested.lock().unwrap() > answers);
}

/// An answer that reports its usage before its text, and then goes on as `end` says.
fn half_an_answer(end: fn(Reply, usize) -> Reply) -> MemoryServer {
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 90, "completion_tokens": 5 } });
    let text = json!({ "choices": [{ "index": 0, "delta": { "content": "Half a" } }] });
    let body = format!("data: {usage}\n\ndata: {text}\n\n");
    let length = body.len();
    let body = format!("{body}data: {text}\n\n");
    MemoryServer::new(Script::new().otherwise(end(Reply::sse(body), length)))
}

/// The agent's own first answer takes 10 tokens, the sub-agent's half of one 95.
async fn spends_all(server: &MemoryServer, executor: ExecutorOptions) {
    let model = MemoryServer::new(Script::new().reply(ask("inner").usage(8, 2)));
    let inner = auto(server);
    let middle = MemoryServer::new(Script::new().reply(ask("innermost").usage(0, 0)));
    let middle = auto(&middle).tool(agent("innermost", inner));
    let options = auto(&model).tool(agent("inner", middle)).executor(executor).max_run_tokens(105);
    let mut client = Client::new(options.build().expect("the options fit")).expect("they do");
    client.ask("Go.").await.expect("it ends by its budget");
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxRunTokens));
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_of_a_sub_agent_that_fails_counts() {
    spends_all(&half_an_answer(Reply::reset_after), ExecutorOptions::new()).await;
}

#[tokio::test(start_paused = true)]
async fn answers_cut_by_a_timeout_count() {
    let executor = ExecutorOptions::new().timeout(Duration::from_secs(5));
    spends_all(&half_an_answer(Reply::stall_after), executor).await;
}

/// The time of the agent is that of all agents below it: at its end the innermost request is dropped, and what it had
/// used counts.
#[tokio::test(start_paused = true)]
async fn the_time_of_a_run_ends_its_sub_agents() {
    let innermost = half_an_answer(Reply::stall_after);
    let middle = MemoryServer::new(Script::new().reply(ask("innermost").usage(0, 0)));
    let middle_options = auto(&middle).tool(agent("innermost", auto(&innermost)));
    let outer = MemoryServer::new(Script::new().reply(ask("middle").usage(8, 2)));
    let options = auto(&outer).tool(agent("middle", middle_options));
    let options = options.max_run_time(Duration::from_secs(5)).last_answer_without_tools(false);
    let mut client = Client::new(options.build().unwrap()).unwrap();
    let began = Instant::now();
    client.send("Go.").await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = client.next_event().await.unwrap() {
        events.push(event);
    }
    let end = events.iter().position(|event| matches!(event, AgentEvent::TurnEnd(_)));
    assert_eq!(end, Some(events.len() - 1), "nothing follows the end");
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxRunTime));
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    assert_eq!([&innermost, &middle, &outer].map(|server| server.requests().len()), [1, 1, 1]);
    assert_eq!(client.turn_metadata().total_usage.total(), Some(10), "the agent's own answers");
    let results = client.history().iter().filter(|message| message.role == MessageRole::Tool);
    assert_eq!(results.count(), 1, "the call has its result");
}
