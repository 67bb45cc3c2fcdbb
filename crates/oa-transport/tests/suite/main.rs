//! The transport through its public interface.

mod body;
mod connector;
mod errors;
mod key;
mod request;
mod reuse;
mod timeouts;
#[cfg(feature = "tls")]
mod tls;

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use oa_testkit::SocketServer;
use oa_transport::{Error, RequestBody, ResponseBody, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tower::Service;

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// The endpoint of the testkit's server.
pub(crate) fn url(server: &SocketServer) -> String {
    format!("{}/chat/completions", server.base_url())
}

/// Sends a small request.
pub(crate) async fn post(
    transport: &Transport,
    url: &str,
) -> Result<Response<ResponseBody>, Error> {
    let request = Request::post(url).body(RequestBody::new(r#"{"stream": true}"#));
    let request = request.expect("a URL");
    send(transport, request).await
}

pub(crate) async fn send(
    transport: &Transport,
    request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    tokio::time::timeout(LONG, transport.clone().call(request)).await.expect("an answer in time")
}

/// Reads a body to its end.
pub(crate) async fn read(response: Response<ResponseBody>) -> Result<Bytes, Error> {
    let body = tokio::time::timeout(LONG, response.into_body().collect()).await;
    Ok(body.expect("the end in time")?.to_bytes())
}

/// Sends a small request and reads the response.
pub(crate) async fn ask(transport: &Transport, url: &str) -> Result<Bytes, Error> {
    read(post(transport, url).await?).await
}

/// Serves each connection with `rule`, which receives its number, starting at 1.
pub(crate) async fn serve<F, Fut>(rule: F) -> (SocketAddr, JoinHandle<()>)
where
    F: Fn(TcpStream, usize) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    let task = tokio::spawn(async move {
        for number in 1.. {
            let (stream, _) = listener.accept().await.expect("a client");
            stream.set_nodelay(true).expect("a socket");
            tokio::spawn(rule(stream, number));
        }
    });
    (address, task)
}

/// Reads the head of a request and its body, if it has a length; `None` at the end.
pub(crate) async fn hear(stream: &mut TcpStream) -> Option<String> {
    let mut heard = Vec::new();
    loop {
        let mut byte = [0];
        if stream.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        heard.extend(byte);
        if heard.ends_with(b"\r\n\r\n") {
            break;
        }
    }
    let head = String::from_utf8(heard).expect("text");
    let length = head
        .to_ascii_lowercase()
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.lines().next()?.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(head + &String::from_utf8(body).expect("text"))
}

/// Writes text, ignoring errors.
pub(crate) async fn say(stream: &mut TcpStream, text: impl AsRef<[u8]>) {
    let _ = stream.write_all(text.as_ref()).await;
}

/// Returns the messages of an error and its sources.
pub(crate) fn whole(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
