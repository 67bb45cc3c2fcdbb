//! The certificates that a client trusts, the system's and its own, as a rustls configuration.
//!
//! [`Roots`] are parsed when a client is configured, so that a bad certificate is detected at that point. [`Trust`]
//! reads the system's certificates when the first connection needs them.
//!
//! # When to use this crate directly
//!
//! To verify servers in your own client. `oa-transport` and `oa-session-postgres` use it with their feature `tls`.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Certificates that are trusted in addition to the system's.
#[derive(Clone, Default)]
pub struct Roots(Vec<CertificateDer<'static>>);

impl Roots {
    /// Parses PEM certificates, at least one. Other sections, such as keys, are ignored.
    ///
    /// # Errors
    ///
    /// If there is none, or one cannot be trusted.
    pub fn from_pem(pem: &[u8]) -> Result<Self, InvalidCertificates> {
        let roots = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| InvalidCertificates(Some(error.into())))?;
        if roots.is_empty() {
            return Err(InvalidCertificates(None));
        }
        // PEM may contain anything. Validate now, so that a bad certificate is a configuration error rather than
        // a connection error later.
        let mut store = RootCertStore::empty();
        for root in &roots {
            store.add(root.clone()).map_err(|error| InvalidCertificates(Some(error.into())))?;
        }
        Ok(Self(roots))
    }

    /// Adds these certificates.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Roots({})", self.0.len())
    }
}

/// PEM data that is not a list of certificates.
#[derive(Debug)]
pub struct InvalidCertificates(Option<Box<dyn Error + Send + Sync>>);

impl InvalidCertificates {
    /// Returns the cause, for an error whose own message has the context.
    #[must_use]
    pub fn into_source(self) -> Option<Box<dyn Error + Send + Sync>> {
        self.0
    }
}

impl fmt::Display for InvalidCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Some(_) => "a root certificate is invalid",
            None => "the PEM data contains no root certificate",
        })
    }
}

impl Error for InvalidCertificates {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.as_deref().map(|error| error as _)
    }
}

/// The certificates that a client trusts, and the protocol that it speaks. Clones share what was loaded.
#[derive(Clone)]
pub struct Trust(Arc<Inner>);

struct Inner {
    roots: Roots,
    protocol: &'static [u8],
    loaded: Mutex<Option<Arc<ClientConfig>>>,
}

impl Trust {
    /// Trusts the system's certificates and these. `protocol` is the name that the handshake offers (ALPN, RFC 7301),
    /// such as `http/1.1`.
    #[must_use]
    pub fn new(roots: Roots, protocol: &'static [u8]) -> Self {
        Self(Arc::new(Inner { roots, protocol, loaded: Mutex::new(None) }))
    }

    /// Returns the configuration of handshakes, if it was loaded.
    #[must_use]
    pub fn loaded(&self) -> Option<Arc<ClientConfig>> {
        // Called from async code, so it does not wait for a thread that is loading.
        self.0.loaded.try_lock().ok()?.clone()
    }

    /// Returns the configuration of handshakes. The first call reads the system's certificates, which are files: call
    /// it on a thread for blocking work unless it [is loaded](Self::loaded).
    ///
    /// # Errors
    ///
    /// If no certificate is trusted: the system's cannot be read, and there are no others. The next call tries again.
    pub fn load(&self) -> io::Result<Arc<ClientConfig>> {
        let mut loaded = self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = &*loaded {
            return Ok(Arc::clone(config));
        }
        // Under the lock, so that connections opened at the same time read the files once.
        let config = trusting_the_system_and(&self.0.roots, self.0.protocol)?;
        Ok(Arc::clone(loaded.insert(config)))
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").field("roots", &self.0.roots).finish_non_exhaustive()
    }
}

fn trusting_the_system_and(own: &Roots, protocol: &[u8]) -> io::Result<Arc<ClientConfig>> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    for certificate in &own.0 {
        roots.add(certificate.clone()).map_err(io::Error::other)?;
    }
    // Some systems contain certificates that cannot be parsed.
    roots.add_parsable_certificates(found.certs);
    // One unreadable file among many is no reason to fail; it is the error only if nothing was found.
    if roots.is_empty() {
        return Err(found.errors.into_iter().next().map_or_else(
            || io::Error::new(io::ErrorKind::NotFound, "the system has no root certificates"),
            io::Error::other,
        ));
    }
    // The provider is named, because rustls' default is a global that the program may set or leave unset.
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}
