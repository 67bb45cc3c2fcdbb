//! Access to the layer below the client: requests changed in flight, connections counted, bytes inspected.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use open_agent::transport::{Error, RequestBody, ResponseBody, Transport};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower::{ServiceExt, service_fn};

/// Fetches the content of an address.
pub(crate) async fn get(uri: &str) -> Result<(StatusCode, Bytes), Error> {
    let request = Request::get(uri).body(RequestBody::empty()).expect("an address");
    let (head, body) = Transport::new().oneshot(request).await?.into_parts();
    Ok((head.status, body.collect().await?.to_bytes()))
}

/// Requests an answer in one piece although the client wants a stream.
pub(crate) async fn unstreamed(
    request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    let (head, body) = request.into_parts();
    let body = serde_json::from_slice(&body.segments().concat());
    let mut body: Value = body.expect("the client sends JSON");
    let members = body.as_object_mut().expect("the client sends an object");
    members.insert("stream".to_owned(), false.into());
    members.remove("stream_options");
    let body = RequestBody::from(body.to_string());
    Transport::new().oneshot(Request::from_parts(head, body)).await
}

/// A counter of the chunks that held only comments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comments(Arc<AtomicUsize>);

impl Comments {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Sends a request like the default transport, and counts.
    pub(crate) async fn send(
        self,
        request: Request<RequestBody>,
    ) -> Result<Response<impl http_body::Body<Data = Bytes, Error = Error> + Send>, Error> {
        let response = Transport::new().oneshot(request).await?;
        Ok(response.map(|body| {
            body.map_frame(move |frame| {
                let is_comment = frame.data_ref().is_some_and(|data| data.starts_with(b":"));
                self.0.fetch_add(usize::from(is_comment), Ordering::Relaxed);
                frame
            })
        }))
    }
}

/// The exchanges of one transport, in the order of their requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchanges(Arc<Mutex<Vec<Exchange>>>);

/// The bodies of a request and of its response.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) request: Bytes,
    pub(crate) answer: Vec<u8>,
}

impl Exchanges {
    /// Returns those so far, and forgets them.
    pub(crate) fn take(&self) -> Vec<Exchange> {
        std::mem::take(&mut self.lock())
    }

    /// Sends a request like the default transport, and keeps it.
    pub(crate) async fn send(
        self,
        request: Request<RequestBody>,
    ) -> Result<Response<impl http_body::Body<Data = Bytes, Error = Error> + Send>, Error> {
        let sent = request.body().segments().concat().into();
        let place = {
            let mut exchanges = self.lock();
            exchanges.push(Exchange { request: sent, answer: Vec::new() });
            exchanges.len() - 1
        };
        let response = Transport::new().oneshot(request).await?;
        Ok(response.map(|body| {
            body.map_frame(move |frame| {
                if let Some(exchange) = self.lock().get_mut(place)
                    && let Some(data) = frame.data_ref()
                {
                    exchange.answer.extend_from_slice(data);
                }
                frame
            })
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Exchange>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connections of one transport.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections {
    opened: Arc<AtomicUsize>,
    /// Each open connection holds a clone.
    open: Arc<()>,
}

impl Connections {
    /// Creates a transport whose connections are counted here.
    pub(crate) fn transport(&self) -> Transport {
        let Self { opened, open } = self.clone();
        // A weak reference, or the transport itself would count.
        let open = Arc::downgrade(&open);
        Transport::with_connector(service_fn(move |uri: Uri| {
            let (opened, open) = (Arc::clone(&opened), open.upgrade());
            async move {
                let address = uri.authority().map_or("", |authority| authority.as_str());
                let stream = TcpStream::connect(address).await?;
                opened.fetch_add(1, Ordering::Relaxed);
                Ok::<_, io::Error>(Counted { stream, _open: open })
            }
        }))
    }

    /// Returns the number opened so far.
    pub(crate) fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }

    /// Returns the number open now.
    pub(crate) fn open(&self) -> usize {
        Arc::strong_count(&self.open) - 1
    }
}

struct Counted {
    stream: TcpStream,
    _open: Option<Arc<()>>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
