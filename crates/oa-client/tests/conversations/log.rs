//! Log events and spans.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use insta::assert_snapshot;
use oa_client::{AgentOptions, Client, ErrorKind};
use oa_testkit::{MemoryServer, Reply};
use oa_tools::{ToolError, tool};
use oa_types::FinishReason;
use serde_json::json;
use tokio::time::timeout;
use tracing::field::{Field, Visit};
use tracing::span;
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// Records each line (level and fields) and each span (name, parent, recorded fields, closing).
#[derive(Clone, Default)]
pub(crate) struct Lines {
    lines: Arc<Mutex<Vec<String>>>,
    spans: Arc<Mutex<Vec<String>>>,
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

/// A subscriber that listens until dropped.
pub(crate) struct Listening {
    _here: DefaultGuard,
    /// With a single subscriber, tracing would cache the interest of whichever thread comes first.
    _second: Dispatch,
}

impl Lines {
    pub(crate) fn listen(&self) -> Listening {
        let second = Dispatch::new(self.clone());
        Listening { _here: tracing::subscriber::set_default(self.clone()), _second: second }
    }

    pub(crate) fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().expect("nothing panics here"))
    }

    pub(crate) fn take_spans(&self) -> Vec<String> {
        std::mem::take(&mut self.spans.lock().expect("nothing panics here"))
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("oa_")
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut spans = self.spans.lock().expect("nothing panics here");
        let parent =
            attributes.parent().map_or(String::new(), |id| format!(" in {}", id.into_u64()));
        let mut line = Line(format!("{}{parent}:", attributes.metadata().name()));
        attributes.record(&mut line);
        spans.push(line.0);
        span::Id::from_u64(spans.len() as u64)
    }

    fn record(&self, id: &span::Id, values: &span::Record<'_>) {
        let mut spans = self.spans.lock().expect("nothing panics here");
        let span = &mut spans[id.into_u64() as usize - 1];
        let mut line = Line(std::mem::take(span));
        values.record(&mut line);
        *span = line.0;
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.lines.lock().expect("nothing panics here").push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}

    fn try_close(&self, id: span::Id) -> bool {
        self.spans.lock().expect("nothing panics here")[id.into_u64() as usize - 1] += " |";
        true
    }
}

#[tokio::test]
async fn limits_log_one_warning() {
    let lines = Lines::default();
    let _guard = lines.listen();
    let again = || Reply::new().call("look", json!({}));
    let options = AgentOptions::builder()
        .model("any")
        .transport(MemoryServer::new([again(), again(), Reply::text("Enough.")]))
        .tool(tool("look", "Looks").build(|_| async { Ok(json!("nothing")) }))
        .auto_execute_tools(true)
        .max_tool_iterations(1);
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.ask("Look.").await.unwrap();
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxToolIterations));
    client.ask("Stop.").await.unwrap();
    assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
    let expected = "WARN message=a limit ended the turn reason=\"max_tool_iterations\" rounds=1";
    assert_eq!(lines.take_lines(), [expected]);
}

#[tokio::test]
async fn spans_contain_no_conversation_text() {
    let lines = Lines::default();
    let _guard = lines.listen();
    let fails = || async { Err(ToolError::new("secret words")) };
    let options = AgentOptions::builder()
        .model("any")
        .temperature(0.5)
        .transport(MemoryServer::new([
            Reply::text("secret words").call_with_id("c1", "look", json!({"at": "secret words"})),
            Reply::error(400, "secret words"),
        ]))
        .tool(tool("look", "Looks").param("at", "string").build(move |_| fails()))
        .auto_execute_tools(true);
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.ask("secret words").await.unwrap_err();
    let spans = lines.take_spans();
    assert!(!spans.concat().contains("secret"), "{spans:#?}");
    assert_snapshot!(spans.join("\n"), @r#"
    invoke_agent: gen_ai.operation.name="invoke_agent" gen_ai.request.model="any" error.type="api" |
    chat in 1: gen_ai.operation.name="chat" gen_ai.request.model="any" gen_ai.request.temperature=0.5 server.address="localhost" server.port=1234 gen_ai.response.finish_reasons="tool_calls" gen_ai.response.id="chatcmpl-1" gen_ai.response.model="any" gen_ai.usage.input_tokens=3 gen_ai.usage.output_tokens=10 |
    execute_tool in 1: gen_ai.operation.name="execute_tool" gen_ai.tool.name="look" gen_ai.tool.call.id="c1" error.type="failed" |
    chat in 1: gen_ai.operation.name="chat" gen_ai.request.model="any" gen_ai.request.temperature=0.5 server.address="localhost" server.port=1234 error.type="api" |
    "#);
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_request_is_interrupted() {
    let lines = Lines::default();
    let _guard = lines.listen();
    let late = Reply::text("Later.").delay_head(Duration::from_secs(9));
    let options = AgentOptions::builder().model("any").transport(MemoryServer::new(late));
    let mut client = Client::new(options.build().unwrap()).unwrap();
    timeout(Duration::from_secs(1), client.ask("Now?")).await.unwrap_err();
    drop(client);
    let spans = lines.take_spans();
    // Spelled as in metrics.
    let kind = ErrorKind::Interrupted.as_str();
    assert!(
        spans[1].starts_with("chat") && spans[1].contains(&format!("error.type={kind:?}")),
        "{spans:#?}"
    );
}

#[tokio::test]
async fn spans_name_the_model_of_the_step() {
    let lines = Lines::default();
    let _guard = lines.listen();
    let options = AgentOptions::builder()
        .model("small")
        .transport(MemoryServer::new([
            Reply::new().call("look", json!({})),
            Reply::text("Nothing."),
        ]))
        .tool(tool("look", "Looks").build(|_| async { Ok(json!("nothing")) }))
        .auto_execute_tools(true)
        .before_step(
            |step| async move { if step.number() > 1 { step.model("large") } else { step } },
        );
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.ask("Look.").await.unwrap();
    let spans = lines.take_spans();
    let model = |span: &&String| {
        let model = span.split("gen_ai.request.model=").nth(1)?.split('"').nth(1)?;
        Some(format!("{} {model}", span.split([':', ' ']).next()?))
    };
    let models: Vec<_> = spans.iter().filter_map(|span| model(&span)).collect();
    assert_eq!(models, ["invoke_agent small", "chat small", "chat large"]);
}
