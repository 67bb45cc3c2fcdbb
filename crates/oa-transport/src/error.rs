use std::error::Error as StdError;
use std::time::Duration;
use std::{fmt, io};

use crate::encryption::Encryption;
use crate::limits::{CHUNK_EXTRAS, MAX_BUFFER, MAX_HEADERS};
use crate::peer::Peer;
use crate::timeout::TimeoutKind;

/// The category of an error.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The response broke off: a reset, or an incomplete body.
    Broken,
    /// The peer closed or reset the connection before responding.
    Closed,
    /// No connection could be made: refused, unreachable, timed out.
    Connect,
    /// An invalid root certificate.
    InvalidCertificate,
    /// An [`ApiKey`](crate::ApiKey) that cannot be sent in a header.
    InvalidKey,
    /// A request URI without scheme or host, with an unknown scheme, or with a user name.
    InvalidUri,
    /// The response is not HTTP/1.1, its head is too large, or its body has a transfer coding besides `chunked`.
    Protocol,
    /// The host name could not be resolved.
    Resolve,
    /// The connection could not be encrypted: the handshake failed, or the certificate is not trusted.
    Tls,
    /// An `https` URI without the feature `tls`.
    TlsMissing,
}

/// A transport error.
///
/// The message names host and port but never contains header values. The types of its sources are not stable.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    received: Option<u64>,
    timeout: Option<TimeoutKind>,
    source: Option<Source>,
}

type Source = Box<dyn StdError + Send + Sync>;

/// The part of a response head received before the connection failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Heard {
    Nothing,
    Bytes,
    /// The first byte was the start of a TLS record.
    Tls,
}

impl Error {
    pub(crate) fn broken(
        peer: &Peer,
        received: u64,
        announced: Option<u64>,
        source: hyper::Error,
    ) -> Self {
        use io::ErrorKind as Io;
        // hyper's decoder reports a chunk size that is no number as `InvalidInput`, and one that is too large
        // as `InvalidData`, like extensions and trailers that are. A sum cannot overflow: `received` and the rest make
        // up the content length.
        let how = match (io_kind(&source), announced) {
            _ if encryption_failure(&source).is_some() => "the encryption failed".to_owned(),
            (Some(Io::ConnectionReset | Io::ConnectionAborted | Io::BrokenPipe), _) => {
                "connection reset".to_owned()
            }
            (Some(Io::UnexpectedEof), Some(rest)) => {
                format!("connection closed, {} bytes expected", received + rest)
            }
            (Some(Io::UnexpectedEof), None) => "connection closed before the end".to_owned(),
            (Some(Io::InvalidInput), _) => "malformed chunk".to_owned(),
            (Some(Io::InvalidData), _) => {
                format!(
                    "malformed chunk, or more than {CHUNK_EXTRAS} bytes of chunk extensions or trailers"
                )
            }
            _ => "connection failed".to_owned(),
        };
        let message = format!("the response from {peer} broke off after {received} bytes: {how}");
        let mut error = Self::new(ErrorKind::Broken, message).with_source(source);
        error.0.received = Some(received);
        error
    }

    /// Creates the error for a body with a transfer coding that cannot be decoded.
    pub(crate) fn coding(peer: &Peer, coding: &str) -> Self {
        let message = format!(
            "the response from {peer} has a transfer coding that was not requested: {coding} (check for a proxy \
             that compresses)"
        );
        Self::new(ErrorKind::Protocol, message)
    }

    pub(crate) fn connect(peer: &Peer, source: Source) -> Self {
        use io::ErrorKind as Io;
        let kind = find::<io::Error>(&*source).map(io::Error::kind);
        let why = match kind {
            Some(Io::AddrNotAvailable) => ": address not available",
            Some(Io::ConnectionRefused) => ": connection refused",
            Some(Io::ConnectionReset) => ": connection reset",
            Some(Io::HostUnreachable) => ": host unreachable",
            Some(Io::NetworkUnreachable) => ": network unreachable",
            Some(Io::PermissionDenied) => ": permission denied",
            Some(Io::TimedOut) => ": timed out",
            _ => "",
        };
        let message = format!("cannot connect to {peer}{why}");
        let mut error = Self::new(ErrorKind::Connect, message);
        error.0.source = Some(source);
        error
    }

    pub(crate) fn connect_timeout(peer: &Peer, limit: Duration) -> Self {
        let message = format!("cannot connect to {peer}: timed out after {limit:?}");
        let mut error = Self::new(ErrorKind::Connect, message);
        error.0.timeout = Some(TimeoutKind::Connect);
        error
    }

