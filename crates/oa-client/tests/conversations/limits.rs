//! Limits of one prompt, and on the number of prompts.

use std::time::Duration;

use oa_client::{Client, ErrorKind, query};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::tool;
use oa_types::{Cost, FinishReason};
use serde_json::json;

use suite::talk::{
    Alive, adder, auto, client, echo, hanging, interrupt_after, manual, read, slow, stalling,
    strict, talk, told,
};

/// An answer with one unique call.
fn round(place: u32) -> Reply {
    Reply::new().call_with_id(format!("c{place}"), "echo", json!({"say": place.to_string()}))
}

/// A server whose model calls a tool whenever one is offered, and otherwise repeats its instructions.
fn insatiable() -> MemoryServer {
    let reply = Reply::by(|request| {
        let number = u32::try_from(request.number()).expect("a small number");
        if request.json()["tools"].is_array() { round(number) } else { Reply::text("Enough.") }
    });
    MemoryServer::new(Script::new().strict().otherwise(reply))
}

#[track_caller]
fn ends_with(client: &Client, line: &str) {
    let told = told(client.history());
    assert_eq!(told.last().map(String::as_str), Some(line), "{told:#?}");
}

#[tokio::test]
async fn calls_after_the_last_round_do_not_run() {
    let server = insatiable();
    let mut client = client(auto(&server).tool(echo()).max_tool_iterations(2));
    let seen = talk(&mut client, "Go.").await;
    assert_eq!(
        seen,
        [
            r#"[c1 echo {"say":"1"}]"#,
            r#"c1="1""#,
            r#"[c2 echo {"say":"2"}]"#,
            r#"c2="2""#,
            r#"[c3 echo {"say":"3"}]"#,
            r#"c3!{"error":"not run: iteration limit","tool":"echo"}"#,
        ]
    );
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxToolIterations));
    ends_with(&client, r#"tool: c3!{"error":"not run: iteration limit","tool":"echo"}"#);
    // It continues with a fresh budget.
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await.len(), 6);
    assert_eq!(server.requests().len(), 6);
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxToolIterations));
}

#[tokio::test]
async fn each_prompt_has_five_rounds_by_default() {
    let server = insatiable();
    let mut client = client(auto(&server).tool(echo()));
    for prompts in 1..=2 {
        talk(&mut client, "Go.").await;
        assert_eq!(server.requests().len(), 6 * prompts);
        assert_eq!(client.turn_metadata().rounds, 5);
    }
}

#[tokio::test]
async fn a_last_answer_can_follow_a_limit() {
    let server = insatiable();
    let options = auto(&server).tool(echo()).max_tool_iterations(1);
    let mut client = client(options.last_answer_without_tools(true));
    let seen = talk(&mut client, "Go.").await;
    assert_eq!((seen.len(), seen[4].as_str()), (5, "Enough."));
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxToolIterations));
    let last = server.requests().pop().unwrap();
    assert!(last.json().get("tools").is_none() && last.json().get("tool_choice").is_none());
    ends_with(&client, "assistant: Enough.");
    // The next prompt has tools again.
    talk(&mut client, "Go.").await;
    assert!(server.requests()[3].json()["tools"].is_array());
}

#[tokio::test]
async fn calls_in_the_last_answer_do_not_run() {
    let server = strict([round(1), round(2), round(3)]);
    let options = auto(&server).tool(echo()).max_tool_iterations(1);
    let mut client = client(options.last_answer_without_tools(true));
    talk(&mut client, "Go.").await;
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxToolIterations));
    ends_with(&client, r#"tool: c3!{"error":"not run: this was the last answer","tool":"echo"}"#);
}

