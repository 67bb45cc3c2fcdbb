use std::fmt;
use std::sync::Arc;

use http::header::{CONTENT_LENGTH, HOST, HeaderValue};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Request, Version};

use crate::error::Error;
use crate::peer::Peer;
use crate::request::RequestBody;

/// A request without its body, validated once and [sent](crate::Transport::send) any number of times. Cheap to
/// clone.
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

/// The head as written to the wire.
struct Written {
    peer: Arc<Peer>,
    parts: Parts,
}

impl RequestHead {
    /// Validates a request head by the rules of [`Transport`](crate::Transport).
    ///
    /// # Errors
    ///
    /// [`InvalidUri`](crate::ErrorKind::InvalidUri).
    pub fn new(parts: Parts) -> Result<Self, Error> {
        let peer = Peer::new(&parts.uri).map_err(Error::invalid_uri)?;
        let host = peer.host_header();
        Ok(Self::of(parts, Arc::new(peer), host))
    }

    pub(crate) fn of(mut parts: Parts, peer: Arc<Peer>, host: HeaderValue) -> Self {
        // Servers expect the path alone (RFC 9112, 3.2.1). The version is ours, whatever the caller built.
        let path = parts.uri.path_and_query().cloned();
        parts.uri = path.unwrap_or_else(|| PathAndQuery::from_static("/")).into();
        parts.version = Version::HTTP_11;
        parts.headers.entry(HOST).or_insert(host);
        // Reserves an entry that each request overwrites, because a cloned map has no room to grow.
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        Self(Arc::new(Written { peer, parts }))
    }

    pub(crate) fn peer(&self) -> &Arc<Peer> {
        &self.0.peer
    }

    /// Returns the complete request.
    pub(crate) fn with(&self, body: RequestBody) -> Request<RequestBody> {
        let mut parts = self.0.parts.clone();
        // Without a body there is no length, so a GET goes out without the header.
        if body.is_empty() {
            parts.headers.remove(CONTENT_LENGTH);
        } else {
            parts.headers.insert(CONTENT_LENGTH, body.len().into());
        }
        Request::from_parts(parts, body)
    }
}

/// Shows the destination only, because headers may be secret.
impl fmt::Debug for RequestHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHead")
            .field("method", &self.0.parts.method)
            .field("peer", &self.0.peer)
            .finish_non_exhaustive()
    }
}
