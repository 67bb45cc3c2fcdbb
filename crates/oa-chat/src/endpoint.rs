//! An endpoint and its builder.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use oa_aggregate::Quirks;
use oa_redact::Secrets;
use oa_transport::{ApiKey, RequestBody, Transport};
use oa_types::{BaseUrl, ModelName, Timeout};
use tower::Service;

use crate::destination::{Destination, Masked};
use crate::error::{Error, Result};
use crate::headers::{check_host, header, secrets};
use crate::learned::Learned;
use crate::provider::Provider;
use crate::server_profile::ServerProfile;
use crate::server_traits::{KnownModel, ServerTraits};
use crate::service::AnyService;

/// One model server with its address, key and quirks: a tower service from [`ChatRequest`](crate::ChatRequest) to
/// [`AnswerStream`](crate::AnswerStream). Cheap to clone.
///
/// An agent creates one from its own options. Build one yourself to put several servers or a layer between the agent
/// and its server. The request sets the system prompt, tools and sampling; the endpoint writes them in the format of
/// its provider. It does not retry; [`Retry`](crate::Retry) is a layer around it.
///
/// ```
/// use oa_chat::{ChatRequest, Endpoint};
/// use oa_testkit::{MemoryServer, Reply};
/// use oa_types::Message;
/// use tower::Service;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oa_chat::Result<()> {
/// let mut server = Endpoint::builder()
///     .base_url("http://gpu:8000/v1")
/// #   .transport(MemoryServer::new(Reply::text("Hello!")))
///     .build()?;
/// let answer = server.call(ChatRequest::new("any", vec![Message::user("Say hello.")])).await?;
/// assert_eq!(answer.message().await?.text(), "Hello!");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Endpoint(pub(crate) Arc<Destination>);

impl Endpoint {
    /// Returns a builder with nothing set.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }

    /// Returns the address that paths are appended to.
    #[must_use]
    pub fn base_url(&self) -> &str {
        self.0.base_url.as_str()
    }

    /// Returns the provider, if one was set.
    #[must_use]
    pub fn provider(&self) -> Option<Provider> {
        self.0.provider
    }

    /// Returns the API key; its `Debug` output hides it.
    #[must_use]
    pub fn api_key(&self) -> Option<&ApiKey> {
        self.0.api_key.as_ref()
    }

    /// Returns the value of an extra header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        str::from_utf8(self.0.headers.get(name)?.as_bytes()).ok()
    }

    /// Returns the maximum time to connect.
    #[must_use]
    pub fn connect_timeout(&self) -> Option<Duration> {
        self.0.connect_timeout
    }

    /// Returns the keys that are masked wherever the server repeats them.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.0.secrets
    }

    /// Returns the server's quirks for requests to a model.
    #[must_use]
    pub fn traits(&self, model: &str) -> ServerTraits {
        *self.0.traits(model)
    }

    /// Returns the same server behind your own transport.
    ///
    /// # Errors
    ///
    /// `Config` if an option was set that applies only to the built-in transport, such as `connect_timeout`.
    pub fn with_transport<S, B>(&self, service: S) -> Result<Self>
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.over(AnyService::new(service))
    }

    fn over(&self, service: AnyService) -> Result<Self> {
        if let Some(option) = self.0.of_own_transport {
            return Err(no_effect(option));
        }
        let Destination { base_url, provider, traits, known, model, api_key, headers, .. } =
            &*self.0;
        Ok(Self(Arc::new(Destination {
            base_url: base_url.clone(),
            provider: *provider,
            traits: *traits,
            known: known.clone(),
            model: model.clone(),
            api_key: api_key.clone(),
            headers: headers.clone(),
            secrets: self.0.secrets.clone(),
            quirks: self.0.quirks,
            connect_timeout: self.0.connect_timeout,
            of_own_transport: None,
            service,
            learned: Learned::of(known.as_ref()),
        })))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Builds an [`Endpoint`]. Errors are reported by [`build`](Self::build).
#[derive(Clone, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct EndpointBuilder {
    base_url: Option<String>,
    provider: Option<Provider>,
    profile: Option<ServerProfile>,
    model: Option<String>,
    api_key: Option<ApiKey>,
    headers: HeaderMap,
    quirks: Option<Quirks>,
    connect: Option<Timeout>,
    service: Option<AnyService>,
    #[cfg(feature = "tls")]
    roots: Vec<Vec<u8>>,
    error: Option<Error>,
}