/// The third equal call gets a note, and the fourth ends the turn.
#[tokio::test]
async fn repeated_calls_get_a_note_then_end() {
    let same =
        |place: u32| Reply::new().call_with_id(format!("c{place}"), "add", json!({"a": 1, "b": 2}));
    let server = strict([same(1), same(2), same(3), same(4)]);
    let mut client = client(auto(&server).tool(adder()).max_tool_iterations(9));
    let seen = talk(&mut client, "Go.").await;
    assert_eq!((&*seen[1], &*seen[3], &*seen[7]), ("c1=3.0", "c2=3.0", "c4=3.0"));
    assert!(seen[5].starts_with(r#"c3={"result":3.0,"note":"#), "{}", seen[5]);
    assert_eq!(client.finish_reason(), Some(&FinishReason::RepeatedToolCall));
    ends_with(&client, "tool: c4=3.0");
}

/// So does another prompt.
#[tokio::test]
async fn other_calls_reset_the_repeat_guard() {
    let same =
        |place: u32| Reply::new().call_with_id(format!("c{place}"), "add", json!({"a": 1, "b": 2}));
    let server = strict([
        same(1),
        same(2),
        round(3),
        same(4),
        same(5),
        Reply::text("Done."),
        same(6),
        Reply::text("Done."),
    ]);
    let mut client = client(auto(&server).tool(adder()).tool(echo()).max_tool_iterations(9));
    talk(&mut client, "Go.").await;
    talk(&mut client, "Go.").await;
    assert!(!told(client.history()).concat().contains("note"));
}

#[tokio::test]
async fn the_repeat_guard_covers_parallel_calls() {
    let say = |place: u32, word: &str| (format!("{word}{place}"), json!({"say": word}));
    let pair = |place: u32| {
        // Neither the order of the calls nor another call beside them matters.
        let words = if place.is_multiple_of(2) { ["a", "b"] } else { ["b", "a"] };
        let other = (format!("x{place}"), json!({"say": place.to_string()}));
        let calls = words.map(|word| say(place, word)).into_iter().chain([other]);
        calls.fold(Reply::new(), |reply, (id, input)| reply.call_with_id(id, "echo", input))
    };
    let server = strict([pair(1), pair(2), pair(3), pair(4)]);
    let mut client = client(auto(&server).tool(echo()).max_tool_iterations(9));
    let seen = talk(&mut client, "Go.").await;
    let told: Vec<&str> = seen
        .iter()
        .filter(|line| line.contains("arguments 3 times"))
        .map(|line| &line[..2])
        .collect();
    assert_eq!(told, ["b3", "a3"]);
    assert_eq!(client.finish_reason(), Some(&FinishReason::RepeatedToolCall));
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn results_with_their_own_note_are_wrapped() {
    let same = |place: u32| Reply::new().call_with_id(format!("c{place}"), "look", json!({}));
    let look = tool("look", "Looks").build(|_| async { Ok(json!({"note": "all is well"})) });
    let server = strict([same(1), same(2), same(3), same(4)]);
    let mut client = client(auto(&server).tool(look).max_tool_iterations(9));
    let seen = talk(&mut client, "Go.").await;
    let begin = r#"c3={"result":{"note":"all is well"},"note":"look has returned the same result"#;
    assert!(seen[5].starts_with(begin), "{}", seen[5]);
    assert_eq!(seen[7], r#"c4={"note":"all is well"}"#);
    assert_eq!(client.finish_reason(), Some(&FinishReason::RepeatedToolCall));
}

#[tokio::test]
async fn without_guard_the_round_limit_applies() {
    let server = MemoryServer::new(
        Script::new().otherwise(Reply::new().call("add", json!({"a": 1, "b": 2}))),
    );
    let mut client = client(auto(&server).tool(adder()).repeat_guard(None));
    talk(&mut client, "Go.").await;
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxToolIterations));
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn max_tool_calls_stops_further_calls() {
    let pair = |place: u32| {
        let say = json!({"say": place.to_string()});
        Reply::new().call_with_id(format!("a{place}"), "echo", say.clone()).call_with_id(
            format!("b{place}"),
            "echo",
            say,
        )
    };
    let server = strict([pair(1), pair(2)]);
    let mut client = client(auto(&server).tool(echo()).max_tool_calls(3));
    talk(&mut client, "Go.").await;
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxToolCalls));
    ends_with(&client, r#"tool: b2!{"error":"not run: tool call limit","tool":"echo"}"#);
}

#[tokio::test]
async fn max_run_tokens_ends_the_turn() {
    let server = strict([round(1).usage(40, 10), round(2).usage(60, 10), Reply::text("Done.")]);
    let mut client = client(auto(&server).tool(echo()).max_run_tokens(100));
    talk(&mut client, "Go.").await;
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxRunTokens));
    ends_with(&client, r#"tool: c2!{"error":"not run: token limit","tool":"echo"}"#);
    // Another prompt has its own budget.
    assert_eq!(talk(&mut client, "On.").await, ["Done."]);
}

#[tokio::test]
async fn max_run_cost_ends_the_turn() {
    let server = strict([
        round(1).usage(4_000, 1_000),
        round(2).usage(8_000, 1_000),
        Reply::text("Done.").usage(10_000, 500),
    ]);
    let options = auto(&server).tool(echo()).price(0.25, 2.0).max_run_cost(0.007);
    let mut client = client(options.last_answer_without_tools(true));
    talk(&mut client, "Go.").await;
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxRunCost));
    ends_with(&client, r#"tool: c2!{"error":"not run: cost limit","tool":"echo"}"#);
    let cost = |amount| Some(Cost::new(amount).unwrap());
    assert_eq!(client.usage().unwrap().cost, cost(0.004));
    assert_eq!(client.turn_metadata().total_usage.cost, cost(0.007));
    // Another prompt has its own budget.
    assert_eq!(talk(&mut client, "On.").await, ["Done."]);
    assert_eq!(client.turn_metadata().total_usage.cost, cost(0.0105));
}

