//! A served agent whose model is scripted, behind a proxy that can cut connections.
//!
//! The browser's driver controls when waiting parts continue: `POST /open` on the control address ends one wait.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::Response;
use axum::routing::post;
use axum::{Json, Router};
use futures_util::StreamExt;
use http_body_util::BodyExt;
use oa_agents::AgentTool;
use oa_client::{AgentOptions, AgentOptionsBuilder};
use oa_hooks::ToolRule;
use oa_serve::{AgentServer, ServeLimits};
use oa_testkit::{Cut, MemoryBody, MemoryServer, Reply, Request, Script};
use oa_tools::{LogLevel, Progress, ToolError, tool};
use oa_types::ImageBlock;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::util::MapResponse;

use crate::proxy::Proxy;

pub(crate) const TOKEN: &str = "a token of the test";

/// In the text of an answer: the rest is sent once the gate was opened. It is invisible.
const GATE: &str = "\u{2060}";

const IMAGE: &str = "data:image/png;base64,\
    iVBORw0KGgoAAAANSUhEUgAAAUAAAAC0AgMAAACYih2CAAAADFBMVEUcJEpAUMTwsGD67NYrm2yHAAAB1klEQVR42u3YzXHCMBAF4JeDS0g/lM\
    ABDceUkn7EgRJSBU1wz4UZnAwQB9nalfXzDnay765v8O5aSMYXOTDQQAMNNNBAAw000EAC2Hvvj0zQ3/LBAy938MADvdd+Iqor6OUq1oHnH9Cz\
    wMETnhktTyw9M+p7LPcZTSUUioimEgpFXATYB+CRAV4C8LBIMGhy3OZFgKEXtflPgv0IPBpooIEGrgX8hzv2Cv5Gl38UoZ++ln/g5J+x6bcA+j\
    2FfpPi3/Xot1H6fZl/o6d/c+B/FbFPVcsCr27IngE+uXuaQTfNWxP46YQ0gCcn5r0WVLzxY6OhfKIIhheKoHiBiNb6TUWQvF8RLG+YHlTPsyKC\
    5z3eGRRvB4ns80DnSkQwvVurQWlw0BiwGjIEZG8GvDoy6MigI4MnMljlJcA6TweFgdngkdcaMPa2eKYcjD2M0hWCUf12mOSlCJz3dBE58yx4qo\
    iM8omeJmJyHpO2AyjpZDA8iIq7C1AiYnb0NzoojfgsuEUq5WDaE0Skxd2MF7c6MfM5XrwcSREZ6eIlXU2DtVan9o48byImtsxcb7xcn9B8b7Rc\
    fYtKvFBMNasknbCwbP60eRRnFFXpGtZaLBaLxWKxWCyW9eYb28uKF8c8vN4AAAAASUVORK5CYII=";

const ANSWER: &str = include_str!("answer.md");

/// The addresses of a running server.
pub(crate) struct App {
    pub(crate) page: SocketAddr,
    /// The same, past the proxy.
    pub(crate) direct: SocketAddr,
    pub(crate) control: SocketAddr,
}

#[derive(Clone)]
struct Gate(Arc<Semaphore>);

impl Gate {
    async fn pass(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

/// Starts everything on free ports; it ends with the runtime.
pub(crate) async fn start() -> std::io::Result<App> {
    let gate = Gate(Arc::new(Semaphore::new(0)));
    let agent = agent(&gate).map_err(std::io::Error::other)?;
    // Few events are kept, so that a reader can fall behind.
    let mut limits = ServeLimits::default();
    limits.kept_events = 400;
    let server = AgentServer::new(agent)
        .name("Helper")
        .bearer_token(TOKEN)
        .context_window(8192)
        .limits(limits);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let direct = listener.local_addr()?;
    let proxy = Proxy::start(direct).await?;
    tokio::spawn(server.serve_until(listener, std::future::pending()));
    let page = proxy.address();
    let control = Router::new()
        .route(
            "/open",
            post(|State((gate, _)): State<(Gate, Proxy)>| async move { gate.0.add_permits(1) }),
        )
        .route(
            "/cut",
            post(|State((_, proxy)): State<(Gate, Proxy)>| async move { proxy.cut().await }),
        )
        .route(
            "/reset",
            post(|State((gate, _)): State<(Gate, Proxy)>| async move {
                gate.0.forget_permits(usize::MAX);
            }),
        )
        .route("/mend", post(|State((_, proxy)): State<(Gate, Proxy)>| async move { proxy.mend() }))
        .route("/image", axum::routing::get(|| async { Json(json!({ "url": IMAGE })) }))
        .with_state((gate, proxy));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, control).await });
    Ok(App { page, direct, control: address })
}

