//! Incomplete requests and idle connections.

use std::net::SocketAddr;
use std::time::Duration;

use oa_serve::{AgentServer, ServeLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::app::agent;

async fn served(change: impl FnOnce(&mut ServeLimits)) -> SocketAddr {
    let mut limits = ServeLimits::default();
    change(&mut limits);
    let agent = agent().build().unwrap_or_else(|error| panic!("{error}"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap_or_else(|error| panic!("{error}"));
    let addr = listener.local_addr().unwrap_or_else(|error| panic!("{error}"));
    let server = AgentServer::new(agent).limits(limits);
    tokio::spawn(server.serve_until(listener, std::future::pending()));
    addr
}

/// Sends the start of a request, and returns all that the server says until it closes the connection.
async fn send(addr: SocketAddr, start: &str) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap_or_else(|error| panic!("{error}"));
    stream.write_all(start.as_bytes()).await.unwrap_or_else(|error| panic!("{error}"));
    let mut said = String::new();
    // A connection may also be reset.
    let _ = stream.read_to_string(&mut said).await;
    said
}

const WHOLE: &str = "GET /api/agent HTTP/1.0\r\nhost: localhost\r\n\r\n";

#[tokio::test]
async fn slow_requests_time_out() {
    let addr = served(|limits| limits.request = Duration::from_millis(300)).await;
    let head = send(addr, "POST /api/conversations HTTP/1.1\r\nhost: loc");
    let body = send(
        addr,
        "POST /api/conversations HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{",
    );
    let (head, body) = timeout(Duration::from_secs(60), async { tokio::join!(head, body) })
        .await
        .expect("both connections are closed");
    assert!(!head.contains(" 201 "), "{head}");
    assert!(body.contains(" 408 ") && body.contains("in time"), "{body}");
    assert!(send(addr, WHOLE).await.contains(" 200 "), "others are served");
}

/// Not 413, which would make a client send less.
#[tokio::test]
async fn broken_bodies_are_bad_requests() {
    const HEAD: &str = "POST /api/conversations HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                        content-type: application/json\r\n";
    let addr = served(|limits| limits.body_bytes = 10).await;
    for body in [
        "transfer-encoding: chunked\r\n\r\nno size\r\n",
        "transfer-encoding: chunked\r\n\r\n2\r\n{",
        "content-length: 9\r\n\r\n{}",
    ] {
        let mut stream = TcpStream::connect(addr).await.expect("it listens");
        stream.write_all(format!("{HEAD}{body}").as_bytes()).await.expect("it reads");
        stream.shutdown().await.expect("it is open");
        let mut said = String::new();
        stream.read_to_string(&mut said).await.expect("it answers");
        assert!(said.contains(" 400 ") && said.contains("incomplete"), "{body:?}: {said}");
    }
    for (body, status) in [
        ("transfer-encoding: chunked\r\n\r\na\r\n{        }\r\n0\r\n\r\n", " 201 "),
        ("transfer-encoding: chunked\r\n\r\n9\r\n{       }\r\n2\r\n  \r\n0\r\n\r\n", " 413 "),
        ("content-length: 11\r\n\r\n{         }", " 413 "),
        ("content-length: 99999999999999\r\n\r\n{         }", " 413 "),
    ] {
        let said = send(addr, &format!("{HEAD}{body}")).await;
        assert!(said.contains(status), "{body:?}: {said}");
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let addr = served(|limits| limits.connections = 2).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(addr).await.expect("it listens");
        stream
            .write_all(b"GET /api/agent HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await
            .expect("it reads");
        // It is served, and stays open.
        stream.read_exact(&mut [0; 12]).await.expect("it answers");
        held.push(stream);
    }
    let mut waits = tokio::spawn(send(addr, WHOLE));
    assert!(timeout(Duration::from_millis(500), &mut waits).await.is_err(), "there is no room");
    held.pop();
    assert!(waits.await.expect("no panic").contains(" 200 "));
}

/// Such as one with images that are too large. A connection that is reset would hide why.
#[tokio::test]
async fn refusals_reach_clients_that_still_send() {
    const PIECE: usize = 64 << 10;
    const PIECES: usize = 256;
    let addr = served(|_| {}).await;
    let json = "content-type: application/json\r\n";
    for (headers, status) in [(json, " 413 "), ("", " 415 ")] {
        let length = PIECE * PIECES;
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n"
        );
        let mut stream = TcpStream::connect(addr).await.expect("it listens");
        stream.write_all(head.as_bytes()).await.expect("it reads");
        for _ in 0..PIECES {
            stream.write_all(&[b' '; PIECE]).await.expect("it reads all of it");
        }
        let mut said = String::new();
        stream.read_to_string(&mut said).await.expect("it answers");
        assert!(said.contains(status), "{said}");
    }
}
