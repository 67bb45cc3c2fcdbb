use std::io;
use std::sync::Arc;

use oa_tls::{Roots, Trust};
use tokio::task::spawn_blocking;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, CertificateError, ClientConfig};

use crate::error::Error;
use crate::peer::Peer;
use crate::stream::Stream;

/// Encrypts streams, trusting the system's certificates and the user's.
pub(crate) struct Tls(Trust);

impl Tls {
    pub(crate) fn new(roots: Roots) -> Self {
        Self(Trust::new(roots, b"http/1.1"))
    }

    async fn config(&self) -> io::Result<Arc<ClientConfig>> {
        if let Some(config) = self.0.loaded() {
            return Ok(config);
        }
        // The system's certificates are files. If this future is dropped, the thread still finishes, and the
        // next connection finds them loaded.
        let trust = self.0.clone();
        spawn_blocking(move || trust.load())
            .await
            .unwrap_or_else(|panic| Err(io::Error::other(panic)))
    }

    pub(crate) async fn encrypt(&self, peer: &Peer, stream: Stream) -> Result<Stream, Error> {
        let config = self.config().await.map_err(|error| {
            Error::tls(peer, ": no root certificates could be loaded", Some(error.into()))
        })?;
        // IP addresses are names, too: a certificate can be issued for one.
        let name = ServerName::try_from(peer.bare_host().to_owned()).map_err(|error| {
            Error::tls(peer, ": TLS cannot be used with this host name", Some(error.into()))
        })?;
        let stream = TlsConnector::from(config).connect(name, stream).await.map_err(|error| {
            let why = match error.get_ref().and_then(|error| error.downcast_ref()) {
                Some(rustls::Error::InvalidMessage(_)) => ": it does not speak TLS",
                Some(rustls::Error::InvalidCertificate(error)) => why_not_trusted(error),
                _ if error.kind() == io::ErrorKind::UnexpectedEof => ": it closed the connection",
                _ => "",
            };
            Error::tls(peer, why, Some(error.into()))
        })?;
        Ok(Stream::other(stream))
    }
}

/// Returns the problem with a server's certificate. The operator of the server can renew it; the caller can
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
