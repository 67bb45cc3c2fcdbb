use std::io;
use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, CertificateError, ClientConfig, RootCertStore};

use crate::error::Error;
use crate::peer::Peer;
use crate::stream::Stream;

/// Certificates trusted in addition to the system's.
pub(crate) type Roots = Vec<CertificateDer<'static>>;

/// Parses PEM certificates: at least one, and nothing else.
pub(crate) fn roots_from_pem(pem: &[u8]) -> Result<Roots, Error> {
    let roots = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Roots, _>>()
        .map_err(|error| Error::invalid_certificate(Some(error.into())))?;
    if roots.is_empty() {
        return Err(Error::invalid_certificate(None));
    }
    // PEM may contain anything. Validate now, so that a bad certificate is a configuration error rather than a
    // connection error later.
    let mut store = RootCertStore::empty();
    for root in &roots {
        store.add(root.clone()).map_err(|error| Error::invalid_certificate(Some(error.into())))?;
    }
    Ok(roots)
}

/// Encrypts streams, trusting the system's certificates and the user's.
pub(crate) struct Tls {
    roots: Roots,
    /// Loaded on first use; a failed load is retried.
    config: OnceCell<Arc<ClientConfig>>,
}

impl Tls {
    pub(crate) fn new(roots: Roots) -> Self {
        Self { roots, config: OnceCell::new() }
    }

    pub(crate) async fn encrypt(&self, peer: &Peer, stream: Stream) -> Result<Stream, Error> {
        let config = self
            .config
            .get_or_try_init(|| async {
                let roots = self.roots.clone();
                // Certificates are files: reading them takes a while.
                spawn_blocking(move || trusting_the_system_and(roots))
                    .await
                    .unwrap_or_else(|panic| Err(io::Error::other(panic)))
            })
            .await
            .map_err(|error| {
                Error::tls(peer, ": no root certificates could be loaded", Some(error.into()))
            })?;
        let name = ServerName::try_from(peer.bare_host().to_owned()).map_err(|error| {
            Error::tls(peer, ": TLS cannot be used with this host name", Some(error.into()))
        })?;
        let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await.map_err(
            |error| {
                let why = match error.get_ref().and_then(|error| error.downcast_ref()) {
                    Some(rustls::Error::InvalidMessage(_)) => ": it does not speak TLS",
                    Some(rustls::Error::InvalidCertificate(error)) => why_not_trusted(error),
                    _ if error.kind() == io::ErrorKind::UnexpectedEof => {
                        ": it closed the connection"
                    }
                    _ => "",
                };
                Error::tls(peer, why, Some(error.into()))
            },
        )?;
        Ok(Stream::Tls(Box::new(stream)))
    }
}

/// Returns what is wrong with a server's certificate. The operator of the server can renew it; the caller can
/// fix the address or trust the issuer.
fn why_not_trusted(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            ": its certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            ": its certificate is not valid yet, or the clock of this machine is wrong"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            ": its certificate is for another host"
        }
        CertificateError::Revoked => ": its certificate was revoked",
        // A bad signature means an issuer with a trusted name but a different key: a different issuer.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            ": the issuer of its certificate is unknown; trust it with root_certificates"
        }
        _ => ": its certificate is not trusted",
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
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