    /// Creates the error for a connection that failed before the response head was complete.
    pub(crate) fn head(peer: &Peer, heard: Heard, source: hyper::Error) -> Self {
        let encryption = encryption_failure(&source);
        let reset = matches!(
            io_kind(&source),
            Some(io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted)
        );
        let (kind, message) = match (source.is_parse(), heard) {
            // In TLS 1.3, the server judges the client after the client's part of the handshake.
            (false, _) if encryption == Some(Encryption::NeedsCertificate) => {
                let why = ": it requires a client certificate, which is not supported";
                (ErrorKind::Tls, unencrypted(peer, why))
            }
            (false, _) if encryption.is_some() => (
                ErrorKind::Closed,
                format!("the encryption of the connection to {peer} failed before the response"),
            ),
            // A TLS server answers plain HTTP with an alert, which is no status line.
            (true, Heard::Tls) => {
                (ErrorKind::Protocol, format!("{peer} speaks TLS: use https:// in its URL"))
            }
            // A method for it exists only on hyper's side of servers.
            (true, _) if source.to_string() == "message head is too large" => (
                ErrorKind::Protocol,
                format!(
                    "the head of the response from {peer} exceeds the limit of {MAX_BUFFER} bytes or {MAX_HEADERS} \
                     headers"
                ),
            ),
            (true, _) => (ErrorKind::Protocol, format!("the response from {peer} is not HTTP/1.1")),
            (false, Heard::Nothing) if reset => {
                (ErrorKind::Closed, format!("{peer} reset the connection before responding"))
            }
            (false, Heard::Nothing) => {
                (ErrorKind::Closed, format!("{peer} closed the connection before responding"))
            }
            (false, _) => (
                ErrorKind::Closed,
                format!("{peer} closed the connection while sending the response head"),
            ),
        };
        Self::new(kind, message).with_source(source)
    }

    #[cfg(feature = "tls")]
    pub(crate) fn invalid_certificate(error: oa_tls::InvalidCertificates) -> Self {
        let mut invalid = Self::new(ErrorKind::InvalidCertificate, error.to_string());
        invalid.0.source = error.into_source();
        invalid
    }

    pub(crate) fn invalid_key(why: &str) -> Self {
        Self::new(ErrorKind::InvalidKey, why.to_owned())
    }

    pub(crate) fn invalid_uri(why: String) -> Self {
        Self::new(ErrorKind::InvalidUri, why)
    }

    pub(crate) fn resolve(peer: &Peer, source: io::Error) -> Self {
        let message = format!("cannot connect to {peer}: the host name could not be resolved");
        Self::new(ErrorKind::Resolve, message).with_source(source)
    }

    #[cfg(feature = "tls")]
    pub(crate) fn tls(peer: &Peer, why: &str, source: Option<Source>) -> Self {
        let mut error = Self::new(ErrorKind::Tls, unencrypted(peer, why));
        error.0.source = source;
        error
    }

    /// Creates the error for a peer that accepted the connection and did not answer the TLS handshake in time.
    #[cfg(feature = "tls")]
    pub(crate) fn tls_timeout(peer: &Peer, limit: Duration) -> Self {
        let why = format!(": timed out after {limit:?}; it may not speak TLS");
        let mut error = Self::tls(peer, &why, None);
        error.0.timeout = Some(TimeoutKind::Connect);
        error
    }

    #[cfg(not(feature = "tls"))]
    pub(crate) fn tls_missing(peer: &Peer) -> Self {
        Self::new(
            ErrorKind::TlsMissing,
            format!("cannot connect to {peer}: enable the feature `tls` to use https"),
        )
    }

    /// Returns the category of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the number of body bytes received before the response broke off.
    #[must_use]
    pub fn received(&self) -> Option<u64> {
        self.0.received
    }

    /// Returns the timeout that expired, if any. The transport itself has only [`TimeoutKind::Connect`].
    #[must_use]
    pub fn timeout(&self) -> Option<TimeoutKind> {
        self.0.timeout
    }

    fn new(kind: ErrorKind, message: String) -> Self {
        Self(Box::new(Inner { kind, message, received: None, timeout: None, source: None }))
    }

    fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.0.source = Some(source.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|source| &**source as _)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, message, received, timeout, source } = &*self.0;
        let mut error = f.debug_struct("Error");
        error.field("message", message).field("kind", kind);
        if let Some(received) = received {
            error.field("received", received);
        }
        if let Some(timeout) = timeout {
            error.field("timeout", timeout);
        }
        if let Some(source) = source {
            error.field("source", source);
        }
        error.finish()
    }
}

fn unencrypted(peer: &Peer, why: &str) -> String {
    format!("cannot encrypt the connection to {peer}{why}")
}

/// Returns the way in which the encryption of an open connection failed, if that is the cause.
fn encryption_failure(error: &hyper::Error) -> Option<Encryption> {
    find::<io::Error>(error).and_then(Encryption::failure)
}

/// Returns the kind of the underlying I/O error.
pub(crate) fn io_kind(error: &hyper::Error) -> Option<io::ErrorKind> {
    find::<io::Error>(error).map(io::Error::kind)
}

/// Returns the first error of type `E` in a chain of sources.
fn find<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
