//! A run that is planned step by step, steered, and answered from outside.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use oa_chat::Provider;
use oa_client::{
    AgentEvent, AgentOptions, AgentOptionsBuilder, Client, ErrorKind, query, stop_when,
};
use oa_context::{ContextPolicy, Overflow};
use oa_hooks::{HookDecision, Hooks};
use oa_testkit::{MemoryServer, Reply, Request, Script};
use oa_tools::{FnTool, tool};
use oa_turn::{SteerAfterEnd, drive};
use oa_types::wire::ToolChoice;
use oa_types::{ContentBlock, FinishReason, Message, MessageRole};
use serde_json::{Value, json};

use crate::external::asks;

pub(crate) fn tools() -> Vec<FnTool> {
    let work = |name: &str| tool(name, "Works").build(|_| async { Ok(json!("worked")) });
    ["add", "search"].map(work).into()
}

pub(crate) fn agent(server: &MemoryServer) -> AgentOptionsBuilder {
    let options = AgentOptions::builder().model("large").transport(server.clone()).tools(tools());
    options.system_prompt("Be kind.").auto_execute_tools(true)
}

pub(crate) fn strict(replies: impl IntoIterator<Item = Reply>) -> MemoryServer {
    MemoryServer::new(replies.into_iter().fold(Script::new().strict(), Script::reply))
}

fn call(name: &str) -> Reply {
    Reply::new().call(name, json!({}))
}

