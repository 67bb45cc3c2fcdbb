//! Conversations supplied by the caller, and prompts sent again after a failure.

#[path = "../../../oa-turn/tests/suite/histories.rs"]
mod histories;

use std::sync::LazyLock;

use oa_chat::{Provider, SystemRole, ToolMode};
use oa_client::{AgentOptions, Client, ErrorKind};
use oa_hooks::{HookDecision, Hooks};
use oa_testkit::{Cut, MemoryServer, Reply, Script, Strict};
use oa_types::{
    AudioBlock, ContentBlock, ImageBlock, Message, MessageRole, TextBlock, ToolResultBlock,
    ToolUseBlock,
};
use proptest::prelude::*;
use serde_json::json;

use self::histories::histories;
use suite::talk::{auto, cases, client, echo, manual, read, read_on, strict, talk, told};

#[derive(Clone, Copy, Debug)]
enum Way {
    Change,
    Resume,
    With,
}

/// Returns the rules of each kind of server.
fn rules(provider: Option<Provider>) -> Strict {
    let rules = Strict::new()
        .allow_member("messages[].details")
        .allow_member("messages[].tool_calls[].signature");
    match provider {
        Some(Provider::OpenAi | Provider::Azure) => rules.allow_assistant_first(),
        Some(Provider::Mistral) => rules.refuse_user_after_tool().require_nine_letter_ids(),
        Some(Provider::DeepSeek | Provider::LlamaCpp) => {
            rules.allow_long_ids().allow_member("messages[].reasoning_content")
        }
        Some(Provider::Ollama | Provider::Vllm) => {
            rules.allow_long_ids().allow_member("messages[].reasoning")
        }
        _ => rules.allow_long_ids(),
    }
}

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts")
});

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn strict_servers_accept_any_history(
        messages in histories(),
        way in prop::sample::select(vec![Way::Change, Way::Resume, Way::With]),
        provider in prop::sample::select(
            Provider::ALL.iter().copied().map(Some).chain([None]).collect::<Vec<_>>(),
        ),
        system in prop::sample::select(vec!["", "Be brief."]),
        user_instructs in prop::bool::weighted(0.3),
        in_text in prop::bool::weighted(0.2),
        executes in any::<bool>(),
    ) {
        let script = Script::new().otherwise(Reply::text("Well.")).strict_by(rules(provider));
        let server = MemoryServer::new(script);
        let mut options = AgentOptions::builder()
            .base_url("http://localhost:1/v1")
            .model("any")
            .system_prompt(system)
            .system_role(if user_instructs { SystemRole::User } else { SystemRole::System })
            .tool_mode(if in_text { ToolMode::React } else { ToolMode::Native })
            .auto_execute_tools(executes)
            .tool(echo())
            .transport(server.clone());
        if let Some(provider) = provider {
            options = options.provider(provider);
        }
        let options = options.build().expect("these can work");
        let mut client = match way {
            Way::Resume => Client::resume(options, messages.clone()).expect("no images"),
            Way::With => Client::with_history(options, messages.clone()).expect("no images"),
            Way::Change => {
                let mut client = Client::new(options).expect("there is a model");
                *client.history_mut() = messages.clone();
                client
            }
        };
        RUNTIME.block_on(async {
            let can_go_on = client.continue_turn().await.is_ok();
            if can_go_on {
                while client.receive().await.expect("the server takes it").is_some() {}
            }
            for prompt in ["Go.", "On."] {
                client.ask(prompt).await.map_err(|error| TestCaseError::fail(error.to_string()))?;
            }
            Ok::<_, TestCaseError>(())
        })?;
        server.verify();
        let sent = server.requests().pop().expect("it was asked");
        let sent = String::from_utf8_lossy(sent.body()).into_owned();
        let said = messages.iter().filter(|message| message.role != MessageRole::Tool);
        let texts = said.flat_map(|message| &message.content).filter_map(ContentBlock::as_text);
        for word in texts.flat_map(str::split_whitespace) {
            prop_assert!(sent.contains(word), "{} is missing: {}", word, sent);
        }
    }
}

fn said(text: &str) -> Message {
    Message::assistant(vec![TextBlock::new(text).into()])
}

fn last(server: &MemoryServer) -> serde_json::Value {
    server.requests().pop().expect("it was asked").messages().to_vec().into()
}

