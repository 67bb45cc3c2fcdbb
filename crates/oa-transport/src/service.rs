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
use crate::connect::{Connect, Dialer};
use crate::connection::{Connection, Unanswered};
use crate::error::{Error, Heard, io_kind};
use crate::head::RequestHead;
use crate::peer::Peer;
use crate::pool::Pool;
use crate::request::RequestBody;

/// HTTP/1.1 as a tower service. Clones share their idle connections.
///
/// A request has an absolute URI, `http` or (with the feature `tls`) `https`, without a user name;
/// `Host` is set if it is missing. An answer is what the server said: redirects are not followed,
/// an error status is an answer like others. Nothing is read from the environment, proxies
/// neither: bring one as a [connector](Self::with_connector).
///
/// # A connection that was closed in the meantime
///
/// A server may close an idle connection in the very moment in which a request is sent on it. If a
/// connection that was used before ends without one byte of an answer, the request is sent once
/// more, on a new connection, and whatever happens then is told. That is the rule of browsers: on a
/// connection that had been idle, an end without an answer means in practice that the server closed
/// before it saw the request. A request on a new connection is never repeated.
#[derive(Clone)]
pub struct Transport {
    shared: Arc<Shared>,
}

struct Shared {
    connect: Connect,
    pool: Arc<Pool>,
    /// Whom the request before was for: mostly the next is for the same.
    latest: Mutex<Option<Whom>>,
}

/// What follows from where a request goes.
struct Whom {
    scheme: Option<Scheme>,
    authority: Option<Authority>,
    peer: Arc<Peer>,
    host: HeaderValue,
}

impl Transport {
    /// Connects by TCP, with the defaults of [`builder`](Self::builder).
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Begins with the defaults, to change some.
    pub fn builder() -> Builder {
        Builder {
            connect_timeout: Duration::from_secs(5),
            dialer: Dialer::Tcp,
            idle_timeout: Duration::from_secs(60),
            max_idle_per_host: 8,
            #[cfg(feature = "tls")]
            roots: Vec::new(),
        }
    }

    /// Connects by `connector`, as [`Builder::connector`] tells.
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

    /// Sends a request whose head was looked through before. It saves that work, and copies, over
    /// [`call`](Service::call).
    pub fn send(&self, head: &RequestHead, body: RequestBody) -> ResponseFuture {
        ResponseFuture(Box::pin(Arc::clone(&self.shared).answer(head.clone(), body)))
    }

    /// Returns how many connections lie idle, closed ones that nobody has noticed included.
    #[must_use]
    pub fn idle_connections(&self) -> usize {
        self.shared.pool.len()
    }
}

impl Whom {
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
        if let Some(mut connection) = self.pool.take(head.peer()) {
            let mut sent = pin!(connection.send(&head, body.clone()));
            match poll_fn(|cx| connection.poll_head(sent.as_mut(), cx)).await {
                Ok(response) => return Ok(self.wrap(response, connection, &head)),
                Err(error) => {
                    let Unanswered { error, was_sent } = connection.unanswered(error);
                    if was_sent && !had_been_closed(&connection, &error) {
                        return Err(Error::head(head.peer(), connection.heard(), error));
                    }
                }
            }
        }
        // In a box of its own: it is large, and most requests need none of it.
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
                let Unanswered { error, .. } = connection.unanswered(error);
                Err(Error::head(peer, connection.heard(), error))
            }
        }
    }

    /// The peer that a URI names, and the value of the `Host` header.
    fn whom(&self, uri: &Uri) -> Result<(Arc<Peer>, HeaderValue), Error> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let whom = match &mut *latest {
            Some(whom) if whom.is_of(uri) => whom,
            other => other.insert(Whom::new(uri)?),
        };
        Ok((Arc::clone(&whom.peer), whom.host.clone()))
    }

    fn wrap(
        &self,
        response: Response<Incoming>,
        connection: Box<Connection>,
        head: &RequestHead,
    ) -> Response<ResponseBody> {
        let (peer, pool) = (Arc::clone(head.peer()), Arc::clone(&self.pool));
        response.map(|incoming| ResponseBody::new(connection, incoming, peer, pool))
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
        match self.shared.whom(&parts.uri) {
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

/// What a [`Transport`] is built from.
#[derive(Clone)]
#[must_use = "builders do nothing unless built"]
pub struct Builder {
    connect_timeout: Duration,
    dialer: Dialer,
    idle_timeout: Duration,
    max_idle_per_host: usize,
    #[cfg(feature = "tls")]
    roots: crate::tls::Roots,
}

impl Builder {
    /// Sets how long connecting may take, with the resolution of the name and the handshake of TLS.
    /// Without this 5 seconds.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Connects by `connector` in place of TCP: through a proxy, to a Unix socket.
    ///
    /// It is asked for a stream of bytes to a URI of scheme, host and port, and says what it likes
    /// if there is none. If the URI is `https` this crate encrypts on top of that stream, so that a
    /// connector need not think of it and cannot forget it; one that encrypts in a way of its own
    /// is used with `http` URIs.
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

    /// Sets for how long an idle connection is kept. Without this 60 seconds.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets how many idle connections are kept to each host and port, none if 0. Without this 8.
    pub fn max_idle_per_host(mut self, connections: usize) -> Self {
        self.max_idle_per_host = connections;
        self
    }

    /// Trusts these certificates, in PEM, beside those that the system trusts: for a server with a
    /// certificate of your own making.
    ///
    /// # Errors
    ///
    /// [`InvalidCertificate`](crate::ErrorKind::InvalidCertificate) if there is none in it, or one
    /// that cannot be read.
    #[cfg(feature = "tls")]
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Result<Self, Error> {
        self.roots.extend(crate::tls::roots_from_pem(pem.as_ref())?);
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

/// The head of an answer, in future.
///
/// It drives its connection itself.
///
/// # Cancel safety
///
/// Dropped, it closes its connection. The server may have seen the request, or a part of it.
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

/// Whether a connection that was used before ended without a byte of an answer.
fn had_been_closed(connection: &Connection, error: &hyper::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    connection.heard() == Heard::Nothing
        && (error.is_incomplete_message()
            || error.is_canceled()
            || matches!(
                io_kind(error),
                Some(BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
            ))
}
