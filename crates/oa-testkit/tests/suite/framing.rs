//! Framing of bodies on a socket, and the fate of the connection.

use oa_testkit::{Cut, Framing, Reply, Script, SocketServer};

use crate::client::{Client, LIMIT, header, plain, post, streamed};

/// Starts a server and requests its only reply.
async fn ask(reply: Reply) -> (SocketServer, Client) {
    let server = SocketServer::start(reply).await.expect("a socket");
    let mut client = Client::connect(&server).await;
    client.send(post(&streamed())).await;
    (server, client)
}

#[tokio::test]
async fn each_piece_is_a_chunk() {
    let (_server, mut client) = ask(Reply::sse("one two").cut(Cut::At(vec![3]))).await;
    let head = client.until("\r\n\r\n").await.expect("a head");
    assert_eq!(header(&head, "transfer-encoding"), Some("chunked"));
    assert_eq!(header(&head, "connection"), None);
    assert_eq!(
        client.until("0\r\n\r\n").await.expect("chunks"),
        "3\r\none\r\n4\r\n two\r\n0\r\n\r\n"
    );
}

#[tokio::test]
async fn an_empty_body_has_its_last_chunk() {
    let (_server, mut client) = ask(Reply::sse("")).await;
    client.until("\r\n\r\n").await.expect("a head");
    assert!(client.chunk().await.expect("a chunk").is_empty());
}

#[tokio::test]
async fn a_body_may_have_a_length() {
    let (_server, mut client) = ask(Reply::sse("one two").framing(Framing::Length)).await;
    let head = client.until("\r\n\r\n").await.expect("a head");
    assert_eq!(header(&head, "content-length"), Some("7"));
    assert_eq!(header(&head, "transfer-encoding"), None);
    assert_eq!(client.exactly(7).await.expect("a body"), "one two");
}

#[tokio::test]
async fn a_body_may_end_with_the_connection() {
    let (server, mut client) = ask(Reply::sse("one two").framing(Framing::Close)).await;
    let head = client.until("\r\n\r\n").await.expect("a head");
    assert_eq!(header(&head, "connection"), Some("close"));
    assert_eq!(header(&head, "content-length"), None);
    assert_eq!(client.rest().await, ("one two".to_owned(), std::io::ErrorKind::UnexpectedEof));
    assert!(!server.requests()[0].aborted());
}

#[tokio::test]
async fn content_length_may_be_wrong() {
    let reply = Reply::sse("one").framing(Framing::Length).header("content-length", "9");
    let (_server, mut client) = ask(reply.announce_close()).await;
    let head = client.until("\r\n\r\n").await.expect("a head");
    assert_eq!(header(&head, "content-length"), Some("9"));
    assert_eq!(client.rest().await.0, "one");
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let replies = Script::new().reply(Reply::text("one")).reply(Reply::text("two"));
    let server = SocketServer::start(replies).await.expect("a socket");
    let mut client = Client::connect(&server).await;
    for _ in 0..2 {
        client.send(post(&streamed())).await;
        client.answer().await.expect("an answer");
    }
    let connections: Vec<_> = server.requests().iter().map(|r| r.connection()).collect();
    assert_eq!(connections, [Some(1), Some(1)]);
    assert_eq!((server.connections(), server.open_connections()), (1, 1));

    drop(client);
    server.wait_for_close(LIMIT).await;
    assert_eq!((server.connections(), server.open_connections()), (1, 0));
    assert!(server.requests().iter().all(|request| request.is_over() && !request.aborted()));
}

#[tokio::test]
async fn connections_are_served_at_once() {
    let replies = Script::new().reply(Reply::silence()).reply(Reply::text("two"));
    let server = SocketServer::start(replies).await.expect("a socket");
    let mut first = Client::connect(&server).await;
    first.send(post(&plain())).await;
    server.wait_until(LIMIT, |requests| requests.len() == 1).await;

    let mut second = Client::connect(&server).await;
    second.send(post(&plain())).await;
    assert_eq!(second.answer().await.expect("an answer").0, 200);
    assert_eq!(server.requests()[1].connection(), Some(2));
    assert_eq!(server.open_connections(), 2);
}

#[tokio::test]
async fn a_close_is_announced_or_not() {
    for (reply, said) in [
        (Reply::text("bye").announce_close(), "close"),
        (Reply::text("bye").close_when_done(), "keep-alive"),
    ] {
        let (_server, mut client) = ask(reply).await;
        let head = client.until("\r\n\r\n").await.expect("a head");
        assert_eq!(header(&head, "connection"), Some(said));
        let (body, _) = client.rest().await;
        assert!(body.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{body}");
    }
}

#[tokio::test]
async fn a_client_may_want_a_close() {
    let server = SocketServer::start(Reply::text("bye")).await.expect("a socket");
    let mut client = Client::connect(&server).await;
    client.send(post(&plain()).replace("host: test", "connection: close")).await;
    let (answer, _) = client.rest().await;
    assert_eq!(header(&answer, "connection"), Some("close"));
}

#[tokio::test]
async fn http_1_0_clients_get_no_chunks() {
    let server = SocketServer::start(Reply::text("bye")).await.expect("a socket");
    let mut client = Client::connect(&server).await;
    client.send(post(&streamed()).replace("HTTP/1.1", "HTTP/1.0")).await;
    let (_, _, body) = client.answer().await.expect("an answer");
    assert!(body.starts_with(b"data: {"));
}

#[tokio::test]
async fn expect_continue_is_answered() {
    let server = SocketServer::start(Reply::text("thanks")).await.expect("a socket");
    let mut client = Client::connect(&server).await;
    let request = post(&plain()).replace("host: test", "expect: 100-continue");
    let (head, body) = request.split_once("\r\n\r\n").expect("a head");
    client.send(format!("{head}\r\n\r\n")).await;
    client.until("HTTP/1.1 100 Continue\r\n\r\n").await.expect("the word");
    client.send(body).await;
    assert_eq!(client.answer().await.expect("an answer").0, 200);
}

#[tokio::test]
async fn malformed_requests_are_rejected() {
    let server = SocketServer::start(Script::new()).await.expect("a socket");
    let mut client = Client::connect(&server).await;
    client.send("hello\r\n\r\n").await;
    let (answer, _) = client.rest().await;
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert!(server.requests().is_empty());
    assert!(server.story().contains("connection 1 was refused: the first line is not a request"));
}

#[tokio::test]
async fn a_stopped_server_refuses_connections() {
    let server = SocketServer::start(Script::new()).await.expect("a socket");
    let address = server.address();
    let mut client = Client::connect(&server).await;
    server.stop().await;
    client.rest().await;
    let error = tokio::net::TcpStream::connect(address).await.expect_err("nobody listens");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}
