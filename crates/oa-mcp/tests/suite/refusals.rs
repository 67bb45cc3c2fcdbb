//! Answers with an error status, over real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oa_mcp::{ElicitationAnswer, ErrorKind, McpServer};
use oa_transport::ApiKey;
use serde_json::json;
use tokio::task::JoinSet;

use crate::http::{Answer, connect, event, events, port_of, serve, status};
use crate::support::{CANARY, call};

/// With an error status, too. The visit is reported on the stream of notifications.
#[tokio::test]
async fn required_page_over_http_is_visited() {
    let calls = AtomicUsize::new(0);
    let (server, _) = serve(move |asked| {
        let notice = json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": { "elicitationId": "e" } });
        let page = json!({ "mode": "url", "elicitationId": "e", "url": "https://a.example", "message": "Sign in" });
        let error = json!({ "code": -32042, "message": "sign in", "data": { "elicitations": [page] } });
        let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
        let body = body.to_string();
        match asked.what() {
            _ if asked.method == "GET" => Some(Answer::Silence(events(&event(&notice)))),
            "" => None,
            _ => match calls.fetch_add(1, Ordering::Relaxed) {
                0 => Some(status("200 OK", "application/json", &body)),
                2 => Some(status("403 Forbidden", "application/json", &body)),
                _ => None,
            },
        }
    })
    .await;
    let server = server.on_elicitation(|_, _| async { ElicitationAnswer::Accept(json!(null)) });
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "first").await, Ok(json!("first")));
    assert_eq!(call(&connected, "second").await, Ok(json!("second")));
    connected.close().await;
}

/// Many servers in Python have another path than the one that is configured: with a slash at the end.
#[tokio::test]
async fn redirection_names_the_other_place() {
    let (server, seen) = serve(|_| {
        let head = "HTTP/1.1 307 Temporary Redirect\r\ncontent-length: 0\r\nconnection: close";
        let location = format!("http://127.0.0.1:9/mcp/?key=query-{CANARY}");
        Some(Answer::Bytes(format!("{head}\r\nlocation: {location}\r\n\r\n")))
    })
    .await;
    let error = connect(server).await.unwrap_err();
    let expected = "s: the server answered with status 307 Temporary Redirect and redirects to http://127.0.0.1:9/mcp/?key=****";
    assert_eq!(error.to_string(), expected);
    assert_eq!((error.kind(), error.status()), (ErrorKind::Connect, Some(307)));
    assert_eq!(*seen.lock().unwrap(), ["POST initialize"]);
}

/// Many URLs in old instructions end like this.
#[tokio::test]
async fn url_of_the_old_transport_is_explained() {
    let (server, _) =
        serve(|_| Some(status("405 Method Not Allowed", "text/plain", "POST is not allowed")))
            .await;
    let connect_to = async |path: &str| {
        let url = format!("http://127.0.0.1:{}{path}", port_of(&server));
        connect(McpServer::http("s", url).required()).await.unwrap_err().to_string()
    };
    let plain = "s: the server answered with status 405 Method Not Allowed: POST is not allowed";
    assert_eq!(connect_to("/mcp").await, plain);
    let hint = "this is a URL of the old SSE transport, which is not supported: look for one of streamable HTTP, such as /mcp";
    for path in ["/sse", "/v1/sse/?key=value"] {
        assert_eq!(connect_to(path).await, format!("{plain}; {hint}"));
    }
}

/// The message says more than the status, and the model corrects wrong arguments.
#[tokio::test]
async fn errors_with_a_status_keep_their_code() {
    let (server, _) = serve(|asked| {
        let error = json!({ "code": -32602, "message": format!("not {CANARY}") });
        let oauth = json!({ "error": "invalid_request", "error_description": "log in" });
        let body = match asked.what() {
            "steps" => json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error }),
            "oauth" => oauth,
            _ if asked.body["method"] == "custom" => json!({ "id": null, "error": error }),
            _ => return None,
        };
        Some(status("400 Bad Request", "application/json", &body.to_string()))
    })
    .await;
    let server = server.header("X-Key", CANARY).unwrap();
    let connected = connect(server).await.unwrap();
    let wrong = "wrong arguments: the server answered with status 400 Bad Request: not ****";
    assert_eq!(call(&connected, "steps").await, Err(wrong.to_owned()));
    let oauth = r#"s: the server answered with status 400 Bad Request: {"error":"invalid_request","error_description":"log in"}"#;
    assert_eq!(call(&connected, "oauth").await, Err(oauth.to_owned()));
    let error = connected.connection("s").unwrap().request("custom", json!({})).await.unwrap_err();
    assert_eq!((error.code(), error.status()), (Some(-32602), Some(400)));
    connected.close().await;
}

