//! Access to a server: tokens, origins, names, types and sizes of bodies.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use oa_serve::{AgentServer, ServeLimits};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::app::{App, agent};

fn request(method: Method, path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from("{}")).expect("the request is valid")
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn token_is_required_everywhere() {
    let app = App::new(|server| server.bearer_token("secret-token"));
    for path in ["/api/agent", "/api/conversations", "/v1/models", "/api/chat/x/stream"] {
        for (headers, status) in [
            (vec![], StatusCode::UNAUTHORIZED),
            (vec![("authorization", "Bearer wrong")], StatusCode::UNAUTHORIZED),
            (vec![("authorization", "Basic secret-token")], StatusCode::UNAUTHORIZED),
            (vec![("authorization", "Bearer secret-toke")], StatusCode::UNAUTHORIZED),
        ] {
            assert_eq!(app.request(request(Method::GET, path, &headers)).await.status(), status);
        }
        let right = [("authorization", "bearer secret-token")];
        assert!(app.request(request(Method::GET, path, &right)).await.status().is_success());
    }
    let server = AgentServer::new(agent().build().expect("the options are valid"));
    let shown = format!("{:?}", server.bearer_token("secret-token"));
    assert!(!shown.contains("secret-token"), "{shown}");
}

/// Unless they are allowed by name.
#[tokio::test]
async fn other_origins_are_refused() {
    let app = App::new(|server| server.allow_origin("https://app.example.com"));
    let post = |origin| {
        let headers = [JSON, ("host", "127.0.0.1:8080"), ("origin", origin)];
        app.request(request(Method::POST, "/api/conversations", &headers))
    };
    assert_eq!(post("http://127.0.0.1:8080").await.status(), StatusCode::CREATED);
    assert_eq!(post("https://evil.example.com").await.status(), StatusCode::FORBIDDEN);
    assert_eq!(post("null").await.status(), StatusCode::FORBIDDEN);
    let named = post("https://app.example.com").await;
    assert_eq!(named.status(), StatusCode::CREATED);
    assert_eq!(named.headers()["access-control-allow-origin"], "https://app.example.com");

    // HTTP/2 has the name in the URI.
    let headers = [JSON, ("origin", "https://here.example.com")];
    let own = request(Method::POST, "https://here.example.com/api/conversations", &headers);
    assert_eq!(app.request(own).await.status(), StatusCode::CREATED);

    let preflight = |origin| {
        let headers = [("origin", origin), ("access-control-request-method", "POST")];
        app.request(request(Method::OPTIONS, "/api/conversations", &headers))
    };
    let allowed = preflight("https://app.example.com").await;
    assert_eq!(allowed.headers()["access-control-allow-origin"], "https://app.example.com");
    let refused = preflight("https://evil.example.com").await;
    assert!(!refused.headers().contains_key("access-control-allow-origin"));
}

