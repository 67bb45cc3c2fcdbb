//! Servers on this machine.

use std::pin::pin;
use std::time::Duration;

use open_agent::{AgentOptions, Error, ErrorKind, Provider, TimeoutKind, list_models};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::advice::{self, FORBIDDEN, KEY, LATER, NOBODY, UNENCRYPTED};
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

/// The time within which a server that is searched for must accept a connection. Once it is over, the servers that have
/// listed their models are used. If there are none, the first that does is.
const LOOK: Duration = Duration::from_millis(700);
/// The time within which a server must list its models, unless another one is set: one that is loading a model may be
/// slow.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);

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
/// key is not for the server that is set. Each must list its models within a limit.
pub(crate) async fn servers(settings: &Settings, answer: Duration) -> Result<Vec<Server>> {
    let provider = provider(settings)?;
    let Some(base_url) = address(settings)? else {
        return search(settings, provider, answer).await;
    };
    let key = settings.key_for(base_url).unwrap_or_else(|why| {
        tell(&why);
        None
    });
    let models = look(base_url.to_owned(), key, ANSWER.min(answer), answer).await;
    let models = models.map_err(|error| explained(error, base_url, provider))?;
    Ok(vec![Server { base_url: base_url.to_owned(), provider, models }])
}

/// Returns the failure of a server that is set, with advice.
fn explained(error: Error, base_url: &str, provider: Option<Provider>) -> Failure {
    let is_lasting = !error.is_retryable();
    let (kind, wants_key, is_busy) = (error.kind(), wants_key(&error), is_busy(&error));
    let is_unreachable =
        kind == ErrorKind::Connect || error.timeout() == Some(TimeoutKind::Connect);
    let failure = Failure::from(error);
    if matches!(kind, ErrorKind::Config | ErrorKind::InvalidInput) && !wants_key {
        return failure;
    }
    let failure = failure.at(base_url);
    if wants_key {
        failure.advise(KEY)
    } else if is_busy {
        failure.advise(LATER)
    } else if is_unreachable && is_lasting {
        // Somebody listens there, with whom TLS failed.
        failure.advise(UNENCRYPTED)
    } else if is_unreachable {
        failure.advise(NOBODY).advise(&advice::no_server(provider))
    } else {
        failure.advise("Is this the address of a model server?")
    }
}

/// Returns all servers that answer at the addresses to try, in their order.
async fn search(
    settings: &Settings,
    provider: Option<Provider>,
    answer: Duration,
) -> Result<Vec<Server>> {
    let places = places(settings)?;
    let mut looks = JoinSet::new();
    for (place, (provider, base_url)) in places.iter().cloned().enumerate() {
        looks.spawn(async move {
            // No key: it is only for an address that was set.
            match look(base_url.clone(), None, LOOK, answer).await {
                Ok(models) => Ok((place, Server { base_url, provider, models })),
                Err(error) => Err((place, base_url, error)),
            }
        });
    }
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    let mut is_over = pin!(sleep(LOOK));
    loop {
        tokio::select! {
            biased;
            look = looks.join_next() => match look {
                Some(Ok(Ok(server))) => found.push(server),
                Some(Ok(Err(failure))) => failed.push(failure),
                Some(Err(_)) => {}
                None => break,
            },
            () = &mut is_over, if !found.is_empty() => break,
        }
    }
    found.sort_by_key(|(place, _)| *place);
    failed.sort_by_key(|(place, ..)| *place);
    if !found.is_empty() {
        return Ok(found.into_iter().map(|(_, server)| server).collect());
    }
    // Not 403: that is what AirPlay on a Mac answers at port 5000.
    let is_locked = |error: &Error| error.status() == Some(401);
    if let Some((_, base_url, _)) = failed.iter().find(|(.., error)| is_locked(error)) {
        let why = "the server requires an API key, which is sent only to an address that you set";
        let set = format!("Use --base-url {base_url}. {KEY}");
        return Err(Failure::new(why).at(base_url).advise(&set));
    }
    let asked: Vec<_> = places.iter().map(|(_, url)| &**url).collect();
    let mut failure = Failure::new(format!("no model server answers at {}", asked.join(", ")));
    for (_, base_url, error) in failed {
        let advice = if is_busy(&error) {
            LATER
        } else if wants_key(&error) {
            FORBIDDEN
        } else {
            continue;
        };
        failure = failure.advise(&format!("{}. {advice}", Failure::from(error).at(base_url)));
    }
    Err(failure.advise(&advice::no_server(provider)))
}

/// Returns true if a server refuses requests without its key.
fn wants_key(error: &Error) -> bool {
    matches!(error.status(), Some(401 | 403))
}

/// Returns true if somebody listens there, and may answer later.
fn is_busy(error: &Error) -> bool {
    match error.timeout() {
        Some(kind) => kind != TimeoutKind::Connect,
        None => error.kind() == ErrorKind::Api && error.is_retryable(),
    }
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

/// Lists the models of a server, with a limit for the connection and one for the answer.
async fn look(
    base_url: String,
    key: Option<&str>,
    connect: Duration,
    answer: Duration,
) -> open_agent::Result<Vec<String>> {
    let mut builder = AgentOptions::builder().base_url(base_url).model("any");
    if let Some(key) = key {
        builder = builder.api_key(key);
    }
    let options = builder.connect_timeout(connect).first_token_timeout(answer).build()?;
    list_models(&options).await
}
