use std::fmt;
use std::sync::Arc;

use http::header::{HOST, HeaderMap, HeaderValue};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Request, Uri, Version};

use crate::error::Error;
use crate::peer::Peer;
use crate::request::RequestBody;

/// Everything of a request but its body: looked through once, and
/// [sent](crate::Transport::send) as often as there is something to send. A clone shares it.
///
/// ```
/// use oa_transport::{RequestBody, RequestHead, Transport};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let script = oa_testkit::Script::new().otherwise(oa_testkit::Reply::text("Hello"));
/// # let server = oa_testkit::SocketServer::start(script).await?;
/// # let url = format!("{}/chat/completions", server.base_url());
/// let (parts, ()) = http::Request::post(url).body(())?.into_parts();
/// let head = RequestHead::new(parts)?;
/// let transport = Transport::new();
/// for messages in ["[]", r#"[{"role": "user", "content": "And now?"}]"#] {
///     let body = format!(r#"{{"model": "any", "messages": {messages}, "stream": true}}"#);
///     let response = transport.send(&head, RequestBody::new(body)).await?;
///     assert!(response.status().is_success());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RequestHead(Arc<Written>);

/// As it is written to the wire.
struct Written {
    peer: Arc<Peer>,
    parts: Parts,
}

impl RequestHead {
    /// Looks through a request without its body, by the rules of
    /// [`Transport`](crate::Transport).
    ///
    /// # Errors
    ///
    /// [`InvalidUri`](crate::ErrorKind::InvalidUri).
    pub fn new(parts: Parts) -> Result<Self, Error> {
        let peer = Peer::new(&parts.uri)?;
        let host = peer.host_header();
        Ok(Self::of(parts, Arc::new(peer), host))
    }

    pub(crate) fn of(mut parts: Parts, peer: Arc<Peer>, host: HeaderValue) -> Self {
        let path = parts.uri.path_and_query().cloned();
        parts.uri = path.unwrap_or_else(|| PathAndQuery::from_static("/")).into();
        parts.version = Version::HTTP_11;
        parts.headers.entry(HOST).or_insert(host);
        Self(Arc::new(Written { peer, parts }))
    }

    pub(crate) fn peer(&self) -> &Arc<Peer> {
        &self.0.peer
    }

    /// The whole request.
    pub(crate) fn with(&self, body: RequestBody) -> Request<RequestBody> {
        let Parts { method, uri, headers, extensions, .. } = &self.0.parts;
        let mut request = Request::new(body);
        *request.method_mut() = method.clone();
        *request.uri_mut() = Uri::clone(uri);
        *request.headers_mut() = with_room(headers);
        *request.extensions_mut() = extensions.clone();
        request
    }
}

/// A copy with room for the length that is put to it: a clone has none, and is moved when it grows.
fn with_room(headers: &HeaderMap) -> HeaderMap {
    let mut copy = HeaderMap::with_capacity(headers.len() + 1);
    for (name, value) in headers {
        copy.append(name, value.clone());
    }
    copy
}

/// Tells whom it is for: headers may be secrets.
impl fmt::Debug for RequestHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHead")
            .field("method", &self.0.parts.method)
            .field("peer", &self.0.peer)
            .finish_non_exhaustive()
    }
}