fn builder(gate: &Gate, reply: fn(&Request) -> Reply) -> AgentOptionsBuilder {
    let gate = gate.clone();
    let model = MemoryServer::new(Script::new().otherwise(Reply::by(reply)));
    let model = MapResponse::new(model, move |response: Response<MemoryBody>| {
        let gate = gate.clone();
        response.map(|body| {
            let pieces = body.into_data_stream().then(move |piece| {
                let gate = gate.clone();
                async move {
                    if piece.as_ref().is_ok_and(has_gate) {
                        gate.pass().await;
                    }
                    piece
                }
            });
            Body::from_stream(pieces)
        })
    });
    AgentOptions::builder().model("qwen3:8b").transport(model).auto_execute_tools(true)
}

fn has_gate(piece: &Bytes) -> bool {
    piece.windows(GATE.len()).any(|part| part == GATE.as_bytes())
}

fn agent(gate: &Gate) -> oa_client::Result<AgentOptions> {
    let waits = gate.clone();
    let search = tool("search", "Searches the notes").param("query", "string").build_with_context(
        move |args, cx| {
            let gate = waits.clone();
            async move {
                cx.emit_status("Opening the index");
                cx.emit_log("opened the index of 3 notebooks");
                cx.emit_log_at(LogLevel::Warn, "notebook 2 is slow");
                let mut progress = Progress::new(1, Some(3));
                progress.message = Some("Reading notebook 2".into());
                cx.emit_progress(progress);
                gate.pass().await;
                cx.emit_progress((3, 3));
                cx.emit_log_at(LogLevel::Error, "notebook 3 has a broken page");
                Ok(json!({ "query": args["query"], "hits": ["2024-05-01.md", "ideas.md"] }))
            }
        },
    );
    let fetch = tool("fetch", "Fetches a page").param("url", "string").build(|_| async {
        Err::<Value, _>(ToolError::new("the host does not answer").retryable(false))
    });
    let draw = tool("draw", "Draws a picture").param("what", "string").build_with_context(
        |args, cx| async move {
            let image =
                ImageBlock::from_url(IMAGE).map_err(|error| ToolError::new(error.to_string()))?;
            cx.attach_image(image)?;
            Ok(json!({ "drawn": args["what"] }))
        },
    );
    let delete =
        tool("delete_file", "Deletes a file").param("path", "string").build(|args| async move {
            // The other arguments are those of tests with unusual ones.
            let user = args["user"].is_u64().then(|| args.clone());
            Ok(user.unwrap_or_else(|| json!({ "deleted": args["path"] })))
        });
    let pick =
        tool("pick_color", "Lets the user pick a color").param("palette", "string").external();
    let waits = gate.clone();
    let lookup = tool("lookup", "Looks a word up").param("word", "string").build_with_context(
        move |args, cx| {
            let gate = waits.clone();
            async move {
                cx.emit_progress((1, 2));
                gate.pass().await;
                Ok(json!({ "word": args["word"], "meaning": "a small stream" }))
            }
        },
    );
    let researcher = builder(gate, research).tool(lookup).build()?;
    builder(gate, reply)
        .tool(search)
        .tool(fetch)
        .tool(draw)
        .tool(delete)
        .tool(pick)
        .tool(AgentTool::new("researcher", "Finds things out", researcher)?)
        .tool_rule(ToolRule::ask("delete_file"))
        .build()
}

/// The sub-agent's model.
fn research(asked: &Request) -> Reply {
    let messages = asked.messages();
    match messages.last().is_some_and(|last| last["role"] == "tool") {
        false => Reply::new().say("I look the word up.").call("lookup", json!({ "word": "brook" })),
        true => Reply::text("A **brook** is a small stream."),
    }
}

