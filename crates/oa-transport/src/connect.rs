use std::error::Error as StdError;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};
use tower::Service;

use crate::error::Error;
use crate::peer::Peer;
use crate::stream::Stream;

/// Opens connections to peers, encrypted for `https`.
pub(crate) struct Connect {
    dialer: Dialer,
    timeout: Duration,
    #[cfg(feature = "tls")]
    tls: crate::tls::Tls,
}

/// The source of plain streams.
#[derive(Clone)]
pub(crate) enum Dialer {
    Tcp,
    Custom(Arc<dyn Dial>),
}

/// A custom connector, type-erased.
pub(crate) trait Dial: Send + Sync {
    fn dial(&self, uri: Uri) -> Pin<Box<dyn Future<Output = Result<Stream, Source>> + Send>>;
}

type Source = Box<dyn StdError + Send + Sync>;

impl Connect {
    pub(crate) fn new(
        dialer: Dialer,
        timeout: Duration,
        #[cfg(feature = "tls")] roots: oa_tls::Roots,
    ) -> Self {
        Self {
            dialer,
            timeout,
            #[cfg(feature = "tls")]
            tls: crate::tls::Tls::new(roots),
        }
    }

    pub(crate) async fn connect(&self, peer: &Peer) -> Result<Stream, Error> {
        #[cfg(not(feature = "tls"))]
        if peer.is_https() {
            return Err(Error::tls_missing(peer));
        }
        #[cfg(feature = "tls")]
        let begun = Instant::now();
        let stream = timeout(self.timeout, self.open(peer))
            .await
            .unwrap_or_else(|_| Err(Error::connect_timeout(peer, self.timeout)))?;
        #[cfg(feature = "tls")]
        if peer.is_https() {
            let left = self.timeout.saturating_sub(begun.elapsed());
            return timeout(left, self.tls.encrypt(peer, stream))
                .await
                .unwrap_or_else(|_| Err(Error::tls_timeout(peer, self.timeout)));
        }
        Ok(stream)
    }

    async fn open(&self, peer: &Peer) -> Result<Stream, Error> {
        match &self.dialer {
            Dialer::Tcp => self.tcp(peer).await.map(Stream::Tcp),
            Dialer::Custom(connector) => {
                connector.dial(peer.uri()).await.map_err(|source| Error::connect(peer, source))
            }
        }
    }

    /// Tries the addresses in turn, each with its share of the time limit, so that a silent one does not keep
    /// the others from being tried.
    async fn tcp(&self, peer: &Peer) -> Result<TcpStream, Error> {
        let begun = Instant::now();
        let addresses: Vec<SocketAddr> = lookup_host((peer.bare_host(), peer.port()))
            .await
            .map_err(|source| Error::resolve(peer, source))?
            .collect();
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
        for (tried, address) in addresses.iter().enumerate() {
            // Of 5 seconds, the first of two addresses gets 2.5. If it refuses at once, the second gets all
            // 5; if it is silent, the second gets 2.5.
            let left = self.timeout.saturating_sub(begun.elapsed());
            let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Send small requests without delay. Not all systems support it.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => failure = error,
                // The last share is all the time that was left.
                Err(_) if tried + 1 == addresses.len() => {
                    return Err(Error::connect_timeout(peer, self.timeout));
                }
                Err(_) => (),
            }
        }
        Err(Error::connect(peer, failure.into()))
    }
}

impl Dialer {
    pub(crate) fn custom<C>(connector: C) -> Self
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        C::Error: Into<Source>,
        C::Future: Send,
    {
        Self::Custom(Arc::new(Custom(connector)))
    }
}

struct Custom<C>(C);

impl<C> Dial for Custom<C>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    C::Error: Into<Source>,
    C::Future: Send,
{
    fn dial(&self, uri: Uri) -> Pin<Box<dyn Future<Output = Result<Stream, Source>> + Send>> {
        let mut connector = self.0.clone();
        Box::pin(async move {
            // A clone of a service need not be ready even if the original is, so this one is asked.
            poll_fn(|cx| connector.poll_ready(cx)).await.map_err(Into::into)?;
            let stream = connector.call(uri).await.map_err(Into::into)?;
            Ok(Stream::other(stream))
        })
    }
}