/// The `openai` package sends headers of its own, and reads whether it may repeat a request.
#[tokio::test]
async fn libraries_work_on_allowed_origins() {
    let app = App::new(|server| server.allow_origin("https://app.example.com"));
    let headers = [
        ("origin", "https://app.example.com"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization,x-stainless-os,x-of-the-app"),
        ("access-control-request-private-network", "true"),
    ];
    let answer = app.request(request(Method::OPTIONS, "/v1/chat/completions", &headers)).await;
    let allowed = &answer.headers()["access-control-allow-headers"];
    assert_eq!(allowed, "authorization,x-stainless-os,x-of-the-app");
    assert_eq!(answer.headers()["access-control-allow-private-network"], "true");

    let headers = [JSON, ("origin", "https://app.example.com")];
    let answer = app.request(request(Method::POST, "/v1/chat/completions", &headers)).await;
    let read = answer.headers()["access-control-expose-headers"].to_str().expect("text");
    assert!(read.contains("x-should-retry"), "{read}");
}

#[tokio::test]
async fn origins_match_as_browsers_send_them() {
    for (allowed, sent) in [
        ("https://App.example.com/", "https://app.example.com"),
        ("https://app.example.com:443", "https://app.example.com"),
        ("http://app.example.com:80/", "http://app.example.com"),
        (" http://localhost:3000 ", "http://localhost:3000"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("tauri://localhost", "tauri://localhost"),
        ("*", "https://any.example.com"),
    ] {
        let app = App::new(|server| server.allow_origin(allowed));
        let headers = [JSON, ("host", "127.0.0.1:8080"), ("origin", sent)];
        let answer = app.request(request(Method::POST, "/api/conversations", &headers)).await;
        assert_eq!(answer.status(), StatusCode::CREATED, "{allowed}");
        assert!(answer.headers().contains_key("access-control-allow-origin"), "{allowed}");
    }
}

#[tokio::test]
async fn unsafe_origins_are_errors_of_serve() {
    let serve = |server: AgentServer| async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        server.serve_until(listener, std::future::ready(())).await
    };
    let server = || AgentServer::new(agent().build().expect("the options are valid"));
    for wrong in ["app.example.com", "https://", "https://*.example.com", "https://a.example/b", ""]
    {
        let error = serve(server().allow_origin(wrong)).await.expect_err(wrong);
        assert!(error.to_string().contains("is not an origin"), "{error}");
    }
    assert!(serve(server().allow_origin("*")).await.is_err());
    assert!(serve(server().allow_origin("*").bearer_token("secret")).await.is_ok());
}

/// Under the name by which it is reached, and no other.
#[tokio::test]
async fn proxies_on_this_machine_keep_the_host() {
    let server = AgentServer::new(agent().build().expect("the options are valid"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(
        server
            .allow_origin("https://app.example.com")
            .serve_until(listener, async move { drop(ended.await) }),
    );
    for (host, status) in [("app.example.com", "200"), ("evil.example.com", "403")] {
        let mut stream = tokio::net::TcpStream::connect(address).await.expect("it accepts");
        let request =
            format!("GET /api/agent HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    let _ = end.send(());
    served.await.expect("no panic").expect("it ends well");
}

#[tokio::test]
async fn bodies_are_json_and_bounded() {
    let mut limits = ServeLimits::default();
    limits.body_bytes = 100;
    let app = App::new(|server| server.limits(limits));
    for path in ["/api/conversations", "/api/chat", "/ag-ui", "/v1/chat/completions"] {
        let form = [("content-type", "text/plain")];
        let refused = app.request(request(Method::POST, path, &form)).await;
        assert_eq!(refused.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{path}");
    }
    for path in ["/api/chat", "/ag-ui", "/v1/chat/completions"] {
        let (status, _) = app.post(path, json!({"id": "x".repeat(200)})).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
    }
}

/// Not the type of a body that it need not have.
#[tokio::test]
async fn other_methods_are_not_allowed() {
    let app = App::new(|server| server);
    for (method, path, allowed) in [
        (Method::OPTIONS, "/api/conversations", "GET,HEAD,POST"),
        (Method::PUT, "/api/conversations/x", "GET,HEAD,DELETE,PATCH"),
        (Method::OPTIONS, "/v1/chat/completions", "POST"),
        (Method::GET, "/ag-ui", "POST"),
        (Method::PUT, "/api/chat", "POST"),
    ] {
        let answer = app.request(request(method, path, &[])).await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(answer.headers()["allow"], allowed, "{path}");
    }
}

#[tokio::test]
async fn compressed_bodies_are_refused_by_name() {
    let app = App::new(|server| server);
    let plain =
        request(Method::POST, "/api/conversations", &[JSON, ("content-encoding", "identity")]);
    assert_eq!(app.request(plain).await.status(), StatusCode::CREATED);
    for path in ["/api/conversations", "/api/chat", "/ag-ui", "/v1/chat/completions"] {
        let zipped = request(Method::POST, path, &[JSON, ("content-encoding", "gzip")]);
        let answer = app.request(zipped).await;
        assert_eq!(answer.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{path}");
        assert_eq!(answer.headers()["accept-encoding"], "identity", "{path}");
        let body = answer.into_body().collect().await.expect("the body ends").to_bytes();
        let said = String::from_utf8_lossy(&body);
        assert!(said.contains("compressed"), "{path}: {said}");
    }
}

/// A short value takes far more memory than its text.
#[tokio::test]
async fn values_of_bodies_are_bounded() {
    let app = App::new(|server| server);
    let prompt = format!("{}/prompt", app.create().await);
    for path in [&*prompt, "/api/chat", "/ag-ui", "/v1/chat/completions"] {
        let call = request(Method::POST, path, &[JSON]);
        let zeros = format!("{{\"text\": [{}0]}}", "0,".repeat(250_000));
        let answer = app.request(call.map(|_| Body::from(zeros))).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{path}");
        let body = answer.into_body().collect().await.expect("the body ends").to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("more than 250000 values"), "{path}");
    }
}

#[tokio::test]
async fn chat_errors_are_text_and_others_json() {
    let app = App::new(|server| server.bearer_token("secret"));
    for path in ["/api/chat", "/api/conversations", "/ag-ui", "/v1/chat/completions"] {
        let answer = app.request(request(Method::POST, path, &[JSON])).await;
        let kind = answer.headers()["content-type"].to_str().expect("it is text").to_owned();
        assert_eq!(kind.starts_with("text/plain"), path == "/api/chat", "{path}: {kind}");
    }
}

#[tokio::test]
async fn unknown_paths_are_not_found() {
    let app = App::new(|server| server);
    for path in ["/api/none", "/v1/none", "/ag-ui/none", "/api/chat/x/none", "/none"] {
        let answer = app.request(request(Method::GET, path, &[])).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn viewers_and_runs_are_bounded() {
    let mut limits = ServeLimits::default();
    (limits.viewers, limits.runs, limits.conversations) = (1, 1, 2);
    let app = App::new(|server| server.limits(limits));
    let (first, second) = (app.create().await, app.create().await);
    let events = app.view(&first, None).await;
    let more = app.request(request(Method::GET, &format!("{first}/events"), &[])).await;
    assert_eq!(more.status(), StatusCode::SERVICE_UNAVAILABLE);
    app.prompt(&first, "[long]").await;
    let (status, _) = app.post(&format!("{second}/prompt"), json!({"text": "hi"})).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    drop(events);
    app.view(&first, None).await;
    // The one in use stays in memory, and idle ones make room.
    for _ in 0..3 {
        let other = app.create().await;
        assert_eq!(app.get(&other).await.0, StatusCode::OK);
    }
    assert_eq!(app.get(&first).await.1["running"], true);
}
