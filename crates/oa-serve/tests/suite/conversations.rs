//! Conversations by id: created, prompted, listed, renamed, deleted, and kept in a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use oa_serve::ServeLimits;
use oa_session::{Error, ErrorKind, FaultPoint, FaultStore, MemoryStore, Operation, SessionStore};
use serde_json::json;

use crate::app::{App, text};

#[tokio::test]
async fn a_conversation_keeps_its_messages() {
    let app = App::new(|server| server.name("Helper").context_window(8_192));
    let (_, agent) = app.get("/api/agent").await;
    assert_eq!(agent["name"], "Helper");
    assert_eq!(agent["model"], "scripted");
    assert_eq!(agent["context_window"], 8_192);
    assert_eq!(agent["tools"][2]["external"], true);

    let path = app.create().await;
    let (_, empty) = app.get(&path).await;
    assert_eq!(empty["messages"], json!([]));
    assert_eq!(empty["last_event"], json!(null));

    let mut events = app.view(&path, None).await;
    app.prompt(&path, "Hello there").await;
    let run = events.run().await;
    assert_eq!(run[0].kind, "prompt");
    assert_eq!(run[0].data, json!({"text": "Hello there", "images": []}));
    assert_eq!(run[1].data["state"], "started");
    assert_eq!(text(&run), "You said: Hello there");
    let end = run.last().expect("a run ends");
    assert_eq!(end.data["state"], "ended");
    assert_eq!(end.data["finish_reason"], "stop");
    assert!(end.data["usage"]["completion_tokens"].is_u64());

    let (_, now) = app.get(&path).await;
    assert_eq!(now["title"], "Hello there");
    assert_eq!(now["running"], false);
    assert_eq!(now["last_event"], end.id.as_str());
    assert_eq!(now["messages"][1]["content"][0]["text"], "You said: Hello there");

    app.prompt(&path, "Again").await;
    assert_eq!(text(&events.run().await), "You said: Again");
    let (_, list) = app.get("/api/conversations").await;
    assert_eq!(list["conversations"][0]["message_count"], 4);
    assert_eq!(list["next"], json!(null));
}

#[tokio::test]
async fn first_words_are_the_title() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    let image = json!({"text": " ", "images": ["https://a.example/rain.png"]});
    assert_eq!(app.post(&format!("{path}/prompt"), image).await.0, StatusCode::ACCEPTED);
    events.run().await;
    assert_eq!(app.get(&path).await.1["title"], json!(null));
    for text in ["\nHow much rain?\nIn all.", "And snow?"] {
        app.prompt(&path, text).await;
        events.run().await;
        assert_eq!(app.get(&path).await.1["title"], "How much rain?");
    }
}

/// Not what a file that comes before it says.
#[tokio::test]
async fn the_words_behind_a_file_are_the_title() {
    let app = App::new(|server| server);
    let file = |text: &str| json!({"type": "file", "filename": "a.md", "mediaType": "text/markdown", "url": format!("data:,{text}")});
    let words = json!({"type": "text", "text": "How much rain?"});
    for (id, parts, title) in [
        ("a", json!([file("Snow"), words]), json!("How much rain?")),
        ("b", json!([file("Snow")]), json!(null)),
    ] {
        let user = json!({"id": "u", "role": "user", "parts": parts});
        app.frames("/api/chat", &json!({"id": id, "messages": [user]})).await;
        let path = format!("/api/conversations/chat-{id}");
        assert_eq!(app.get(&path).await.1["title"], title);
    }
}

#[tokio::test]
async fn conversations_outlive_the_server() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let app = App::new(|server| server.session_store(Arc::clone(&store)));
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "Hello").await;
    let seen = events.run().await.pop().expect("a run ends").id;

    let app = App::new(|server| server.session_store(store));
    let (_, stored) = app.get(&path).await;
    assert_eq!(stored["messages"].as_array().map(Vec::len), Some(2));
    // The events are gone, and the viewer is told so.
    let mut events = app.view(&path, Some(&seen)).await;
    assert_eq!(events.next().await.expect("an event").kind, "gap");
    app.prompt(&path, "Again").await;
    assert_eq!(text(&events.run().await), "You said: Again");
}