#[tokio::test]
async fn cost_needs_a_price_and_token_counts() {
    let asked = async |reply: Reply, is_priced: bool| {
        let server = strict([reply]);
        let options = manual(&server);
        let options = if is_priced { options.price(1.0, 10.0) } else { options };
        let mut answer = query("Go.", &options.build().unwrap()).await.unwrap();
        while answer.next().await.is_some() {}
        answer.usage().and_then(|usage| usage.cost).map(|cost| cost.to_string())
    };
    let counted = || Reply::text("Hi.").usage(100, 10);
    assert_eq!(asked(counted(), true).await.as_deref(), Some("0.0002"));
    assert_eq!(asked(counted(), false).await, None);
    assert_eq!(asked(Reply::text("Hi.").without_usage(), true).await, None);
}

/// An interrupt ends the wait.
#[tokio::test(start_paused = true)]
async fn calls_beyond_the_rate_wait() {
    let pair = |place: u32| {
        let call = |id: String| (id, "echo", json!({"say": place.to_string()}));
        let [(a, name, input), (b, _, other)] = ["a", "b"].map(|it| call(format!("{it}{place}")));
        Reply::new().call_with_id(a, name, input).call_with_id(b, name, other)
    };
    let server = strict([pair(1), pair(2), Reply::text("Done.")]);
    let options = auto(&server).tool(echo()).max_tool_calls_per_minute(3);
    let mut client = client(options);
    let start = tokio::time::Instant::now();
    let seen = talk(&mut client, "Go.").await;
    assert_eq!((seen.len(), seen[8].as_str()), (9, "Done."), "{seen:#?}");
    assert_eq!(start.elapsed().as_secs(), 60, "the fourth has waited");
    let server = strict([pair(1), pair(2), Reply::text("Done.")]);
    let options = auto(&server).tool(echo()).max_tool_calls_per_minute(3);
    let mut client = Client::new(options.build().unwrap()).unwrap();
    let start = tokio::time::Instant::now();
    client.send("Go.").await.unwrap();
    interrupt_after(&client, Duration::from_secs(5));
    read(&mut client).await;
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
    assert_eq!(start.elapsed().as_secs(), 5);
    let told = told(client.history());
    assert!(told.last().unwrap().contains("cancelled"), "{told:#?}");
    // The budget left by an interrupt is for the next prompt.
    assert_eq!(talk(&mut client, "On.").await, ["Done."]);
}

