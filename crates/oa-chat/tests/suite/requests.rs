//! A request changed by middleware has the same bytes as a request built that way from the start.

use oa_chat::{
    AnyChat, ChatOptions, ChatRequest, Conversation, Endpoint, PreparedOptions, Provider,
};
use oa_chat::{Retry, RetryConfig, SystemRole, ToolMode};
use oa_testkit::{MemoryServer, Reply, Script, Strict};
use oa_types::wire::{ResultImages, ToolChoice};
use oa_types::{
    ImageBlock, Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolSpec, ToolUseBlock,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::runtime;
use tower::ServiceExt as _;

/// One exchange of a conversation.
#[derive(Clone, Debug)]
enum Exchange {
    Words(String, String),
    Call(String, String),
    /// Two calls, with so many images.
    Look(String, usize, usize),
}

/// A change by a middleware, and what the same is for options or messages.
#[derive(Clone, Debug)]
enum Change {
    DropFirstExchange,
    ForgetTools,
    Messages(Vec<Exchange>),
    Model(String),
    SystemPrompt(String),
    Temperature(f32),
    Tools(Vec<String>),
}

fn words() -> impl Strategy<Value = String> {
    "[a-z\"\\\\\u{e4}\u{1f600} ]{1,30}"
        .prop_filter("it says something", |text| !text.trim().is_empty())
}

fn exchange() -> impl Strategy<Value = Exchange> {
    prop_oneof![
        (words(), words()).prop_map(|(prompt, answer)| Exchange::Words(prompt, answer)),
        (words(), words()).prop_map(|(prompt, result)| Exchange::Call(prompt, result)),
        (words(), 0..3_usize, 0..3_usize)
            .prop_map(|(prompt, one, other)| Exchange::Look(prompt, one, other)),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::DropFirstExchange),
        Just(Change::ForgetTools),
        prop::collection::vec(exchange(), 0..4).prop_map(Change::Messages),
        "[a-z]{1,8}".prop_map(Change::Model),
        words().prop_map(Change::SystemPrompt),
        (0..20_u8).prop_map(|tenths| Change::Temperature(f32::from(tenths) / 10.0)),
        prop::collection::vec("[a-z]{1,8}", 0..3).prop_map(Change::Tools),
    ]
}

fn messages(exchanges: &[Exchange]) -> Vec<Message> {
    let mut messages = Vec::new();
    for (place, exchange) in exchanges.iter().enumerate() {
        match exchange {
            Exchange::Words(prompt, answer) => {
                messages.push(Message::user(prompt));
                messages.push(Message::assistant(vec![TextBlock::new(answer).into()]));
            }
            Exchange::Call(prompt, result) => {
                let call = ToolUseBlock::new(format!("call_{place}"), "look", json!({"at": place}));
                messages.push(Message::user(prompt));
                messages.push(Message::assistant(vec![call.clone().into()]));
                let mut answer = ToolResultBlock::new(&call.id, json!(result));
                answer.name = Some("look".into());
                messages.push(Message::tool(answer));
            }
            Exchange::Look(prompt, one, other) => {
                let call =
                    |half| ToolUseBlock::new(format!("look_{place}_{half}"), "look", json!({}));
                let calls = [call(1), call(2)];
                messages.push(Message::user(prompt));
                messages.push(Message::assistant(
                    calls.iter().map(|call| call.clone().into()).collect(),
                ));
                for (call, images) in calls.iter().zip([one, other]) {
                    let mut answer = ToolResultBlock::new(&call.id, json!("Seen."));
                    answer.name = Some("look".into());
                    let urls =
                        (0..*images).map(|image| format!("https://host/{place}_{image}.png"));
                    answer.images = urls.filter_map(|url| ImageBlock::from_url(url).ok()).collect();
                    messages.push(Message::tool(answer));
                }
            }
        }
    }
    messages.push(Message::user("And now?"));
    messages
}

fn spec(name: &str) -> ToolSpec {
    ToolSpec::new(name, "Looks", json!({"type": "object", "properties": {}}))
}

fn specs(names: &[String]) -> Vec<ToolSpec> {
    let mut names = names.to_vec();
    names.sort();
    names.dedup();
    names.iter().map(|name| spec(name)).collect()
}

/// Changes the request as a middleware would.
fn apply(change: &Change, request: ChatRequest) -> ChatRequest {
    match change {
        Change::DropFirstExchange => {
            let left = without_first(request.messages());
            request.with_messages(left)
        }
        Change::ForgetTools => request.without_tools(),
        Change::Messages(exchanges) => request.with_messages(messages(exchanges)),
        Change::Model(model) => request.with_model(model),
        Change::SystemPrompt(prompt) => {
            request.with_options(|options| options.system_prompt = Some(prompt.as_str().into()))
        }
        Change::Temperature(temperature) => {
            request.with_options(|options| options.parameters.temperature = Some(*temperature))
        }
        Change::Tools(names) => request.with_tools(specs(names)),
    }
}

