//! One server: its address, key and quirks, and what was learned about it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Uri};
use oa_aggregate::Quirks;
use oa_redact::Secrets;
use oa_transport::ApiKey;
use oa_types::{BaseUrl, ModelName};

use crate::error::{Error, Result};
use crate::learned::Learned;
use crate::provider::Provider;
use crate::server_traits::{KnownModel, ServerTraits};
use crate::service::AnyService;

pub(crate) struct Destination {
    pub(crate) base_url: BaseUrl,
    pub(crate) provider: Option<Provider>,
    /// Its quirks, whatever the model.
    pub(crate) traits: ServerTraits,
    /// A model with known traits.
    pub(crate) known: Option<KnownModel>,
    /// Its own name for the agent's model.
    pub(crate) model: Option<ModelName>,
    pub(crate) api_key: Option<ApiKey>,
    pub(crate) headers: HeaderMap,
    /// The keys that are masked wherever the server repeats them.
    pub(crate) secrets: Secrets,
    pub(crate) quirks: Option<Quirks>,
    pub(crate) connect_timeout: Option<Duration>,
    /// An option that was set and applies only to the built-in transport.
    pub(crate) of_own_transport: Option<&'static str>,
    pub(crate) service: AnyService,
    pub(crate) learned: Learned,
}

impl Destination {
    /// Returns a hint if the base URL may be too short or too long, for requests that the server does not find.
    pub(crate) fn hint(&self) -> Option<String> {
        let base_url = self.base_url.as_str();
        if base_url.ends_with("/chat/completions") {
            return Some(
                "base_url must end before /chat/completions, which is appended".to_owned(),
            );
        }
        let is_digit = |c: char| c.is_ascii_digit();
        let is_version = |it: &str| it.strip_prefix('v').is_some_and(|it| it.starts_with(is_digit));
        // The path alone: `http://v100:8000` is a host with such a graphics card.
        let has_version = base_url.split('/').skip(3).any(is_version);
        let shown = self.shown();
        (!has_version).then(|| format!("base_url is {shown}; most servers need /v1 at the end"))
    }

    /// Returns the base URL, in which some servers want the key, so that it can be shown.
    fn shown(&self) -> Cow<'_, str> {
        self.secrets.mask(self.base_url.as_str())
    }

    /// Returns its quirks with a model.
    pub(crate) fn traits(&self, model: &str) -> &ServerTraits {
        let known = self.known.as_ref().filter(|known| known.name == model);
        known.map_or(&self.traits, |known| &known.traits)
    }

    /// Returns the headers of every request.
    pub(crate) fn all_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let accepted = HeaderValue::from_static("text/event-stream, application/json");
        headers.insert(ACCEPT, accepted);
        let agent = concat!("open-agent/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        if let Some(key) = &self.api_key {
            headers.insert(AUTHORIZATION, key.header_value());
        }
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        headers
    }

    /// Returns the address of a path below the base URL.
    pub(crate) fn at(&self, path: &str) -> Result<Uri> {
        let uri = format!("{}{path}", self.base_url).parse();
        let refuse = |shown| Error::config(format!("the base URL is not a valid address: {shown}"));
        uri.map_err(|_| refuse(self.shown()))
    }

    /// Returns the address of a path from the root of the server.
    pub(crate) fn at_root(&self, path: &str) -> Result<Uri> {
        let base_url = self.base_url.as_str();
        let root = base_url.strip_suffix("/v1").unwrap_or(base_url);
        let address = format!("{root}{path}");
        // Without the slash, the path would be a part of the host.
        let uri = Some(&address).filter(|_| path.starts_with('/')).and_then(|it| it.parse().ok());
        let refuse = || format!("not a valid address: {}", self.secrets.mask(&address));
        uri.ok_or_else(|| Error::config(refuse()))
    }
}

/// Returns the keys of a server; none without one.
pub(crate) fn secrets_of(destination: Option<&Arc<Destination>>) -> &Secrets {
    static NONE: Secrets = Secrets::new();
    destination.map_or(&NONE, |destination| &destination.secrets)
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("base_url", &self.shown())
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("api_key", &self.api_key)
            .field("headers", &Masked(&self.headers))
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

/// Headers without their values: any of them may be a secret.
pub(crate) struct Masked<'a>(pub(crate) &'a HeaderMap);

impl fmt::Debug for Masked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.keys().map(|name| (name, "****"))).finish()
    }
}
