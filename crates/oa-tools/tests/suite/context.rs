//! The context and output of a running tool.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use oa_tools::{
    Cancel, Emission, Emissions, IdempotencyKey, LogLevel, Progress, State, Tool, ToolContext, tool,
};
use oa_types::ImageBlock;
use serde_json::json;

#[derive(Debug, PartialEq)]
struct Secret(&'static str);

#[test]
fn state_is_by_type_and_shared() {
    let state = State::new().with(Secret("a")).with(7_u32).with(Secret("b"));
    let cx = ToolContext::new("c1", "t").with_state(state.clone());
    assert_eq!(cx.state::<Secret>(), Some(&Secret("b")));
    assert_eq!(cx.state::<u32>(), Some(&7));
    assert_eq!(cx.state::<u64>(), None);
    let kept = cx.shared().get_shared::<Secret>().unwrap();
    assert!(std::ptr::eq(&*kept, state.get::<Secret>().unwrap()));
    assert!(cx.shared().get_shared::<u64>().is_none());
}

#[test]
fn missing_state_is_named() {
    let cx = ToolContext::new("c1", "t").with_state(State::new().with(7_u32));
    assert_eq!(cx.require_state::<u32>().unwrap(), &7);
    let error = cx.require_state::<Secret>().unwrap_err();
    assert_eq!(error.message(), "this agent has no state of type suite::context::Secret");
    assert_eq!(error.retry_hint(), Some(false));
}

#[test]
fn debug_does_not_show_state_values() {
    let cx = ToolContext::new("c1", "t").with_state(State::new().with(Secret("hush")));
    let shown = format!("{cx:?}");
    assert!(shown.contains("Secret") && !shown.contains("hush"), "{shown}");
}

#[test]
fn clones_are_the_same_call() {
    let cancel = Cancel::new();
    let cx = ToolContext::new("c1", "t").with_cancel(cancel.clone());
    let other = cx.clone();
    cancel.cancel();
    assert!(cx.is_cancelled() && other.is_cancelled() && other.cancel().is_cancelled());
    assert_eq!((other.call_id(), other.tool_name()), ("c1", "t"));
}

#[test]
fn lazy_idempotency_key_is_computed_once() {
    let computed = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&computed);
    let key = IdempotencyKey::lazy(move || format!("k{}", counter.fetch_add(1, Ordering::SeqCst)));
    let cx = ToolContext::new("c1", "t").with_idempotency_key(key);
    let attempt = cx.clone().with_cancel(Cancel::new()).with_state(State::new());
    assert!(!format!("{cx:?}").contains("k0"));
    assert_eq!(computed.load(Ordering::SeqCst), 0);
    assert_eq!(attempt.idempotency_key(), Some("k0"));
    assert_eq!(cx.idempotency_key(), Some("k0"));
    assert_eq!(computed.load(Ordering::SeqCst), 1);
    assert_eq!(cx.with_idempotency_key("other").idempotency_key(), Some("other"));
    assert_eq!(ToolContext::new("c1", "t").idempotency_key(), None);
}

#[test]
fn emissions_arrive_in_order() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&heard);
    let cx = ToolContext::new("c1", "t")
        .with_emitter(Arc::new(move |emission| ear.lock().unwrap().push(emission)));
    assert!(cx.is_emitting());
    cx.emit_progress((1, 4));
    cx.emit_progress(0.25);
    cx.emit_progress(Progress::new(2, None).with_message("half"));
    cx.emit_status("reading");
    cx.emit_log(format_args!("{} rows", 3));
    cx.emit_log_at(LogLevel::Warn, "odd");
    cx.emit("preview", json!({ "rows": 3 }));
    cx.emit_with("lazy", || json!(1));
    assert_eq!(
        *heard.lock().unwrap(),
        [
            Emission::Progress(Progress::new(1, Some(4))),
            Emission::Progress(Progress::new(25, Some(100))),
            Emission::Progress(Progress::new(2, None).with_message("half")),
            Emission::Status("reading".into()),
            Emission::Log { level: LogLevel::Info, message: "3 rows".into() },
            Emission::Log { level: LogLevel::Warn, message: "odd".into() },
            Emission::Custom { name: "preview".into(), data: json!({ "rows": 3 }) },
            Emission::Custom { name: "lazy".into(), data: json!(1) },
        ]
    );
}

