//! Servers on this machine.

use std::time::Duration;

use open_agent::{AgentOptions, ErrorKind, Provider, list_models};
use tokio::task::JoinSet;

use crate::advice::{self, KEY, NOBODY, UNENCRYPTED};
use crate::failure::{Failure, Result};
use crate::output::tell;
use crate::settings::Settings;

/// A server that answers.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) base_url: String,
    /// The kind of server, from the setting or from its default address.
    pub(crate) provider: Option<Provider>,
    pub(crate) models: Vec<String>,
}

/// The time within which a server that is searched for must list its models.
const LOOK: Duration = Duration::from_millis(700);
/// The time within which a server that was set must list its models.
const NAMED: Duration = Duration::from_secs(10);

impl Server {
    /// Returns the model to use: the one that is set, or the first that can chat.
    pub(crate) fn model(&self, settings: &Settings) -> Result<String> {
        if let Some(model) = settings.text("model") {
            return Ok(model.to_owned());
        }
        let can_chat = |model: &&String| !model.to_lowercase().contains("embed");
        let first = self.models.iter().find(can_chat);
        first.cloned().ok_or_else(|| {
            Failure::new(format!("{} has no model that can chat", self.base_url))
                .advise("Load one, or set one with --model NAME.")
        })
    }

    /// Returns the kind and the address.
    pub(crate) fn name(&self) -> String {
        match self.provider {
            Some(provider) => format!("{provider} at {}", self.base_url),
            None => self.base_url.clone(),
        }
    }
}

/// Returns the provider that is set.
pub(crate) fn provider(settings: &Settings) -> Result<Option<Provider>> {
    Ok(settings.text("provider").map(str::parse).transpose()?)
}

/// Returns the address that is set.
pub(crate) fn address(settings: &Settings) -> Result<Option<&str>> {
    let provider = provider(settings)?;
    Ok(settings.text("base_url").or_else(|| provider?.base_url()))
}

/// Returns the server that is set, or all that answer at the addresses to try, in their order. Tells the user if the API
/// key is not for the server that is set.
pub(crate) async fn servers(settings: &Settings) -> Result<Vec<Server>> {
    let provider = provider(settings)?;
    if let Some(base_url) = address(settings)? {
        let key = settings.key_for(base_url).unwrap_or_else(|why| {
            tell(&why);
            None
        });
        let models = look(base_url.to_owned(), key, NAMED).await.map_err(|error| {
            let (kind, wants_key) = (error.kind(), wants_key(&error));
            let is_lasting = !error.is_retryable();
            let failure = Failure::from(error);
            match kind {
                _ if wants_key => failure.at(base_url).advise(KEY),
                ErrorKind::Config | ErrorKind::InvalidInput => failure,
                // Somebody listens there, with whom TLS failed.
                ErrorKind::Connect if is_lasting => failure.at(base_url).advise(UNENCRYPTED),
                ErrorKind::Connect => {
                    failure.at(base_url).advise(NOBODY).advise(&advice::no_server(provider))
                }
                _ => failure.at(base_url).advise("Is this the address of a model server?"),
            }
        })?;
        return Ok(vec![Server { base_url: base_url.to_owned(), provider, models }]);
    }
    let places = places(settings)?;
    let mut looks = JoinSet::new();
    for (place, (provider, base_url)) in places.iter().cloned().enumerate() {
        looks.spawn(async move {
            // No key: it is only for an address that was set.
            match look(base_url.clone(), None, LOOK).await {
                Ok(models) => Ok((place, Server { base_url, provider, models })),
                Err(error) => Err(wants_key(&error).then_some((place, base_url))),
            }
        });
    }
    let (mut found, mut locked) = (Vec::new(), Vec::new());
    for look in looks.join_all().await {
        match look {
            Ok(server) => found.push(server),
            Err(server) => locked.extend(server),
        }
    }
    found.sort_by_key(|(place, _)| *place);
    if let (true, Some((_, base_url))) = (found.is_empty(), locked.into_iter().min()) {
        let why = "the server requires an API key, which is sent only to an address that you set";
        let set = format!("Use --base-url {base_url}. {KEY}");
        return Err(Failure::new(why).at(base_url).advise(&set));
    }
    if found.is_empty() {
        let asked: Vec<_> = places.iter().map(|(_, url)| &**url).collect();
        let why = format!("no model server answers at {}", asked.join(", "));
        return Err(Failure::new(why).advise(&advice::no_server(provider)));
    }
    Ok(found.into_iter().map(|(_, server)| server).collect())
}

/// Returns true if a server refuses requests without its key.
fn wants_key(error: &open_agent::Error) -> bool {
    matches!(error.status(), Some(401 | 403))
}

/// Returns the addresses to try, with the kind of server if it is known.
fn places(settings: &Settings) -> Result<Vec<(Option<Provider>, String)>> {
    let told = settings.list("servers");
    if told.is_empty() {
        let usual = Provider::LOCAL.iter().copied();
        let place = |it: Provider| it.base_url().map(|url| (Some(it), url.to_owned()));
        return Ok(usual.filter_map(place).collect());
    }
    told.iter()
        .map(|told| {
            let (kind, url) = match told.split_once('=') {
                // A `=` within the URL comes after its `:`.
                Some((kind, url)) if !kind.contains(':') => {
                    let kind = kind.trim().parse::<Provider>();
                    // Without the URL, which may contain a password.
                    (Some(kind.map_err(Failure::from)?), url.trim())
                }
                _ => (None, told.as_str()),
            };
            // An invalid URL is a usage error, not a server that does not answer.
            AgentOptions::builder().base_url(url).model("any").build()?;
            Ok((kind, url.to_owned()))
        })
        .collect()
}

async fn look(
    base_url: String,
    key: Option<&str>,
    limit: Duration,
) -> open_agent::Result<Vec<String>> {
    let mut builder = AgentOptions::builder().base_url(base_url).model("any");
    if let Some(key) = key {
        builder = builder.api_key(key);
    }
    let options = builder.connect_timeout(limit).first_token_timeout(limit).build()?;
    list_models(&options).await
}
