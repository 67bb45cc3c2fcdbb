use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri};
use http_body::Body;
use oa_aggregate::Quirks;
use oa_redact::Secrets;
use oa_transport::{ApiKey, RequestBody, Transport};
use oa_types::{BaseUrl, ModelName};
use tower::Service;

use crate::answer::AnswerStream;
use crate::chat::{self, ChatRequest};
use crate::error::{Error, Result};
use crate::learned::Learned;
use crate::profile::Profile;
use crate::provider::Provider;
use crate::service::AnyService;
use crate::wait::Wait;
use crate::work::BoxFuture;

/// One server: where requests go, with which key, and its quirks.
///
/// Options have one of their own, and nobody needs another. It is for those who bring together several,
/// or put a layer between the agent and its server: an endpoint is a tower service from [`ChatRequest`]
/// to [`AnswerStream`], and
/// [`chat_service`](crate::AgentOptionsBuilder::chat_service) takes whatever is made of it. It does not
/// try again: the options' [`RetryConfig`](crate::RetryConfig) is a layer around all of it.
///
/// What is asked, the agent decides: system prompt, tools, sampling. How it is written follows from the
/// endpoint's provider.
///
/// ```
/// use oa_client::{AgentOptions, Client, Endpoint};
/// use oa_testkit::{MemoryServer, Reply};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oa_client::Result<()> {
/// let server = Endpoint::builder()
///     .base_url("http://gpu:8000/v1")
/// #   .transport(MemoryServer::new(Reply::text("Hello!")))
///     .build()?;
/// let options = AgentOptions::builder().model("any").chat_service(server).build()?;
/// assert_eq!(Client::new(options)?.ask("Say hello.").await?.text, "Hello!");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Endpoint(pub(crate) Arc<Destination>);

/// What an endpoint is made of.
pub(crate) struct Destination {
    pub(crate) base_url: BaseUrl,
    pub(crate) provider: Option<Provider>,
    /// What it wants to be different, whatever the model.
    pub(crate) profile: Profile,
    /// What is known beforehand of one of its models.
    pub(crate) known: Option<KnownModel>,
    /// Its own name for the agent's model.
    pub(crate) model: Option<ModelName>,
    pub(crate) api_key: Option<ApiKey>,
    pub(crate) headers: HeaderMap,
    /// What may not be shown though the server repeats it.
    pub(crate) secrets: Secrets,
    pub(crate) quirks: Option<Quirks>,
    pub(crate) connect_timeout: Option<Duration>,
    /// An option that was set, and acts on the built-in transport alone.
    of_own_transport: Option<&'static str>,
    pub(crate) service: AnyService,
    pub(crate) learned: Learned,
}

/// What is known of a model before it is asked: what a [`ServerProfile`](crate::ServerProfile) says.
#[derive(Clone, Debug)]
pub(crate) struct KnownModel {
    pub(crate) name: String,
    pub(crate) profile: Profile,
    /// The server refuses requests for it that have tools.
    pub(crate) lacks_tools: bool,
    /// Its answers do not keep to a schema.
    pub(crate) lacks_schema: bool,
}

impl Endpoint {
    /// Begins with nothing set.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }

    /// Returns the address that paths are appended to.
    #[must_use]
    pub fn base_url(&self) -> &str {
        self.0.base_url.as_str()
    }

    /// Returns the provider, if one was named.
    #[must_use]
    pub fn provider(&self) -> Option<Provider> {
        self.0.provider
    }

