use std::sync::Arc;

use http::Request;
use http_body_util::BodyExt;
use oa_testkit::{Cut, Framing, Reply, Script, SocketServer};
use oa_transport::{ErrorKind, RequestBody, ResponseBody, Transport};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::{LONG, ask, hear, post, read, say, send, serve, url, whole};

/// Each chunk is written after the previous one was read, so none may be buffered.
#[tokio::test]
async fn chunks_are_not_buffered() {
    let read_one = Arc::new(Notify::new());
    let go_on = Arc::clone(&read_one);
    let (address, _task) = serve(move |mut stream: TcpStream, _| {
        let go_on = Arc::clone(&go_on);
        async move {
            hear(&mut stream).await;
            say(&mut stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
            for number in 0..2000 {
                say(&mut stream, format!("4\r\n{number:04}\r\n")).await;
                go_on.notified().await;
            }
            say(&mut stream, "0\r\n\r\n").await;
            hear(&mut stream).await;
        }
    })
    .await;
    let transport = Transport::new();
    let mut body = post(&transport, &format!("http://{address}")).await.unwrap().into_body();
    for number in 0..2000 {
        let chunk = tokio::time::timeout(LONG, body.frame()).await.unwrap();
        assert_eq!(chunk.unwrap().unwrap().into_data().unwrap(), format!("{number:04}"));
        read_one.notify_one();
    }
    assert!(body.frame().await.is_none());
    assert!(body.frame().await.is_none());
    assert_eq!(body.received(), 8000);
    assert_eq!(transport.idle_connections(), 1);
}

#[tokio::test]
async fn a_large_body_arrives_whole() {
    let text = "0123456789abcdef".repeat(1 << 18);
    for framing in [Framing::Chunked, Framing::Close, Framing::Length] {
        let reply =
            Reply::body(200, "text/plain", text.clone()).framing(framing).cut(Cut::Every(70_000));
        let server = SocketServer::start(reply).await.unwrap();
        assert_eq!(ask(&Transport::new(), &url(&server)).await.unwrap(), text);
    }
}

#[tokio::test]
async fn dropping_a_body_closes_its_connection() {
    let reply = Reply::text("a b c d e f").stall_after(300);
    let server = SocketServer::start(Script::new().otherwise(reply)).await.unwrap();
    let transport = Transport::new();
    let mut body = post(&transport, &url(&server)).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    assert_eq!(transport.idle_connections(), 0);
    assert!(server.wait_for_abort(LONG).await.aborted());
    server.wait_for_close(LONG).await;
}

#[tokio::test]
async fn dropped_future_closes_its_connection() {
    let server = SocketServer::start(Script::new().otherwise(Reply::silence())).await.unwrap();
    let transport = Transport::new();
    let url = url(&server);
    tokio::select! {
        response = post(&transport, &url) => panic!("{response:?}"),
        () = server.wait_until(LONG, |requests| requests.len() == 1) => {}
    }
    assert!(server.wait_for_abort(LONG).await.aborted());
    server.wait_for_close(LONG).await;
}

#[test]
fn body_outlives_its_runtime() {
    let hosting = tokio::runtime::Runtime::new().unwrap();
    let reply = Reply::text("a b c d e f").stall_after(300);
    let server = hosting.block_on(SocketServer::start(Script::new().otherwise(reply))).unwrap();
    let transport = Transport::new();
    for early in [true, false] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut body = runtime.block_on(post(&transport, &url(&server))).unwrap().into_body();
        runtime.block_on(body.frame()).unwrap().unwrap();
        if early {
            drop(body);
            drop(runtime);
        } else {
            drop(runtime);
            drop(body);
        }
        assert_eq!(transport.idle_connections(), 0);
        hosting.block_on(server.wait_for_close(LONG));
    }
}

#[tokio::test]
async fn no_tasks_are_spawned() {
    // The server runs in another runtime, so that all tasks here belong to the client.
    let hosting = tokio::runtime::Runtime::new().unwrap();
    let script = Script::new().otherwise(Reply::text("hello").cut(Cut::Every(1)));
    let server = hosting.spawn(SocketServer::start(script)).await.unwrap().unwrap();
    let transport = Transport::new();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(tasks(), 0);
    let response = post(&transport, &url(&server)).await.unwrap();
    assert_eq!(tasks(), 0);
    read(response).await.unwrap();
    drop(post(&transport, &url(&server)).await.unwrap());
    assert_eq!(tasks(), 0);
    drop(server);
    hosting.shutdown_background();
}

