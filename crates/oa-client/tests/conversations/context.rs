//! Detection of the model's context size: prompts that a server truncates silently, and prompts that it rejects.

use std::sync::{Arc, Mutex};

use insta::assert_snapshot;
use oa_client::{AgentEvent, AgentOptions, Client, ErrorKind, query};
use oa_context::{PromptCut, estimate_text};
use oa_testkit::{MemoryServer, Reply, Request, Script};
use oa_tools::tool;
use oa_types::{ContentBlock, ImageBlock, Message, TextBlock, ToolResultBlock, ToolUseBlock};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::log::Lines;
use suite::talk::{auto, cases, client, manual};

/// A server's way of counting the tokens of a prompt, and of treating too many.
#[derive(Clone, Copy, Debug)]
struct Counting {
    /// Its tokens per estimated token, in hundredths.
    text: usize,
    /// The same for tools.
    tools: usize,
    /// Per image.
    image: usize,
    /// The model's context size, in tokens.
    context: usize,
    cache: Cache,
}

/// The way a server's usage reports cached tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cache {
    /// Cached tokens are included in the count and not reported separately.
    Counted,
    /// Cached tokens are left out of the count.
    LeftOut,
    /// Cached tokens are left out of the count and reported separately.
    Told,
}

const HONEST: Counting =
    Counting { text: 100, tools: 100, image: 700, context: usize::MAX, cache: Cache::Counted };

/// A prompt as consecutive cacheable pieces, with their costs.
fn pieces(request: &Request, counting: Counting) -> Vec<(String, usize)> {
    let text = |text: &str| estimate_text(text) * counting.text / 100;
    let count = |message: &Value| {
        let content = match &message["content"] {
            Value::Array(parts) => parts.clone(),
            Value::String(content) => vec![json!({ "text": content })],
            _ => Vec::new(),
        };
        let parts = content.iter().map(|part| match part["text"].as_str() {
            Some(words) => text(words),
            None => counting.image,
        });
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let calls = calls.map(|call| text(&call["function"].to_string()));
        4 + parts.sum::<usize>() + calls.sum::<usize>()
    };
    let tools = request.json()["tools"].to_string();
    let cost = if tools == "null" { 0 } else { estimate_text(&tools) * counting.tools / 100 };
    let messages = request.messages().iter();
    let messages = messages.map(|message| (message.to_string(), count(message)));
    [(tools, cost)].into_iter().chain(messages).collect()
}

/// A server that counts this way. The last answer is repeated.
fn server(counting: Counting, answers: Vec<Reply>) -> MemoryServer {
    let held: Arc<Mutex<Vec<(String, usize)>>> = Arc::default();
    let rule = move |request: &Request| {
        let number = request.number().min(answers.len()) - 1;
        let prompt = pieces(request, counting);
        let whole: usize = prompt.iter().map(|(_, cost)| cost).sum();
        let mut held = held.lock().expect("nothing panics here");
        let same = held.iter().zip(&prompt).take_while(|(one, other)| one == other);
        let cached: usize = same.map(|(_, (_, cost))| cost).sum();
        *held = prompt;
        let read = whole.min(counting.context);
        let cached = cached.min(read);
        let reply = answers[number].clone();
        let (prompt, cached) = match counting.cache {
            Cache::Counted => (read, None),
            Cache::LeftOut => (read - cached, None),
            Cache::Told => (read - cached, Some(cached)),
        };
        match cached {
            None => reply.usage(prompt as u64, 9),
            Some(cached) => reply.without_usage().event(json!({ "choices": [], "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": 9,
                "prompt_tokens_details": { "cached_tokens": cached },
            }})),
        }
    };
    MemoryServer::new(Script::new().otherwise(Reply::by(rule)))
}

/// Returns the prompt cut detected for each answer of a turn, if any.
async fn cuts(client: &mut Client) -> Vec<Option<PromptCut>> {
    let mut cuts = Vec::new();
    while let Some(event) = client.next_event().await.expect("nothing fails here") {
        match event {
            AgentEvent::AnswerEnd(_) => cuts.push(None),
            AgentEvent::PromptCut(cut) => {
                let last = cuts.last_mut().expect("an answer has ended");
                assert_eq!(last.replace(cut), None, "one for each answer");
                assert_eq!(client.turn_metadata().prompt_cut, Some(cut));
            }
            _ => {}
        }
    }
    cuts
}

async fn asked(client: &mut Client, prompt: &str) -> Vec<bool> {
    client.send(prompt).await.expect("the server answers");
    cuts(client).await.iter().map(Option::is_some).collect()
}

fn story(words: usize) -> String {
    "Once upon a time there was a fox. ".repeat(words / 8)
}

