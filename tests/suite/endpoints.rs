//! The seam between an agent and the service that answers its chat requests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use oa_testkit::{MemoryServer, Reply, Script, Strict};
use open_agent::{
    AgentOptions, AgentOptionsBuilder, ChatRequest, Client, Endpoint, EndpointBuilder, ErrorKind,
    Message, Provider, RetryConfig, SystemRole, Thinking, ToolUseBlock, json, list_models, query,
};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

use suite::talk::{Log, client, echo, stalling, talk};

fn endpoint(server: &MemoryServer) -> EndpointBuilder {
    Endpoint::builder().base_url("http://gpu:8000/v1").transport(server.clone())
}

/// Options with this chat service.
fn served_by<S>(service: S) -> AgentOptionsBuilder
where
    S: Service<ChatRequest, Response = open_agent::AnswerStream> + Clone + Send + Sync + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send,
{
    AgentOptions::builder().model("any").retry(RetryConfig::none()).chat_service(service)
}

/// Asks the first service, and the second if the first fails.
fn either(first: Endpoint, second: Endpoint) -> impl Fn(ChatRequest) -> Answering + Clone {
    move |request| {
        let (first, second) = (first.clone(), second.clone());
        Box::pin(async move {
            match first.oneshot(request.clone()).await {
                Ok(answer) => Ok(answer),
                Err(_) => second.oneshot(request).await,
            }
        })
    }
}

type Answering =
    std::pin::Pin<Box<dyn Future<Output = open_agent::Result<open_agent::AnswerStream>> + Send>>;

/// Each server gets the format, the key and the ids that it needs.
#[tokio::test]
async fn conversations_move_between_servers() {
    let local = MemoryServer::new(Script::from([
        Reply::new().call_with_id("call_0123456789", "echo", json!({"say": "x"})),
        Reply::error(503, "down"),
    ]));
    let mistral = MemoryServer::new(Script::from([Reply::text("Done.")]).strict_by(Strict::new()));
    let first = endpoint(&local).api_key("of-the-first").build().unwrap();
    let second = endpoint(&mistral)
        .provider(Provider::Mistral)
        .model("ministral")
        .api_key("of-the-second")
        .build()
        .unwrap();
    let options = served_by(service_fn(either(first, second)))
        .system_prompt("Be brief.")
        .tool(echo())
        .auto_execute_tools(true);
    let mut client = client(options);
    let lines = talk(&mut client, "Go.").await;
    assert_eq!(lines.last().map(String::as_str), Some("Done."));

    let [asked, failed] = &local.requests()[..] else { panic!("{}", local.story()) };
    let [moved] = &mistral.requests()[..] else { panic!("{}", mistral.story()) };
    assert_eq!((asked.model(), moved.model()), (Some("any"), Some("ministral")));
    assert_eq!(failed.json()["stream_options"], json!({"include_usage": true}));
    assert!(moved.json().get("stream_options").is_none(), "{}", moved.json());
    assert_eq!(failed.messages()[2]["tool_calls"][0]["id"], "call_0123456789");
    let id = moved.messages()[2]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!((id.len(), &moved.messages()[3]["tool_call_id"]), (9, &json!(id)));
    assert_eq!(moved.messages()[0]["content"], "Be brief.");
    for (request, key) in [(asked, "Bearer of-the-first"), (moved, "Bearer of-the-second")] {
        assert_eq!(request.headers()["authorization"], key);
    }
}

#[tokio::test(start_paused = true)]
async fn retries_wrap_the_service() {
    let server =
        MemoryServer::new(Script::from(Reply::error(503, "busy")).otherwise(Reply::text("Done.")));
    let options = served_by(endpoint(&server).build().unwrap()).retry(RetryConfig::new(1));
    assert_eq!(talk(&mut client(options), "Go.").await, ["Done."]);
    assert_eq!(server.requests().len(), 2);

    let down = MemoryServer::new(Script::new().otherwise(Reply::error(503, "down")));
    let options = served_by(endpoint(&down).build().unwrap());
    let error = client(options).send("Go.").await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Api, Some(503)));
}

#[tokio::test(start_paused = true)]
async fn tower_layers_wrap_an_endpoint() {
    let server = MemoryServer::new(Script::new().otherwise(Reply::silence()));
    let layered = ServiceBuilder::new()
        .concurrency_limit(1)
        .timeout(Duration::from_secs(1))
        .service(endpoint(&server).build().unwrap());
    let error = client(served_by(layered)).send("Go.").await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Connect, true));
    assert!(error.to_string().contains("timed out"), "{error}");
}