#[tokio::test]
async fn broken_bodies_report_cause_and_size() {
    async fn check(reply: Reply, received: u64, how: &str) {
        let server = SocketServer::start(reply).await.unwrap();
        let transport = Transport::new();
        let response = post(&transport, &url(&server)).await.unwrap();
        let error = read(response).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Broken, "{}", whole(&error));
        assert_eq!(error.received(), Some(received));
        assert_eq!(
            error.to_string(),
            format!(
                "the response from {} broke off after {received} bytes: {how}",
                server.address()
            )
        );
        assert_eq!(transport.idle_connections(), 0);
    }
    let body = || Reply::body(200, "text/plain", "0123456789").cut(Cut::Every(4));
    let chunked = || body().framing(Framing::Chunked);
    check(chunked().close_after(8), 8, "connection closed before the end").await;
    check(chunked().close_after(10), 10, "connection closed before the end").await;
    check(chunked().reset_after(8), 8, "connection reset").await;
    check(
        body().framing(Framing::Length).close_after(8),
        8,
        "connection closed, 10 bytes expected",
    )
    .await;
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    check(Reply::raw(format!("{head}2\r\nhi\r\nno number\r\n")), 2, "malformed chunk").await;
}

#[tokio::test]
async fn body_ends_after_an_error() {
    let reply =
        Reply::body(200, "text/plain", "0123456789").framing(Framing::Length).close_after(5);
    let server = SocketServer::start(reply).await.unwrap();
    let mut body = post(&Transport::new(), &url(&server)).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "01234");
    assert!(body.frame().await.unwrap().is_err());
    assert!(body.frame().await.is_none());
    assert!(http_body::Body::is_end_stream(&body));
}

#[tokio::test]
async fn trailers_are_a_frame() {
    let (address, _task) = serve(async |mut stream: TcpStream, _| {
        while hear(&mut stream).await.is_some() {
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            say(&mut stream, format!("{head}2\r\nhi\r\n0\r\nx-usage: 7\r\n\r\n")).await;
        }
    })
    .await;
    let transport = Transport::new();
    let body = post(&transport, &format!("http://{address}")).await.unwrap().into_body();
    let collected = body.collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["x-usage"], "7");
    assert_eq!(transport.idle_connections(), 1);
}

/// Extensions of chunks and trailers are legal, but nobody could tell how much of them is to come.
#[tokio::test]
async fn chunk_extensions_and_trailers_are_bounded() {
    async fn read_chunks(extension: usize, trailer: usize) -> Result<usize, String> {
        let (address, _task) = serve(move |mut stream: TcpStream, _| async move {
            hear(&mut stream).await;
            say(&mut stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
            for _ in 0..100 {
                say(&mut stream, format!("2;{}=\"a b\"\r\nhi\r\n", "x".repeat(extension))).await;
            }
            say(&mut stream, format!("0;last\r\nx: {}\r\n\r\n", "y".repeat(trailer))).await;
        })
        .await;
        let body = ask(&Transport::new(), &format!("http://{address}")).await;
        body.map(|body| body.len()).map_err(|error| error.to_string())
    }
    assert_eq!(read_chunks(150, 16_000).await, Ok(200));
    for (extension, trailer) in [(170, 1), (1, 17_000)] {
        let error = read_chunks(extension, trailer).await.unwrap_err();
        let limit = "malformed chunk, or more than 16384 bytes of chunk extensions or trailers";
        assert!(error.ends_with(limit), "{error}");
    }
}

/// A server rejects a large request without reading it, responds and closes.
#[tokio::test]
async fn early_response_is_read_despite_a_reset() {
    for length in ["content-length: 9\r\n", ""] {
        let (address, _task) = serve(move |mut stream: TcpStream, _| async move {
            let mut head = [0; 300];
            let _ = stream.read(&mut head).await;
            let answer = "HTTP/1.1 413 Payload Too Large\r\nconnection: close\r\n";
            say(&mut stream, format!("{answer}{length}\r\ntoo large")).await;
        })
        .await;
        let body = RequestBody::from_segments(vec![vec![b' '; 1 << 20].into(); 32]);
        let request = Request::post(format!("http://{address}")).body(body).unwrap();
        let response = send(&Transport::new(), request).await.unwrap();
        assert_eq!(response.status(), 413);
        if !length.is_empty() {
            assert_eq!(read(response).await.unwrap(), "too large");
        }
    }
}

#[tokio::test]
async fn request_is_sent_while_response_is_read() {
    let (address, _task) = serve(async |mut stream: TcpStream, _| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n";
        say(&mut stream, head).await;
        let heard = hear(&mut stream).await.unwrap();
        let length = heard.split("\r\n\r\n").nth(1).unwrap().len();
        let length = length.to_string();
        say(&mut stream, format!("{:x}\r\n{length}\r\n0\r\n\r\n", length.len())).await;
        hear(&mut stream).await;
    })
    .await;
    let body = RequestBody::from_segments(vec![vec![b'x'; 1 << 16].into(); 64]);
    let request = Request::post(format!("http://{address}")).body(body).unwrap();
    let transport = Transport::new();
    let response = send(&transport, request).await.unwrap();
    assert_eq!(read(response).await.unwrap(), "hi4194304");
    assert_eq!(transport.idle_connections(), 1);
}

#[test]
fn bodies_and_futures_are_send() {
    fn check<T: Send + Sync>() {}
    fn check_send<T: Send>() {}
    check::<ResponseBody>();
    check::<RequestBody>();
    check::<Transport>();
    check_send::<oa_transport::ResponseFuture>();
}