/// The client cannot ask for another key by itself, so it says which one it needs.
#[tokio::test]
async fn missing_scope_is_named() {
    let (server, _) = serve(|asked| {
        let (status, challenges) = match asked.what() {
            "scope" => (
                "403 Forbidden",
                "www-authenticate: Basic realm=\"a\"\r\nwww-authenticate: Bearer error=\"insufficient_scope\", scope=\"files:write\", error_description=\"read only\"",
            ),
            "expired" => ("401 Unauthorized", "www-authenticate: Bearer error=\"invalid_token\""),
            "realm" => ("401 Unauthorized", "www-authenticate: Bearer realm=\"tools\""),
            "login" => (
                "401 Unauthorized",
                "www-authenticate: Bearer resource_metadata=\"https://a.example/b\"",
            ),
            _ => return None,
        };
        Some(Answer::Bytes(format!(
            "HTTP/1.1 {status}\r\n{challenges}\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbody"
        )))
    })
    .await;
    let connected = connect(server).await.unwrap();
    let failed = async |what: &str| call(&connected, what).await.unwrap_err();
    let why = "insufficient_scope: read only; the key needs the scope files:write";
    let scope = format!("s: the server answered with status 403 Forbidden ({why}): body");
    assert_eq!(failed("scope").await, scope);
    let expired = "s: the server answered with status 401 Unauthorized (invalid_token): body";
    assert_eq!(failed("expired").await, expired);
    assert_eq!(failed("realm").await, "s: the server answered with status 401 Unauthorized: body");
    let login = "it requires a login, which https://a.example/b describes";
    let login = format!("s: the server answered with status 401 Unauthorized ({login}): body");
    assert_eq!(failed("login").await, login);
    connected.close().await;
}

/// Its callback reads all of them, and the error says what the server demanded if there is no such key.
#[tokio::test]
async fn callback_for_a_key_gets_all_challenges() {
    let (server, _) = serve(|asked| {
        let challenge = "www-authenticate: Basic realm=\"a\"\r\nwww-authenticate: Bearer error=\"invalid_token\", scope=\"files:read\"";
        (asked.what() == "expired").then(|| {
            Answer::Bytes(format!("HTTP/1.1 401 Unauthorized\r\n{challenge}\r\ncontent-length: 0\r\n\r\n"))
        })
    })
    .await;
    let server = server.on_unauthorized(|challenge| async move {
        let all = r#"Basic realm="a", Bearer error="invalid_token", scope="files:read""#;
        assert_eq!(challenge, all);
        None
    });
    let connected = connect(server).await.unwrap();
    let why = "invalid_token; the key needs the scope files:read";
    let expected = format!("s: the server requires a different key: {why}");
    assert_eq!(call(&connected, "expired").await, Err(expected));
    connected.close().await;
}

/// As when a key expires while an agent runs its calls.
#[tokio::test]
async fn calls_refused_together_ask_for_one_key() {
    let (server, _) = serve(|asked| {
        let is_call = asked.body["method"] == "tools/call";
        let is_old = asked.header("authorization") != Some("bearer fresh-key-0123456789");
        (is_call && is_old).then(|| status("401 Unauthorized", "text/plain", ""))
    })
    .await;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let server = server.bearer(ApiKey::new("stale-key-0123456789").unwrap());
    let server = server.on_unauthorized(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        async {
            // Until the others have been refused, too.
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
            ApiKey::new("fresh-key-0123456789").ok()
        }
    });
    let connected = Arc::new(connect(server).await.unwrap());
    let mut calls = JoinSet::new();
    for n in 0..8 {
        let connected = Arc::clone(&connected);
        calls.spawn(async move { call(&connected, &n.to_string()).await.is_ok() });
    }
    assert_eq!(calls.join_all().await, [true; 8]);
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

/// The callback may log in again with the scope that the challenge names.
#[tokio::test]
async fn key_without_a_scope_is_replaced() {
    let (server, seen) = serve(|asked| {
        let is_old = asked.header("authorization") != Some("bearer write-key-0123456789");
        let challenge = match asked.what() {
            "write" => r#"Bearer error="insufficient_scope", scope="files:write""#,
            "never" => "Bearer realm=\"tools\"",
            _ => return None,
        };
        let head = format!("HTTP/1.1 403 Forbidden\r\nwww-authenticate: {challenge}\r\n");
        let is_refused = is_old || asked.what() == "never";
        is_refused.then(|| Answer::Bytes(format!("{head}content-length: 0\r\n\r\n")))
    })
    .await;
    let server = server.bearer(ApiKey::new("read-key-0123456789").unwrap());
    let server = server.on_unauthorized(|challenge| async move {
        assert!(challenge.contains("files:write"), "{challenge}");
        ApiKey::new("write-key-0123456789").ok()
    });
    let connected = connect(server).await.unwrap();
    let forbidden = "s: the server answered with status 403 Forbidden";
    assert_eq!(call(&connected, "never").await, Err(forbidden.to_owned()));
    assert_eq!(call(&connected, "write").await, Ok(json!("write")));
    connected.close().await;
    let mut calls = seen.lock().unwrap().clone();
    calls.retain(|line| line.starts_with("POST tools/call"));
    assert_eq!(
        calls.join(", "),
        "POST tools/callnever, POST tools/callwrite, POST tools/callwrite"
    );
}