#[tokio::test]
async fn system_messages_merge_at_the_front() {
    let server = strict([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]);
    let history = vec![
        Message::user("Hi."),
        Message::system("Be kind."),
        said("Hello."),
        Message::system("Be exact."),
    ];
    let options = manual(&server).system_prompt("Be brief.").build().unwrap();
    let mut client = Client::with_history(options, history.clone()).unwrap();
    assert_eq!(told(client.history())[1..], ["user: Hi.", "assistant: Hello."]);
    talk(&mut client, "Go.").await;
    let all = "Be brief.\n\nBe kind.\nBe exact.";
    assert_eq!(
        last(&server),
        json!([
            {"role": "system", "content": all},
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "Go."},
        ])
    );
    // Later system messages are merged too, and one stands alone if there is no system prompt.
    client.history_mut().push(Message::system("Be fast."));
    client.set_system_prompt("").unwrap();
    talk(&mut client, "On.").await;
    assert_eq!(last(&server)[0]["content"], "Be kind.\nBe exact.\nBe fast.");
    client.history_mut().remove(0);
    talk(&mut client, "On.").await;
    assert_eq!(last(&server)[0]["role"], "user");

    let server = strict([Reply::text("One.")]);
    let options = manual(&server).system_prompt("Be brief.").system_role(SystemRole::User);
    let mut client = Client::with_history(options.build().unwrap(), history).unwrap();
    talk(&mut client, "Go.").await;
    let first = last(&server)[0].clone();
    assert_eq!(
        (&first["role"], &first["content"]),
        (&json!("user"), &json!(format!("{all}\n\nHi.")))
    );
}