/// The parts of a request from which one is made from scratch.
struct Scratch {
    options: ChatOptions,
    messages: Vec<Message>,
    offers_tools: bool,
}

impl Scratch {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::DropFirstExchange => self.messages = without_first(&self.messages),
            Change::ForgetTools => self.offers_tools = false,
            Change::Messages(exchanges) => self.messages = messages(exchanges),
            Change::Model(model) => self.options.parameters.model.clone_from(model),
            Change::SystemPrompt(prompt) => {
                self.options.system_prompt = Some(prompt.as_str().into());
            }
            Change::Temperature(temperature) => {
                self.options.parameters.temperature = Some(*temperature);
            }
            Change::Tools(names) => {
                self.options.parameters.tools = specs(names);
                if let Some(ToolChoice::Tool(name)) = &self.options.parameters.tool_choice
                    && !names.contains(name)
                {
                    self.options.parameters.tool_choice = None;
                }
                self.offers_tools = true;
            }
        }
    }

    fn request(self) -> ChatRequest {
        let request = ChatRequest::from_options(self.options, self.messages);
        if self.offers_tools { request } else { request.without_tools() }
    }
}

/// Everything from the second prompt on.
fn without_first(messages: &[Message]) -> Vec<Message> {
    let is_prompt = |message: &&Message| message.role == oa_types::MessageRole::User;
    let second = messages.iter().enumerate().filter(|(_, message)| is_prompt(message)).nth(1);
    second.map_or_else(|| messages.to_vec(), |(place, _)| messages[place..].to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn changed_requests_equal_those_from_scratch(
        exchanges in prop::collection::vec(exchange(), 0..6),
        changes in prop::collection::vec(change(), 0..5),
        provider in prop::sample::select(Provider::LOCAL),
        in_text: bool,
        as_user: bool,
        chosen: bool,
        inline: bool,
    ) {
        let runtime = runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let server = MemoryServer::new(Script::new().otherwise(Reply::text("Yes.")));
            let endpoint = Endpoint::builder().base_url("http://gpu/v1").provider(provider);
            let endpoint = endpoint.transport(server.clone()).build().unwrap();
            let service = AnyChat::from(endpoint.clone());

            let mut options = ChatOptions::new("first");
            options.parameters.tools = vec![spec("look")];
            options.system_prompt = Some("Be brief.".into());
            if in_text {
                // The choice is a part of what answers are held to.
                options.tool_mode =
                    if chosen { ToolMode::Constrained } else { ToolMode::TaggedJson };
            }
            if chosen {
                options.parameters.tool_choice = Some(ToolChoice::Tool("look".into()));
            }
            if as_user {
                options.system_role = SystemRole::User;
            }
            if inline {
                options.result_images = ResultImages::Inline;
            }
            let history = messages(&exchanges);
            let revisions: Vec<u64> = (0..history.len() as u64).collect();
            let prepared = PreparedOptions::for_endpoint(options.clone(), &endpoint).unwrap();

            // As an agent makes it, with its messages written already.
            let mut conversation = Conversation::with_id(7);
            let earlier = &history[..history.len() / 2];
            conversation.request(&prepared, &service, &earlier.to_vec().into(), &revisions[..earlier.len()]);
            let (mut request, _) =
                conversation.request(&prepared, &service, &history.clone().into(), &revisions);
            let mut scratch = Scratch { options, messages: history, offers_tools: true };
            for change in &changes {
                request = apply(change, request);
                scratch.apply(change);
            }
            let retry = Retry::new(service, RetryConfig::none());
            retry.ask(request).await.unwrap().message().await.unwrap();
            retry.ask(scratch.request()).await.unwrap().message().await.unwrap();
            let [changed, made] = &server.requests()[..] else { panic!("two were sent") };
            prop_assert_eq!(changed.body(), made.body());
            Ok(())
        })?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Wherever the images of results go, the strictest servers take the request.
    #[test]
    fn strict_servers_accept_result_images(
        exchanges in prop::collection::vec(exchange(), 1..6),
        in_text: bool,
        inline: bool,
        mistral: bool,
    ) {
        let runtime = runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut rules = Strict::new();
            if inline {
                rules = rules.allow_result_images();
            }
            if mistral {
                rules = rules.refuse_user_after_tool().require_nine_letter_ids();
            }
            let server = MemoryServer::new(Script::new().strict_by(rules).otherwise(Reply::text("Yes.")));
            let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server.clone());
            let endpoint = if mistral { endpoint.provider(Provider::Mistral) } else { endpoint };
            let mut options = ChatOptions::new("first");
            options.parameters.tools = vec![spec("look")];
            if in_text {
                options.tool_mode = ToolMode::TaggedJson;
            }
            if inline {
                options.result_images = ResultImages::Inline;
            }
            let request = ChatRequest::from_options(options, messages(&exchanges));
            let retry = Retry::new(AnyChat::from(endpoint.build().unwrap()), RetryConfig::none());
            retry.ask(request).await.unwrap().message().await.unwrap();
            server.verify();
            // No image is lost, and none is in a tool message that must be text.
            let wanted: usize = exchanges.iter().map(|exchange| match exchange {
                Exchange::Look(_, one, other) => one + other,
                _ => 0,
            }).sum();
            let requests = server.requests();
            let parts = |message: &Value| -> usize {
                let parts = message["content"].as_array().into_iter().flatten();
                parts.filter(|part| part["type"] == "image_url").count()
            };
            prop_assert_eq!(requests[0].messages().iter().map(parts).sum::<usize>(), wanted);
            let in_results = requests[0].messages().iter().filter(|message| message["role"] == "tool");
            let in_results = in_results.map(parts).sum::<usize>();
            prop_assert_eq!(in_results, if inline && !in_text { wanted } else { 0 });
            Ok(())
        })?;
    }
}