fn names(request: &Request) -> Vec<String> {
    let tools = request.json()["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap_or_default().to_owned();
    tools.iter().map(name).collect()
}

fn roles(client: &Client) -> Vec<MessageRole> {
    client.history().iter().map(|message| message.role).collect()
}

#[tokio::test]
async fn before_step_plans_each_request() {
    let server = strict([call("search"), call("add"), Reply::text("Done.")]);
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&seen);
    let options = agent(&server).before_step(move |step| {
        let calls: Vec<_> = step.last_calls().iter().map(|call| call.block.name.clone()).collect();
        let messages = step.history().len();
        log.lock().unwrap().push(format!("{} {calls:?} {messages}", step.number()));
        async move {
            match step.number() {
                1 => step.only_tools(["search"]).tool_choice(ToolChoice::Required),
                2 => step.model("small").instructions("Hurry.").instructions("Be brief."),
                _ => step.only_tools([] as [&str; 0]),
            }
        }
    });
    let mut client = Client::new(options.build().unwrap()).unwrap();
    assert_eq!(client.ask("Go.").await.unwrap().text, "Done.");
    let requests = server.requests();
    assert_eq!(names(&requests[0]), ["search"]);
    assert_eq!(requests[0].json()["tool_choice"], "required");
    assert!(requests[1].json().get("tool_choice").is_none(), "for one request only");
    assert_eq!((requests[0].model(), requests[1].model()), (Some("large"), Some("small")));
    assert_eq!(requests[1].messages()[0]["content"], "Be kind.\n\nHurry.\n\nBe brief.");
    assert_eq!(requests[2].messages()[0]["content"], "Be kind.", "for one request only");
    assert_eq!(names(&requests[1]), ["add", "search"]);
    assert!(names(&requests[2]).is_empty());
    assert_eq!(*seen.lock().unwrap(), ["1 [] 1", r#"2 ["search"] 3"#, r#"3 ["add"] 5"#]);
    server.verify();
}

#[tokio::test]
async fn a_step_sets_thinking_and_sampling() {
    let server = MemoryServer::new([call("search"), call("add"), Reply::text("Done.")]);
    let options = agent(&server).provider(Provider::Vllm).thinking("high").temperature(0.9);
    let options = options.max_tokens(900).extra_body(json!({ "top_k": 40, "min_p": 0.1 }));
    let options = options.before_step(|step| async move {
        if step.number() == 2 {
            step.thinking(false).temperature(0.1).max_tokens(90);
            step.extra_body([("top_k", json!(1)), ("stop", json!("."))]);
        }
    });
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.ask("Go.").await.unwrap();
    let sent = server.requests().into_iter().map(|request| {
        let members = ["temperature", "max_tokens", "top_k", "min_p", "stop", "reasoning_effort"];
        let request = request.json();
        let values = members.map(|name| request[name].to_string());
        format!("{} {}", values.join(" "), request["chat_template_kwargs"]["enable_thinking"])
    });
    let usual = r#"0.9 900 40 0.1 null "high" true"#;
    assert_eq!(sent.collect::<Vec<_>>(), [usual, r#"0.1 90 1 0.1 "." null false"#, usual]);
}

#[tokio::test]
async fn a_step_cannot_set_unknown_thinking() {
    let server = strict([]);
    let options = agent(&server).before_step(|step| async move { step.thinking(false) });
    let mut client = Client::new(options.build().unwrap()).unwrap();
    let error = client.ask("Go.").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().starts_with("thinking requires a provider"), "{error}");
    assert!(client.history().is_empty());
}

#[tokio::test]
async fn before_step_applies_to_query() {
    let server = strict([Reply::text("Hello.")]);
    let options = agent(&server).before_step(|step| async move { step.instructions("Be brief.") });
    let mut stream = query("Hi.", &options.build().unwrap()).await.unwrap();
    assert_eq!(stream.text().await.unwrap(), "Hello.");
    assert_eq!(server.requests()[0].messages()[0]["content"], "Be kind.\n\nBe brief.");
}

#[tokio::test]
async fn before_step_errors_end_the_turn() {
    let server = strict([]);
    let options = agent(&server).before_step(|step| async move {
        let limit: u32 = "many".parse()?;
        Ok::<_, std::num::ParseIntError>(step.instructions(format!("At most {limit} words.")))
    });
    let mut client = Client::new(options.build().unwrap()).unwrap();
    let error = client.ask("Go.").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Hook);
    assert_eq!(error.to_string(), "before_step failed: invalid digit found in string");
    server.verify();
}

#[tokio::test]
async fn tools_not_offered_by_a_step_are_unknown() {
    let server = strict([call("add"), Reply::text("Done.")]);
    let options = agent(&server).before_step(|step| async move { step.only_tools(["search"]) });
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.ask("Go.").await.unwrap();
    let ContentBlock::ToolResult(result) = &client.history()[2].content[0] else { panic!() };
    let error = "there is no such tool in this step";
    assert_eq!(result.content, json!({"error": error, "tool": "add", "available": ["search"]}));
}

#[tokio::test]
async fn a_step_can_end_the_turn() {
    let server = strict([call("add")]);
    let options = agent(&server).before_step(|step| async move {
        if step.number() == 2 {
            step.end("enough");
        }
    });
    let mut client = Client::new(options.build().unwrap()).unwrap();
    let reply = client.ask("Go.").await.unwrap();
    assert_eq!(reply.finish_reason, FinishReason::Other("enough".into()));
    assert_eq!(client.history().len(), 3);
    server.verify();
}

#[tokio::test]
async fn stop_conditions_end_the_turn() {
    let spends = |reply: Reply| reply.usage(90, 10);
    for (which, expected) in [(0, 3), (1, 5), (2, 5), (3, 7)] {
        let replies = [call("search"), call("add"), call("add"), Reply::text("Done.")];
        let script = Script::new().strict().otherwise(Reply::text("More."));
        let server = MemoryServer::new(
            replies.into_iter().take(expected / 2).map(spends).fold(script, Script::reply),
        );
        let options = agent(&server);
        let options = match which {
            0 => options.stop_when(stop_when::has_call("search")),
            1 => options.stop_when(stop_when::steps(2)).stop_when(stop_when::steps(9)),
            2 => options.stop_when(stop_when::tokens(200)),
            _ => options.stop_when(|step| step.history().len() >= 7),
        };
        let mut client = Client::new(options.build().unwrap()).unwrap();
        let reply = client.ask("Go.").await.unwrap();
        assert_eq!(
            (reply.finish_reason, client.history().len()),
            (FinishReason::Stopped, expected)
        );
        // The turn can be continued: its steps count anew.
        client.continue_turn().await.unwrap();
    }
}

#[tokio::test]
async fn panics_in_a_step_end_the_turn() {
    for panics in [1, 2] {
        let server = strict([call("add")]);
        let options = agent(&server)
            .before_step(move |step| {
                assert!(panics != 1 || step.number() == 1, "at once");
                async move { assert!(step.number() == 1, "later") }
            })
            .build()
            .unwrap();
        let mut client = Client::new(options).unwrap();
        let error = client.ask("Go.").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Hook, "{error}");
        assert_eq!(client.history().len(), 3, "what was done stays");
    }
    let options = AgentOptions::builder().model("any").stop_when(|_| true).build().unwrap_err();
    assert_eq!(options.to_string(), "stop_when has no effect without auto_execute_tools");
}

#[tokio::test]
async fn steered_messages_enter_the_next_request() {
    let server = strict([call("add"), Reply::text("Bien."), Reply::text("Fini.")]);
    let mut client = Client::new(agent(&server).build().unwrap()).unwrap();
    let steer = client.steer_handle();
    client.send("Go.").await.unwrap();
    steer.steer("In French.").unwrap();
    let mut entered = Vec::new();
    while let Some(event) = client.next_event().await.unwrap() {
        match event {
            AgentEvent::Steered(message) => entered.push(message.text()),
            // The turn is about to end.
            AgentEvent::AnswerEnd(answer) if answer.text() == "Bien." => {
                steer.clone().steer("Is that all?").unwrap();
            }
            _ => {}
        }
    }
    assert_eq!(entered, ["In French.", "Is that all?"]);
    use MessageRole::{Assistant, Tool, User};
    assert_eq!(roles(&client), [User, Assistant, Tool, User, Assistant, User, Assistant]);
    assert_eq!(client.turn_metadata().turns, 1);
    server.verify();
}

#[tokio::test]
async fn kept_steered_messages_wait_for_a_prompt() {
    let server = strict([Reply::text("One."), Reply::text("Two.")]);
    let options = agent(&server).steer_after_end(SteerAfterEnd::Keep).build().unwrap();
    let mut client = Client::new(options).unwrap();
    client.send("Go.").await.unwrap();
    client.steer_handle().steer("Also this.").unwrap();
    while client.receive().await.unwrap().is_some() {}
    assert_eq!(client.history().len(), 2);
    client.ask("On.").await.unwrap();
    let texts: Vec<String> = client.history().iter().map(Message::text).collect();
    assert_eq!(texts, ["Go.", "One.", "On.", "Also this.", "Two."]);
}

#[tokio::test]
async fn hooks_see_steered_messages() {
    let server = strict([call("add"), call("add"), call("add"), Reply::text("Done.")]);
    let hooks = Hooks::new().add_user_prompt_submit(|event| async move {
        match &*event.prompt {
            "secret" => Some(HookDecision::block("no secrets")),
            "mild" => Some(HookDecision::modify_prompt("Please.", "politeness")),
            _ => None,
        }
    });
    let mut client = Client::new(agent(&server).hooks(hooks).build().unwrap()).unwrap();
    let steer = client.steer_handle();
    client.send("Go.").await.unwrap();
    for message in ["secret", "mild"] {
        steer.steer(message).unwrap();
    }
    let mut told = Vec::new();
    while let Some(event) = client.next_event().await.unwrap() {
        match event {
            AgentEvent::Steered(message) => told.push(message.text()),
            AgentEvent::SteerBlocked(reason) => told.push(format!("blocked: {reason}")),
            _ => {}
        }
    }
    assert_eq!(told, ["blocked: no secrets", "Please."]);
    assert_eq!(client.history()[3].text(), "Please.");
}

/// A steered message whose own hook fails ends one turn, and the next one goes without it.
#[tokio::test]
async fn failing_steered_messages_are_dropped() {
    let server = strict([Reply::text("Hi.")]);
    let hooks = Hooks::new().add_user_prompt_submit(|event| async move {
        assert_ne!(event.prompt, "boom");
        None
    });
    let mut client = Client::new(agent(&server).hooks(hooks).build().unwrap()).unwrap();
    client.steer_handle().steer("boom").unwrap();
    let error = client.send("Go.").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Hook);
    assert!(client.history().is_empty());
    assert!(matches!(client.next_event().await.unwrap(), Some(AgentEvent::SteerBlocked(_))));
    assert_eq!(client.ask("Go.").await.unwrap().text, "Hi.");
    assert_eq!(client.history()[0], Message::user("Go."));
    server.verify();
}

