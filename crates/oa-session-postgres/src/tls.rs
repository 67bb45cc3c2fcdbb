use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use oa_session::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::invalid;

/// Certificates trusted in addition to the system's.
pub(crate) type Roots = Vec<CertificateDer<'static>>;

/// Parses PEM certificates: at least one, and nothing else.
pub(crate) fn roots_from_pem(pem: &[u8]) -> Result<Roots, Error> {
    const MESSAGE: &str = "the root certificates are not PEM certificates";
    let roots = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Roots, _>>()
        .map_err(|error| invalid(MESSAGE).with_source(error))?;
    if roots.is_empty() {
        return Err(invalid(MESSAGE));
    }
    // PEM may contain anything. Validate now, so that a bad certificate is not a connection error later.
    let mut store = RootCertStore::empty();
    for root in &roots {
        store.add(root.clone()).map_err(|error| invalid(MESSAGE).with_source(error))?;
    }
    Ok(roots)
}

/// The certificates that a store trusts.
pub(crate) struct Trust {
    roots: Roots,
    /// Loaded on first use; a failed load is retried.
    config: OnceCell<Arc<ClientConfig>>,
}

impl Trust {
    pub(crate) fn new(roots: Roots) -> Self {
        Self { roots, config: OnceCell::new() }
    }

    /// Returns what encrypts a connection.
    pub(crate) async fn encryption(&self) -> io::Result<Encryption> {
        let load = || async {
            let roots = self.roots.clone();
            // Certificates are files: reading them takes a while.
            spawn_blocking(move || trusting_the_system_and(roots))
                .await
                .unwrap_or_else(|panic| Err(io::Error::other(panic)))
        };
        Ok(Encryption(Arc::clone(self.config.get_or_try_init(load).await?)))
    }
}

fn trusting_the_system_and(own: Roots) -> io::Result<Arc<ClientConfig>> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    for certificate in own {
        roots.add(certificate).map_err(io::Error::other)?;
    }
    // Some systems contain certificates that cannot be parsed.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(found.errors.into_iter().next().map_or_else(
            || io::Error::new(io::ErrorKind::NotFound, "the system has no root certificates"),
            io::Error::other,
        ));
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    // Required by servers where TLS starts without asking for it (`sslnegotiation=direct`), ignored by others.
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(Arc::new(config))
}

/// Encrypts connections.
#[derive(Clone)]
pub(crate) struct Encryption(Arc<ClientConfig>);

impl MakeTlsConnect<Socket> for Encryption {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, InvalidDnsNameError> {
        let name = ServerName::try_from(domain.to_owned())?;
        Ok(Handshake { config: Arc::clone(&self.0), name })
    }
}

/// A handshake with a server of this name.
pub(crate) struct Handshake {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        let connecting = TlsConnector::from(self.config).connect(self.name, stream);
        Box::pin(async move { Ok(Encrypted(Box::new(connecting.await?))) })
    }
}

/// An encrypted connection. The names of its server were verified, so passwords are not bound to the channel in addition.
pub(crate) struct Encrypted(Box<client::TlsStream<Socket>>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}
