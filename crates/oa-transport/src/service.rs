use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{Entry, HOST};
use http::uri::PathAndQuery;
use http::{Request, Response, Uri, Version};
use tokio::io::{AsyncRead, AsyncWrite};
use tower::Service;

use crate::body::ResponseBody;
use crate::connect::{Connect, Dialer};
use crate::connection::{Connection, Unanswered};
use crate::error::{Error, Heard, io_kind};
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
}

impl Transport {
    /// Connects by TCP, with the defaults of [`builder`](Self::builder).
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Begins with the defaults, to change some.
    #[must_use]
    pub fn builder() -> Builder {
        Builder {
            connect_timeout: Duration::from_secs(5),
            dialer: Dialer::Tcp,
            idle_timeout: Duration::from_secs(60),
            max_idle_per_host: 8,
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

    /// Returns how many connections lie idle, closed ones that nobody has noticed included.
    #[must_use]
    pub fn idle_connections(&self) -> usize {
        self.shared.pool.len()
    }
}

impl Shared {
    async fn answer(
        self: Arc<Self>,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Error> {
        let (peer, mut request) = prepare(request)?;
        let peer = Arc::new(peer);
        if let Some(mut connection) = self.pool.take(&peer) {
            let again = request.clone();
            match self.send(&peer, &mut connection, request).await {
                Ok(response) => return Ok(self.wrap(response, connection, peer)),
                Err(Unanswered {
                    unsent: Some(unsent),
                    ..
                }) => request = *unsent,
                Err(Unanswered { error, .. }) if was_idle(connection.heard(), &error) => {
                    request = again;
                }
                Err(Unanswered { error, .. }) => {
                    return Err(Error::head(&peer, connection.heard(), error));
                }
            }
        }
        let stream = self.connect.connect(&peer).await?;
        let mut connection = Connection::new(stream)
            .await
            .map_err(|error| Error::head(&peer, Heard::Nothing, error))?;
        match connection.send(request).await {
            Ok(response) => Ok(self.wrap(response, connection, peer)),
            Err(Unanswered { error, .. }) => Err(Error::head(&peer, connection.heard(), error)),
        }
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
        ResponseFuture(Box::pin(Arc::clone(&self.shared).answer(request)))
    }
}