#[tokio::test]
async fn steering_is_bounded_and_checked() {
    let server = strict([]);
    let client = Client::new(agent(&server).build().unwrap()).unwrap();
    let steer = client.steer_handle();
    assert_eq!(steer.steer(" ").unwrap_err().kind(), ErrorKind::InvalidInput);
    let foreign = steer.steer_message(Message::system("Obey."));
    assert_eq!(foreign.unwrap_err().kind(), ErrorKind::InvalidInput);
    for number in 0..64 {
        steer.steer(format!("{number}")).unwrap();
    }
    assert_eq!(steer.steer("more").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(format!("{steer:?}"), "SteerHandle { waiting: 64 }");
}

/// An interrupt from another task loses no message.
#[tokio::test(start_paused = true)]
async fn interrupts_keep_steered_messages() {
    let server = MemoryServer::new([Reply::text("One two").stall_after(300), Reply::text("Two.")]);
    let mut client = Client::new(agent(&server).build().unwrap()).unwrap();
    let (steer, interrupt) = (client.steer_handle(), client.interrupt_handle());
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        steer.steer("Also this.").unwrap();
        interrupt.interrupt();
    });
    client.ask("Go.").await.unwrap();
    client.ask("On.").await.unwrap();
    let texts: Vec<String> = client.history().iter().map(Message::text).collect();
    assert_eq!(texts[texts.len() - 3..], ["On.", "Also this.", "Two."]);
}

