//! Broken responses over a socket.

use std::io::ErrorKind;
use std::time::Duration;

use oa_testkit::{Cut, Framing, Reply, SocketServer};
use tokio::time;

use crate::client::{Client, LIMIT, post, streamed};

/// Asks for the only reply, and checks the body and its end.
async fn check(reply: Reply, body: &str, end: ErrorKind) {
    let server = SocketServer::start(reply).await.expect("a socket");
    let mut client = Client::connect(&server).await;
    client.send(post(&streamed())).await;
    client.until("\r\n\r\n").await.expect("a head");
    assert_eq!(client.rest().await, (body.to_owned(), end));

    server.wait_until(LIMIT, |requests| requests[0].is_over()).await;
    assert!(!server.requests()[0].aborted());
}

#[tokio::test]
async fn closes_in_the_middle_of_a_chunk() {
    check(Reply::sse("one two").close_after(3), "7\r\none", ErrorKind::UnexpectedEof).await;
}

#[tokio::test]
async fn a_connection_closes_between_chunks() {
    let reply = Reply::sse("one two").cut(Cut::At(vec![3]));
    check(reply.close_after(3), "3\r\none\r\n", ErrorKind::UnexpectedEof).await;
}

#[tokio::test]
async fn closes_before_the_last_chunk() {
    let reply = Reply::sse("one two").close_after(usize::MAX);
    check(reply, "7\r\none two\r\n", ErrorKind::UnexpectedEof).await;
}

#[tokio::test]
async fn closes_before_the_length_is_full() {
    let reply = Reply::sse("one two").framing(Framing::Length);
    check(reply.close_after(3), "one", ErrorKind::UnexpectedEof).await;
}

#[tokio::test]
async fn reset_breaks_the_body() {
    check(Reply::sse("one two").reset_after(3), "7\r\none", ErrorKind::ConnectionReset).await;
    check(Reply::sse("one two").reset_after(0), "", ErrorKind::ConnectionReset).await;
}

#[tokio::test]
async fn hang_up_and_reset_send_no_head() {
    for (reply, end) in
        [(Reply::hang_up(), ErrorKind::UnexpectedEof), (Reply::reset(), ErrorKind::ConnectionReset)]
    {
        let server = SocketServer::start(reply).await.expect("a socket");
        let mut client = Client::connect(&server).await;
        client.send(post(&streamed())).await;
        assert_eq!(client.rest().await, (String::new(), end));
    }
}

#[tokio::test]
async fn non_http_bytes_are_sent() {
    let server = SocketServer::start(Reply::raw("220 smtp ready\r\n")).await.expect("a socket");
    let mut client = Client::connect(&server).await;
    client.send(post(&streamed())).await;
    assert_eq!(client.rest().await, ("220 smtp ready\r\n".to_owned(), ErrorKind::UnexpectedEof));
}

#[tokio::test]
async fn stalls_until_the_client_leaves() {
    let server = SocketServer::start(Reply::sse("one two").stall_after(3)).await.expect("a socket");
    let mut client = Client::connect(&server).await;
    client.send(post(&streamed())).await;
    client.until("7\r\none").await.expect("a part");
    time::timeout(Duration::from_millis(50), client.rest()).await.expect_err("silence");
    assert!(!server.requests()[0].is_over());

    drop(client);
    let request = server.wait_for_abort(LIMIT).await;
    assert!(request.aborted() && request.is_over());
    server.wait_for_close(LIMIT).await;
}

#[tokio::test]
async fn an_interrupt_is_seen_in_every_kind_of_wait() {
    let long = Duration::from_secs(3600);
    for reply in [
        Reply::silence(),
        Reply::text("late").delay_head(long),
        Reply::text("late").delay_first(long),
        Reply::text("late").delay(long),
        Reply::sse(vec![b'x'; 64 * 1024 * 1024]),
    ] {
        let server = SocketServer::start(reply).await.expect("a socket");
        let mut client = Client::connect(&server).await;
        client.send(post(&streamed())).await;
        server.wait_until(LIMIT, |requests| requests.len() == 1).await;
        drop(client);
        assert_eq!(server.wait_for_abort(LIMIT).await.number(), 1);
    }
}

#[tokio::test]
async fn stopping_is_not_a_client_abort() {
    let server = SocketServer::start(Reply::silence()).await.expect("a socket");
    let mut client = Client::connect(&server).await;
    client.send(post(&streamed())).await;
    server.wait_until(LIMIT, |requests| requests.len() == 1).await;
    let request = server.requests().remove(0);
    server.stop().await;
    assert!(request.is_over() && !request.aborted());
}
