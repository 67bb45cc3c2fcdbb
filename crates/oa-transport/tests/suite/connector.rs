use std::future::{Ready, pending, ready};
use std::io;
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::TokioIo;
use oa_transport::{ErrorKind, TimeoutKind, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::TcpListener;
use tower::{ServiceExt, service_fn};

use crate::{ask, whole};

#[tokio::test(start_paused = true)]
async fn connectors_may_return_any_stream() {
    let connector = service_fn(|uri: Uri| async move {
        assert_eq!(uri, "http://model.test:80/");
        let (near, mut far) = duplex(64);
        tokio::spawn(async move {
            let mut heard = Vec::new();
            while !heard.ends_with(b"}") {
                far.read_buf(&mut heard).await.unwrap();
            }
            let text = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
            far.write_all(text.as_bytes()).await.unwrap();
            assert_eq!(far.read(&mut [0]).await.unwrap(), 0);
        });
        Ok::<DuplexStream, io::Error>(near)
    });
    let transport = Transport::with_connector(connector);
    assert_eq!(ask(&transport, "http://model.test/v1").await.unwrap(), "hello");
    assert_eq!(transport.idle_connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn connect_timeout_bounds_connectors() {
    for limit in [None, Some(Duration::from_millis(1500))] {
        let connector = service_fn(|_: Uri| pending::<Result<DuplexStream, io::Error>>());
        let transport = match limit {
            None => Transport::with_connector(connector),
            Some(limit) => Transport::builder().connect_timeout(limit).connector(connector).build(),
        };
        let begun = tokio::time::Instant::now();
        let error = ask(&transport, "http://model.test:8080/v1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect);
        assert_eq!(error.timeout(), Some(TimeoutKind::Connect));
        let limit = limit.unwrap_or(Duration::from_secs(5));
        assert_eq!(begun.elapsed(), limit);
        assert_eq!(
            error.to_string(),
            format!("cannot connect to model.test:8080: timed out after {limit:?}")
        );
    }
}

#[tokio::test]
async fn connector_errors_become_sources() {
    let connector = service_fn(|_: Uri| -> Ready<Result<DuplexStream, &str>> {
        ready(Err("the proxy wants a password"))
    });
    let error = ask(&Transport::with_connector(connector), "http://model.test/").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert_eq!(whole(&error), "cannot connect to model.test:80: the proxy wants a password");
}

/// As in the guide: the tunnel of a library, through a proxy that wants a password.
#[tokio::test]
async fn tunnels_go_through_proxies() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy: Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            stream.read_buf(&mut asked).await.unwrap();
        }
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
        // The server at the other end of the tunnel.
        let mut heard = Vec::new();
        while !heard.ends_with(b"}") {
            stream.read_buf(&mut heard).await.unwrap();
        }
        let text = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        stream.write_all(text.as_bytes()).await.unwrap();
        [asked, heard].map(|bytes| String::from_utf8(bytes).unwrap().to_ascii_lowercase())
    });
    let tunnel = Tunnel::new(proxy, HttpConnector::new())
        .with_auth(HeaderValue::from_static("Basic dXNlcjpwYXNz"))
        .map_response(TokioIo::into_inner);
    let transport = Transport::with_connector(tunnel);
    assert_eq!(ask(&transport, "http://model.test:9000/v1").await.unwrap(), "hello");
    let [asked, heard] = serving.await.unwrap();
    assert!(asked.starts_with("connect model.test:9000 http/1.1\r\n"), "{asked}");
    assert!(asked.contains("proxy-authorization: basic dxnlcjpwyxnz\r\n"), "{asked}");
    assert!(heard.contains("host: model.test:9000\r\n"), "{heard}");
    assert!(!heard.contains("proxy"), "the password is for the proxy alone: {heard}");
}
