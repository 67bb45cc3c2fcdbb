//! Hooks of finished answers.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use oa_client::{
    AgentEvent, AgentOptions, AgentOptionsBuilder, Client, ErrorKind, ResponseFormat, query,
};
use oa_hooks::{HookDecision, Hooks};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::tool;
use oa_turn::{DriveError, drive};
use oa_types::{ContentBlock, Message};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use suite::talk::cases;

fn strict(replies: impl IntoIterator<Item = Reply>) -> MemoryServer {
    MemoryServer::new(replies.into_iter().fold(Script::new().strict(), Script::reply))
}

fn agent(server: &MemoryServer) -> AgentOptionsBuilder {
    let work = tool("work", "Works").build(|_| async { Ok(json!("worked")) });
    let options = AgentOptions::builder().model("any").transport(server.clone());
    options.tool(work).auto_execute_tools(true)
}

/// Refuses answers that begin with "Bad", and blocks those that begin with "Worse".
fn guard() -> Hooks {
    Hooks::new().add_answer(|event| async move {
        let text = event.message.text();
        if text.starts_with("Bad") {
            return Some(HookDecision::retry("no sources"));
        }
        text.starts_with("Worse").then(|| HookDecision::block("it is worse"))
    })
}

fn texts(client: &Client) -> Vec<String> {
    client.history().iter().map(Message::text).collect()
}

/// A collected reply is not shown while it arrives, so it can leave out refused answers.
#[tokio::test]
async fn replies_omit_refused_answers() {
    let server = strict([
        Reply::text("Working.").call("work", json!({})),
        Reply::text("Bad one."),
        Reply::text("Good one."),
    ]);
    let mut client = Client::new(agent(&server).hooks(guard()).build().unwrap()).unwrap();
    assert_eq!(client.ask("Go.").await.unwrap().text, "Working.\n\nGood one.");
    server.verify();
}

#[tokio::test]
async fn refused_answers_are_retried_with_a_reason() {
    let server = strict([
        Reply::new().call("work", json!({})),
        Reply::text("Bad one."),
        Reply::text("Good one."),
        Reply::text("Another."),
    ]);
    let mut client = Client::new(agent(&server).hooks(guard()).build().unwrap()).unwrap();
    client.send("Go.").await.unwrap();
    let (mut shown, mut retries) = (String::new(), Vec::new());
    while let Some(event) = client.next_event().await.unwrap() {
        match event {
            AgentEvent::Block(ContentBlock::Text(text)) => shown.push_str(&text.text),
            AgentEvent::AnswerRetry(reason) => retries.push((shown.clone(), reason)),
            _ => {}
        }
    }
    // Deltas were shown already.
    assert_eq!(shown, "Bad one.Good one.");
    assert_eq!(retries, [("Bad one.".to_owned(), "no sources".to_owned())]);
    let messages = server.requests()[2].messages().to_vec();
    assert_eq!(messages[3]["content"], "Bad one.");
    let words = "Your answer was not accepted: no sources\n\nPlease answer again.";
    assert_eq!((messages.len(), &messages[4]["content"]), (5, &json!(words)));
    // The refused answer is gone, for the next prompt as well.
    assert_eq!(texts(&client), ["Go.", "", "", "Good one."]);
    assert_eq!(client.ask("On.").await.unwrap().text, "Another.");
    let messages = server.requests()[3].messages().to_vec();
    assert_eq!((messages.len(), &messages[3]["content"]), (5, &json!("Good one.")));
    assert_eq!(client.turn_metadata().turns, 2, "all tries are one turn");
    server.verify();
}

