use std::fmt;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use oa_mcp_data::{secrets_in_url, split_credentials};
use oa_redact::Secrets;
use oa_transport::{ApiKey, Transport};

use crate::error::Error;

/// The configuration of a server at a URL.
#[derive(Clone)]
pub(crate) struct HttpSpec {
    pub(super) url: String,
    pub(crate) bearer: Option<ApiKey>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) ask: Option<Ask>,
    pub(crate) transport: Transport,
}

type NewKey = Pin<Box<dyn Future<Output = Option<ApiKey>> + Send>>;

/// The callback for a 401.
#[derive(Clone)]
pub(crate) struct Ask(pub(super) Arc<dyn Fn(String) -> NewKey + Send + Sync>);

impl Ask {
    pub(crate) fn new<F, R>(ask: F) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Option<ApiKey>> + Send + 'static,
    {
        Self(Arc::new(move |challenge| Box::pin(ask(challenge))))
    }
}

impl HttpSpec {
    pub(crate) fn new(url: String) -> Self {
        let transport = Transport::new();
        Self { url, bearer: None, headers: Vec::new(), ask: None, transport }
    }

    pub(crate) fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::new();
        if let Some(key) = &self.bearer {
            secrets.add_key(key.expose());
        }
        for (name, value) in &self.headers {
            if let Ok(value) = value.to_str() {
                secrets.add_header(name.as_str(), value);
            }
        }
        secrets_in_url(&self.url).for_each(|part| secrets.add_key(part));
        secrets
    }
}

/// Shows neither the URL's credentials and query nor the values of headers.
impl fmt::Debug for HttpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpSpec")
            .field("url", &split_credentials(&self.url).1)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// Reads a header and marks its value as sensitive.
pub(crate) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Error> {
    let known = HeaderName::from_str(name);
    let known = known.map_err(|_| Error::config("the name of a header has invalid characters"))?;
    let value = HeaderValue::from_str(value);
    let mut value = value.map_err(|_| {
        Error::config(format!("the value of the header {known} has invalid characters"))
    })?;
    value.set_sensitive(true);
    Ok((known, value))
}
