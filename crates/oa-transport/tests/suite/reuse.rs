use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use oa_testkit::{Framing, Reply, Script, SocketServer};
use oa_transport::{ErrorKind, RequestBody, Transport};
use tokio::net::TcpStream;

use crate::{LONG, ask, hear, post, read, say, send, serve, url};

const HELLO: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

#[tokio::test]
async fn idle_connections_are_reused() {
    for framing in [Framing::Chunked, Framing::Length] {
        let script = Script::new().otherwise(Reply::text("hello").framing(framing));
        let server = SocketServer::start(script).await.unwrap();
        let transport = Transport::new();
        for _ in 0..20 {
            ask(&transport, &url(&server)).await.unwrap();
            assert_eq!(transport.idle_connections(), 1);
        }
        assert_eq!(server.connections(), 1);
        assert_eq!(server.requests().last().unwrap().connection(), Some(1));
    }
}

#[tokio::test]
async fn empty_response_frees_its_connection() {
    let (address, _task) = serve(async |mut stream: TcpStream, _| {
        while hear(&mut stream).await.is_some() {
            say(&mut stream, "HTTP/1.1 204 No Content\r\n\r\n").await;
        }
    })
    .await;
    let transport = Transport::new();
    let response = post(&transport, &format!("http://{address}")).await.unwrap();
    assert_eq!(transport.idle_connections(), 1);
    assert_eq!(read(response).await.unwrap(), "");
}

