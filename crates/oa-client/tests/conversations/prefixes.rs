//! The law of cached bytes: whatever happened in a conversation, its next request equals that of a client that
//! sees it for the first time.

use oa_client::Client;
use oa_testkit::{MemoryServer, Reply, Script};
use oa_types::{
    ContentBlock, ImageBlock, Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use suite::talk::{auto, client, echo, read_on, stalling};

/// A change to a conversation. Indices are taken modulo its length.
#[derive(Clone, Debug)]
enum Step {
    Change(usize, usize),
    Clear,
    Insert(usize, Kind, usize),
    InterruptBeforeHead,
    InterruptInText,
    Prompt(usize),
    Remove(usize),
    Rounds(usize),
    SetModel(bool),
    SetSystem(bool),
    SetTools(bool),
    Swap(usize, usize),
    Truncate(usize),
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Assistant,
    Calls,
    Picture,
    Result,
    Thinking,
    User,
}

fn step() -> impl Strategy<Value = Step> {
    let place = || 0..12_usize;
    // Mostly short; some fill a segment of cached bytes.
    let size =
        || prop_oneof![6 => 0..20_usize, 2 => 4_000..12_000_usize, 1 => 30_000..70_000_usize];
    let kind = prop::sample::select(vec![
        Kind::Assistant,
        Kind::Calls,
        Kind::Picture,
        Kind::Result,
        Kind::Thinking,
        Kind::User,
        Kind::User,
    ]);
    prop_oneof![
        3 => (place(), size()).prop_map(|(place, size)| Step::Change(place, size)),
        1 => Just(Step::Clear),
        4 => (place(), kind, size()).prop_map(|(place, kind, size)| Step::Insert(place, kind, size)),
        1 => Just(Step::InterruptBeforeHead),
        1 => Just(Step::InterruptInText),
        4 => size().prop_map(Step::Prompt),
        3 => place().prop_map(Step::Remove),
        3 => (1..4_usize).prop_map(Step::Rounds),
        1 => any::<bool>().prop_map(Step::SetModel),
        1 => any::<bool>().prop_map(Step::SetSystem),
        1 => any::<bool>().prop_map(Step::SetTools),
        2 => (place(), place()).prop_map(|(one, other)| Step::Swap(one, other)),
        1 => place().prop_map(Step::Truncate),
    ]
}

fn text(size: usize) -> String {
    "wörd\n".repeat(size / 5 + 1)
}

fn message(kind: Kind, size: usize) -> Message {
    let words: ContentBlock = TextBlock::new(text(size)).into();
    let call = |place: usize| ToolUseBlock::new(format!("own{size}{place}"), "echo", json!({}));
    match kind {
        Kind::Assistant => Message::assistant(vec![words]),
        Kind::Calls => Message::assistant(vec![words, call(0).into(), call(1).into()]),
        Kind::Picture => {
            let picture = ImageBlock::from_url("http://localhost/cat.png").expect("an address");
            Message::user_with_image(text(size), picture)
        }
        Kind::Result => Message::tool(ToolResultBlock::new(format!("own{size}1"), json!([size]))),
        Kind::Thinking => Message::assistant(vec![ThinkingBlock::new(text(size)).into()]),
        Kind::User => Message::user(text(size)),
    }
}

/// A model that follows the last line: calls a tool that many more times, or falls silent.
fn model() -> Script {
    Script::new().otherwise(Reply::by(|request| {
        let last = request.messages().last().expect("a prompt");
        let said = last["content"].as_str().unwrap_or_default();
        match said.lines().last().unwrap_or_default().split_once(' ') {
            Some(("silence", _)) => Reply::silence(),
            Some(("stall", _)) => stalling(&["some ", "words"]),
            Some(("rounds", left)) => {
                let left: usize = left.parse().expect("a number");
                let say = format!("rounds {}", left.saturating_sub(1));
                match left {
                    0 => Reply::text("All done."),
                    _ => Reply::new().think("hm").say("Again.").call("echo", json!({"say": say})),
                }
            }
            _ => Reply::text("Yes, well."),
        }
    }))
}

async fn perform(client: &mut Client, step: &Step) {
    let length = client.history().len();
    let place = |place: usize| place % length.max(1);
    match *step {
        Step::Change(at, size) if length > 0 => {
            let mut history = client.history_mut();
            let message = &mut history[place(at)];
            match message.content.first_mut() {
                Some(ContentBlock::Text(block)) => block.text = text(size),
                Some(ContentBlock::ToolResult(block)) => block.content = json!(text(size)),
                _ => message.content.push(TextBlock::new(text(size)).into()),
            }
        }
        Step::Clear => client.clear_history(),
        Step::Insert(at, kind, size) => {
            client.history_mut().insert(at % (length + 1), message(kind, size));
        }
        Step::InterruptBeforeHead => {
            let handle = client.interrupt_handle();
            let send = client.send("silence 0");
            let (sent, ()) = tokio::join!(send, async { handle.interrupt() });
            sent.expect("an interrupt is no error");
        }
        Step::InterruptInText => {
            client.send("stall 0").await.expect("it is answered");
            client.receive().await.expect("a word");
            client.interrupt();
            assert_eq!(client.receive().await.expect("an interrupt is no error"), None);
        }
        Step::Prompt(size) => {
            client.send(&text(size)).await.expect("it is answered");
            assert!(read_on(client).await.1.is_none());
        }
        Step::Remove(at) if length > 0 => drop(client.history_mut().remove(place(at))),
        Step::Rounds(rounds) => {
            client.send(&format!("rounds {rounds}")).await.expect("it is answered");
            assert!(read_on(client).await.1.is_none());
        }
        Step::SetModel(other) => {
            client.set_model(if other { "other" } else { "any" }).expect("a name");
        }
        Step::SetSystem(some) => {
            client.set_system_prompt(if some { "Be brief." } else { "" }).expect("a prompt");
        }
        Step::SetTools(some) => client.set_tools(some.then(echo)).expect("one tool"),
        Step::Swap(one, other) if length > 0 => {
            client.history_mut().swap(place(one), place(other));
        }
        Step::Truncate(at) => client.history_mut().truncate(at),
        Step::Change(..) | Step::Remove(_) | Step::Swap(..) => {}
    }
}

/// Asks once more, and compares with the request of a fresh client with the same messages.
async fn check(client: &mut Client, server: &MemoryServer) {
    client.send("And now?").await.expect("it is answered");
    assert!(read_on(client).await.1.is_none());
    let sent = server.requests().pop().expect("it was asked");
    let before_answer = client.history()[..client.history().len() - 1].to_vec();
    let options = client.options().clone();
    let mut fresh = Client::with_history(options, before_answer).expect("the same options");
    fresh.continue_turn().await.expect("a prompt stands last");
    let expected = server.requests().pop().expect("it was asked");
    assert_eq!(expected.number(), sent.number() + 1);
    let words = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
    assert!(sent.body() == expected.body(), "{}\n{}", words(sent.body()), words(expected.body()));
}

proptest! {
    #![proptest_config(suite::talk::cases(400))]

    #[test]
    fn cached_requests_equal_fresh_ones(
        steps in vec((step(), any::<bool>()), 1..14),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime");
        let server = MemoryServer::new(model());
        let mut client = client(auto(&server).tool(echo()));
        runtime.block_on(async {
            for (step, checks) in &steps {
                perform(&mut client, step).await;
                // Sometimes several changes at once.
                if *checks {
                    check(&mut client, &server).await;
                }
            }
            check(&mut client, &server).await;
        });
    }
}
