//! Events as JSON and SSE, and back.

use std::sync::Arc;

use insta::assert_snapshot;
use oa_executor::{
    Batch, ErrorKind, ExecutionResult, ExecutorOptions, RetryPolicy, ToolCustom, ToolEvent,
    TruncationPolicy,
};
use oa_tools::{Progress, tool};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{calls, executor};

async fn events() -> Vec<ToolEvent> {
    let failed = std::sync::atomic::AtomicBool::new(false);
    let talks = tool("talks", "").build_with_context(move |_, cx| {
        let is_first = !failed.swap(true, std::sync::atomic::Ordering::SeqCst);
        async move {
            if is_first {
                return Err("busy".into());
            }
            cx.emit_progress(Progress::new(1, None).with_message("one"));
            cx.emit_status("line\nbreak");
            cx.emit_log("log");
            cx.emit("pre view\r\n", json!([1.5, null]));
            cx.emit("progress", json!(1));
            Ok(json!("a result too long"))
        }
    });
    let options = ExecutorOptions::new()
        .retry(RetryPolicy::new(1))
        .truncation(TruncationPolicy::max_chars(8))
        .with_metrics();
    let executor = executor([talks], options);
    let mut events = executor.execute_batch_streaming(calls([("talks", json!({}))]), Batch::new());
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(event);
    }
    seen
}

/// The event as it is after serialization.
fn written(event: &ToolEvent) -> ToolEvent {
    let without_full = |result: &Arc<ExecutionResult>| {
        let mut result = ExecutionResult::clone(result);
        result.full_result = None;
        Arc::new(result)
    };
    match event.clone() {
        ToolEvent::CallComplete(result) => ToolEvent::CallComplete(without_full(&result)),
        ToolEvent::End(mut end) => {
            end.execution_results = end.execution_results.iter().map(without_full).collect();
            ToolEvent::End(end)
        }
        other => other,
    }
}

fn through_sse(events: &[ToolEvent]) -> Vec<(String, ToolEvent)> {
    let mut stream = Vec::new();
    events.iter().for_each(|event| event.write_sse(&mut stream));
    let mut parser = oa_sse::Parser::new();
    parser.push(stream.into());
    let mut read = Vec::new();
    while let Some(event) = parser.next_event().expect("within limits") {
        let name = event.event().into_owned();
        read.push((name, ToolEvent::from_sse(&event).expect("what was written can be read")));
    }
    read
}