/// A result without a name is sent with that of its call, as text or as the heading of its images.
#[tokio::test]
async fn edited_call_renames_its_result() {
    let history = |name: &str, image: Option<&str>| {
        let mut result = ToolResultBlock::new("call_1", json!("Seen."));
        result.images =
            image.into_iter().filter_map(|url| ImageBlock::from_url(url).ok()).collect();
        vec![
            Message::user("Look."),
            Message::assistant(vec![ToolUseBlock::new("call_1", name, json!({})).into()]),
            Message::tool(result),
            Message::assistant(vec![TextBlock::new("I see.").into()]),
            Message::user("And now?"),
        ]
    };
    for (mode, image) in [
        (ToolMode::React, None),
        (ToolMode::React, Some("https://host/a.png")),
        (ToolMode::default(), Some("https://host/a.png")),
    ] {
        let server = MemoryServer::new(Script::new().otherwise(Reply::text("Yes.")));
        let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server.clone());
        let endpoint = endpoint.build().unwrap();
        let service = AnyChat::from(endpoint.clone());
        let mut options = ChatOptions::new("first");
        options.parameters.tools = vec![spec("look"), spec("read")];
        options.tool_mode = mode;
        let prepared = PreparedOptions::for_endpoint(options, &endpoint).unwrap();
        let mut edited = Conversation::with_id(7);
        edited.request(&prepared, &service, &history("look", image).into(), &[1, 2, 3, 4, 5]);
        let after = history("read", image);
        let revisions = [1, 6, 3, 4, 5];
        let retry = Retry::new(service.clone(), RetryConfig::none());
        for mut conversation in [edited, Conversation::with_id(7)] {
            let (request, _) =
                conversation.request(&prepared, &service, &after.clone().into(), &revisions);
            retry.ask(request).await.unwrap().message().await.unwrap();
        }
        let [followed, made] = &server.requests()[..] else { panic!("two were sent") };
        assert_eq!(followed.json()["messages"], made.json()["messages"]);
    }
}

#[test]
fn requests_can_be_compared() {
    let request = || ChatRequest::new("a", vec![Message::user("Hello.")]);
    assert_eq!(request(), request());
    assert_eq!(request().with_model("b").with_model("a"), request());
    assert_ne!(request().with_model("b"), request());
    assert_ne!(request().with_messages(vec![Message::user("Bye.")]), request());
    assert_ne!(request().with_tools(vec![spec("look")]), request());
}

#[test]
fn choice_of_a_removed_tool_is_dropped() {
    let request = ChatRequest::new("a", vec![Message::user("Hello.")]).with_options(|options| {
        options.parameters.tools = vec![spec("look"), spec("read")];
        options.parameters.tool_choice = Some(ToolChoice::Tool("read".into()));
    });
    let kept = request.clone().with_tools(vec![spec("read")]);
    assert!(kept.options().parameters.tool_choice.is_some());
    let dropped = request.with_tools(vec![spec("look")]);
    assert_eq!(dropped.options().parameters.tool_choice, None);
}