    /// Whether this is that endpoint, or a clone of it.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The same place, asked over another transport.
    pub(crate) fn over(&self, service: AnyService) -> Result<Self> {
        if let Some(option) = self.0.of_own_transport {
            return Err(no_effect(option));
        }
        let Destination { base_url, provider, profile, known, model, api_key, headers, .. } =
            &*self.0;
        Ok(Self(Arc::new(Destination {
            base_url: base_url.clone(),
            provider: *provider,
            profile: *profile,
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

impl Destination {
    /// What may be wrong with the address when a server does not know it.
    pub(crate) fn hint(&self) -> Option<String> {
        let base_url = self.base_url.as_str();
        let is_version = |part: &str| {
            part.strip_prefix('v')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let has_version = base_url.split('/').any(is_version);
        (!has_version)
            .then(|| format!("base_url is {base_url}, and most servers want /v1 at its end"))
    }

    /// What it wants to be different for a model.
    pub(crate) fn profile(&self, model: &str) -> &Profile {
        let known = self.known.as_ref().filter(|known| known.name == model);
        known.map_or(&self.profile, |known| &known.profile)
    }

    /// The address of something beside what chats are sent to, from the root of the server.
    pub(crate) fn at_root(&self, path: &str) -> Result<Uri> {
        let base_url = self.base_url.as_str();
        let root = base_url.strip_suffix("/v1").unwrap_or(base_url);
        let address = format!("{root}{path}").parse();
        address.map_err(|_| Error::config(format!("no address: {root}{path}")))
    }
}

impl Service<ChatRequest> for Endpoint {
    type Response = AnswerStream;
    type Error = Error;
    type Future = BoxFuture<Result<AnswerStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ChatRequest) -> Self::Future {
        let endpoint = self.clone();
        Box::pin(async move { chat::answer(&endpoint, &request).await })
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("base_url", &self.0.base_url)
            .field("provider", &self.0.provider)
            .field("model", &self.0.model)
            .field("api_key", &self.0.api_key)
            .field("headers", &Masked(&self.0.headers))
            .field("connect_timeout", &self.0.connect_timeout)
            .finish_non_exhaustive()
    }
}

/// Puts an [`Endpoint`] together. What is wrong is reported by [`build`](Self::build).
#[derive(Default)]
#[must_use = "an endpoint comes into being by `build`"]
pub struct EndpointBuilder {
    pub(crate) base_url: Option<String>,
    pub(crate) provider: Option<Provider>,
    /// In place of what is known of the provider.
    pub(crate) profile: Option<Profile>,
    model: Option<String>,
    api_key: Option<ApiKey>,
    headers: HeaderMap,
    quirks: Option<Quirks>,
    connect: Option<Wait>,
    service: Option<AnyService>,
    pub(crate) known: Option<KnownModel>,
    #[cfg(feature = "tls")]
    roots: Vec<u8>,
    error: Option<Error>,
}

impl EndpointBuilder {
    /// Sets the address, `http://` or `https://`, that `/chat/completions` is appended to; a slash at
    /// the end is harmless. Without one the provider's counts.
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// Names the server, for its usual address and its quirks.
    pub fn provider(mut self, provider: Provider) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Sets this server's name for the model. Without it the name in the agent's options is sent.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the key that is sent as `Authorization: Bearer`, to this server and no other. One of at least
    /// 8 bytes is masked wherever the server repeats it; a shorter one is taken for a word.
    pub fn api_key(mut self, key: impl AsRef<str>) -> Self {
        match ApiKey::new(key) {
            Ok(key) => self.api_key = Some(key),
            Err(error) => self.refuse(error.to_string()),
        }
        self
    }

    /// Adds a header to every request; it replaces a default one of the same name.
    ///
    /// A value of at least 16 bytes, and in it each word but the first, is masked wherever the server
    /// repeats it; in `Authorization`, in `Cookie` and in headers whose name ends in `-key`, `-secret` or
    /// `-token`, of at least 8. Values of headers that carry no secret, such as `Accept` and
    /// `User-Agent`, are not masked.
    ///
    /// Headers that belong to the connection or say how a body is encoded are an error of
    /// [`build`](Self::build): `Connection`, `Content-Length`, `Transfer-Encoding`, `Accept-Encoding` and
    /// their like. So is a `Host` other than that of the address.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        match header(name.as_ref(), value.as_ref()) {
            Ok((name, value)) => drop(self.headers.insert(name, value)),
            Err(message) => self.refuse(message),
        }
        self
    }

    /// Says what this server does differently and its bytes cannot tell: which choices are the answer, and
    /// whether each piece of text repeats all before it (QUIRKS rows 53 and 55). What its members leave at
    /// their default, the agent's options and the provider decide.
    pub fn quirks(mut self, quirks: Quirks) -> Self {
        self.quirks = Some(quirks);
        self
    }

    /// Bounds the wait for a connection; 5 seconds by default. Not for a transport of your own.
    pub fn connect_timeout(mut self, timeout: impl Into<Wait>) -> Self {
        self.connect = Some(self.wait("connect_timeout", timeout));
        self
    }

    /// Trusts these certificates, in PEM, beside those that the system trusts: for a server with a
    /// certificate of your own making. Not for a transport of your own.
    #[cfg(feature = "tls")]
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.roots.extend_from_slice(pem.as_ref());
        self.roots.push(b'\n');
        self
    }

    /// Sends requests over a service of your own in place of the built-in transport: one with
    /// middleware, or a model in memory.
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

    /// Checks everything.
    ///
    /// # Errors
    ///
    /// `Config` for what cannot work, such as a header that only the transport can set or a root
    /// certificate that cannot be read, and if neither an address nor a provider with one is named.
    pub fn build(mut self) -> Result<Endpoint> {
        if let Some(error) = self.take_error() {
            return Err(error);
        }
        let of_own_transport = self.of_own_transport();
        if let (Some(option), Some(_)) = (of_own_transport, &self.service) {
            return Err(no_effect(option));
        }
        let base_url = self.address()?;
        check_host(&self.headers, &base_url)?;
        let model = self.model.take().map(ModelName::new).transpose()?;
        let connect_timeout = Wait::or(self.connect, Some(Duration::from_secs(5)));
        let service = self.any_service(connect_timeout)?;
        let profile = || self.provider.map(Provider::profile).unwrap_or_default();
        let learned = Learned::of(self.known.as_ref());
        Ok(Endpoint(Arc::new(Destination {
            base_url,
            provider: self.provider,
            profile: self.profile.unwrap_or_else(profile),
            known: self.known,
            model,
            secrets: secrets(self.api_key.as_ref(), &self.headers),
            api_key: self.api_key,
            headers: self.headers,
            quirks: self.quirks,
            connect_timeout,
            of_own_transport,
            service,
            learned,
        })))
    }

    /// Keeps the first thing that is wrong.
    pub(crate) fn refuse(&mut self, message: String) {
        self.error.get_or_insert_with(|| Error::config(message));
    }

    /// A time that this option waits; none at all is refused.
    pub(crate) fn wait(&mut self, option: &str, wait: impl Into<Wait>) -> Wait {
        let wait = wait.into();
        if wait.is_zero() {
            self.refuse(format!("{option} is not above 0: None is for ever"));
        }
        wait
    }

    /// As [`refuse`](Self::refuse).
    pub(crate) fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    /// The name of something that was set, if anything was.
    pub(crate) fn what_was_set(&self) -> Option<&'static str> {
        [
            (self.base_url.is_some(), "base_url"),
            (self.provider.is_some(), "provider"),
            (self.api_key.is_some(), "api_key"),
            (!self.headers.is_empty(), "header"),
            (self.service.is_some(), "transport"),
            (self.quirks.is_some(), "quirks"),
        ]
        .into_iter()
        .find_map(|(is_set, name)| is_set.then_some(name))
        .or_else(|| self.of_own_transport())
    }

    /// The name of something that was set and acts on the built-in transport alone.
    fn of_own_transport(&self) -> Option<&'static str> {
        [
            (self.connect.is_some(), "connect_timeout"),
            #[cfg(feature = "tls")]
            (!self.roots.is_empty(), "root_certificates"),
        ]
        .into_iter()
        .find_map(|(is_set, name)| is_set.then_some(name))
    }

    fn address(&mut self) -> Result<BaseUrl> {
        let base_url = match (self.base_url.take(), self.provider) {
            (Some(base_url), _) => base_url,
            (None, Some(provider)) => match provider.base_url() {
                Some(base_url) => base_url.to_owned(),
                None => {
                    let name = provider.name();
                    let message = format!("{name} has no usual address: set base_url");
                    return Err(Error::config(message));
                }
            },
            (None, None) => {
                return Err(Error::config("no address: set base_url, or a provider that has one"));
            }
        };
        let base_url = BaseUrl::new(base_url)?;
        if base_url.is_https() && self.service.is_none() && cfg!(not(feature = "tls")) {
            return Err(Error::config(format!("{base_url} needs the feature \"tls\"")));
        }
        Ok(base_url)
    }

    fn any_service(&mut self, connect_timeout: Option<Duration>) -> Result<AnyService> {
        if let Some(service) = self.service.take() {
            return Ok(service);
        }
        // A connection attempt without bound lasts as long as the system lets it.
        let transport =
            Transport::builder().connect_timeout(connect_timeout.unwrap_or(Duration::MAX));
        #[cfg(feature = "tls")]
        let transport = if self.roots.is_empty() {
            transport
        } else {
            let roots = transport.root_certificates(&self.roots);
            roots.map_err(|error| Error::config(error.to_string()))?
        };
        Ok(AnyService::Own(transport.build()))
    }
}

impl fmt::Debug for EndpointBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointBuilder")
            .field("base_url", &self.base_url)
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("api_key", &self.api_key)
            .field("headers", &Masked(&self.headers))
            .finish_non_exhaustive()
    }
}

