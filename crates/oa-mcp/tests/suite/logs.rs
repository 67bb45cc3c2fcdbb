//! A log at the most verbose level contains no key, argument or result.

use std::fmt::{self, Write};
use std::sync::{Mutex, PoisonError};

use oa_mcp::ElicitationAnswer;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{CANARY, call, call_with, connect, listening, scripted};

/// An argument and a result of this test alone.
const SPOKEN: &str = "spoken-in-confidence";

#[derive(Default)]
struct Seen {
    lines: usize,
    /// Lines with a key, an argument or a result.
    leaks: Vec<String>,
}

static SEEN: Mutex<Seen> = Mutex::new(Seen { lines: 0, leaks: Vec::new() });

struct Everything;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

fn take(line: Line) {
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.lines += 1;
    if line.0.contains(CANARY) || line.0.contains(SPOKEN) {
        seen.leaks.push(line.0);
    }
}

impl Subscriber for Everything {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("rmcp")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line(span.metadata().name().to_owned());
        span.record(&mut line);
        take(line);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = Line(String::new());
        values.record(&mut line);
        take(line);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().target().to_owned());
        event.record(&mut line);
        take(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn no_key_argument_or_result_is_logged() {
    tracing::subscriber::set_global_default(Everything).unwrap();
    let connected = connect(scripted("plain")).await.unwrap();
    let (cx, _) = listening();
    let echo = connected.tools().into_iter().find(|tool| tool.name() == "s__echo").unwrap();
    assert_eq!(echo.call(json!({ "text": SPOKEN }), cx.clone()).await.unwrap(), json!(SPOKEN));
    assert_eq!(
        call_with(&connected, json!({ "what": "progress", "steps": 3, "note": SPOKEN }), cx).await,
        Ok(json!("done"))
    );
    assert_eq!(call(&connected, "log").await, Ok(json!("logged")));
    assert!(call(&connected, "die").await.is_err());
    connected.close().await;
    // Answers to questions go another way.
    let person = scripted("stateless")
        .on_elicitation(|_, _| async { ElicitationAnswer::Accept(json!({ "name": SPOKEN })) });
    let connected = connect(person).await.unwrap();
    let heard = call(&connected, "round form").await.unwrap();
    assert!(heard.as_str().unwrap().contains(SPOKEN), "{heard}");
    connected.close().await;
    let seen = SEEN.lock().unwrap();
    assert!(seen.lines > 5, "the library logs: {} lines", seen.lines);
    assert_eq!(seen.leaks, [] as [String; 0]);
}