#[tokio::test]
async fn conversations_are_listed_and_deleted() {
    let app = App::new(|server| server);
    let mut paths = Vec::new();
    for _ in 0..3 {
        paths.push(app.create().await);
    }
    let (_, first) = app.get("/api/conversations?limit=2").await;
    assert_eq!(first["conversations"].as_array().map(Vec::len), Some(2));
    let next = first["next"].as_str().expect("another page");
    let (_, second) = app.get(&format!("/api/conversations?limit=2&after={next}")).await;
    assert_eq!(second["conversations"].as_array().map(Vec::len), Some(1));
    // As for events, an empty position is the beginning.
    assert_eq!(app.get("/api/conversations?limit=2&after=").await, (StatusCode::OK, first));

    let (status, body) = app.call(Method::PATCH, &paths[0], json!({"title": "Rain"})).await;
    assert_eq!((status, &body["title"]), (StatusCode::OK, &json!("Rain")));
    let (_, named) = app.get(&paths[0]).await;
    assert_eq!(named["title"], "Rain");

    let (status, _) = app.call(Method::DELETE, &paths[0], json!({})).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(app.get(&paths[0]).await.0, StatusCode::NOT_FOUND);
    assert_eq!(app.call(Method::DELETE, &paths[0], json!({})).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn deletion_ends_the_run_and_its_viewers() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[long]").await;
    while !events.next().await.is_some_and(|event| event.data["type"] == "block") {}
    let (status, _) = app.call(Method::DELETE, &path, json!({})).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    while events.next().await.is_some() {}
    assert_eq!(app.conversations.running(), 0);
    assert_eq!(app.get(&path).await.0, StatusCode::NOT_FOUND);
}

/// Its readers are told of the end: a stream that only breaks off looks like a lost connection.
#[tokio::test(start_paused = true)]
async fn deletion_completes_the_streams() {
    let store = FaultStore::new(MemoryStore::new(), async |_| {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(())
    });
    let app = App::new(|server| server.session_store(store));
    let user = json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": "[long]"}]});
    let chat = json!({"id": "c", "messages": [user]});
    let user = json!({"id": "u", "role": "user", "content": "[long]"});
    let thread = json!({"threadId": "t", "runId": "r", "messages": [user]});
    for (path, body, id, last) in [
        ("/api/chat", chat, "chat-c", json!("[DONE]")),
        ("/ag-ui", thread, "thread-t", json!("RUN_FINISHED")),
    ] {
        let conversation = format!("/api/conversations/{id}");
        let deleted = async {
            while app.conversations.running() == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let mut events = app.view(&conversation, None).await;
            while !events.next().await.is_some_and(|event| event.data["type"] == "block") {}
            let (status, _) = app.call(Method::DELETE, &conversation, json!({})).await;
            assert_eq!(status, StatusCode::NO_CONTENT);
            events.run().await.pop()
        };
        let (frames, end) = tokio::join!(app.frames(path, &body), deleted);
        let sent = frames.last().map(|frame| frame.get("type").unwrap_or(frame));
        assert_eq!(sent, Some(&last), "{path}: {:?}", frames.last());
        assert_eq!(end.map(|end| end.data["finish_reason"].clone()), Some(json!("interrupted")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_deletion_is_completed() {
    let app = App::new(|server| server);
    let path = app.create().await;
    app.prompt(&path, "[long]").await;
    tokio::select! {
        biased;
        _ = app.call(Method::DELETE, &path, json!({})) => panic!("it waits for the run"),
        () = std::future::ready(()) => {}
    }
    while app.get("/api/conversations").await.1["conversations"] != json!([]) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(app.get(&path).await.0, StatusCode::NOT_FOUND);
}

/// A conversation with a run is spared until the run has ended.
#[tokio::test(start_paused = true)]
async fn stored_limit_holds_despite_runs() {
    let mut limits = ServeLimits::default();
    limits.stored = 1;
    let app = App::new(|server| server.limits(limits));
    let stored = async || app.get("/api/conversations").await.1["conversations"].clone();
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[long]").await;
    for _ in 0..3 {
        app.create().await;
    }
    assert_eq!(stored().await.as_array().map(Vec::len), Some(2), "{}", stored().await);
    app.post(&format!("{path}/stop"), json!({})).await;
    events.run().await;
    let last = app.create().await;
    let stored = stored().await;
    assert_eq!(stored.as_array().map(Vec::len), Some(1), "{stored}");
    assert!(last.ends_with(stored[0]["id"].as_str().expect("an id")));
}

/// Also if the client whose conversation needs the room hangs up.
#[tokio::test(start_paused = true)]
async fn stored_limit_holds_despite_hang_ups() {
    let mut limits = ServeLimits::default();
    limits.stored = 1;
    let app = App::new(|server| server.limits(limits));
    let mut runs = Vec::new();
    for _ in 0..3 {
        let path = app.create().await;
        runs.push((app.view(&path, None).await, path.clone()));
        app.prompt(&path, "[long]").await;
    }
    for (events, path) in &mut runs {
        app.post(&format!("{path}/stop"), json!({})).await;
        events.run().await;
    }
    let mut creating = Box::pin(app.create());
    assert!(creating.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(creating);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let stored = app.get("/api/conversations").await.1["conversations"].clone();
    assert_eq!(stored.as_array().map(Vec::len), Some(1), "{stored}");
}

#[tokio::test]
async fn a_conversation_has_one_run() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    assert_eq!(
        app.post(&format!("{path}/steer"), json!({"text": "x"})).await.0,
        StatusCode::CONFLICT
    );
    assert_eq!(app.post(&format!("{path}/stop"), json!({})).await.0, StatusCode::ACCEPTED);

    app.prompt(&path, "[long]").await;
    let (status, body) = app.post(&format!("{path}/prompt"), json!({"text": "and?"})).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(body["error"]["message"].as_str().is_some_and(|message| message.contains("progress")));
    while !events.next().await.is_some_and(|event| event.data["type"] == "block") {}
    assert_eq!(app.post(&format!("{path}/stop"), json!({})).await.0, StatusCode::ACCEPTED);
    let run = events.run().await;
    assert_eq!(run.last().expect("a run ends").data["finish_reason"], "interrupted");
    // What was there is kept.
    let (_, now) = app.get(&path).await;
    assert_eq!(now["messages"][1]["interrupted"], true);
    app.prompt(&path, "next").await;
    assert_eq!(text(&events.run().await), "You said: next");
}

#[tokio::test]
async fn a_steered_message_enters_the_run() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[slow]").await;
    let (status, _) = app.post(&format!("{path}/steer"), json!({"text": "be brief"})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let run = events.run().await;
    assert!(run.iter().any(|event| event.data["type"] == "steered"));
    assert!(text(&run).contains("You said: "), "{}", text(&run));
}

/// A message that a stopped run has not read waits for the next one, unless it is taken back.
#[tokio::test]
async fn unread_steered_messages_are_taken_back() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[long]").await;
    while !events.next().await.is_some_and(|event| event.data["type"] == "block") {}
    for words in ["be brief", "be kind"] {
        let (status, _) = app.post(&format!("{path}/steer"), json!({"text": words})).await;
        assert_eq!(status, StatusCode::ACCEPTED);
    }
    let steer = format!("{path}/steer");
    let take = || app.call(Method::DELETE, &steer, json!({}));
    assert_eq!(take().await.0, StatusCode::CONFLICT, "it may be read any moment");
    app.post(&format!("{path}/stop"), json!({})).await;
    events.run().await;
    assert_eq!(app.get(&path).await.1["steering"], json!(["be brief", "be kind"]));
    assert_eq!(take().await.1, json!({"messages": ["be brief", "be kind"]}));
    assert_eq!(app.get(&path).await.1["steering"], json!([]));
    assert_eq!(take().await.1, json!({"messages": []}));
    app.prompt(&path, "next").await;
    let run = events.run().await;
    assert!(!run.iter().any(|event| event.data["type"] == "steered"), "{run:?}");
    assert_eq!(text(&run), "You said: next");
}

#[tokio::test]
async fn failed_run_leaves_conversation_usable() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[fail]").await;
    let end = events.run().await.pop().expect("a run ends");
    assert_eq!(end.data["state"], "failed");
    assert!(end.data["error"].as_str().is_some_and(|error| error.contains("no such luck")));
    app.prompt(&path, "next").await;
    assert_eq!(text(&events.run().await), "You said: next");
}

/// The database restarts during a run, which learns neither that its prompt was stored nor can store its answer.
#[tokio::test]
async fn unsaved_answers_are_not_forgotten() {
    let is_down = Arc::new(AtomicBool::new(false));
    let (down, has_broken) = (Arc::clone(&is_down), AtomicBool::new(false));
    let store = FaultStore::new(MemoryStore::new(), move |point| {
        let is_stored = point == FaultPoint::After(Operation::Append);
        if is_stored && !has_broken.swap(true, Ordering::Relaxed) {
            down.store(true, Ordering::Relaxed);
        }
        let fails = down.load(Ordering::Relaxed);
        async move {
            if fails { Err(Error::new(ErrorKind::Io, "the connection broke")) } else { Ok(()) }
        }
    });
    let app = App::new(|server| server.session_store(store));
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "Hello").await;
    let end = events.run().await.pop().expect("a run ends");
    let said = "the conversation could not be saved: the connection broke";
    assert_eq!(end.data["error"], said);
    is_down.store(false, Ordering::Relaxed);
    app.prompt(&path, "[body]").await;
    let body = text(&events.run().await);
    assert!(body.contains("You said: Hello"), "{body}");
}

/// A store of which a disk that is full takes no writes, except new sessions. Also returns what fills it.
fn full_disk() -> (Arc<dyn SessionStore>, Arc<AtomicBool>) {
    let is_full = Arc::new(AtomicBool::new(true));
    let full = Arc::clone(&is_full);
    let store = FaultStore::new(MemoryStore::new(), move |point| {
        let is_write = matches!(
            point,
            FaultPoint::Before(Operation::Append | Operation::SetMetadata | Operation::SetPending)
        );
        let fails = is_write && full.load(Ordering::Relaxed);
        async move { if fails { Err(Error::new(ErrorKind::Io, "disk full")) } else { Ok(()) } }
    });
    (Arc::new(store), is_full)
}

#[tokio::test]
async fn unsaved_conversations_are_not_evicted() {
    let (store, is_full) = full_disk();
    let mut limits = ServeLimits::default();
    limits.conversations = 2;
    let app = App::new(|server| server.session_store(store).limits(limits));
    let (first, second, third) = (app.create().await, app.create().await, app.create().await);
    for path in [&first, &second] {
        app.view(path, None).await;
        app.prompt(path, "Hello").await;
        app.view(path, None).await.run().await;
        // A saved one makes room, so that the next one fits.
        let (status, _) = app.get(&third).await;
        let has_room = path == &first;
        assert_eq!(status == StatusCode::OK, has_room, "{status}");
    }
    let (status, refused) = app.get(&third).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let why = "2 conversations are in use or could not be saved; try again later";
    assert_eq!(refused["error"]["message"], why);
    is_full.store(false, Ordering::Relaxed);
    assert_eq!(app.get(&third).await.0, StatusCode::OK);
    for path in [&first, &second] {
        let mut events = app.view(path, None).await;
        app.prompt(path, "[body]").await;
        let body = text(&events.run().await);
        assert!(body.contains("You said: Hello"), "{body}");
    }
}

/// An answer while another call of the turn waits is saved again, too.
#[tokio::test]
async fn unsaved_answers_are_not_evicted() {
    let fails = Arc::new(AtomicBool::new(false));
    let failing = Arc::clone(&fails);
    let store = FaultStore::new(MemoryStore::new(), move |point| {
        let is_answer = point == FaultPoint::Before(Operation::SetMetadata);
        let fails = is_answer && failing.load(Ordering::Relaxed);
        async move { if fails { Err(Error::new(ErrorKind::Busy, "in use")) } else { Ok(()) } }
    });
    let mut limits = ServeLimits::default();
    limits.conversations = 1;
    let app = App::new(|server| server.session_store(store).limits(limits));
    let (path, other) = (app.create().await, app.create().await);
    app.view(&path, None).await;
    app.prompt(&path, "[both]").await;
    app.view(&path, None).await.run().await;
    let (_, known) = app.get(&path).await;
    let call = known["waiting"][0]["call_id"].as_str().expect("a call waits");
    fails.store(true, Ordering::Relaxed);
    let approve = format!("{path}/calls/{call}/approve");
    assert_eq!(app.post(&approve, json!({})).await.0, StatusCode::ACCEPTED);
    assert_eq!(app.get(&other).await.0, StatusCode::SERVICE_UNAVAILABLE);
    fails.store(false, Ordering::Relaxed);
    assert_eq!(app.get(&other).await.0, StatusCode::OK);
    let (_, known) = app.get(&path).await;
    assert_eq!(known["waiting"].as_array().map(Vec::len), Some(1), "{known}");
}

#[tokio::test]
async fn shutdown_saves_unsaved_conversations() {
    let (store, is_full) = full_disk();
    let app = App::new(|server| server.session_store(Arc::clone(&store)));
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "Hello").await;
    events.run().await;
    is_full.store(false, Ordering::Relaxed);
    app.conversations.shutdown().await;
    let page = store.list(oa_session::List::new(1)).await;
    let info = &page.as_ref().expect("it can be read").sessions[0];
    assert_eq!((info.message_count, info.title()), (2, Some("Hello")));
}

/// A reader takes the conversation from the store, and a prompt that comes meanwhile waits for it.
#[tokio::test(start_paused = true)]
async fn readers_do_not_refuse_prompts() {
    let store = FaultStore::new(MemoryStore::new(), async |_| {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(())
    });
    let app = App::new(|server| server.session_store(store));
    let path = app.create().await;
    app.get(&path).await;
    let ((status, _), ()) = tokio::join!(app.get(&path), app.prompt(&path, "Hello"));
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn invalid_requests_get_error_messages() {
    let app = App::new(|server| server);
    let path = app.create().await;
    for (path, body, status) in [
        (format!("{path}/prompt"), json!({}), StatusCode::BAD_REQUEST),
        (format!("{path}/prompt"), json!({"text": " "}), StatusCode::BAD_REQUEST),
        (
            format!("{path}/prompt"),
            json!({"text": "x", "images": ["javascript:1"]}),
            StatusCode::BAD_REQUEST,
        ),
        ("/api/conversations/none/prompt".to_owned(), json!({"text": "x"}), StatusCode::NOT_FOUND),
        (format!("{path}/stop"), json!({"now": true}), StatusCode::BAD_REQUEST),
        ("/api/conversations".to_owned(), json!({"title": "x"}), StatusCode::BAD_REQUEST),
        (format!("{path}/calls/x/approve"), json!({}), StatusCode::NOT_FOUND),
        (format!("{path}/nothing"), json!({}), StatusCode::NOT_FOUND),
    ] {
        let (found, body) = app.post(&path, body).await;
        assert_eq!(found, status, "{path}");
        assert!(body["error"]["message"].is_string(), "{path}: {body}");
    }
}

#[tokio::test]
async fn null_members_count_as_absent() {
    let app = App::new(|server| server);
    let (status, _) = app.post("/api/conversations", json!(null)).await;
    assert_eq!(status, StatusCode::CREATED);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    let body = json!({"text": "[both]", "images": null});
    let (status, body) = app.post(&format!("{path}/prompt"), body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{body}");
    events.run().await;
    let waiting = app.get(&path).await.1["waiting"].clone();
    for call in waiting.as_array().expect("calls wait") {
        let id = call["call_id"].as_str().expect("an id");
        let answers = [
            ("approve", json!({"input": null})),
            ("result", json!({"content": "teal", "is_error": null})),
        ];
        let (answer, body) = &answers[usize::from(call["kind"] != "approval")];
        let (status, body) = app.post(&format!("{path}/calls/{id}/{answer}"), body.clone()).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}: {body}");
    }
    assert!(text(&events.run().await).contains("teal"));
    assert_eq!(app.post(&format!("{path}/stop"), json!(null)).await.0, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn arrays_in_place_of_objects_are_refused() {
    let app = App::new(|server| server);
    let path = app.create().await;
    for (method, path, body) in [
        (Method::POST, "/api/conversations".to_owned(), json!([])),
        (Method::PATCH, path.clone(), json!(["title"])),
        (Method::POST, format!("{path}/prompt"), json!(["hi"])),
        (Method::POST, format!("{path}/steer"), json!(["hi"])),
        (Method::POST, format!("{path}/stop"), json!([])),
        (Method::POST, format!("{path}/calls/x/approve"), json!([null])),
        (Method::POST, format!("{path}/calls/x/deny"), json!([null])),
        (Method::POST, format!("{path}/calls/x/result"), json!(["teal"])),
    ] {
        let (status, body) = app.call(method, &path, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
        let why = body["error"]["message"].as_str().expect("a message");
        assert!(why.contains("invalid type: sequence, expected a map"), "{why}");
    }
}