fn no_effect(option: &str) -> Error {
    Error::config(format!("{option} has no effect on a transport of your own"))
}

/// Headers without their values: any of them may be a secret.
struct Masked<'a>(&'a HeaderMap);

impl fmt::Debug for Masked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.keys().map(|name| (name, "****"))).finish()
    }
}

/// A header of the user's, checked; its value is marked as a secret.
fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let name: HeaderName = name.parse().map_err(|_| format!("not a header name: {name:?}"))?;
    if let Some((_, why)) = OF_TRANSPORT.iter().find(|(of_transport, _)| name == *of_transport) {
        return Err(format!("header {name} cannot be set: {why}"));
    }
    let mut value: HeaderValue = value
        .parse()
        .map_err(|_| format!("the value of header {name} has forbidden characters"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

const OF_CONNECTION: &str = "the transport decides what becomes of a connection";
const OF_BODY: &str = "the transport writes it, by the length of each body";
const OF_ENCODING: &str =
    "answers and requests are not compressed; a transport of your own can do that";

/// Headers that only a transport can set, and why.
const OF_TRANSPORT: [(&str, &str); 11] = [
    ("accept-encoding", OF_ENCODING),
    ("connection", OF_CONNECTION),
    ("content-encoding", OF_ENCODING),
    ("content-length", OF_BODY),
    ("expect", OF_CONNECTION),
    ("keep-alive", OF_CONNECTION),
    ("proxy-connection", OF_CONNECTION),
    ("te", OF_CONNECTION),
    ("trailer", OF_BODY),
    ("transfer-encoding", OF_BODY),
    ("upgrade", OF_CONNECTION),
];

/// A `Host` that differs from the address would be answered by another server, or by none.
fn check_host(headers: &HeaderMap, base_url: &BaseUrl) -> Result<()> {
    let Some(host) = headers.get(HOST) else { return Ok(()) };
    let authority =
        base_url.as_str().parse::<Uri>().ok().and_then(|uri| uri.into_parts().authority);
    let is_it = authority.is_some_and(|authority| {
        let host = host.as_bytes();
        let is = |wanted: &str| host.eq_ignore_ascii_case(wanted.as_bytes());
        let usual = if base_url.is_https() { 443 } else { 80 };
        is(authority.as_str())
            || (authority.port_u16() == Some(usual) && is(authority.host()))
            || (authority.port().is_none() && is(&format!("{}:{usual}", authority.host())))
    });
    if is_it {
        return Ok(());
    }
    Err(Error::config(format!("header host cannot differ from the base URL, which is {base_url}")))
}

/// Returns what may not be shown though a server repeats it.
fn secrets(api_key: Option<&ApiKey>, headers: &HeaderMap) -> Secrets {
    let mut secrets = Secrets::new();
    if let Some(key) = api_key {
        secrets.add_key(key.expose());
    }
    for (name, value) in headers {
        if let Ok(value) = value.to_str() {
            secrets.add_header(name.as_str(), value);
        }
    }
    secrets
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use super::*;

    #[test]
    fn a_broken_root_certificate_is_an_error_of_build() {
        // Base64 within the marks of PEM, and nothing that is a certificate.
        let pem =
            "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----";
        for (pem, expected) in [
            (pem, "a root certificate is invalid"),
            ("", "the PEM data contains no root certificate"),
        ] {
            let endpoint = Endpoint::builder().base_url("https://gpu/v1").root_certificates(pem);
            let error = endpoint.build().unwrap_err();
            assert_eq!(error.kind(), crate::error::ErrorKind::Config);
            assert_eq!(error.to_string(), expected);
        }
    }
}