#[test]
fn endpoint_debug_output_hides_keys() {
    let url = "http://me:s3cret-s3cret@host/v1";
    let shown = format!("{:?}", Endpoint::builder().base_url(url));
    assert!(!shown.contains("s3cret"), "{shown}");
    let key = "s3cret-s3cret-s3cret";
    let endpoint = Endpoint::builder().base_url(format!("http://host/{key}/v1")).model("any");
    let endpoint = endpoint.api_key(key).build().expect("it is an endpoint");
    let shown = format!("{endpoint:?}");
    assert!(!shown.contains("s3cret") && shown.contains("http://host/"), "{shown}");
}

#[tokio::test]
async fn without_tools_no_instructions_are_sent() {
    for role in [SystemRole::System, SystemRole::User] {
        let server = MemoryServer::new(Script::new().otherwise(Reply::text("Yes.")));
        let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server.clone());
        let service = AnyChat::from(endpoint.build().unwrap());
        let mut options = ChatOptions::new("first");
        options.system_prompt = Some("Be brief.".into());
        options.parameters.tools = vec![spec("look_around")];
        (options.tool_mode, options.system_role) = (ToolMode::React, role);
        let (prepared, mut conversation) = (PreparedOptions::new(options), Conversation::new());
        let history = vec![Message::user("Hello.")].into();
        let retry = Retry::new(service.clone(), RetryConfig::none());
        let (request, _) = conversation.request(&prepared, &service, &history, &[1]);
        for request in [request.clone(), request.without_tools()] {
            retry.ask(request).await.unwrap().message().await.unwrap();
        }
        let requests = server.requests();
        let [with, without] =
            [0, 1].map(|place: usize| requests[place].json()["messages"].to_string());
        assert!(with.contains("look_around") && with.contains("Be brief."), "{with}");
        assert!(!without.contains("look_around") && without.contains("Be brief."), "{without}");
    }
}

/// Servers that ask for another form get it, and the next requests have it from the start (QUIRKS rows 77, 92 and 94).
#[tokio::test(start_paused = true)]
async fn demands_are_met_and_remembered() {
    let demands = [
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "messages[2]: \"name\" is not supported by this endpoint",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
    ];
    let replies =
        demands.map(|message| Reply::json(400, json!({ "error": { "message": message } })));
    let script = Script::from([&replies[..], &[Reply::text("Hi."), Reply::text("Hi.")]].concat());
    let server = MemoryServer::new(script);
    let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server.clone());
    let endpoint = endpoint.build().unwrap();

    let call = |id: &str| ToolUseBlock::new(id, "look", json!({}));
    let result = |id: &str| {
        let mut result = ToolResultBlock::new(id, json!("Seen."));
        result.name = Some("look".into());
        Message::tool(result)
    };
    let messages = vec![
        Message::user("Look."),
        Message::assistant(vec![ThinkingBlock::new("Hm.").into(), call("a").into()]),
        result("a"),
        Message::assistant(vec![call("b").into()]),
        result("b"),
    ];
    let request = ChatRequest::new("any", messages)
        .with_options(|options| options.parameters.max_tokens = Some(7));
    for _ in 0..2 {
        let answer = endpoint.clone().oneshot(request.clone()).await.unwrap();
        assert_eq!(answer.message().await.unwrap().text(), "Hi.");
    }

    let sent: Vec<_> = server.requests().iter().map(|request| request.json().clone()).collect();
    assert_eq!(sent.len(), 5, "the second request is rejected no more");
    assert_eq!((&sent[0]["max_tokens"], sent[0].get("max_completion_tokens")), (&json!(7), None));
    assert_eq!((&sent[1]["max_completion_tokens"], sent[1].get("max_tokens")), (&json!(7), None));
    let member = |sent: &Value, place: usize, name: &str| sent["messages"][place][name].clone();
    assert_eq!(member(&sent[1], 2, "name"), "look");
    assert_eq!(member(&sent[2], 2, "name"), Value::Null);
    assert_eq!(member(&sent[2], 1, "reasoning_content"), Value::Null);
    assert_eq!(member(&sent[3], 1, "reasoning_content"), "Hm.");
    assert_eq!(member(&sent[3], 3, "reasoning_content"), " ");
    assert_eq!(sent[3], sent[4]);
}

/// A server that is not content with the change gets no third request.
#[tokio::test(start_paused = true)]
async fn each_demand_is_met_once() {
    let error = json!({ "error": { "message": "messages[0]: 'name' is not supported" } });
    let server = MemoryServer::new(Script::new().otherwise(Reply::json(400, error)));
    let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server.clone());
    let request = ChatRequest::new("any", vec![Message::user("Go.")]);
    let error = endpoint.build().unwrap().oneshot(request).await.unwrap_err();
    assert_eq!((error.status(), server.requests().len()), (Some(400), 2));
}