#[tokio::test(start_paused = true)]
async fn max_run_time_ends_tools_and_answers() {
    let alive = Alive::default();
    let server = strict([
        Reply::text("Well").call_with_id("c", "hangs", json!({})),
        Reply::text("one two three four").delay(Duration::from_secs(2)),
        Reply::text("Done."),
    ]);
    let options = auto(&server).tool(hanging("hangs", &alive)).max_run_time(7);
    let mut client = client(options);
    let start = tokio::time::Instant::now();
    client.send("Go.").await.unwrap();
    assert_eq!(read(&mut client).await.len(), 2);
    assert_eq!(start.elapsed(), Duration::from_secs(7));
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxRunTime));
    assert_eq!((alive.now(), alive.told()), (0, 1));
    let error = "cancelled: the budget is used up while it ran; it may have taken effect";
    ends_with(&client, &format!(r#"tool: c!{{"error":"{error}","tool":"hangs"}}"#));
    let seen = talk(&mut client, "Count.").await;
    assert_eq!(seen, ["one two"]);
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxRunTime));
    ends_with(&client, "assistant: one two (interrupted)");
    assert_eq!(talk(&mut client, "On.").await, ["Done."]);
}

#[tokio::test(start_paused = true)]
async fn max_run_time_ends_a_query() {
    let server = strict([
        stalling(&["one ", "two"]),
        Reply::text("one").finish("length"),
        Reply::text("one."),
        Reply::text("lost").reset_after(200),
    ]);
    let options = manual(&server).max_run_time(5).build().unwrap();
    let mut answer = query("Count.", &options).await.unwrap();
    assert_eq!(answer.finish_reason(), None);
    assert_eq!(answer.text().await.unwrap(), "one two");
    assert_eq!(answer.finish_reason(), Some(&FinishReason::MaxRunTime));
    assert!(answer.message().is_none());

    for reason in [FinishReason::Length, FinishReason::Stop] {
        let mut answer = query("Count.", &options).await.unwrap();
        assert!(answer.text().await.unwrap().starts_with("one"));
        assert_eq!(answer.finish_reason(), Some(&reason));
    }
    let mut answer = query("Count.", &options).await.unwrap();
    assert_eq!(answer.text().await.unwrap_err().kind(), ErrorKind::Stream);
    assert_eq!(answer.finish_reason(), Some(&FinishReason::Unspecified));
}

#[tokio::test]
async fn max_turns_counts_answered_prompts() {
    let server = strict([
        Reply::error(400, "no"),
        Reply::text("One."),
        Reply::new().call_with_id("c", "echo", json!({})),
        Reply::text("Two."),
    ]);
    let mut client = client(manual(&server).tool(echo()).max_turns(2));
    assert_eq!(client.send("Hi.").await.unwrap_err().kind(), ErrorKind::Api);
    assert_eq!(client.turn_metadata().turns, 0);
    talk(&mut client, "Hi.").await;
    talk(&mut client, "Hi.").await;
    assert_eq!(client.turn_metadata().turns, 2);
    let error = client.send("Hi.").await.unwrap_err();
    assert_eq!((error.kind(), client.history().len()), (ErrorKind::MaxTurns, 4));
    // The rejected prompt changed nothing: the call is still open, and continuing is not a prompt.
    client.add_tool_result("c", json!("x")).unwrap();
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Two."]);
}

#[tokio::test(start_paused = true)]
async fn at_most_eight_tools_run_at_once() {
    let reply = (0..9).fold(Reply::new(), |reply, _| reply.call("slow", json!({})));
    let server = strict([reply, Reply::text("Done.")]);
    let tool = slow("slow", Duration::from_millis(100));
    let mut client = client(auto(&server).tool(tool).repeat_guard(None));
    client.send("Go.").await.unwrap();
    let start = tokio::time::Instant::now();
    read(&mut client).await;
    assert_eq!(start.elapsed(), Duration::from_millis(200));
}

#[tokio::test(start_paused = true)]
async fn final_text_only_shows_the_last_text() {
    let server = strict([
        Reply::text("I look.").call_with_id("c", "echo", json!({"say": "x"})),
        Reply::text("It is done.").delay(Duration::from_secs(1)),
    ]);
    let mut client = client(auto(&server).tool(echo()).final_text_only(true));
    client.send("Go.").await.unwrap();
    let block = client.receive().await.unwrap().unwrap();
    assert_eq!(block.as_text(), Some("It is done."));
    assert_eq!(client.receive().await.unwrap(), None);
    assert_eq!(client.history().len(), 4);
}