#[tokio::test(start_paused = true)]
async fn the_shape_is_part_of_the_contract() {
    let json: Vec<String> = events().await.iter().map(ToolEvent::to_json).collect();
    assert_snapshot!(json.join("\n"), @r#"
    {"type":"tool_call_start","call_id":"c0","tool_name":"talks","input":{}}
    {"type":"tool_retry","call_id":"c0","tool_name":"talks","attempt":1,"error":"busy","delay_us":39259}
    {"type":"tool_progress","call_id":"c0","tool_name":"talks","done":1,"message":"one"}
    {"type":"tool_status","call_id":"c0","tool_name":"talks","status":"line\nbreak"}
    {"type":"tool_log","call_id":"c0","tool_name":"talks","level":"info","message":"log"}
    {"type":"tool_pre_view__","call_id":"c0","tool_name":"talks","data":[1.5,null]}
    {"type":"tool_custom_progress","call_id":"c0","tool_name":"talks","data":1}
    {"type":"tool_call_complete","call_id":"c0","tool_name":"talks","input":{},"outcome":"ok","result":"a result\n[9 of 17 characters left out]","truncated":true,"duration_us":40000,"attempts":2,"cached":false,"dropped_events":0}
    {"type":"tool_metrics","calls":1,"ok":1,"failed":0,"timed_out":0,"cancelled":0,"refused":0,"not_run":0,"cached":0,"truncated":1,"retries":1,"dropped_events":0,"peak_parallel":1,"duration_us":40000,"busy_us":40000}
    {"type":"tools_end","tool_messages":[{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c0","content":"a result\n[9 of 17 characters left out]","name":"talks"}]}],"execution_results":[{"call_id":"c0","tool_name":"talks","input":{},"outcome":"ok","result":"a result\n[9 of 17 characters left out]","truncated":true,"duration_us":40000,"attempts":2,"cached":false,"dropped_events":0}]}
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_whole_batch_goes_through_an_event_stream() {
    let events = events().await;
    let read = through_sse(&events);
    assert_eq!(read.len(), events.len());
    for ((name, read), event) in read.iter().zip(&events) {
        assert_eq!((&**name, read), (event.event_type(), &written(event)));
    }
}

#[test]
fn a_frame_is_an_event_and_a_line_of_data() {
    let mut stream = Vec::new();
    ToolEvent::Custom(ToolCustom::new("c1", "t", "preview", json!("a\nb")).into())
        .write_sse(&mut stream);
    assert_snapshot!(String::from_utf8(stream).unwrap(), @r#"
    event: tool_preview
    data: {"type":"tool_preview","call_id":"c1","tool_name":"t","data":"a\nb"}
    "#);
}

#[test]
fn custom_names_never_equal_built_in_ones() {
    for (given, name) in [
        ("preview", "preview"),
        ("a b\n", "a_b_"),
        ("", "custom"),
        ("progress", "custom_progress"),
        ("call_start", "custom_call_start"),
        ("custom_progress", "custom_progress"),
        ("s_end", "s_end"),
        ("über", "_ber"),
    ] {
        let event = ToolCustom::new("c", "t", given, json!(null));
        assert_eq!(event.name(), name);
        let event = ToolEvent::Custom(event.into());
        assert_eq!(ToolEvent::from_json(event.to_json().as_bytes()).unwrap(), event);
    }
    assert_eq!(ToolCustom::new("c", "t", &"x".repeat(1_000), json!(null)).name().len(), 64);
}

/// As in results: deeper JSON is not read, and writing it could overflow the stack.
#[test]
fn deep_emitted_data_becomes_text() {
    let nested = |levels| (0..levels).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    for (levels, expected) in [
        (100, nested(100)),
        (101, json!(nested(101).to_string())),
        (50_000, json!("[a value that is nested more than 500 levels deep]")),
    ] {
        let custom = ToolCustom::new("c", "t", "tree", nested(levels));
        assert_eq!(custom.data, expected, "{levels}");
        let event = ToolEvent::Custom(custom.into());
        assert_eq!(ToolEvent::from_json(event.to_json().as_bytes()).unwrap(), event);
    }
}

#[test]
fn other_json_is_rejected() {
    for json in [
        "",
        "{}",
        "[]",
        r#"{"type": 1}"#,
        r#"{"type": "message"}"#,
        r#"{"type": "tool_status", "call_id": "c"}"#,
        r#"{"type": "tool_preview", "call_id": "c", "tool_name": "t"}"#,
        r#"{"type": "tool_call_complete", "call_id": "c"}"#,
    ] {
        let error = ToolEvent::from_json(json.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{json}");
        assert!(std::error::Error::source(&error).is_some());
    }
}

/// JSON whose numbers survive a round trip as text.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1_000_i32..1_000).prop_map(|n| json!(f64::from(n) / 8.0)),
        "\\PC{0,8}|[\r\n:a]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("\\PC{0,4}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// SSE carries any text of a model, tool or handler.
    #[test]
    fn events_round_trip_through_json(
        id in "\\PC{0,6}|[\r\n]{1,3}",
        (name, custom) in ("\\PC{0,6}|tool|[a-z]{1,6}", "\\PC{0,10}|[\r\n]{1,3}|progress|call_complete"),
        (input, data, result) in (any_json(), any_json(), any_json()),
        text in "\\PC{0,10}|[\r\n:a]{0,6}",
        fails: bool,
    ) {
        let said = (custom, data, text.clone());
        let echo = tool("tool", "").build_with_context(move |_, cx| {
            let ((custom, data, text), result) = (said.clone(), result.clone());
            async move {
                cx.emit(&custom, data);
                cx.emit_status(&text);
                cx.emit_log(&text);
                cx.emit_progress(Progress::new(u64::MAX, Some(3)).with_message(&*text));
                if fails { Err(text.into()) } else { Ok(result) }
            }
        });
        let options = ExecutorOptions::new().with_metrics().truncation(TruncationPolicy::max_chars(9));
        let executor = executor([echo], options);
        let call = oa_types::ToolUseBlock::new(id, name, input);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let events = runtime.block_on(async {
            let mut events = executor.execute_batch_streaming(vec![call], Batch::new());
            let mut seen = Vec::new();
            while let Some(event) = events.next().await {
                seen.push(event);
            }
            seen
        });
        let read: Vec<ToolEvent> = through_sse(&events).into_iter().map(|(_, event)| event).collect();
        prop_assert_eq!(read, events.iter().map(written).collect::<Vec<_>>());
    }
}