#[test]
fn tool_runs_with_a_context_of_the_caller() {
    let visit = tool("visit", "Visits").param("place", "string").default("place", "Rome");
    let visit = visit.build_with_context(|args, cx| async move {
        cx.emit_status(args["place"].as_str().unwrap_or_default());
        Ok(json!([cx.call_id(), cx.require_state::<Secret>()?.0]))
    });
    let seen = Emissions::new();
    let cx = ToolContext::new("c1", "visit").with_emitter(seen.emitter());
    let stated = cx.clone().with_state(State::new().with(Secret("a")));
    let result = crate::wait(visit.execute_with(json!({}), stated.clone()));
    assert_eq!(result.unwrap(), json!(["c1", "a"]));
    assert_eq!(seen.take(), [Emission::Status("Rome".to_owned())]);
    assert_eq!(seen.take(), []);
    let error = crate::wait(visit.execute_with(json!({ "place": 3 }), stated)).unwrap_err();
    assert!(error.to_string().contains("`place`"), "{error}");
    assert_eq!(seen.take(), [], "invalid arguments do not reach the handler");
    let shared: Arc<dyn Tool> = Arc::new(visit);
    let error = crate::wait(shared.execute_with(json!({}), cx)).unwrap_err();
    assert!(error.to_string().contains("no state of type"), "{error}");
}

#[test]
fn nothing_is_formatted_without_an_emitter() {
    struct Unshown;
    impl std::fmt::Display for Unshown {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("was formatted")
        }
    }
    let cx = ToolContext::new("c1", "t");
    assert!(!cx.is_emitting());
    cx.emit_status(Unshown);
    cx.emit_log(Unshown);
    cx.emit_log_at(LogLevel::Error, Unshown);
    cx.emit_with("x", || panic!("was made"));
}

#[test]
fn fractions_become_clamped_percentages() {
    for (fraction, done) in
        [(0.0, 0), (0.126, 13), (1.0, 100), (7.0, 100), (-1.0, 0), (f64::NAN, 0)]
    {
        assert_eq!(Progress::from(fraction), Progress::new(done, Some(100)));
    }
}

#[test]
fn images_are_bounded() {
    let image =
        |size: usize| ImageBlock::from_base64("A".repeat(size), "image/png").expect("it is base64");
    let cx = ToolContext::new("call_1", "camera");
    for _ in 0..ToolContext::MAX_IMAGES {
        // Contexts of one call share its images.
        cx.clone().with_state(State::new()).attach_image(image(4)).unwrap();
    }
    let error = cx.attach_image(image(4)).unwrap_err();
    assert!(error.message().contains("at most 16 images"), "{error}");
    assert_eq!(error.retry_hint(), Some(false));
    assert_eq!(cx.take_images().len(), ToolContext::MAX_IMAGES);
    assert!(cx.take_images().is_empty());

    let error = cx.attach_image(image(ToolContext::MAX_IMAGE_BYTES)).unwrap_err();
    assert!(error.message().contains("at most 33554432 bytes"), "{error}");
    let half = image(ToolContext::MAX_IMAGE_BYTES / 2);
    cx.attach_image(half.clone()).unwrap();
    assert!(cx.attach_image(half).is_err());

    let cancel = Cancel::new();
    let cx = cx.with_cancel(cancel.clone());
    cancel.cancel();
    let error = cx.attach_image(image(4)).unwrap_err();
    assert!(error.message().contains("was canceled"), "{error}");
}