impl EndpointBuilder {
    /// Sets the address, to which `/chat/completions` is appended; a trailing slash is fine. The default is the
    /// provider's. Without the feature `tls`, requests to an `https://` address fail with `Config`.
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// Sets the provider, for its default address and its quirks.
    pub fn provider(mut self, provider: Provider) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Applies a profile that the doctor wrote: address, provider, and quirks. Other options override it.
    ///
    /// [`build`](Self::build) fails if the profile contradicts itself, or for another provider without an address.
    pub fn profile(mut self, profile: ServerProfile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Sets this server's name for the model. The default is the name in the agent's options.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the API key, sent as `Authorization: Bearer` to this server and no other. A key of at least 8 bytes
    /// is masked wherever the server repeats it; a shorter one could be an ordinary word.
    pub fn api_key(mut self, key: impl AsRef<str>) -> Self {
        match ApiKey::new(key) {
            Ok(key) => self.api_key = Some(key),
            Err(error) => self.refuse(error.to_string()),
        }
        self
    }

    /// Adds a header to every request, replacing a default one of the same name.
    ///
    /// A value of at least 16 bytes, and each word in it but the first, is masked wherever the server repeats it;
    /// for `Authorization`, `Cookie` and headers whose name ends in `-key`, `-secret` or `-token`, of at least 8.
    /// Values of headers that carry no secret, such as `Accept` and `User-Agent`, are not masked.
    ///
    /// [`build`](Self::build) rejects headers about the connection or the encoding of a body, such as `Content-Length`
    /// and `Accept-Encoding`, and a `Host` that differs from the address.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        match header(name.as_ref(), value.as_ref()) {
            Ok((name, value)) => drop(self.headers.insert(name, value)),
            Err(message) => self.refuse(message),
        }
        self
    }

    /// Sets quirks of the server that cannot be detected: which choices are the answer, and whether each chunk of
    /// text repeats all before it (QUIRKS rows 53 and 55). The agent's options and the provider decide about
    /// members left at their default.
    pub fn quirks(mut self, quirks: Quirks) -> Self {
        self.quirks = Some(quirks);
        self
    }

    /// Limits the wait for a connection; 5 seconds by default. Does not apply to your own transport.
    pub fn connect_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        let timeout = timeout.into();
        if timeout.is_zero() {
            self.refuse(Timeout::zero("connect_timeout"));
        }
        self.connect = Some(timeout);
        self
    }

    /// Trusts these certificates, in PEM, in addition to the system's: for a server with a self-signed
    /// certificate. Calls add up. Does not apply to your own transport.
    #[cfg(feature = "tls")]
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.roots.push(pem.as_ref().to_vec());
        self
    }

    /// Sends requests through your own service instead of the built-in one: with middleware, or a model in memory.
    pub fn transport<S, B>(mut self, service: S) -> Self
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.service = Some(AnyService::new(service));
        self
    }

    /// Checks and builds the endpoint.
    ///
    /// # Errors
    ///
    /// `Config` for an invalid option, such as a header that only the transport can set or an unreadable root
    /// certificate, and if neither an address nor a provider with one is set.
    pub fn build(mut self) -> Result<Endpoint> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let (traits, known) = self.known_traits()?;
        let of_own_transport = self.of_own_transport();
        if let (Some(option), Some(_)) = (of_own_transport, &self.service) {
            return Err(no_effect(option));
        }
        let base_url = self.address()?;
        let secrets = secrets(self.api_key.as_ref(), &self.headers);
        check_host(&self.headers, &base_url).map_err(|error| error.masked(&secrets))?;
        let model = self.model.take().map(ModelName::new).transpose()?;
        let connect_timeout = self.connect.unwrap_or_else(|| 5.into()).duration();
        let service = self.any_service(connect_timeout)?;
        Ok(Endpoint(Arc::new(Destination {
            base_url,
            provider: self.provider,
            traits,
            learned: Learned::of(known.as_ref()),
            known,
            model,
            secrets,
            api_key: self.api_key,
            headers: self.headers,
            quirks: self.quirks,
            connect_timeout,
            of_own_transport,
            service,
        })))
    }

    /// Keeps the first error.
    fn refuse(&mut self, message: String) {
        self.error.get_or_insert_with(|| Error::config(message));
    }

    /// Takes the first error, which [`build`](Self::build) would return.
    #[doc(hidden)]
    pub fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    /// Returns the name of an option that was set, if any was.
    #[doc(hidden)]
    #[must_use]
    pub fn first_set(&self) -> Option<&'static str> {
        [
            (self.base_url.is_some(), "base_url"),
            (self.provider.is_some(), "provider"),
            (self.profile.is_some(), "profile"),
            (self.api_key.is_some(), "api_key"),
            (!self.headers.is_empty(), "header"),
            (self.service.is_some(), "transport"),
            (self.quirks.is_some(), "quirks"),
        ]
        .into_iter()
        .find_map(|(is_set, name)| is_set.then_some(name))
        .or_else(|| self.of_own_transport())
    }

    /// Returns `true` if an address is known: set directly, or from a provider or a profile.
    #[doc(hidden)]
    #[must_use]
    pub fn names_server(&self) -> bool {
        self.base_url.is_some() || self.provider.is_some() || self.profile.is_some()
    }

    /// Returns the name of an option that was set and applies only to the built-in transport.
    fn of_own_transport(&self) -> Option<&'static str> {
        [
            (self.connect.is_some(), "connect_timeout"),
            #[cfg(feature = "tls")]
            (!self.roots.is_empty(), "root_certificates"),
        ]
        .into_iter()
        .find_map(|(is_set, name)| is_set.then_some(name))
    }

    /// Returns the quirks of the server and of the profile's model, and adopts the profile's address and provider.
    fn known_traits(&mut self) -> Result<(ServerTraits, Option<KnownModel>)> {
        let usual = |provider: Option<Provider>| provider.map(Provider::traits).unwrap_or_default();
        let Some(profile) = self.profile.take() else { return Ok((usual(self.provider), None)) };
        profile.check()?;
        if let (Some(named), Some(seen), None) = (self.provider, profile.provider, &self.base_url)
            && named != seen
        {
            return Err(Error::config(format!(
                "the provider is {named}, but the profile is for {seen}: remove one of them, or set base_url"
            )));
        }
        self.base_url.get_or_insert(profile.base_url);
        self.provider = self.provider.or(profile.provider);
        let mut traits = usual(self.provider);
        traits.asks_for_usage = profile.ask_for_usage.unwrap_or(traits.asks_for_usage);
        let mut of_model = traits;
        of_model.token_limit = profile.token_limit.unwrap_or(traits.token_limit);
        of_model.think_tags = profile.think_tags.unwrap_or(traits.think_tags);
        let known = KnownModel {
            name: profile.model,
            traits: of_model,
            lacks_tools: profile.tools == Some(false),
            keeps_schema: profile.schema,
        };
        Ok((traits, Some(known)))
    }

    fn address(&mut self) -> Result<BaseUrl> {
        let usual = || self.provider.and_then(Provider::base_url).map(str::to_owned);
        let unknown = || match self.provider {
            Some(provider) => format!("{provider} has no default address: set base_url"),
            None => "no address: set base_url, or a provider with a default".to_owned(),
        };
        let base_url = self.base_url.take().or_else(usual);
        Ok(BaseUrl::new(base_url.ok_or_else(|| Error::config(unknown()))?)?)
    }

    fn any_service(&mut self, connect_timeout: Option<Duration>) -> Result<AnyService> {
        if let Some(service) = self.service.take() {
            return Ok(service);
        }
        // An unlimited connection attempt lasts as long as the system allows.
        let transport =
            Transport::builder().connect_timeout(connect_timeout.unwrap_or(Duration::MAX));
        // Each on its own: one without a certificate is a wrong file, whatever the others hold.
        #[cfg(feature = "tls")]
        let trusting = self.roots.iter().try_fold(transport, |it, pem| it.root_certificates(pem));
        #[cfg(feature = "tls")]
        let transport = trusting.map_err(|error| Error::config(error.to_string()))?;
        Ok(AnyService::Own(transport.build()))
    }
}

impl fmt::Debug for EndpointBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secrets = secrets(self.api_key.as_ref(), &self.headers);
        // An address that is not valid may contain a password.
        let shown = |url| BaseUrl::new(url).map_or_else(|_| "****".into(), |_| secrets.mask(url));
        f.debug_struct("EndpointBuilder")
            .field("base_url", &self.base_url.as_deref().map(shown))
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("api_key", &self.api_key)
            .field("headers", &Masked(&self.headers))
            .finish_non_exhaustive()
    }
}

fn no_effect(option: &str) -> Error {
    Error::config(format!("{option} has no effect on your own transport"))
}
