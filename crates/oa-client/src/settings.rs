//! What the options come to once they are checked.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use oa_aggregate::Quirks;
use oa_hooks::Hooks;
use oa_tools::Registry;
use oa_transport::{ApiKey, Timeouts};
use oa_types::BaseUrl;
use oa_types::wire::ChatRequest;

use crate::options::Limits;
use crate::provider::Provider;
use crate::service::AnyService;

pub(crate) struct Settings {
    /// Why nothing can be asked: there is no model, or what the environment says cannot be used.
    pub(crate) unusable: Option<String>,
    pub(crate) request: ChatRequest,
    pub(crate) base_url: BaseUrl,
    pub(crate) provider: Option<Provider>,
    pub(crate) system_prompt: Option<String>,
    pub(crate) api_key: Option<ApiKey>,
    pub(crate) headers: HeaderMap,
    pub(crate) timeouts: Timeouts,
    pub(crate) connect_timeout: Option<std::time::Duration>,
    pub(crate) limits: Limits,
    pub(crate) quirks: Quirks,
    pub(crate) tools: Registry,
    pub(crate) hooks: Hooks,
    pub(crate) service: AnyService,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentOptions")
            .field("request", &self.request)
            .field("base_url", &self.base_url)
            .field("provider", &self.provider)
            .field("system_prompt", &self.system_prompt)
            .field("api_key", &self.api_key)
            .field("headers", &Masked(&self.headers))
            .field("timeouts", &self.timeouts)
            .field("connect_timeout", &self.connect_timeout)
            .field("limits", &self.limits)
            .field("quirks", &self.quirks)
            .field("hooks", &self.hooks)
            .finish_non_exhaustive()
    }
}

/// Headers without their values: any of them may be a secret.
struct Masked<'a>(&'a HeaderMap);

impl fmt::Debug for Masked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.keys().map(|name| (name, "****"))).finish()
    }
}

/// A header of the user's, checked; its value is marked as a secret.
pub(crate) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let name: HeaderName = name.parse().map_err(|_| format!("not a header name: {name:?}"))?;
    let mut value: HeaderValue = value
        .parse()
        .map_err(|_| format!("the value of header {name} has forbidden characters"))?;
    value.set_sensitive(true);
    Ok((name, value))
}