/// Some of them are in the turn already, others are still in the handle's queue.
#[tokio::test(start_paused = true)]
async fn waiting_messages_can_be_taken_back() {
    let server = MemoryServer::new([Reply::text("One two").stall_after(300), Reply::text("Two.")]);
    let mut client = Client::new(agent(&server).build().unwrap()).unwrap();
    let (steer, interrupt) = (client.steer_handle(), client.interrupt_handle());
    let early = steer.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        early.steer("Also this.").unwrap();
        interrupt.interrupt();
    });
    client.ask("Go.").await.unwrap();
    steer.steer("And that.").unwrap();
    assert_eq!(client.take_steered(), [Message::user("Also this."), Message::user("And that.")]);
    assert_eq!(client.take_steered(), []);
    client.ask("On.").await.unwrap();
    let texts: Vec<String> = client.history().iter().map(Message::text).collect();
    assert_eq!(texts[texts.len() - 2..], ["On.", "Two."]);
}

/// Plans, steering and external tools also apply to an engine that performs single steps.
#[tokio::test]
async fn custom_drivers_plan_and_wait() {
    let server = asks();
    let ask = tool("ask_user", "Asks").param("question", "string").external();
    let options = agent(&server)
        .tool(ask)
        .before_step(|step| async move { step.tool_choice(ToolChoice::Required) })
        .build()
        .unwrap();
    let mut turn = options.turn();
    turn.prompt(Message::user("Paint it.")).unwrap();
    let steps = options.steps();
    assert_eq!(drive(&mut turn, &steps).await.unwrap(), FinishReason::WaitsForResults);
    turn.add_result("1", json!("Blue."), oa_types::Outcome::Ok).unwrap();
    turn.steer(Message::user("Quick.")).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(drive(&mut turn, &steps).await.unwrap(), FinishReason::Stop);
    assert_eq!(turn.history()[4].text(), "Quick.");
    assert!(server.requests().iter().all(|request| request.json()["tool_choice"] == "required"));
    server.verify();
}

/// A message that has entered is not lost with the prompt before it.
#[tokio::test]
async fn failed_requests_keep_steered_messages() {
    let server = strict([Reply::error(400, "not today"), Reply::text("Done.")]);
    let mut client = Client::new(agent(&server).build().unwrap()).unwrap();
    client.steer_handle().steer("Also this.").unwrap();
    assert_eq!(client.send("Go.").await.unwrap_err().status(), Some(400));
    client.ask("Go.").await.unwrap();
    let texts: Vec<String> = client.history().iter().map(Message::text).collect();
    assert_eq!(texts, ["Go.", "Also this.", "Done."]);
    server.verify();
}

#[tokio::test]
async fn plans_apply_in_order() {
    let server = strict([call("add"), call("add")]);
    let order = Arc::<Mutex<Vec<&str>>>::default();
    let [first, second] = [Arc::clone(&order), Arc::clone(&order)];
    let options = agent(&server)
        .before_step(move |step| {
            first.lock().unwrap().push("first");
            async move {
                step.model("small").instructions("Hurry.");
                if step.number() == 3 {
                    step.end("enough");
                }
            }
        })
        .before_step(move |step| {
            second.lock().unwrap().push("second");
            async move { step.model("tiny").instructions("Be brief.") }
        });
    let mut client = Client::new(options.build().unwrap()).unwrap();
    let reply = client.ask("Go.").await.unwrap();
    assert_eq!(reply.finish_reason, FinishReason::Other("enough".into()));
    for request in server.requests() {
        assert_eq!(request.model(), Some("tiny"), "the later plan wins");
        assert_eq!(request.messages()[0]["content"], "Be kind.\n\nHurry.\n\nBe brief.");
    }
    let expected = ["first", "second", "first", "second", "first"];
    assert_eq!(*order.lock().unwrap(), expected, "nothing is planned after the end");
    server.verify();
}