#[tokio::test]
async fn cut_prompts_are_reported_once_per_answer() {
    let cutting = Counting { context: 2_048, ..HONEST };
    let model = server(cutting, vec![Reply::text("A fox.")]);
    let mut client = client(manual(&model));
    client.send(&story(8_000)).await.unwrap();
    let found = cuts(&mut client).await;
    let [Some(cut)] = found[..] else { panic!("{found:?}") };
    assert_eq!(cut.reported, 2_048);
    assert!((8_000..10_000).contains(&cut.estimated), "{cut:?}");

    // Later prompts cannot be shorter.
    assert_eq!(asked(&mut client, "And then?").await, [true]);
    client.clear_history();
    assert_eq!(asked(&mut client, "Who are you?").await, [false]);
    assert_eq!(client.turn_metadata().prompt_cut, None);
}

#[tokio::test]
async fn queries_report_cut_prompts() {
    let cutting = Counting { context: 2_048, ..HONEST };
    for (words, is_cut) in [(8_000, true), (1_500, false)] {
        let options = manual(&server(cutting, vec![Reply::text("A fox.")])).build().unwrap();
        let mut answer = query(&story(words), &options).await.unwrap();
        assert_eq!(answer.prompt_cut(), None, "it has not ended");
        answer.text().await.unwrap();
        assert_eq!(answer.prompt_cut().is_some(), is_cut);
    }
}

#[tokio::test]
async fn outgrown_contexts_stay_reported() {
    let page = story(600);
    let read = tool("read", "Read a page").param("page", "integer").build(move |_| {
        let page = page.clone();
        async move { Ok(json!(page)) }
    });
    let calls = (0..30).map(|page| Reply::new().call("read", json!({ "page": page })));
    let replies: Vec<Reply> = calls.chain([Reply::text("Done.")]).collect();
    for cache in [Cache::Counted, Cache::Told] {
        let cutting = Counting { context: 4_096, cache, ..HONEST };
        let options = auto(&server(cutting, replies.clone())).max_tool_iterations(100);
        let found = asked(&mut client(options.tool(read.clone())), "Read the book.").await;
        let first = found.iter().position(|is_cut| *is_cut).expect("it is far too long");
        assert!((12..=15).contains(&first), "{cache:?}: {found:?}");
        assert!(found[first..].iter().all(|is_cut| *is_cut), "{cache:?}: {found:?}");
    }
}

#[tokio::test]
async fn cut_tool_definitions_are_reported() {
    let described = |number: usize| {
        let name = format!("tool_{number}");
        tool(name, story(400)).param("path", "string").build(|_| async { Ok(json!(null)) })
    };
    let cutting = Counting { context: 2_048, ..HONEST };
    let model = server(cutting, vec![Reply::text("I have no tools.")]);
    let options = manual(&model).tools((0..25).map(described));
    assert_eq!(asked(&mut client(options), "What can you do?").await, [true]);
}

#[tokio::test]
async fn images_alone_are_not_reported() {
    let data = "iVBORw0KGgo".repeat(20_000);
    for image in [64, 256, 3_000] {
        let model = server(Counting { image, ..HONEST }, vec![Reply::text("A fox.")]);
        let mut client = client(manual(&model));
        for _ in 0..3 {
            let image = ImageBlock::from_base64(&data, "image/png").unwrap();
            client.send_message(Message::user_with_image("What is it?", image)).await.unwrap();
            assert_eq!(cuts(&mut client).await, [None]);
        }
    }
    // With more words than were read, it is a truncation.
    let model = server(Counting { context: 1_024, ..HONEST }, vec![Reply::text("A fox.")]);
    let mut client = client(manual(&model));
    let image = ImageBlock::from_base64(&data, "image/png").unwrap();
    client.send_message(Message::user_with_image(story(20_000), image)).await.unwrap();
    assert!(matches!(cuts(&mut client).await[..], [Some(_)]));
}

#[tokio::test]
async fn a_new_model_resets_the_detector() {
    let cutting = Counting { context: 2_048, cache: Cache::LeftOut, ..HONEST };
    let model = server(cutting, vec![Reply::text("A fox.")]);
    let mut client = client(manual(&model));
    assert_eq!(asked(&mut client, &story(8_000)).await, [true]);
    client.set_model("larger").unwrap();
    client.history_mut().truncate(2);
    // The cache may hold all but this.
    assert_eq!(asked(&mut client, "And then?").await, [false]);
}

#[tokio::test]
async fn cut_prompts_are_logged() {
    let lines = Lines::default();
    let _listening = lines.listen();
    let cutting = Counting { context: 1_000, ..HONEST };
    let model = server(cutting, vec![Reply::text("A fox.")]);
    assert_eq!(asked(&mut client(manual(&model)), &story(4_000)).await, [true]);
    assert_snapshot!(lines.take_lines().join("\n"), @"WARN message=the server seems to have cut the prompt estimated=4450 reported=1000");
}