/// Answers by the first word of the last user message.
fn reply(asked: &Request) -> Reply {
    let messages = asked.messages();
    let prompt = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "user")
        .map(words)
        .unwrap_or_default();
    let is_after_tools = messages.last().is_some_and(|last| last["role"] == "tool");
    let result = messages.last().map(words).unwrap_or_default();
    let answer = match (prompt.split(' ').next().unwrap_or_default(), is_after_tools) {
        ("[markdown]", _) => Reply::new().say(ANSWER).usage(420, 310),
        ("[think]", _) => Reply::new()
            .think("The user asks for a number. ")
            .think("I take *seven*.")
            .say(GATE)
            .say("Seven."),
        ("[tools]", false) => Reply::new()
            .say("I search the notes and fetch the page.")
            .call("search", json!({ "query": "brook" }))
            .call(
                "fetch",
                json!({ "url": "https://example.com/a/rather/long/path?with=a&query=string" }),
            ),
        ("[tools]", true) => {
            Reply::text("The notes mention it twice; the page cannot be reached.").usage(6400, 210)
        }
        ("[nested]", false) => {
            Reply::new().call("researcher", json!({ "prompt": "What is a brook?" }))
        }
        ("[nested]", true) => Reply::text("It is a small stream."),
        ("[draw]", false) => Reply::new().call("draw", json!({ "what": "a hill" })),
        ("[draw]", true) => Reply::text("There it is."),
        ("[delete]", false) => Reply::new()
            .say("I can delete that file.")
            .call("delete_file", json!({ "path": "notes.txt" })),
        ("[pick]", false) => Reply::new().call("pick_color", json!({ "palette": "warm" })),
        ("[delete]" | "[pick]", true) => Reply::text(format!("The result is {result}")),
        ("[gate]", _) => Reply::new().say("The first half ").say(GATE).say("and the second half."),
        ("[progress]", _) => reading(),
        ("[many]", _) => many(Reply::new().say("Begin ").say(GATE)).say("End"),
        ("[flood]", _) => many(Reply::new()).say(GATE).say("End"),
        ("[big]", _) => Reply::new().say(ANSWER.repeat(100_000 / ANSWER.len() + 1)),
        ("[long]", _) => Reply::new().say("word ".repeat(20_000)),
        ("[evil]", _) => Reply::text(
            "<img src=x onerror=\"document.title='hacked'\"> <script>document.title='hacked'</script> \
             [a](javascript:document.title='hacked') ![b](https://example.com/c.png)",
        ),
        // An id of 64 bits, which JavaScript's numbers cannot hold.
        ("[ban]", false) => Reply::new().call(
            "delete_file",
            json!({ "path": "notes.txt", "user": 1_234_567_890_123_456_789_u64, "why": "spam" }),
        ),
        ("[ban]", true) => Reply::text(format!("The result is {result}")),
        // As servers do that count the calls of each answer.
        ("[same]", false) => Reply::new().call_with_id(
            "functions.delete_file:0",
            "delete_file",
            json!({ "path": prompt }),
        ),
        ("[same]", true) => Reply::text(format!("The result is {result}")),
        ("[trojan]", false) => Reply::new().call(
            "delete_file",
            json!({ "path": "notes\u{202e}txt.exe", "why": "a\u{200b}b\u{e0041}c" }),
        ),
        ("[trojan]", true) => Reply::text(
            "A \u{202e}paragraph that turns around\n\nשלום, this begins on the right\n\nAnd one that does not.",
        ),
        // A megabyte without a space: in a paragraph, or as code.
        ("[line]", _) => line(prompt.contains("code")),
        ("[fail]", _) => Reply::error(400, "the model is not loaded"),
        ("[image]", _) => Reply::text("I see an image."),
        _ => Reply::text(format!("You said: {prompt}")),
    };
    // Each event is a piece of its own, as of a model that generates.
    answer.cut(Cut::Events).delay(Duration::ZERO)
}

/// A line of 2^20 letters, in pieces as a server may send them.
fn line(is_code: bool) -> Reply {
    let begin = if is_code { "```\n" } else { "" };
    (0..64).fold(Reply::new().say(begin), |reply, _| reply.say("x".repeat(1 << 14)))
}

/// The server reads a long prompt.
fn reading() -> Reply {
    let progress = |processed: u32| {
        json!({
            "choices": [],
            "prompt_progress": { "total": 9000, "cache": 512, "processed": processed, "time_ms": processed / 4 },
        })
    };
    Reply::new().event(progress(512)).event(progress(4096)).say(GATE).say("I have read it all.")
}

/// More events than the server keeps: text and thinking take turns, so that none is joined with another.
fn many(first: Reply) -> Reply {
    (0..600).fold(first, |reply, number| {
        reply.think(format!("thought {number} ")).say(format!("word{number} "))
    })
}

fn words(message: &Value) -> String {
    match &message["content"] {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Value::String(text) => text.clone(),
        _ => String::new(),
    }
}