#[tokio::test]
async fn last_answers_after_a_limit_are_planned() {
    let server = strict([call("add"), call("add"), Reply::text("That is all.")]);
    let options = agent(&server).max_tool_iterations(1).last_answer_without_tools(true);
    let options = options.before_step(|step| async move { step.model("small") });
    let mut client = Client::new(options.build().unwrap()).unwrap();
    let reply = client.ask("Go.").await.unwrap();
    assert_eq!(reply.finish_reason, FinishReason::MaxToolIterations);
    assert_eq!(reply.text, "That is all.");
    let requests = server.requests();
    assert!(names(&requests[2]).is_empty());
    for request in requests {
        assert_eq!(request.model(), Some("small"));
    }
}

#[tokio::test]
async fn stop_conditions_see_calls_that_waited() {
    let server = strict([Reply::new().call_with_id("1", "ask_user", json!({ "question": "?" }))]);
    let ask = tool("ask_user", "Asks").param("question", "string").external();
    let options = agent(&server).tool(ask).stop_when(stop_when::has_call("ask_user"));
    let mut client = Client::new(options.build().unwrap()).unwrap();
    let reply = client.ask("Paint it.").await.unwrap();
    assert_eq!(reply.finish_reason, FinishReason::WaitsForResults, "the step is not over");
    client.add_tool_result("1", json!("Blue.")).unwrap();
    client.continue_turn().await.unwrap();
    while client.receive().await.unwrap().is_some() {}
    assert_eq!(client.turn_metadata().finish_reason, Some(FinishReason::Stopped));
    assert_eq!(server.requests().len(), 1);
}

/// If the turn stops, steered messages stay outside and nothing needs to be shortened.
#[tokio::test]
async fn stop_conditions_precede_shortening() {
    let server = strict([call("add"), Reply::text("Done.")]);
    let seen = Arc::<Mutex<Vec<usize>>>::default();
    let (log, archived) = (Arc::clone(&seen), Arc::<Mutex<Vec<usize>>>::default());
    let archive = Arc::clone(&archived);
    let options = agent(&server)
        .context(ContextPolicy::new(1).with_overflow(Overflow::DropOldest))
        .archive_context(move |messages| {
            archive.lock().unwrap().push(messages.len());
            async {}
        })
        .stop_when(move |step| {
            log.lock().unwrap().push(step.history().len());
            true
        });
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.send("Go.").await.unwrap();
    client.steer_handle().steer("Also this.").unwrap();
    while client.receive().await.unwrap().is_some() {}
    assert_eq!(client.finish_reason(), Some(&FinishReason::Stopped));
    assert_eq!((&**seen.lock().unwrap(), client.history().len()), (&[3][..], 3));
    assert!(archived.lock().unwrap().is_empty(), "nothing was shortened");
    // What was steered waits, and the step is not checked again.
    client.continue_turn().await.unwrap();
    while client.receive().await.unwrap().is_some() {}
    assert_eq!(client.history().last().unwrap().text(), "Done.");
    assert!(client.history().iter().any(|message| message.text() == "Also this."));
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn panics_in_a_condition_end_the_turn() {
    let server = strict([call("add")]);
    let options = agent(&server).stop_when(|step| step.history().is_empty() || panic!("a bug"));
    let mut client = Client::new(options.build().unwrap()).unwrap();
    let error = client.ask("Go.").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Hook, "{error}");
    assert_eq!(client.history().len(), 3, "what was done stays");
}

/// A message that entered history is reported even if the turn ends before its event was read.
#[tokio::test(start_paused = true)]
async fn failed_sends_keep_steering_events() {
    for fails in [false, true] {
        let first = if fails { Reply::error(400, "no") } else { Reply::silence() };
        let script = Script::new().reply(first).otherwise(Reply::text("Two."));
        let server = MemoryServer::new(script);
        let mut client = Client::new(agent(&server).build().unwrap()).unwrap();
        client.steer_handle().steer("First this.").unwrap();
        let interrupt = client.interrupt_handle();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            interrupt.interrupt();
        });
        assert_eq!(client.send("Go.").await.is_err(), fails);
        if !fails {
            let event = client.next_event().await.unwrap();
            assert!(matches!(event, Some(AgentEvent::Steered(_))), "before the end: {event:?}");
            let event = client.next_event().await.unwrap();
            assert_eq!(event, Some(AgentEvent::TurnEnd(FinishReason::Interrupted)));
        } else {
            // Its event is not read before the next turn begins.
            client.send("Go.").await.unwrap();
            let event = client.next_event().await.unwrap();
            assert!(matches!(event, Some(AgentEvent::Steered(_))), "{event:?}");
        }
    }
}

#[test]
fn handles_are_clone_send_and_sync() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<oa_client::SteerHandle>();
    shared::<oa_client::InterruptHandle>();
}
