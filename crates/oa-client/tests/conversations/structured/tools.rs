//! Structured output together with tools: by an output tool.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use oa_chat::ToolMode;
use oa_client::{AgentEvent, AgentOptionsBuilder, ErrorKind, OutputMode, query_for};
use oa_fallback::{Dialect, TaggedJson};
use oa_hooks::{HookDecision, Hooks, PermissionMode};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::tool;
use oa_types::{FinishReason, Message, ToolUseBlock, wire::ToolChoice};
use serde_json::json;

use super::{CUT_OFF, OSLO, Place, last_words, oslo, unfit};
use suite::talk::{
    Log, adder, auto, client, letters, manual, open_calls, read, strict, talk, told,
};

fn input() -> serde_json::Value {
    serde_json::from_str(OSLO).expect("it is JSON")
}

fn calling(id: &str) -> Reply {
    Reply::new().call_with_id(id, "add", json!({"a": 1, "b": 2}))
}

#[tokio::test]
async fn output_tool_calls_become_text() {
    let server = strict([
        Reply::new().say("I'll add.").call_with_id("c1", "add", json!({"a": 1, "b": 2})),
        Reply::new().say("Here.").think("Done.").call("final_answer", input()),
        Reply::text("Bye."),
    ]);
    let mut client = client(auto(&server).tool(adder()));
    let answer = client.send_for::<Place>("Where?").await.unwrap();
    assert_eq!((answer.value, answer.tries), (oslo(), 1));
    let history = told(client.history());
    assert_eq!(history[1..3], [r#"assistant: I'll add. [c1 add {"a":1,"b":2}]"#, "tool: c1=3.0"]);
    assert_eq!(history[3], format!("assistant: (Done.) {}", input()));
    assert_eq!(talk(&mut client, "Thanks.").await, ["Bye."]);
    let requests = server.requests();
    let names = |place: usize| {
        let tools = requests[place].json()["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((names(0), names(2)), (vec!["add", "final_answer"], vec!["add"]));
    assert_eq!(requests[0].json()["tool_choice"], "required");
    assert_eq!(requests[0].json()["response_format"], json!(null));
    assert_eq!(requests[2].json()["tool_choice"], json!(null));
    let parameters = &requests[0].json()["tools"][1]["function"]["parameters"];
    assert_eq!(parameters["required"], json!(["city"]));
}

#[tokio::test]
async fn argument_errors_are_call_results() {
    let server = strict([
        Reply::new().call_with_id("c1", "final_answer", json!({"city": 5})),
        calling("c2"),
        Reply::new().call_with_id("c3", "final_answer", "{\"city\": "),
        Reply::new().call_with_id("c4", "final_answer", input()),
        Reply::text("Bye."),
    ]);
    let mut client = client(auto(&server).tool(adder()));
    let answer = client.send_for::<Place>("Where?").await.unwrap();
    assert_eq!((answer.value, answer.tries), (oslo(), 3));
    let requests = server.requests();
    let result: serde_json::Value = serde_json::from_str(&last_words(&requests[1])).unwrap();
    assert_eq!(
        result,
        json!({
            "error": "`city`: expected string, found number 5",
            "tool": "final_answer",
            "arguments": r#"{"city":5}"#,
        })
    );
    assert_eq!(requests[1].messages().last().unwrap()["tool_call_id"], "c1");
    assert!(last_words(&requests[3]).contains("{\\\"city\\\": "), "{}", last_words(&requests[3]));
    // Of the attempts only the last is kept, with the tool rounds in between.
    assert_eq!(letters(client.history()), "ucta");
    talk(&mut client, "Thanks.").await;
}

#[tokio::test]
async fn the_last_invalid_call_becomes_text() {
    let wrong = |id: &str| Reply::new().call_with_id(id, "final_answer", json!({"city": 5}));
    let server = strict([wrong("c1"), wrong("c2"), Reply::text("Bye.")]);
    let mut client = client(auto(&server).tool(adder()));
    let error = client.send_for::<Place>("Where?").tries(2).await.unwrap_err();
    let why = "no valid answer after 2 attempts: `city`: expected string, found number 5";
    assert_eq!((&*unfit(&error), error.model_output()), (why, Some(r#"{"city":5}"#)));
    assert_eq!(told(client.history()), ["user: Where?", r#"assistant: {"city":5}"#]);
    talk(&mut client, "Thanks.").await;
}

#[tokio::test]
async fn cut_calls_are_retried_once_with_a_hint() {
    let cut = || Reply::new().call("final_answer", "{\"city\": \"Os").finish("length");
    for options in [auto, manual] {
        let fits = Reply::new().call("final_answer", OSLO);
        let server = strict([cut(), fits, Reply::text("Bye.")]);
        let mut client = client(options(&server).tool(adder()));
        let answer = client.send_for::<Place>("Where?").await.unwrap();
        assert_eq!((answer.value, answer.tries), (oslo(), 2));
        let words = last_words(&server.requests()[1]);
        assert!(words.contains("was too long") && words.contains("be brief"), "{words}");
        assert_eq!(letters(client.history()), "ua");
        talk(&mut client, "Thanks.").await;

        let server = strict([cut(), cut(), Reply::text("Bye.")]);
        let mut client = self::client(options(&server).tool(adder()));
        let error = client.send_for::<Place>("Where?").await.unwrap_err();
        assert_eq!(unfit(&error), CUT_OFF);
        assert_eq!(error.model_output(), Some("{\"city\": \"Os"));
        assert_eq!(server.requests().len(), 2);
        talk(&mut client, "Thanks.").await;
    }
}

#[tokio::test]
async fn valid_text_replaces_a_call() {
    let server = strict([Reply::text("It is Oslo."), Reply::text(format!("So: {OSLO}"))]);
    let mut client = client(auto(&server).tool(adder()));
    let answer = client.send_for::<Place>("Where?").await.unwrap();
    assert_eq!((answer.value, answer.tries), (oslo(), 2));
    assert_eq!(
        last_words(&server.requests()[1]),
        "No answer yet: there is no JSON object in the answer. Call final_answer with the answer."
    );
    assert_eq!(letters(client.history()), "ua");
}

#[tokio::test]
async fn the_output_tool_must_be_called_alone() {
    let both = Reply::new().call_with_id("c1", "final_answer", json!({"city": "?"})).call_with_id(
        "c2",
        "add",
        json!({"a": 1, "b": 2}),
    );
    let server = strict([both, Reply::new().call("final_answer", input())]);
    let mut client = client(auto(&server).tool(adder()));
    let answer = client.send_for::<Place>("Where?").await.unwrap();
    assert_eq!((answer.value, answer.tries), (oslo(), 1));
    assert_eq!(letters(client.history()), "uctta");
    let history = told(client.history());
    assert!(history[2].contains("call it alone"), "{history:?}");
    assert_eq!(history[3], "tool: c2=3.0");
}

/// Calls with different values are rejected.
#[tokio::test]
async fn equal_output_calls_count_as_one() {
    let twice = |one: serde_json::Value, other: serde_json::Value| {
        Reply::new().call("final_answer", one).call("final_answer", other)
    };
    let server = strict([twice(input(), json!({"city": "Rome"})), twice(input(), input())]);
    let mut client = client(auto(&server).tool(adder()));
    let answer = client.send_for::<Place>("Where?").await.unwrap();
    assert_eq!((answer.value, answer.tries), (oslo(), 2));
    assert!(last_words(&server.requests()[1]).contains("more than once"));
    assert_eq!(letters(client.history()), "ua");
}

#[tokio::test]
async fn hooks_and_rounds_ignore_the_output_tool() {
    let asked = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&asked);
    let hooks = Hooks::new().add_pre_tool_use(move |event| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move { (event.tool_name == "final_answer").then(|| HookDecision::block("no")) }
    });
    let server = strict([calling("c1"), Reply::new().call("final_answer", input())]);
    let options = auto(&server).tool(adder()).max_tool_iterations(1).hooks(hooks);
    let mut client = client(options);
    assert_eq!(client.send_for::<Place>("Where?").await.unwrap().value, oslo());
    assert_eq!((asked.load(Ordering::SeqCst), client.turn_metadata().rounds), (1, 1));
}

/// Invalid calls of the output tool are attempts, as invalid texts are, and no rounds.
#[tokio::test]
async fn invalid_output_calls_are_no_rounds() {
    let unfit = |id: &str| Reply::new().call_with_id(id, "final_answer", json!({"city": 5}));
    for text in [false, true] {
        let invalid = |id: &str| if text { Reply::text("Oslo.") } else { unfit(id) };
        let output = Reply::new().call("final_answer", input());
        let server = strict([calling("c1"), invalid("c2"), invalid("c3"), output]);
        let mut client = client(auto(&server).tool(adder()).max_tool_iterations(1));
        let answer = client.send_for::<Place>("Where?").await.unwrap();
        assert_eq!((answer.value, answer.tries), (oslo(), 3));
        assert_eq!(client.turn_metadata().rounds, 1);
        assert_eq!(letters(client.history()), "ucta");
    }
}

#[tokio::test]
async fn hooks_ignore_invalid_output_calls() {
    let seen = Log::default();
    let (before, after) = (seen.clone(), seen.clone());
    let hooks = Hooks::new()
        .add_pre_tool_use(move |event| {
            before.note(format!("before {}", event.tool_name));
            async { None }
        })
        .add_post_tool_use(move |event| {
            after.note(format!("after {}", event.tool_name));
            async { Some(HookDecision::modify_result(json!("seen"), "it was seen")) }
        });
    let unfit = || Reply::new().call_with_id("c1", "final_answer", json!({"city": 5}));
    let both = Reply::new().call_with_id("c2", "final_answer", input()).call_with_id(
        "c3",
        "add",
        json!({"a": 1, "b": 2}),
    );
    let server = strict([unfit(), both, Reply::new().call("final_answer", input())]);
    let mut client = client(auto(&server).tool(adder()).hooks(hooks));
    assert_eq!(client.send_for::<Place>("Where?").await.unwrap().value, oslo());
    assert_eq!(seen.lines(), ["before add", "after add"]);
    let requests = server.requests();
    assert!(last_words(&requests[1]).contains("expected string"), "{}", last_words(&requests[1]));
    assert_eq!(last_words(&requests[2]), "seen");
}

#[tokio::test]
async fn limits_are_named_in_the_error() {
    let limited = |builder: AgentOptionsBuilder| builder.tool(adder()).max_tool_iterations(1);
    let server = strict([calling("c1"), calling("c2"), Reply::text("Bye.")]);
    let mut client = client(limited(auto(&server)));
    let error = client.send_for::<Place>("Where?").await.unwrap_err();
    assert_eq!(unfit(&error), "the turn ended before a valid answer: max_tool_iterations");
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxToolIterations));
    assert_eq!(letters(client.history()), "uctct");
    talk(&mut client, "Thanks.").await;

    // A final answer without tools may be valid text; there is no other attempt.
    for (text, fits) in [(OSLO, true), ("Oslo.", false)] {
        let server = strict([calling("c1"), calling("c2"), Reply::text(text)]);
        let options = limited(auto(&server)).last_answer_without_tools(true);
        let answer = self::client(options).send_for::<Place>("Where?").await;
        assert_eq!(answer.is_ok(), fits);
        let last = server.requests()[2].json().clone();
        assert_eq!(last["tools"].as_array().unwrap().len(), 1, "the model has to know the format");
        assert_eq!(last["tools"][0]["function"]["name"], "final_answer");
        assert_eq!(last["tool_choice"], "required");
    }
}

#[tokio::test]
async fn last_answers_may_call_the_output_tool() {
    let answers = || [calling("c1"), calling("c2"), Reply::new().call("final_answer", input())];
    for is_planned in [false, true] {
        let server = strict(answers());
        let mut options = auto(&server).tool(adder()).max_tool_iterations(1);
        if is_planned {
            options = options.before_step(|step| async move { step.only_tools(["add"]) });
        }
        let mut client = client(options.last_answer_without_tools(true));
        assert_eq!(client.send_for::<Place>("Where?").await.unwrap().value, oslo());
        assert_eq!(client.finish_reason(), Some(&FinishReason::MaxToolIterations));
        assert_eq!(letters(client.history()), "uctcta");
        let last = server.requests()[2].json().clone();
        assert_eq!(last["tools"].as_array().unwrap().len(), 1);
        assert_eq!(last["tools"][0]["function"]["name"], "final_answer");
    }

    // A dialect describes the output tool in its instructions.
    let words = |call: &str| Reply::text(format!("<tool_call>{call}</tool_call>"));
    let call = r#"{"name": "add", "arguments": {"a": 1, "b": 2}}"#;
    let output = format!(r#"{{"name": "final_answer", "arguments": {OSLO}}}"#);
    let server = MemoryServer::new([words(call), words(call), words(&output)]);
    let options = auto(&server).tool(adder()).max_tool_iterations(1);
    let options = options.tool_mode(ToolMode::TaggedJson).last_answer_without_tools(true);
    assert_eq!(client(options).send_for::<Place>("Where?").await.unwrap().value, oslo());
    let instructions = server.requests()[2].messages()[0]["content"].to_string();
    assert!(instructions.contains("final_answer") && !instructions.contains("Adds"));

    // Other calls do not run, and name the limit.
    let server = strict([calling("c1"), calling("c2"), calling("c3"), Reply::text("Bye.")]);
    let options = auto(&server).tool(adder()).max_tool_iterations(1);
    let mut client = client(options.last_answer_without_tools(true));
    let error = client.send_for::<Place>("Where?").await.unwrap_err();
    assert_eq!(unfit(&error), "the turn ended before a valid answer: max_tool_iterations");
    let result = told(client.history()).pop().unwrap();
    assert!(result.contains("not run: this was the last answer"), "{result}");
    // The next prompt has all tools of the agent again.
    talk(&mut client, "Thanks.").await;
    assert_eq!(server.requests()[3].json()["tools"][0]["function"]["name"], "add");
}

#[tokio::test]
async fn manual_mode_returns_output_or_calls() {
    let server = strict([
        Reply::new().call("final_answer", json!({"city": 5})),
        Reply::new().call("final_answer", input()),
        calling("c1"),
        Reply::text("Bye."),
    ]);
    let mut client = client(manual(&server).tool(adder()));
    let answer = client.send_for::<Place>("Where?").await.unwrap();
    assert_eq!((answer.value, answer.tries), (oslo(), 2));
    let requests = server.requests();
    assert_eq!(requests[1].messages()[1]["content"], r#"{"city":5}"#, "it sees what it said");
    assert!(last_words(&requests[1]).contains("`city`: expected string"));
    assert_eq!(letters(client.history()), "ua");

    let error = client.send_for::<Place>("And here?").await.unwrap_err();
    assert!(unfit(&error).starts_with("the model called tools"));
    assert_eq!(open_calls(client.history()), ["c1"]);
    client.add_tool_result("c1", json!(3)).unwrap();
    client.continue_turn().await.unwrap();
    assert_eq!(server.requests()[3].json()["tools"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn waiting_calls_are_an_output_error() {
    for (approved, result) in [(true, "3.0"), (false, "not now")] {
        let server = strict([
            Reply::new().call("final_answer", json!({"city": 5})),
            calling("c1"),
            Reply::text(OSLO),
            Reply::new().call("final_answer", input()),
        ]);
        let options = auto(&server).tool(adder()).permission_mode(PermissionMode::Ask);
        let mut client = client(options);
        let mut stream = client.send_for::<Place>("Where?").stream();
        let mut last = None;
        while let Some(event) = stream.next_event().await {
            last = Some(event);
        }
        assert_eq!(last, Some(AgentEvent::TurnEnd(FinishReason::ApprovalPending)));
        let error = stream.finish().await.unwrap_err();
        insta::allow_duplicates! {
            insta::assert_snapshot!(unfit(&error), @"calls wait for approval, so there is no answer yet: approve or deny them, then call continue_turn");
        }
        assert_eq!(client.finish_reason(), Some(&FinishReason::ApprovalPending));
        assert_eq!(client.pending_approvals()[0].id, "c1");
        assert_eq!(open_calls(client.history()), ["c1"]);
        // It can be saved like any waiting conversation.
        let saved = serde_json::to_string(client.history()).unwrap();
        let saved: Vec<Message> = serde_json::from_str(&saved).unwrap();
        assert_eq!(open_calls(&saved), ["c1"]);
        if approved {
            client.approve("c1").unwrap();
        } else {
            client.deny("c1", "not now").unwrap();
        }
        client.continue_turn().await.unwrap();
        assert_eq!(read(&mut client).await.last().unwrap(), OSLO);
        let requests = server.requests();
        assert!(last_words(&requests[2]).contains(result), "{}", last_words(&requests[2]));
        let offered = requests[2].json()["tools"].as_array().unwrap().len();
        assert_eq!(offered, 1, "the output tool is offered only for structured output");
        assert!(open_calls(client.history()).is_empty());
        // The next one may be.
        let answer = client.send_for::<Place>("And now?").await.unwrap();
        assert_eq!(answer.value, oslo());
    }
}

#[tokio::test]
async fn external_calls_are_an_output_error() {
    let server = strict([Reply::new().call("ask", json!({})), Reply::text(OSLO)]);
    let options = auto(&server).tool(tool("ask", "Asks a person").external());
    let mut client = client(options);
    let error = client.send_for::<Place>("Where?").await.unwrap_err();
    insta::assert_snapshot!(unfit(&error), @"calls wait for results, so there is no answer yet: add their results, then call continue_turn");
    let call = client.pending_calls().pop().unwrap();
    client.add_tool_result(&call.id, json!("north")).unwrap();
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await.last().unwrap(), OSLO);
}

#[tokio::test]
async fn new_prompts_close_waiting_calls() {
    let server = strict([calling("c1"), Reply::new().call("final_answer", input())]);
    let options = auto(&server).tool(adder()).permission_mode(PermissionMode::Ask);
    let mut client = client(options);
    unfit(&client.send_for::<Place>("Where?").await.unwrap_err());
    assert_eq!(client.send_for::<Place>("Without looking?").await.unwrap().value, oslo());
    let requests = server.requests();
    let messages = requests[1].messages();
    assert!(messages[2]["content"].as_str().unwrap().contains("not run"), "{messages:?}");
    // A single question has no later prompt.
    let server = strict([calling("c1")]);
    let options = manual(&server).tool(adder()).build().unwrap();
    let error = query_for::<Place>("Where?", &options).await.unwrap_err();
    assert!(unfit(&error).starts_with("the model called tools"), "{error}");
}

#[tokio::test]
async fn callers_choose_mode_and_tool_name() {
    let server = strict([Reply::new().call("reply", input())]);
    let mut client = client(manual(&server).response_format(json!({"type": "json_object"})));
    let asked = client.send_for::<Place>("Where?").mode(OutputMode::Tool).tool_name("reply");
    assert_eq!(asked.await.unwrap().value, oslo());
    let request = server.requests()[0].json().clone();
    assert_eq!(request["response_format"], json!(null), "servers refuse both");
    assert_eq!(request["tools"][0]["function"]["name"], "reply");

    let server = strict([calling("c1"), Reply::text(OSLO)]);
    let options = auto(&server).tool(adder()).tool_choice(ToolChoice::Auto);
    let mut client = self::client(options);
    let answer = client.send_for::<Place>("Where?").mode(OutputMode::Format).await;
    assert_eq!(answer.unwrap().value, oslo());
    assert_eq!(letters(client.history()), "ucta");
    let request = server.requests()[1].json().clone();
    assert_eq!(request["response_format"]["type"], "json_schema");
    assert_eq!(request["tools"].as_array().unwrap().len(), 1);

    let error = client.send_for::<Place>("Where?").tool_name("add").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_eq!(error.to_string(), "a tool has the same name as the output tool: add");
}

#[tokio::test]
async fn tool_choice_is_kept() {
    let server = strict([Reply::new().call("final_answer", input())]);
    let options = auto(&server).tool(adder()).tool_choice(ToolChoice::Auto);
    client(options).send_for::<Place>("Where?").await.unwrap();
    assert_eq!(server.requests()[0].json()["tool_choice"], "auto");
}

#[tokio::test]
async fn text_dialects_call_the_output_tool() {
    let says = |name: &str, input: serde_json::Value| {
        let call = ToolUseBlock::new("c", name, input);
        Reply::text(format!("So.\n{}\n", TaggedJson::new().write_call(&call)))
    };
    for mode in [ToolMode::TaggedJson, ToolMode::Auto] {
        let played = [
            says("add", json!({"a": 1, "b": 2})),
            says("final_answer", json!({"city": 5})),
            says("final_answer", input()),
        ];
        let script = match mode {
            // The server rejects tools because its model has no function calling.
            ToolMode::Auto => Script::new().reply(Reply::error(400, "m does not support tools")),
            _ => Script::new(),
        };
        let server = MemoryServer::new(played.into_iter().fold(script.strict(), Script::reply));
        let mut client = client(auto(&server).tool(adder()).tool_mode(mode));
        let answer = client.send_for::<Place>("Where?").await.unwrap();
        assert_eq!((answer.value, answer.tries), (oslo(), 2));
        assert_eq!(letters(client.history()), "ucta");
        let requests = server.requests();
        let words = last_words(&requests[requests.len() - 1]);
        assert!(words.contains("`city`: expected string, found number 5"), "{words}");
        assert_eq!(requests.last().unwrap().json()["tools"], json!(null));
    }
}

#[tokio::test]
async fn requested_objects_are_not_text_calls() {
    let server = strict([Reply::text(OSLO)]);
    let mut client = client(auto(&server).tool_mode(ToolMode::TaggedJson));
    assert_eq!(client.send_for::<Place>("Where?").await.unwrap().value, oslo());
}
