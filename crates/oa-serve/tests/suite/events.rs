//! Streams of events: several viewers, late ones, and those that lost their connection.

use axum::body::Body;
use axum::http::{Request, StatusCode};

use crate::app::{App, Events, text};

#[tokio::test]
async fn late_viewers_see_the_same_events() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let (mut first, mut second) = (app.view(&path, None).await, app.view(&path, None).await);
    app.prompt(&path, "[slow]").await;
    let (first, second) = (first.run().await, second.run().await);
    assert_eq!(text(&first), "one two three four");
    assert_eq!(text(&second), text(&first));
    let late = app.view(&path, None).await.run().await;
    assert_eq!(text(&late), text(&first));
    assert_eq!(late.last(), first.last());
}

#[tokio::test]
async fn viewer_resumes_after_its_last_event() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[slow]").await;
    let mut seen = Vec::new();
    while text(&seen).is_empty() {
        seen.push(events.next().await.expect("the run goes on"));
    }
    drop(events);
    let last = seen.last().expect("events were seen").id.clone();
    seen.extend(app.view(&path, Some(&last)).await.run().await);
    assert_eq!(text(&seen), "one two three four");
    let (_, now) = app.get(&path).await;
    let stored = now["last_event"].as_str().expect("events are stored");
    assert_eq!(stored, seen.last().expect("events were seen").id);
}

/// A proxy that compresses a stream holds its events back.
#[tokio::test]
async fn streams_must_not_be_transformed() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let request = Request::builder().uri(format!("{path}/events")).body(Body::empty());
    let response = app.request(request.expect("the request is valid")).await;
    assert_eq!(response.headers()["cache-control"], "no-cache, no-transform");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
}

/// A client that sends the header before it knows any event.
#[tokio::test]
async fn empty_last_event_id_names_no_event() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "Hello").await;
    let run = events.run().await;
    let first = app.view(&path, Some("")).await.next().await;
    assert_eq!(first.as_ref(), run.first());
    let view = async |after: &str, header: &[u8]| {
        let request = Request::builder().uri(format!("{path}/events?after={after}"));
        let request = request.header("last-event-id", header).body(Body::empty());
        app.request(request.expect("the request is valid")).await
    };
    let after = &run[run.len() - 2].id;
    let next = Events::of(view(after, b"").await).next().await;
    assert_eq!(next.as_ref(), run.last(), "the query counts");
    for unknown in [&b"x"[..], b"\xe9", b"1-", b"1-99999999999999999999"] {
        assert_eq!(view(after, unknown).await.status(), StatusCode::BAD_REQUEST);
    }
}