/// Small models often stop without a word once they have read a result.
#[tokio::test]
async fn models_that_say_nothing_are_asked_again() {
    let silence = || {
        Hooks::new().add_answer(|event| async move {
            event.message.text().is_empty().then(|| HookDecision::retry("it is empty"))
        })
    };
    for nothing in [Reply::new(), Reply::new().think("Hm."), Reply::text("")] {
        let server = strict([
            Reply::new().call("work", json!({})),
            nothing.clone(),
            Reply::text("Good one."),
            Reply::text("Another."),
        ]);
        let mut client = Client::new(agent(&server).hooks(silence()).build().unwrap()).unwrap();
        assert_eq!(client.ask("Go.").await.unwrap().text, "Good one.");
        assert_eq!(texts(&client), ["Go.", "", "", "Good one."]);
        assert_eq!(client.ask("On.").await.unwrap().text, "Another.");
        server.verify();
        // Without the hook, the turn ends with nothing.
        let server = strict([Reply::new().call("work", json!({})), nothing, Reply::text("On.")]);
        let mut client = Client::new(agent(&server).build().unwrap()).unwrap();
        let reply = client.ask("Go.").await.unwrap();
        assert_eq!(reply.text, "");
        assert_eq!(client.ask("On.").await.unwrap().text, "On.");
        server.verify();
    }
}

#[tokio::test]
async fn blocked_answers_are_errors_and_removed() {
    let server = strict([Reply::text("Worse."), Reply::text("Good.")]);
    let options = agent(&server).hooks(guard()).final_text_only(true);
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.send("Go.").await.unwrap();
    let error = client.receive().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Blocked);
    assert_eq!(error.to_string(), "a hook blocked the answer: it is worse");
    assert_eq!(client.receive().await.unwrap(), None);
    assert_eq!((texts(&client), client.finish_reason()), (vec!["Go.".to_owned()], None));
    // The same prompt is a retry, and the turn can be continued.
    assert_eq!(client.ask("Go.").await.unwrap().text, "Good.");
    assert_eq!(texts(&client), ["Go.", "Good."]);
    server.verify();
}

#[tokio::test]
async fn retries_are_bounded() {
    for most in [0, 1, 2] {
        let server = strict((0..=most).map(|number| Reply::text(format!("Bad {number}."))));
        let options = agent(&server).hooks(guard()).max_answer_retries(most);
        let mut client = Client::new(options.build().unwrap()).unwrap();
        let error = client.ask("Go.").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Blocked);
        let words = "a hook refused the answer, and no retries are left: no sources";
        assert_eq!(error.to_string(), words);
        assert_eq!(texts(&client), ["Go."]);
        server.verify();
    }
    let error = AgentOptions::builder().model("any").max_answer_retries(1).build().unwrap_err();
    assert_eq!(error.to_string(), "max_answer_retries has no effect without an answer hook");
}

#[tokio::test]
async fn failing_answer_hooks_reject_the_answer() {
    let hooks = [
        Hooks::new().add_answer(|_| async { panic!("no idea") }),
        Hooks::new().try_add_answer(|_| async { Err("no database".into()) }),
    ];
    for hooks in hooks {
        let server = strict([Reply::text("Good.")]);
        let mut client = Client::new(agent(&server).hooks(hooks).build().unwrap()).unwrap();
        assert_eq!(client.ask("Go.").await.unwrap_err().kind(), ErrorKind::Hook);
        assert_eq!(texts(&client), ["Go."]);
    }
}

#[tokio::test]
async fn interrupts_end_the_review() {
    let server = strict([Reply::text("Good.")]);
    let hooks = Hooks::new().add_answer(|_| std::future::pending());
    let mut client = Client::new(agent(&server).hooks(hooks).build().unwrap()).unwrap();
    client.send("Go.").await.unwrap();
    while let Some(event) = client.next_event().await.unwrap() {
        if matches!(event, AgentEvent::AnswerEnd(_)) {
            client.interrupt();
        }
    }
    assert_eq!(texts(&client), ["Go.", "Good."]);
    assert!(client.history()[1].interrupted, "nobody has kept it");
}

#[tokio::test]
async fn answer_hooks_apply_to_query() {
    let server = strict([Reply::text("Bad."), Reply::text("Good."), Reply::text("Worse.")]);
    let options = AgentOptions::builder().model("any").transport(server.clone()).hooks(guard());
    let options = options.build().unwrap();
    let mut stream = query("Go.", &options).await.unwrap();
    assert_eq!(stream.text().await.unwrap(), "Bad.Good.");
    let mut stream = query("Go.", &options).await.unwrap();
    assert_eq!(stream.text().await.unwrap_err().kind(), ErrorKind::Blocked);
    server.verify();
}