#[tokio::test]
async fn requests_carry_their_conversation() {
    let server = MemoryServer::new(Script::new().otherwise(Reply::text("Hello.")));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (note, endpoint) = (Arc::clone(&asked), endpoint(&server).build().unwrap());
    let service = service_fn(move |request: ChatRequest| {
        assert_eq!((request.model(), request.offers_tools()), ("any", true));
        note.lock().unwrap().push((request.conversation(), request.messages().len()));
        endpoint.clone().oneshot(request)
    });
    let options = served_by(service).tool(echo()).build().unwrap();
    let (mut one, mut two) = (Client::new(options.clone()).unwrap(), Client::new(options).unwrap());
    for client in [&mut one, &mut two] {
        talk(client, "Hi.").await;
        talk(client, "Hi again.").await;
    }
    let asked = asked.lock().unwrap().clone();
    let [(a, 1), (b, 3), (c, 1), (d, 3)] = asked[..] else { panic!("{asked:?}") };
    assert!(a == b && c == d && a != c, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn on_end_reports_every_outcome() {
    let server = MemoryServer::new(Script::from([
        Reply::text("Whole."),
        Reply::sse("data: {\"choices\":[{\"delta\":{\"content\":\"Half\"}}]}\n\ndata: {")
            .close_after(50),
        stalling(&["Given", " up."]),
    ]));
    let (log, dropped) = (Log::default(), Arc::new(()));
    let (note, held, endpoint) = (log.clone(), dropped.clone(), endpoint(&server).build().unwrap());
    let service = service_fn(move |request: ChatRequest| {
        let (note, held, endpoint) = (note.clone(), Arc::clone(&held), endpoint.clone());
        async move {
            let mut answer = endpoint.oneshot(request).await?;
            let again = note.clone();
            answer.on_end(move |outcome| {
                let _held = held;
                assert_eq!((outcome.model, outcome.server), ("any", "http://gpu:8000/v1"));
                again.note(match outcome.error {
                    Some(error) => format!("{:?}", error.kind()),
                    None if outcome.interrupted => "interrupted".to_owned(),
                    None => format!("ended by {}", outcome.finish_reason),
                });
            });
            answer.on_end(move |_| note.note("and the second is told"));
            Ok::<_, open_agent::Error>(answer)
        }
    });
    let mut client = client(served_by(service));
    assert_eq!(talk(&mut client, "Go.").await, ["Whole."]);
    client.send("Go.").await.unwrap();
    assert!(client.receive().await.unwrap().is_some());
    assert_eq!(client.receive().await.unwrap_err().kind(), ErrorKind::Stream);
    client.send("Go.").await.unwrap();
    client.receive().await.unwrap();
    client.interrupt();
    assert_eq!(client.receive().await.unwrap(), None);
    let second = "and the second is told";
    let told = ["ended by stop", second, "Stream", second, "interrupted", second];
    assert_eq!(log.lines(), told);
    // Those of the services, and this one.
    assert_eq!(Arc::strong_count(&dropped), 2);
}

#[tokio::test(start_paused = true)]
async fn early_ends_fail_over_before_a_retry() {
    let broken = || Reply::text("Lost.").close_after(0);
    // A transport with unspecified errors may have failed to connect.
    let first = MemoryServer::new(Script::from([broken(), broken()]));
    let second = MemoryServer::new(Script::from([broken(), Reply::text("Done.")]));
    let log = Log::default();
    let (one, two) = (endpoint(&first).build().unwrap(), endpoint(&second).build().unwrap());
    let note = log.clone();
    let service = service_fn(move |request: ChatRequest| {
        let (one, two, note) = (one.clone(), two.clone(), note.clone());
        async move {
            note.note("asked");
            let mut answer = one.oneshot(request.clone()).await?;
            answer.on_early_end(move |error| {
                note.note(format!("{:?}", error.kind()));
                Ok(Box::pin(two.oneshot(request)))
            });
            Ok::<_, open_agent::Error>(answer)
        }
    });
    let options = served_by(service).retry(RetryConfig::new(1));
    assert_eq!(talk(&mut client(options), "Go.").await, ["Done."]);
    assert_eq!(log.lines(), ["asked", "Connect", "asked", "Connect"]);
    assert_eq!((first.requests().len(), second.requests().len()), (2, 2));
}

#[tokio::test]
async fn server_options_conflict_with_chat_service() {
    type Set = fn(AgentOptionsBuilder) -> AgentOptionsBuilder;
    let server = MemoryServer::new(Script::new());
    let options: [(&str, Set); 5] = [
        ("base_url", |options| options.base_url("http://localhost/v1")),
        ("provider", |options| options.provider(Provider::Ollama)),
        ("api_key", |options| options.api_key("secret")),
        ("header", |options| options.header("x-team", "blue")),
        ("connect_timeout", |options| options.connect_timeout(1)),
    ];
    for (name, set) in options {
        let error = set(served_by(endpoint(&server).build().unwrap())).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().starts_with(name), "{error}");
    }
    let served = served_by(endpoint(&server).build().unwrap()).build().unwrap();
    assert_eq!(
        (served.base_url(), served.provider(), served.api_key().is_none()),
        ("", None, true)
    );
    assert_eq!(list_models(&served).await.unwrap_err().kind(), ErrorKind::Config);
    let error = Client::with_transport(served, server).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

/// Their `Debug` output hides the key.
#[tokio::test]
async fn endpoints_check_address_and_provider() {
    assert_eq!(Endpoint::builder().build().unwrap_err().kind(), ErrorKind::Config);
    let server = MemoryServer::new(Script::new());
    let options = served_by(endpoint(&server).build().unwrap()).thinking(Thinking::Off);
    let error = query("Go.", &options.build().unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(server.requests().is_empty());
    let shown = format!("{:?}", endpoint(&server).api_key("sk-secret").header("x-key", "hidden"));
    assert!(!shown.contains("sk-secret") && !shown.contains("hidden"), "{shown}");
}

#[tokio::test]
async fn row_95_system_prompt_joins_first_message() {
    let server = MemoryServer::new(Script::new().otherwise(Reply::text("Hello.")).strict());
    let options = AgentOptions::builder().model("any").transport(server.clone());
    let options = options.system_prompt("Be brief.").system_role(SystemRole::User).build().unwrap();
    let history = [
        Message::user("One."),
        Message::user("Two."),
        Message::assistant(vec![ToolUseBlock::new("c1", "echo", json!({})).into()]),
    ];
    let mut client = Client::with_history(options, history.to_vec()).unwrap();
    talk(&mut client, "Three.").await;
    client.set_system_prompt("Be long.").unwrap();
    talk(&mut client, "Four.").await;
    client.history_mut().remove(0);
    talk(&mut client, "Five.").await;
    let users = server.requests().into_iter().map(|request| {
        let users = request.messages().iter().filter(|message| message["role"] == "user");
        let words: Vec<_> = users.map(|message| message["content"].to_string()).collect();
        assert!(request.messages().iter().all(|message| message["role"] != "system"));
        words.join(" | ")
    });
    insta::assert_snapshot!(users.collect::<Vec<_>>().join("\n"), @r#"
    "Be brief.\n\nOne.\nTwo." | "Three."
    "Be long.\n\nOne.\nTwo." | "Three." | "Four."
    "Be long.\n\nTwo." | "Three." | "Four." | "Five."
    "#);
}

#[test]
fn transport_headers_are_rejected() {
    let build = |name: &str, value: &str| {
        let endpoint = Endpoint::builder().base_url("http://gpu:8000/v1").header(name, value);
        endpoint.build().map(drop).map_err(|error| error.to_string())
    };
    for name in [
        "Accept-Encoding",
        "connection",
        "content-encoding",
        "Content-Length",
        "expect",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "Transfer-Encoding",
        "upgrade",
    ] {
        let error = build(name, "1").unwrap_err();
        let name = name.to_ascii_lowercase();
        assert!(error.starts_with(&format!("header {name} cannot be set: ")), "{error}");
    }
    for host in ["other", "gpu", "gpu:80", "gpu:8000/v1", ""] {
        let error = build("Host", host).unwrap_err();
        let expected = "header host cannot differ from the base URL, which is http://gpu:8000/v1";
        assert_eq!(error, expected, "{host}");
    }
    assert_eq!(build("host", "GPU:8000"), Ok(()));
    for (base_url, host) in [("https://gpu/v1", "gpu:443"), ("http://gpu:80/v1", "gpu")] {
        let endpoint = Endpoint::builder().base_url(base_url).header("host", host);
        let endpoint = endpoint.transport(MemoryServer::new(Script::new()));
        endpoint.build().unwrap();
    }
    let error = AgentOptions::builder().model("any").header("connection", "close").build();
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Config);
}

#[tokio::test]
async fn error_debug_starts_with_its_message() {
    let reply = Reply::error(404, "no such model");
    let server = MemoryServer::new(Script::new().get("/v1/models", reply));
    let options = AgentOptions::builder().model("any").transport(server).build().unwrap();
    let error = list_models(&options).await.unwrap_err();
    let expected = r#"Error { message: "the server answered 404 Not Found: no such model", kind: Api, status: 404, code: "invalid_request_error" }"#;
    assert_eq!(format!("{error:?}"), expected);
}
