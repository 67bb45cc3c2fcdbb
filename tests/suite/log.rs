//! What the log is told.

use std::fmt;
use std::sync::{Arc, Mutex};

use oa_testkit::{MemoryServer, Reply};
use open_agent::{AgentOptions, Client, FinishReason, json, tool};
use tracing::field::{Field, Visit};
use tracing::span;
use tracing::{Event, Metadata, Subscriber};

/// Keeps each line: level and fields.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("oa_")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().expect("nothing panics here").push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn a_turn_that_a_limit_ends_is_one_warning() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
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
    let expected = "WARN message=a limit ended the turn reason=\"max_tool_iterations\" rounds=2";
    assert_eq!(*lines.0.lock().unwrap(), [expected]);
}
