use bytes::Bytes;
use http::Request;
use http_body::Body;
use http_body_util::BodyExt;
use oa_testkit::{Reply, Script, SocketServer};
use oa_transport::{ErrorKind, RequestBody, RequestHead, Transport};
use tokio::net::TcpStream;

use crate::{LONG, hear, read, say, send, serve, url};

#[tokio::test]
async fn body_yields_its_segments_in_order() {
    let segments: Vec<Bytes> = ["", "ab", "", "c", ""].map(Bytes::from).into();
    let mut body = RequestBody::from_segments(segments.clone());
    assert_eq!(body.len(), 3);
    assert!(!body.is_empty());
    assert_eq!(body.segments(), segments);
    assert_eq!(body.size_hint().exact(), Some(3));
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "ab");
    assert_eq!(body.size_hint().exact(), Some(1));
    assert!(!body.is_end_stream());
    assert_eq!(body.clone().collect().await.unwrap().to_bytes(), "c");
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "c");
    assert!(body.is_end_stream());
    assert!(body.frame().await.is_none());
    assert_eq!(body.len(), 3);

    assert!(RequestBody::empty().is_empty());
    assert!(RequestBody::empty().is_end_stream());
    assert_eq!(
        format!("{:?}", RequestBody::new("secret")),
        "RequestBody { len: 6, segments: 1, .. }"
    );
}

#[tokio::test]
async fn requests_on_the_wire() {
    async fn check(request: Request<RequestBody>, expected: &str) {
        let (heard, mut hearing) = tokio::sync::mpsc::unbounded_channel();
        let (address, _task) = serve(move |mut stream: TcpStream, _| {
            let heard = heard.clone();
            async move {
                heard.send(hear(&mut stream).await.unwrap()).unwrap();
                say(&mut stream, "HTTP/1.1 204 No Content\r\n\r\n").await;
            }
        })
        .await;
        let (mut parts, body) = request.into_parts();
        parts.uri = parts.uri.to_string().replace("host:1", &address.to_string()).parse().unwrap();
        let request = Request::from_parts(parts, body);
        read(send(&Transport::new(), request).await.unwrap()).await.unwrap();
        let heard = hearing.recv().await.unwrap();
        assert_eq!(heard, expected.replace("host:1", &address.to_string()));
    }
    check(
        Request::post("http://host:1/v1/chat?x=1#y")
            .header("x-a", "b")
            .body(RequestBody::from_segments(vec!["{".into(), "}".into()]))
            .unwrap(),
        "POST /v1/chat?x=1 HTTP/1.1\r\nx-a: b\r\nhost: host:1\r\ncontent-length: 2\r\n\r\n{}",
    )
    .await;
    check(
        Request::get("http://host:1")
            .version(http::Version::HTTP_2)
            .body(RequestBody::empty())
            .unwrap(),
        "GET / HTTP/1.1\r\nhost: host:1\r\n\r\n",
    )
    .await;
    check(
        Request::get("http://host:1/").header("host", "other").body(RequestBody::empty()).unwrap(),
        "GET / HTTP/1.1\r\nhost: other\r\n\r\n",
    )
    .await;
    // The content length is always that of the body.
    check(
        Request::post("http://host:1/")
            .header("content-length", "7")
            .header("x-a", "b")
            .body(RequestBody::new("{}"))
            .unwrap(),
        "POST / HTTP/1.1\r\ncontent-length: 2\r\nx-a: b\r\nhost: host:1\r\n\r\n{}",
    )
    .await;
    check(
        Request::post("http://host:1/")
            .header("content-length", "7")
            .body(RequestBody::empty())
            .unwrap(),
        "POST / HTTP/1.1\r\nhost: host:1\r\n\r\n",
    )
    .await;
}

/// On a new connection, on a reused one, and again when that turns out to be closed.
#[tokio::test]
async fn resent_heads_are_identical() {
    let (heard, mut hearing) = tokio::sync::mpsc::unbounded_channel();
    let (address, _task) = serve(move |mut stream: TcpStream, number| {
        let heard = heard.clone();
        async move {
            for turn in 1..=3 {
                heard.send(hear(&mut stream).await.unwrap()).unwrap();
                if number == 1 && turn == 3 {
                    return;
                }
                say(&mut stream, "HTTP/1.1 204 No Content\r\n\r\n").await;
            }
        }
    })
    .await;
    let request = Request::post(format!("http://{address}/chat?x=1"))
        .header("x-a", "b")
        .header("x-c", "d")
        .header("x-a", "e")
        .body(());
    let head = RequestHead::new(request.unwrap().into_parts().0).unwrap();
    let transport = Transport::new();
    for _ in 0..3 {
        let answer = transport.send(&head, RequestBody::new("{}"));
        read(tokio::time::timeout(LONG, answer).await.unwrap().unwrap()).await.unwrap();
    }
    let expected = format!(
        "POST /chat?x=1 HTTP/1.1\r\nx-a: b\r\nx-a: e\r\nx-c: d\r\nhost: {address}\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    for _ in 0..4 {
        assert_eq!(hearing.recv().await.unwrap(), expected);
    }
    assert!(hearing.try_recv().is_err());
}

#[test]
fn heads_are_validated_and_hide_headers() {
    let head = |uri: &str| {
        let request = Request::get(uri).header("authorization", "geheim").body(());
        RequestHead::new(request.unwrap().into_parts().0)
    };
    assert_eq!(head("/v1").unwrap_err().kind(), ErrorKind::InvalidUri);
    let shown = format!("{:?}", head("http://host/v1").unwrap());
    assert!(shown.contains("host") && !shown.contains("geheim"), "{shown}");
}

#[tokio::test]
async fn many_segments_arrive_whole() {
    let server = SocketServer::start(Script::new().otherwise(Reply::text("hello"))).await.unwrap();
    let numbers: String = (0..500).map(|number| format!("\"{number}\": {number}, ")).collect();
    let text = Bytes::from(format!("{{{numbers}\"last\": 1}}"));
    let segments: Vec<Bytes> = text.chunks(7).map(|part| text.slice_ref(part)).collect();
    let request = Request::post(url(&server)).body(RequestBody::from_segments(segments)).unwrap();
    read(send(&Transport::new(), request).await.unwrap()).await.unwrap();
    assert_eq!(server.requests()[0].body(), &text);
}
