use std::io;

/// A failure of the encryption of an open connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "nothing is encrypted"))]
pub(crate) enum Encryption {
    Failed,
    /// The server wants the client to have a certificate.
    NeedsCertificate,
}

impl Encryption {
    /// Returns the failure that caused an error, if one did.
    #[cfg(feature = "tls")]
    pub(crate) fn failure(error: &io::Error) -> Option<Self> {
        use tokio_rustls::rustls::{AlertDescription, Error};

        Some(match error.get_ref()?.downcast_ref()? {
            Error::AlertReceived(AlertDescription::CertificateRequired) => Self::NeedsCertificate,
            _ => Self::Failed,
        })
    }

    #[cfg(not(feature = "tls"))]
    pub(crate) fn failure(_: &io::Error) -> Option<Self> {
        None
    }
}
