use http::Request;
use oa_testkit::{Reply, Script, SocketServer};
use oa_transport::{ErrorKind, RequestBody, RequestHead, Transport};
use tokio::net::{TcpListener, TcpStream};

use crate::{ask, hear, post, read, say, send, serve, url, whole};

#[tokio::test]
async fn refused_connections_are_connect_errors() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("http://{host}:{}/v1", address.port());
        let error = ask(&Transport::new(), &url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect);
        assert_eq!(error.timeout(), None);
        assert_eq!(
            error.to_string(),
            format!("cannot connect to {host}:{}: connection refused", address.port())
        );
    }
}

#[tokio::test]
async fn unknown_hosts_are_resolve_errors() {
    let error = ask(&Transport::new(), "http://nobody.invalid/v1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Resolve);
    assert_eq!(
        error.to_string(),
        "cannot connect to nobody.invalid:80: the host name could not be resolved"
    );
}

/// A host name with several addresses, of which only one answers.
#[tokio::test]
async fn all_addresses_of_a_host_are_tried() {
    let server = SocketServer::start(Reply::text("hello")).await.unwrap();
    let url = format!("http://localhost:{}/v1/chat/completions", server.address().port());
    ask(&Transport::new(), &url).await.unwrap();
}

#[tokio::test]
async fn closed_new_connections_are_not_retried() {
    let server = SocketServer::start(Script::new().reply(Reply::hang_up()).reply(Reply::reset()))
        .await
        .unwrap();
    let transport = Transport::new();
    for verb in ["closed", "reset"] {
        let error = ask(&transport, &url(&server)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        let text = format!("{} {verb} the connection before responding", server.address());
        assert_eq!(error.to_string(), text);
    }
    // New connections, so neither request was repeated.
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn non_http_responses_are_protocol_errors() {
    async fn check(said: &'static [u8], text: &str) {
        let (address, _task) = serve(move |mut stream: TcpStream, _| async move {
            hear(&mut stream).await;
            say(&mut stream, said).await;
            hear(&mut stream).await;
        })
        .await;
        let error = ask(&Transport::new(), &format!("http://{address}")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{}", whole(&error));
        assert_eq!(error.to_string(), text.replace("HOST", &address.to_string()));
    }
    check(b"SSH-2.0-OpenSSH\r\n", "the response from HOST is not HTTP/1.1").await;
    check(b"HTTP/3.0 200 OK\r\n\r\n", "the response from HOST is not HTTP/1.1").await;
    check(b"{\"error\": \"no\"}\n\n", "the response from HOST is not HTTP/1.1").await;
    // The alert that a TLS server sends in reply to plain text.
    check(b"\x15\x03\x01\x00\x02\x02\x46", "HOST speaks TLS: use https:// in its URL").await;
}

#[tokio::test]
async fn endless_heads_are_protocol_errors() {
    let (address, _task) = serve(async |mut stream: TcpStream, number| {
        hear(&mut stream).await;
        say(&mut stream, "HTTP/1.1 200 OK\r\n").await;
        match number {
            // Many headers, much in all, one long line, and informational answers.
            1 => say(&mut stream, "x: y\r\n".repeat(200) + "\r\n").await,
            2 => loop {
                let header = format!("x: {}\r\n", "y".repeat(1000));
                if tokio::io::AsyncWriteExt::write_all(&mut stream, header.as_bytes())
                    .await
                    .is_err()
                {
                    break;
                }
            },
            _ => loop {
                if tokio::io::AsyncWriteExt::write_all(&mut stream, &[b'y'; 1000]).await.is_err() {
                    break;
                }
            },
        }
    })
    .await;
    let transport = Transport::new();
    for _ in 0..3 {
        let error = ask(&transport, &format!("http://{address}")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{}", whole(&error));
        let what = format!("the head of the response from {address}");
        assert_eq!(
            error.to_string(),
            format!("{what} exceeds the limit of 65536 bytes or 100 headers")
        );
    }
}

#[tokio::test]
async fn informational_responses_are_skipped() {
    let (address, _task) = serve(async |mut stream: TcpStream, _| {
        while hear(&mut stream).await.is_some() {
            let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";
            say(&mut stream, early).await;
            tokio::task::yield_now().await;
            say(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
        }
    })
    .await;
    let transport = Transport::new();
    for _ in 0..2 {
        assert_eq!(ask(&transport, &format!("http://{address}")).await.unwrap(), "hi");
    }
    assert_eq!(transport.idle_connections(), 1);
}

#[tokio::test]
async fn redirects_and_errors_are_responses() {
    let script = Script::new()
        .reply(Reply::body(307, "text/plain", "").header("location", "http://elsewhere.invalid/"))
        .reply(Reply::error(503, "Loading model"));
    let server = SocketServer::start(script).await.unwrap();
    let transport = Transport::new();
    let response = post(&transport, &url(&server)).await.unwrap();
    assert_eq!(response.status(), 307);
    assert_eq!(response.headers()["location"], "http://elsewhere.invalid/");
    let response = post(&transport, &url(&server)).await.unwrap();
    assert_eq!(response.status(), 503);
    assert!(!read(response).await.unwrap().is_empty());
}

#[tokio::test]
async fn invalid_uris_are_rejected() {
    async fn check(uri: &str, text: &str) {
        let request = Request::post(uri).body(RequestBody::empty()).unwrap();
        let error = send(&Transport::new(), request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidUri);
        assert_eq!(error.to_string(), text);
        assert!(!format!("{error:?}").contains("geheim"));
    }
    check("/v1/models", "the request URI must be absolute and start with http://").await;
    check("ftp://host/", "the request URI must be http or https, not ftp").await;
    check(
        "http://me:geheim@host/",
        "the request URI contains a user name or password (use a header instead): host:80",
    )
    .await;
    for authority in ["localhost:99999", "localhost:80a", "localhost:-1", "[::1]:65536", "a:aa"] {
        let text = format!("the request URI has an invalid port: {authority}");
        check(&format!("http://{authority}/v1"), &text).await;
    }
}

/// The head is a response, because its status may say more than its body.
#[tokio::test]
async fn unrequested_transfer_codings_are_errors() {
    async fn check(head: &'static str, outcome: Result<&str, &str>) {
        let (address, _task) = serve(move |mut stream: TcpStream, _| async move {
            hear(&mut stream).await;
            say(&mut stream, format!("HTTP/1.1 {head}\r\n\r\n2\r\nhi\r\n0\r\n\r\n")).await;
        })
        .await;
        let transport = Transport::new();
        let response = post(&transport, &format!("http://{address}")).await.unwrap();
        assert_eq!(response.status().as_str(), &head[..3]);
        let mut body = response.into_body();
        let read = body.chunk().await;
        let Err(error) = &read else {
            assert_eq!(read.unwrap().unwrap(), outcome.unwrap(), "{head}");
            return;
        };
        assert_eq!((error.kind(), error.received()), (ErrorKind::Protocol, None));
        let coding = outcome.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "the response from {address} has a transfer coding that was not requested: {coding} (check for a \
                 proxy that compresses)"
            )
        );
        assert!(body.chunk().await.unwrap().is_none() && body.received() == 0);
        assert_eq!(transport.idle_connections(), 0);
    }
    check("200 OK\r\ntransfer-encoding: gzip, chunked", Err("gzip")).await;
    check("200 OK\r\ntransfer-encoding: GZip;q=1\r\ntransfer-encoding: chunked", Err("gzip")).await;
    check("502 Bad Gateway\r\ntransfer-encoding: deflate,chunked", Err("deflate")).await;
    check("200 OK\r\ntransfer-encoding: chunked, zstd", Err("zstd")).await;
    check("200 OK\r\ntransfer-encoding: br", Err("br")).await;
    check("200 OK\r\ntransfer-encoding: secret, chunked", Err("an unknown one")).await;
    check("200 OK\r\ntransfer-encoding: ch\u{e4}nked, chunked", Err("an unknown one")).await;
    check("200 OK\r\ntransfer-encoding: Chunked", Ok("hi")).await;
    check("200 OK\r\ntransfer-encoding: , identity, chunked", Ok("hi")).await;
    check("200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked", Ok("hi")).await;
}

#[test]
fn an_empty_port_is_the_default() {
    for uri in ["http://Host/", "http://Host:/", "https://[::1]:/", "http://host:65535"] {
        RequestHead::new(Request::post(uri).body(()).unwrap().into_parts().0).unwrap();
    }
}

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn https_requires_the_tls_feature() {
    let error = ask(&Transport::new(), "https://localhost/").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TlsMissing);
    assert_eq!(
        error.to_string(),
        "cannot connect to localhost:443: enable the feature `tls` to use https"
    );
}