#[tokio::test]
async fn answer_hooks_apply_to_steps() {
    let server = strict([Reply::text("Bad."), Reply::text("Good."), Reply::text("Worse.")]);
    let options = agent(&server).hooks(guard()).build().unwrap();
    let mut turn = options.turn();
    turn.prompt(Message::user("Go.")).unwrap();
    drive(&mut turn, &options.steps()).await.unwrap();
    assert_eq!(turn.history()[1].text(), "Good.");
    turn.prompt(Message::user("On.")).unwrap();
    let error: DriveError<Infallible> = drive(&mut turn, &options.steps()).await.unwrap_err();
    let DriveError::Failed(record) = error else { panic!("{error:?}") };
    assert_eq!(&*record.kind, "blocked");
    assert_eq!(turn.history().len(), 3, "the prompt can be sent again");
}

fn number() -> ResponseFormat {
    let schema = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    });
    ResponseFormat::new("number", schema)
}

/// Invalid and refused answers in any order: hooks see only the valid ones, a refused answer is never returned,
/// and history ends with the prompt and the value.
#[tokio::test]
async fn hooks_see_only_valid_structured_output() {
    let valid = |n: u32| Reply::text(format!("{{\"n\": {n}}}"));
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&seen);
    let hooks = move |log: Arc<Mutex<Vec<String>>>| {
        Hooks::new().add_answer(move |event| {
            let text = event.message.text();
            log.lock().unwrap().push(text.clone());
            async move { text.contains('1').then(|| HookDecision::retry("not 1")) }
        })
    };
    let server =
        strict([valid(1), Reply::text("Hm."), valid(2), Reply::text("Hm."), valid(1), valid(3)]);
    let options = AgentOptions::builder().model("any").transport(server.clone());
    let mut client = Client::new(options.hooks(hooks(log)).build().unwrap()).unwrap();
    let answer = client.send_for_format("Go.", number()).tries(5).await.unwrap();
    assert_eq!((answer.value, answer.tries), (json!({"n": 2}), 3));
    let answer = client.send_for_format("On.", number()).tries(5).await.unwrap();
    assert_eq!((answer.value, answer.tries), (json!({"n": 3}), 3));
    assert_eq!(texts(&client), ["Go.", r#"{"n": 2}"#, "On.", r#"{"n": 3}"#]);
    let valid_ones = [r#"{"n": 1}"#, r#"{"n": 2}"#, r#"{"n": 1}"#, r#"{"n": 3}"#];
    assert_eq!(*seen.lock().unwrap(), valid_ones);
    server.verify();
    // What was refused is not returned when nothing else comes.
    let server = strict([valid(1), Reply::text("Hm.")]);
    let options = AgentOptions::builder().model("any").transport(server.clone());
    let mut client = Client::new(options.hooks(hooks(Arc::clone(&seen))).build().unwrap()).unwrap();
    let error = client.send_for_format("Go.", number()).tries(2).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Output);
}

proptest! {
    #![proptest_config(cases(150))]

    /// The strict server takes every request, and after each turn history has only answers that were kept.
    #[test]
    fn history_omits_refused_answers(turns in vec(vec(0..5_u8, 0..5), 1..4)) {
        let reply = |kind: &u8| match kind {
            0 => Reply::new().call("work", json!({})),
            1 | 2 => Reply::text("Bad."),
            3 => Reply::text("Worse."),
            _ => Reply::text("Good."),
        };
        let script = turns.iter().flatten().fold(Script::new().strict(), |script, kind| script.reply(reply(kind)));
        let server = MemoryServer::new(script.otherwise(Reply::text("Good.")));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut client = Client::new(agent(&server).hooks(guard()).repeat_guard(None).max_tool_iterations(50).build().unwrap()).unwrap();
            while server.requests().len() < turns.iter().map(Vec::len).sum() {
                let end = client.ask("Go.").await;
                if let Err(error) = &end {
                    prop_assert_eq!(error.kind(), ErrorKind::Blocked);
                }
                let texts = texts(&client);
                let is_refused = |text: &String| text.contains("Bad") || text.contains("Worse") || text.contains("sources");
                prop_assert!(!texts.iter().any(is_refused), "{:?}", texts);
                prop_assert_eq!(texts.last().unwrap() == "Good.", end.is_ok());
            }
            Ok(())
        })?;
    }
}