#[tokio::test]
async fn media_in_system_messages_are_rejected() {
    let server = strict([Reply::text("One.")]);
    let with = |media| Message::new(MessageRole::System, vec!["Be brief.".into(), media]);
    let audio = AudioBlock::from_base64("aGk=", "audio/wav").unwrap();
    let history = vec![Message::user("Hi."), with(audio.into())];
    let error = Client::with_history(manual(&server).build().unwrap(), history).unwrap_err();
    let why = "the system message contains audio: only user messages can contain audio";
    assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::InvalidInput, why));
    let system = with(ImageBlock::from_url("https://host/a.png").unwrap().into());
    let options = || manual(&server).build().unwrap();
    let messages = || vec![Message::user("Hi."), system.clone()];
    let why = "the system message contains an image: only user messages can contain images";
    for refused in
        [Client::with_history(options(), messages()), Client::resume(options(), messages())]
    {
        let error = refused.unwrap_err();
        assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::InvalidInput, why));
    }
    let mut client = Client::new(options()).unwrap();
    *client.history_mut() = messages();
    assert_eq!(client.send("Go.").await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(client.continue_turn().await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(server.requests().is_empty());
    client.history_mut().remove(0);
    assert_eq!(talk(&mut client, "Go.").await, ["One."]);
}

#[tokio::test]
async fn leading_answers_are_bridged_per_provider() {
    let history = vec![said("How can I help?"), Message::user("Hi.")];
    let roles = async |provider: Provider| {
        let server = MemoryServer::new(Reply::text("One."));
        let options = manual(&server).provider(provider).base_url("http://localhost:1/v1");
        let mut client = Client::with_history(options.build().unwrap(), history.clone()).unwrap();
        assert_eq!(told(client.history()), ["assistant: How can I help?", "user: Hi."]);
        client.continue_turn().await.unwrap();
        read(&mut client).await;
        last(&server)
    };
    assert_eq!(roles(Provider::OpenAi).await[0]["role"], "assistant");
    let bridged = roles(Provider::Vllm).await;
    assert_eq!(bridged[0], json!({"role": "user", "content": "Begin."}));
    assert_eq!(bridged[1]["content"], "How can I help?");
}

#[tokio::test]
async fn wrong_result_names_are_corrected() {
    let server = strict([Reply::text("One.")]);
    let mut result = ToolResultBlock::new("c", json!(1));
    result.name = Some("other".into());
    let history = vec![
        Message::user("Hi."),
        Message::assistant(vec![ToolUseBlock::new("c", "echo", json!({})).into()]),
        Message::tool(result),
    ];
    let mut client = Client::with_history(manual(&server).build().unwrap(), history).unwrap();
    client.continue_turn().await.unwrap();
    read(&mut client).await;
    assert_eq!(last(&server)[2]["name"], "echo");
}

/// An answer that breaks after a few words.
fn breaking() -> Reply {
    Reply::text("one two three").cut(Cut::Events).reset_after(700)
}

async fn fail(client: &mut Client, prompt: &str) -> String {
    client.send(prompt).await.expect("it begins");
    let (seen, error) = read_on(client).await;
    assert!(error.is_some());
    seen.concat()
}

#[tokio::test]
async fn retried_prompts_appear_once() {
    let script =
        Script::from([breaking(), breaking(), Reply::error(400, "no"), Reply::text("Done.")]);
    let server = MemoryServer::new(script.strict());
    let mut client = client(manual(&server));
    for _ in 0..2 {
        fail(&mut client, "Count.").await;
        assert_eq!(told(client.history()), ["user: Count."]);
        assert_eq!(client.turn_metadata().turns, 0);
    }
    // A retry that fails before it starts takes nothing back.
    assert!(client.send("Count.").await.is_err());
    assert_eq!(told(client.history()), ["user: Count."]);
    assert_eq!(talk(&mut client, "Count.").await, ["Done."]);
    assert_eq!(told(client.history()), ["user: Count.", "assistant: Done."]);
    assert_eq!(client.turn_metadata().turns, 1);
    for request in server.requests() {
        assert_eq!(request.messages(), [json!({"role": "user", "content": "Count."})]);
    }
}

#[tokio::test]
async fn answered_prompts_can_be_repeated() {
    let server = strict([breaking(), Reply::text("Done."), Reply::text("Again.")]);
    let mut client = client(manual(&server));
    fail(&mut client, "Count.").await;
    talk(&mut client, "Count.").await;
    talk(&mut client, "Count.").await;
    let expected = ["user: Count.", "assistant: Done.", "user: Count.", "assistant: Again."];
    assert_eq!(told(client.history()), expected);
}

#[tokio::test]
async fn new_prompts_keep_the_broken_answer() {
    let script = Script::from([breaking(), Reply::error(400, "no"), Reply::text("Done.")]);
    let server = MemoryServer::new(script.strict());
    let mut client = client(manual(&server));
    let seen = fail(&mut client, "Count.").await;
    // A failure before the answer starts leaves everything unchanged.
    assert!(client.send("Go on.").await.is_err());
    assert_eq!(told(client.history()), ["user: Count."]);
    assert_eq!(talk(&mut client, "Go on.").await, ["Done."]);
    let broken = format!("assistant: {seen} (interrupted)");
    let history = told(client.history());
    assert_eq!(history[0], "user: Count.");
    assert_eq!(history[1], broken);
    assert!(client.history()[1].interrupted);
    assert_eq!(history[2..], ["user: Go on.", "assistant: Done."]);
}

#[tokio::test]
async fn equal_blocks_are_the_same_prompt() {
    let server = strict([breaking(), Reply::text("Done.")]);
    let mut client = client(manual(&server));
    let picture = || ImageBlock::from_url("https://host/a.png").unwrap();
    let prompt = || Message::user_with_image("What is it?", picture());
    client.send_message(prompt()).await.unwrap();
    assert!(read_on(&mut client).await.1.is_some());
    client.send_message(prompt()).await.unwrap();
    assert_eq!(read(&mut client).await, ["Done."]);
    assert_eq!(client.history().len(), 2);
}

#[tokio::test]
async fn retried_prompts_skip_the_prompt_hook() {
    let server = strict([breaking(), Reply::text("Done."), Reply::text("New.")]);
    let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&count);
    let hooks = Hooks::new().add_user_prompt_submit(move |event| {
        let number = counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move { Some(HookDecision::modify_prompt(format!("{} ({number})", event.prompt), "")) }
    });
    let mut client = client(manual(&server).hooks(hooks));
    fail(&mut client, "Count.").await;
    assert_eq!(talk(&mut client, "Count.").await, ["Done."]);
    assert_eq!(told(client.history()), ["user: Count. (0)", "assistant: Done."]);
    // The text written by the hook is a different prompt.
    talk(&mut client, "Count. (0)").await;
    assert_eq!(told(client.history())[2], "user: Count. (0) (1)");
    assert_eq!(count.load(std::sync::atomic::Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_retried_prompt_resumes_a_later_round() {
    let call = || Reply::new().call_with_id("c", "echo", json!({"say": "x"}));
    let server = strict([call(), breaking(), Reply::text("Done.")]);
    let mut client = client(auto(&server).tool(echo()));
    fail(&mut client, "Go.").await;
    assert_eq!(client.history().len(), 3);
    assert_eq!(talk(&mut client, "Go.").await, ["Done."]);
    assert_eq!(client.history().len(), 4);
    assert_eq!(last(&server).as_array().map(Vec::len), Some(3));
}
