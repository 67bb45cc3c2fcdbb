use std::error::Error as StdError;
use std::fmt;
use std::future::{Future, poll_fn, ready};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::HeaderValue;
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite};
use tower::Service;

use crate::body::ResponseBody;
use crate::coding;
use crate::connect::{Connect, Dialer};
use crate::connection::{Connection, Unanswered};
use crate::error::{Error, Heard, io_kind};
use crate::head::RequestHead;
use crate::peer::Peer;
use crate::pool::Pool;
use crate::request::RequestBody;

/// An HTTP/1.1 client as a tower service. Clones share their idle connections.
///
/// Requests need an absolute URI, `http` or (with the feature `tls`) `https`, without a user name; a missing
/// `Host` header is added. Redirects are not followed, and error statuses are ordinary responses. The
/// environment is not read, including proxy settings: use a [connector](Self::with_connector) for a proxy.
///
/// # Stale connections
///
/// A server may close an idle connection at the moment a request is sent on it. If a reused connection ends
/// without a single byte of a response, the request is sent once more on a new connection, whose outcome is
/// final. Browsers do the same: on an idle connection, an end without a response almost always means that the
/// server closed it before seeing the request. Requests on new connections are never repeated.
#[derive(Clone)]
pub struct Transport {
    shared: Arc<Shared>,
}

struct Shared {
    connect: Connect,
    pool: Arc<Pool>,
    /// The destination of the last request; usually the next one has the same.
    latest: Mutex<Option<Destination>>,
}

/// The data derived from a request's URI.
struct Destination {
    scheme: Option<Scheme>,
    authority: Option<Authority>,
    peer: Arc<Peer>,
    host: HeaderValue,
}

impl Transport {
    /// Creates a transport over TCP with the defaults of [`builder`](Self::builder).
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder with the defaults.
    pub fn builder() -> Builder {
        Builder {
            connect_timeout: Duration::from_secs(5),
            dialer: Dialer::Tcp,
            idle_timeout: Duration::from_secs(60),
            max_idle_per_host: 8,
            #[cfg(feature = "tls")]
            roots: oa_tls::Roots::default(),
        }
    }

    /// Creates a transport that connects with `connector`; see [`Builder::connector`].
    #[must_use]
    pub fn with_connector<C>(connector: C) -> Self
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        C::Error: Into<Box<dyn StdError + Send + Sync>>,
        C::Future: Send,
    {
        Self::builder().connector(connector).build()
    }

    /// Sends a request with a validated head, which saves validation and copies compared with
    /// [`call`](Service::call).
    pub fn send(&self, head: &RequestHead, body: RequestBody) -> ResponseFuture {
        ResponseFuture(Box::pin(Arc::clone(&self.shared).answer(head.clone(), body)))
    }

    /// Returns the number of idle connections, including closed ones not noticed yet.
    #[must_use]
    pub fn idle_connections(&self) -> usize {
        self.shared.pool.len()
    }
}

impl Destination {
    fn new(uri: &Uri) -> Result<Self, Error> {
        let peer = Peer::new(uri).map_err(Error::invalid_uri)?;
        Ok(Self {
            scheme: uri.scheme().cloned(),
            authority: uri.authority().cloned(),
            host: peer.host_header(),
            peer: Arc::new(peer),
        })
    }

    fn is_of(&self, uri: &Uri) -> bool {
        uri.authority() == self.authority.as_ref() && uri.scheme() == self.scheme.as_ref()
    }
}

impl Shared {
    async fn answer(
        self: Arc<Self>,
        head: RequestHead,
        body: RequestBody,
    ) -> Result<Response<ResponseBody>, Error> {
        // At most two attempts: an idle connection first, then a new one, whose outcome is final. The
        // connection of a failed attempt is dropped at the end of this block, before another is opened.
        if let Some(mut connection) = self.pool.take(head.peer()) {
            let mut sent = pin!(connection.send(&head, body.clone()));
            match poll_fn(|cx| connection.poll_head(sent.as_mut(), cx)).await {
                Ok(response) => return Ok(self.wrap(response, connection, &head)),
                Err(error) => {
                    let Unanswered { error, was_sent } = connection.unanswered(error);
                    // A request of which nothing was written is repeated whatever the error is. Otherwise the
                    // model may be at work on it already, unless the server had closed the connection before.
                    if was_sent && !had_been_closed(&connection, &error) {
                        return Err(Error::head(head.peer(), connection.heard(), error));
                    }
                }
            }
        }
        // Boxed separately: the future is large, and most requests do not need it.
        Box::pin(self.answer_anew(head, body)).await
    }

    /// Sends a request on a new connection.
    async fn answer_anew(
        &self,
        head: RequestHead,
        body: RequestBody,
    ) -> Result<Response<ResponseBody>, Error> {
        let peer = head.peer();
        let stream = self.connect.connect(peer).await?;
        let mut connection = Connection::new(stream)
            .await
            .map_err(|error| Error::head(peer, Heard::Nothing, error))?;
        let mut sent = pin!(connection.send(&head, body));
        match poll_fn(|cx| connection.poll_head(sent.as_mut(), cx)).await {
            Ok(response) => Ok(self.wrap(response, connection, &head)),
            Err(error) => {
                // A server that closes a new connection has most likely failed on this very request.
                let Unanswered { error, .. } = connection.unanswered(error);
                Err(Error::head(peer, connection.heard(), error))
            }
        }
    }