#[tokio::test]
async fn overflow_errors_have_the_reported_sizes() {
    let body = json!({ "error": {
        "code": 400,
        "message": "request (19185 tokens) exceeds the available context size (16384 tokens)",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 19185,
        "n_ctx": 16384,
    }});
    let without =
        json!({ "error": { "message": "This model's maximum context length is 4096 tokens." } });
    let sentence = json!({ "object": "error", "type": "BadRequestError", "code": 400, "message": "This \
        model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the \
        messages, 1000 in the completion)." });
    for (body, size, sizes) in [
        (body, 16_384, Some((19_185, 16_384))),
        (without, 4096, None),
        (sentence, 4096, Some((4000, 4096))),
    ] {
        let server = MemoryServer::new(Reply::json(400, body));
        let options = AgentOptions::builder().model("any").transport(server).build().unwrap();
        let error = Client::new(options).unwrap().ask("Hello").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ContextOverflow);
        assert_eq!((error.context_size(), error.context_sizes()), (Some(size), sizes));
        assert!(!error.is_retryable());
    }
    let server = MemoryServer::new(Reply::error(500, "no"));
    let options = manual(&server).build().unwrap();
    let error = query("Hello", &options).await.unwrap_err();
    assert_eq!((error.context_size(), error.context_sizes()), (None, None));
}

fn words() -> impl Strategy<Value = String> {
    let sentence = prop::sample::select(vec![
        "The quick brown fox jumps over the lazy dog. ",
        "    let mut total = 0;\n    for (index, value) in values.iter().enumerate() {\n",
        "敏捷的棕色狐狸跳过懒狗。",
        "الثعلب البني السريع يقفز فوق الكلب الكسول. ",
        "{\"id\": 17, \"name\": \"fox\", \"tags\": [\"quick\", \"brown\"]}, ",
        "3.14159 2.71828 1.41421 ",
        "x",
    ]);
    (sentence, 0..60_usize).prop_map(|(sentence, times)| sentence.repeat(times))
}

fn message() -> impl Strategy<Value = Vec<Message>> {
    let image = || ImageBlock::from_url("https://example.org/fox.png").expect("an address");
    let answer = |text: String| Message::assistant(vec![TextBlock::new(text).into()]);
    prop_oneof![
        2 => (words(), words()).prop_map(move |(ask, said)| {
            vec![Message::user(format!("Well: {ask}")), answer(format!("So: {said}"))]
        }),
        1 => words().prop_map(move |said| vec![
            Message::user_with_image("What is it?", image()),
            answer(format!("It is {said}")),
        ]),
        2 => (words(), words(), words()).prop_map(move |(input, result, said)| {
            let call: ContentBlock =
                ToolUseBlock::new("call_1", "read", json!({ "page": input })).into();
            vec![
                Message::user("Read."),
                Message::assistant(vec![call]),
                Message::tool(ToolResultBlock::new("call_1", json!(result))),
                answer(format!("Read: {said}")),
            ]
        }),
    ]
}

fn healthy() -> impl Strategy<Value = Counting> {
    let caches = prop::sample::select(vec![Cache::Counted, Cache::LeftOut, Cache::Told]);
    (65..400_usize, 40..200_usize, 0..2_000_usize, caches).prop_map(
        |(text, tools, image, cache)| Counting { text, tools, image, context: usize::MAX, cache },
    )
}

proptest! {
    #![proptest_config(cases(64))]

    /// Any earlier conversation, any vocabulary, and any report about the cache.
    #[test]
    fn untruncated_prompts_are_not_reported(
        history in vec(message(), 0..8),
        asked in vec(words(), 1..6),
        system in words(),
        tools in 0..12_usize,
        counting in healthy(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answers = asked.iter().map(|words| Reply::text(format!("Well. {words}"))).collect();
        let model = server(counting, answers);
        let described = |number| {
            tool(format!("tool_{number}"), "Does what is wanted").param("path", "string")
                .build(|_| async { Ok(json!(null)) })
        };
        let options = manual(&model).tools((0..tools).map(described));
        let options = if system.is_empty() { options } else { options.system_prompt(&system) };
        let mut client = Client::with_history(options.build().unwrap(), history.concat()).unwrap();
        for asked in &asked {
            runtime.block_on(async {
                client.send(&format!("Now: {asked}")).await.unwrap();
                let found = cuts(&mut client).await;
                prop_assert!(found.iter().all(Option::is_none), "{:?} by {:?}", found, counting);
                Ok(())
            })?;
        }
    }
}
