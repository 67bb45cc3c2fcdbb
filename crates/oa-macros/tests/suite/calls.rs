//! The context of a call, shared state, and how a tool runs.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use oa_macros::tool;
use oa_tools::{Cancel, Emission, State, Tool, ToolContext, ToolError};
use serde_json::json;

use crate::{call, run};

struct Stock(u32);
struct Prices(u32);

/// Says what is left.
#[tool]
async fn left(
    context: &ToolContext,
    sold: u32,
    /// Docs of state are for people.
    #[state]
    stock: &Stock,
    #[state] prices: Option<&Prices>,
) -> Result<(u32, u32), ToolError> {
    context.emit_status(format_args!("{} in {}", context.call_id(), context.tool_name()));
    let left = stock.0.checked_sub(sold).ok_or("there are not that many")?;
    Ok((left, prices.map_or(0, |prices| prices.0)))
}

/// The same on a thread.
#[tool]
fn left_blocking(#[state] stock: &Stock, sold: u32) -> u32 {
    stock.0 - sold
}

/// Needs no argument.
#[tool]
fn stocked(#[state] stock: &Stock) -> u32 {
    stock.0
}

struct Cities(Vec<&'static str>, String);

/// Borrows what it returns.
#[tool]
async fn capital(#[state] cities: &Cities) -> &str {
    &cities.1
}

/// May fail, and blocks.
#[tool]
fn city(#[state] cities: &Cities, number: usize) -> Result<&&'static str, ToolError> {
    cities.0.get(number).ok_or_else(|| "there is no such city".into())
}

#[test]
fn results_may_be_borrowed_from_state() {
    let state = State::new().with(Cities(vec!["Oslo", "Bergen"], "Oslo".to_owned()));
    assert_eq!(call(&capital::tool(), json!({}), state.clone()).unwrap(), json!("Oslo"));
    assert_eq!(call(&city::tool(), json!({ "number": 1 }), state).unwrap(), json!("Bergen"));
}

#[test]
fn state_and_context_are_not_in_the_schema() {
    let schema = left::tool().input_schema().clone();
    let names: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["sold"]);
    assert_eq!(schema["required"], json!(["sold"]));
}

#[test]
fn state_is_found_by_type() {
    let state = State::new().with(Stock(5));
    let input = json!({ "sold": 2, "stock": 7, "context": "x" });
    assert_eq!(call(&left::tool(), input.clone(), state.clone()).unwrap(), json!([3, 0]));
    assert_eq!(call(&left_blocking::tool(), input.clone(), state.clone()).unwrap(), json!(3));
    assert_eq!(call(&stocked::tool(), json!({}), state.clone()).unwrap(), json!(5));
    assert_eq!(call(&left::tool(), input, state.with(Prices(9))).unwrap(), json!([3, 9]));
}

#[test]
fn missing_state_error_names_the_type() {
    for (tool, input) in [
        (left::tool(), json!({ "sold": 1 })),
        (left_blocking::tool(), json!({ "sold": 1 })),
        (stocked::tool(), json!({})),
    ] {
        let error = call(&tool, input, State::new().with(Prices(1))).unwrap_err();
        assert_eq!(error.message(), "this agent has no state of type suite::calls::Stock");
        assert_eq!(error.retry_hint(), Some(false));
    }
}

#[test]
fn the_function_stays_callable() {
    let context = ToolContext::new("call_7", "left");
    assert_eq!(run(left(&context, 2, &Stock(5), None)).unwrap(), (3, 0));
    assert!(run(left(&context, 6, &Stock(5), None)).is_err());
    assert_eq!(left_blocking(&Stock(5), 1), 4);
}

#[test]
fn emissions_reach_the_emitter() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&heard);
    let context = ToolContext::new("call_1", "left")
        .with_state(State::new().with(Stock(1)))
        .with_emitter(Arc::new(move |emission| ear.lock().unwrap().push(emission)));
    run(left::tool().call(json!({ "sold": 1 }), context)).unwrap();
    assert_eq!(*heard.lock().unwrap(), [Emission::Status("call_1 in left".to_owned())]);
}

#[test]
fn only_sync_functions_are_blocking() {
    assert!(left::tool().blocking().is_none());
    let handler = left_blocking::tool().blocking().unwrap();
    let context = ToolContext::new("", "").with_state(State::new().with(Stock(3)));
    assert_eq!(handler.run(json!({ "sold": 1 }), context).unwrap(), json!(2));
    assert!(stocked::tool().blocking().is_some());
}

/// Waits until it is told to stop.
#[tool]
async fn wait(context: &ToolContext, #[state] dropped: &Arc<Mutex<bool>>) -> &'static str {
    struct Guard(Arc<Mutex<bool>>);
    impl Drop for Guard {
        fn drop(&mut self) {
            *self.0.lock().expect("nobody panicked") = true;
        }
    }
    let _guard = Guard(Arc::clone(dropped));
    context.cancel().cancelled().await;
    "stopped"
}

#[test]
fn calls_can_be_cancelled_and_dropped() {
    let dropped = Arc::new(Mutex::new(false));
    let (cancel, tool) = (Cancel::new(), wait::tool());
    let context = ToolContext::new("call_1", "wait")
        .with_cancel(cancel.clone())
        .with_state(State::new().with(Arc::clone(&dropped)));
    let mut poll = Context::from_waker(Waker::noop());

    let mut first = tool.call(json!({}), context.clone());
    assert!(first.as_mut().poll(&mut poll).is_pending());
    assert!(!*dropped.lock().unwrap());
    drop(first);
    assert!(*dropped.lock().unwrap());

    let mut second = tool.call(json!({}), context);
    assert!(second.as_mut().poll(&mut poll).is_pending());
    cancel.cancel();
    match second.as_mut().poll(&mut poll) {
        Poll::Ready(result) => assert_eq!(result.unwrap(), json!("stopped")),
        Poll::Pending => panic!("it was canceled"),
    }
}