    /// Returns the peer of a URI and the value of the `Host` header.
    fn destination(&self, uri: &Uri) -> Result<(Arc<Peer>, HeaderValue), Error> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let destination = match &mut *latest {
            // Scheme and authority decide, not the path. An invalid URI leaves the old entry in place.
            Some(destination) if destination.is_of(uri) => destination,
            other => other.insert(Destination::new(uri)?),
        };
        Ok((Arc::clone(&destination.peer), destination.host.clone()))
    }

    fn wrap(
        &self,
        response: Response<Incoming>,
        connection: Box<Connection>,
        head: &RequestHead,
    ) -> Response<ResponseBody> {
        let (peer, pool) = (Arc::clone(head.peer()), Arc::clone(&self.pool));
        let coding = coding::unrequested(response.headers());
        response.map(|incoming| ResponseBody::new(connection, incoming, peer, pool, coding))
    }
}

impl Service<Request<RequestBody>> for Transport {
    type Response = Response<ResponseBody>;
    type Error = Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> ResponseFuture {
        let (parts, body) = request.into_parts();
        match self.shared.destination(&parts.uri) {
            Ok((peer, host)) => self.send(&RequestHead::of(parts, peer, host), body),
            Err(error) => ResponseFuture(Box::pin(ready(Err(error)))),
        }
    }
}

impl Default for Transport {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("idle_connections", &self.idle_connections())
            .finish_non_exhaustive()
    }
}

/// A builder for [`Transport`].
#[derive(Clone)]
#[must_use = "builders do nothing unless built"]
pub struct Builder {
    connect_timeout: Duration,
    dialer: Dialer,
    idle_timeout: Duration,
    max_idle_per_host: usize,
    #[cfg(feature = "tls")]
    roots: oa_tls::Roots,
}

impl Builder {
    /// Sets the connect timeout, including name resolution and the TLS handshake. The default is 5 seconds.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Connects with `connector` instead of TCP, for example to a Unix socket or through a proxy, with `Tunnel` of
    /// `hyper-util`.
    ///
    /// It receives a URI of scheme, host and port, and returns a byte stream or any error. For `https` URIs the
    /// transport encrypts that stream itself, so a connector cannot forget to; a connector that encrypts in its
    /// own way is used with `http` URIs.
    pub fn connector<C>(mut self, connector: C) -> Self
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        C::Error: Into<Box<dyn StdError + Send + Sync>>,
        C::Future: Send,
    {
        self.dialer = Dialer::custom(connector);
        self
    }

    /// Sets how long an idle connection may be reused. The default is 60 seconds.
    ///
    /// There is no timer: a later request closes the connections that are too old.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets how many idle connections are kept per host and port; 0 keeps none. The default is 8.
    pub fn max_idle_per_host(mut self, connections: usize) -> Self {
        self.max_idle_per_host = connections;
        self
    }

    /// Trusts these PEM certificates in addition to the system's, for example for a self-signed server.
    ///
    /// # Errors
    ///
    /// [`InvalidCertificate`](crate::ErrorKind::InvalidCertificate) if the PEM data contains no certificate or
    /// an invalid one.
    #[cfg(feature = "tls")]
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Result<Self, Error> {
        self.roots
            .extend(oa_tls::Roots::from_pem(pem.as_ref()).map_err(Error::invalid_certificate)?);
        Ok(self)
    }

    /// Builds the transport.
    #[must_use]
    pub fn build(self) -> Transport {
        Transport {
            shared: Arc::new(Shared {
                connect: Connect::new(
                    self.dialer,
                    self.connect_timeout,
                    #[cfg(feature = "tls")]
                    self.roots,
                ),
                pool: Arc::new(Pool::new(self.max_idle_per_host, self.idle_timeout)),
                latest: Mutex::default(),
            }),
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("connect_timeout", &self.connect_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("max_idle_per_host", &self.max_idle_per_host)
            .finish_non_exhaustive()
    }
}

/// A future of a response head.
///
/// It drives its connection itself.
///
/// # Cancel safety
///
/// Dropping it closes the connection. The server may have seen part of the request or all of it.
#[must_use = "futures do nothing unless polled"]
pub struct ResponseFuture(
    Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Error>> + Send>>,
);

impl Future for ResponseFuture {
    type Output = Result<Response<ResponseBody>, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

/// Returns true if a reused connection ended without a byte of a response.
fn had_been_closed(connection: &Connection, error: &hyper::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    // Over TLS, a close without a close_notify alert reads as `UnexpectedEof`; over TCP, hyper sees the end
    // of the stream itself and calls the message incomplete.
    connection.heard() == Heard::Nothing
        && (error.is_incomplete_message()
            || error.is_canceled()
            || matches!(
                io_kind(error),
                Some(BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
            ))
}