#[tokio::test]
async fn clones_share_connections() {
    let server = SocketServer::start(Script::new().otherwise(Reply::text("hello"))).await.unwrap();
    let transport = Transport::new();
    for _ in 0..5 {
        ask(&transport.clone(), &url(&server)).await.unwrap();
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn concurrent_responses_share_no_connection() {
    let server = SocketServer::start(Script::new().otherwise(Reply::text("hello"))).await.unwrap();
    let transport = Transport::new();
    let first = post(&transport, &url(&server)).await.unwrap();
    let second = post(&transport, &url(&server)).await.unwrap();
    read(first).await.unwrap();
    read(second).await.unwrap();
    assert_eq!(server.connections(), 2);
    assert_eq!(transport.idle_connections(), 2);
}

#[tokio::test]
async fn many_threads_share_a_pool() {
    let server = SocketServer::start(
        Script::new().otherwise(Reply::text("hello").cut(oa_testkit::Cut::Every(3))),
    )
    .await
    .unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let transport = Transport::new();
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let transport = transport.clone();
            let url = url(&server);
            runtime.spawn(async move {
                for _ in 0..25 {
                    assert!(ask(&transport, &url).await.unwrap().ends_with(b"[DONE]\n\n"));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(transport.idle_connections() <= 8);
    runtime.shutdown_background();
}

/// llama.cpp announces `keep-alive` but closes anyway.
#[tokio::test]
async fn silent_closes_cause_no_errors() {
    let server = SocketServer::start(
        Script::new()
            .otherwise(Reply::text("hello").header("connection", "keep-alive").close_when_done()),
    )
    .await
    .unwrap();
    let transport = Transport::new();
    for _ in 0..200 {
        ask(&transport, &url(&server)).await.unwrap();
    }
    assert_eq!(server.requests().len(), 200);
    assert_eq!(server.connections(), 200);
}

#[tokio::test]
async fn closed_idle_connections_are_replaced() {
    let (close, closing) = tokio::sync::watch::channel(0);
    let (address, _task) = serve(move |mut stream: TcpStream, number| {
        let mut closing = closing.clone();
        async move {
            hear(&mut stream).await;
            say(&mut stream, HELLO).await;
            let _ = closing.wait_for(|closed| *closed >= number).await;
        }
    })
    .await;
    let transport = Transport::new();
    let url = format!("http://{address}");
    for number in 1..=50 {
        assert_eq!(ask(&transport, &url).await.unwrap(), "hello");
        assert_eq!(transport.idle_connections(), 1);
        close.send_replace(number);
    }
}

/// The connection closes after the request is written, so nobody can notice earlier.
#[tokio::test]
async fn requests_on_stale_connections_are_resent() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    for reset in [false, true] {
        let count = Arc::clone(&count);
        let (address, _task) = serve(move |mut stream: TcpStream, _| {
            let count = Arc::clone(&count);
            async move {
                hear(&mut stream).await;
                say(&mut stream, HELLO).await;
                if hear(&mut stream).await.is_some() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                if reset {
                    stream.set_zero_linger().unwrap();
                }
            }
        })
        .await;
        let transport = Transport::new();
        let url = format!("http://{address}");
        let body: Vec<Bytes> = ["{\"a\"", ": 1}"].map(Into::into).into();
        for _ in 0..2 {
            let request = Request::post(&url).body(RequestBody::from_segments(body.clone()));
            let response = send(&transport, request.unwrap()).await.unwrap();
            assert_eq!(read(response).await.unwrap(), "hello");
        }
    }
    assert_eq!(seen.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn requests_are_resent_only_once() {
    let (address, _task) = serve(async |mut stream: TcpStream, number| {
        hear(&mut stream).await;
        if number == 1 {
            say(&mut stream, HELLO).await;
            hear(&mut stream).await;
        }
    })
    .await;
    let transport = Transport::new();
    let url = format!("http://{address}");
    ask(&transport, &url).await.unwrap();
    let error = ask(&transport, &url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    // The third connection serves the next request.
    let error = ask(&transport, &url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(error.to_string(), format!("{address} closed the connection before responding"));
}

#[tokio::test]
async fn no_resend_after_response_bytes() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let (address, _task) = serve(move |mut stream: TcpStream, _| {
        let count = Arc::clone(&count);
        async move {
            hear(&mut stream).await;
            say(&mut stream, HELLO).await;
            hear(&mut stream).await;
            count.fetch_add(1, Ordering::Relaxed);
            say(&mut stream, "HTTP/1.1 200").await;
        }
    })
    .await;
    let transport = Transport::new();
    let url = format!("http://{address}");
    ask(&transport, &url).await.unwrap();
    let error = ask(&transport, &url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(
        error.to_string(),
        format!("{address} closed the connection while sending the response head")
    );
    assert_eq!(seen.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn body_dropped_at_end_frees_connection() {
    let server =
        SocketServer::start(Script::new().otherwise(Reply::text("hello").framing(Framing::Length)))
            .await
            .unwrap();
    let transport = Transport::new();
    for _ in 0..5 {
        let mut body = post(&transport, &url(&server)).await.unwrap().into_body();
        let length = usize::try_from(http_body::Body::size_hint(&body).exact().unwrap()).unwrap();
        let mut received = 0;
        while received < length {
            received += body.frame().await.unwrap().unwrap().into_data().unwrap().len();
        }
        assert_eq!(transport.idle_connections(), 0);
        drop(body);
        assert_eq!(transport.idle_connections(), 1);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn surplus_connections_are_closed() {
    let server = SocketServer::start(Script::new().otherwise(Reply::text("hello"))).await.unwrap();
    let transport = Transport::builder().max_idle_per_host(2).build();
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(post(&transport, &url(&server)).await.unwrap());
    }
    for answer in answers {
        read(answer).await.unwrap();
    }
    assert_eq!(transport.idle_connections(), 2);
    server.wait_until(LONG, |_| server.open_connections() == 2).await;
    drop(transport);
    server.wait_for_close(LONG).await;

    let transport = Transport::builder().max_idle_per_host(0).build();
    ask(&transport, &url(&server)).await.unwrap();
    assert_eq!(transport.idle_connections(), 0);
}

#[tokio::test]
async fn expired_connections_are_not_reused() {
    let server = SocketServer::start(Script::new().otherwise(Reply::text("hello"))).await.unwrap();
    let transport = Transport::builder().idle_timeout(Duration::ZERO).build();
    for _ in 0..3 {
        ask(&transport, &url(&server)).await.unwrap();
    }
    assert_eq!(server.connections(), 3);
}

/// The socket belongs to a runtime that was shut down.
#[test]
fn connections_of_ended_runtimes_are_unused() {
    let transport = Transport::new();
    let hosting = tokio::runtime::Runtime::new().unwrap();
    let server = hosting
        .block_on(SocketServer::start(Script::new().otherwise(Reply::text("hello"))))
        .unwrap();
    for _ in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(ask(&transport, &url(&server))).unwrap();
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn unsolicited_bytes_close_idle_connections() {
    let (address, _task) = serve(async |mut stream: TcpStream, _| {
        hear(&mut stream).await;
        say(&mut stream, format!("{HELLO}HTTP/1.1 200 OK\r\n\r\nsmuggled")).await;
        hear(&mut stream).await;
    })
    .await;
    let transport = Transport::new();
    for _ in 0..3 {
        assert_eq!(ask(&transport, &format!("http://{address}")).await.unwrap(), "hello");
    }
}
