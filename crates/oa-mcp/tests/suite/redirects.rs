//! Servers that answer at another place than the configured one.

use std::sync::{Arc, Mutex};

use oa_mcp::ErrorKind;
use oa_transport::ApiKey;
use serde_json::json;

use crate::http::{Answer, connect, port_of, serve};
use crate::support::{CANARY, call};

fn redirect(status: &str, place: &str) -> Answer {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close");
    Answer::Bytes(format!("{head}\r\nlocation: {place}\r\n\r\n"))
}

/// As servers on Starlette do, which serve `/mcp/`: with an absolute address. Behind a proxy it may have another scheme.
#[tokio::test]
async fn redirects_to_the_same_origin_are_followed() {
    for (status, place) in [
        ("307 Temporary Redirect", "http://{host}/mcp/?key=query"),
        ("308 Permanent Redirect", "/mcp/"),
        ("301 Moved Permanently", "/mcp/"),
        ("307 Temporary Redirect", "//{host}/mcp/"),
        ("307 Temporary Redirect", "mcp/"),
    ] {
        let (server, seen) = serve(move |asked| {
            assert_eq!(asked.header("authorization"), Some(&*format!("bearer {CANARY}")));
            let place = place.replace("{host}", asked.header("host").unwrap_or_default());
            (!asked.path().starts_with("/mcp/")).then(|| redirect(status, &place))
        })
        .await;
        let connected = connect(server.bearer(ApiKey::new(CANARY).unwrap())).await.unwrap();
        assert_eq!(call(&connected, "works").await, Ok(json!("works")), "{status} {place}");
        connected.close().await;
        let seen = seen.lock().unwrap();
        let count = |what: &str| seen.iter().filter(|line| *line == what).count();
        assert_eq!((count("POST tools/callworks"), count("DELETE")), (2, 2), "{status} {place}");
    }
}

/// Such as that of a document. The next request goes to the configured place again.
#[tokio::test]
async fn redirect_holds_for_one_request() {
    let paths = Arc::new(Mutex::new(Vec::new()));
    let asked_for = Arc::clone(&paths);
    let (server, _) = serve(move |asked| {
        if asked.body["method"] == "tools/call" {
            asked_for.lock().ok()?.push(asked.path().split('?').next()?.to_owned());
        }
        let is_of_a_document = asked.what() == "document" && asked.path() != "/mcp/docs/7";
        is_of_a_document.then(|| redirect("308 Permanent Redirect", "/mcp/docs/7"))
    })
    .await;
    let connected = connect(server).await.unwrap();
    for what in ["document", "other"] {
        assert_eq!(call(&connected, what).await, Ok(json!(what)));
    }
    assert_eq!(*paths.lock().unwrap(), ["/mcp", "/mcp/docs/7", "/mcp"]);
    connected.close().await;
}

/// A request carries keys.
#[tokio::test]
async fn other_origins_get_no_request() {
    let (other, seen_there) = serve(|_| None).await;
    let port = port_of(&other);
    let there = format!("http://127.0.0.1:{port}/mcp/");
    let (server, _) = serve(move |_| Some(redirect("307 Temporary Redirect", &there))).await;
    let error = connect(server).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Connect, Some(307)));
    assert!(error.to_string().contains(&format!("redirects to http://127.0.0.1:{port}/mcp/")));
    assert!(seen_there.lock().unwrap().is_empty());
}

#[tokio::test]
async fn circles_of_redirects_end() {
    let (server, seen) = serve(|asked| {
        let place = if asked.path().starts_with("/mcp/") { "/mcp" } else { "/mcp/" };
        Some(redirect("307 Temporary Redirect", place))
    })
    .await;
    let error = connect(server).await.unwrap_err();
    let expected = "s: the server answered with status 307 Temporary Redirect and redirects to ";
    assert!(error.to_string().starts_with(expected), "{error}");
    let count = seen.lock().unwrap().len();
    assert!((2..10).contains(&count), "{count}");
}

/// With a `POST`, this is the page of a login, or the message would be lost.
#[tokio::test]
async fn redirects_to_pages_are_not_followed() {
    for status in ["302 Found", "303 See Other"] {
        let (server, seen) = serve(move |_| Some(redirect(status, "/login"))).await;
        let error = connect(server).await.unwrap_err().to_string();
        assert!(error.ends_with(&format!("status {status} and redirects to /login")), "{error}");
        assert_eq!(*seen.lock().unwrap(), ["POST initialize"]);
    }
}
