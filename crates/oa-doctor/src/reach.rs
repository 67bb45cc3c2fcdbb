//! Whether there is a server, which one it is, and what it says of its model.

use serde_json::Value;

use super::chart::{Chart, shown};
use super::finding::{Finding, Probe, Verdict};
use super::patient::Patient;
use crate::error::{Error, ErrorKind};
use crate::models;
use crate::provider::{self, ContextSize, Evidence, Lack, Page, Provider};

/// So many models are named at most.
const NAMED: usize = 5;
/// Tools and their results do not fit into less, in tokens.
const SMALL_CONTEXT: u64 = 8192;

pub(super) async fn reach(chart: &mut Chart) -> Finding {
    const PROBE: Probe = Probe::Reach;
    let reply = chart.patient.models().await;
    let (status, took) = match &reply {
        Ok(reply) => (reply.status, reply.took),
        Err(error) => {
            chart.is_unreachable = error.kind() == ErrorKind::Connect;
            let finding = Finding::new(PROBE, Verdict::Fail, chart.patient.quote(error));
            return finding.advise(chart.advice(Lack::Reach));
        }
    };
    chart.models = Some(reply);
    let seen = format!("answers after {}", shown(took));
    if matches!(status.as_u16(), 401 | 403) {
        let seen = format!("{seen}, and refuses the list of models by {}", status.as_u16());
        let advice = "set the key that this server wants by .api_key(..)";
        return Finding::new(PROBE, Verdict::Fail, seen).advise(advice);
    }
    let named = chart.provider;
    match recognised(chart).await {
        None => Finding::new(
            PROBE,
            Verdict::Ok,
            match named {
                Some(_) => seen,
                None => format!("{seen}; which server it is cannot be told"),
            },
        ),
        Some((found, by)) => {
            let seen = format!("{seen}; it is {} by {by}", found.name());
            match named {
                Some(named) if named != found => {
                    let seen = format!("{seen}, and {} was named", named.name());
                    let advice =
                        "name the right one by .provider(..), unless a gateway is in between";
                    Finding::new(PROBE, Verdict::Warn, seen).advise(advice)
                }
                named => {
                    chart.provider = Some(found);
                    if named.is_none() && chart.patient.settings.server_profile.is_none() {
                        chart.patient.profile = found.profile();
                    }
                    chart.version = version(&chart.patient, found).await;
                    Finding::new(PROBE, Verdict::Ok, seen)
                }
            }
        }
    }
}

/// Which server it is, and by what it is known.
async fn recognised(chart: &Chart) -> Option<(Provider, &'static str)> {
    let Some(Ok(list)) = &chart.models else { return None };
    let models = list.json();
    let authority = chart.patient.endpoint.base_url().split("://").nth(1)?;
    let authority = authority.split('/').next()?;
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let evidence = Evidence { host, headers: &list.headers, models: &models };
    if let Some(found) = provider::recognise(evidence) {
        return Some(found);
    }
    for &provider in Provider::LOCAL {
        if let Some(page) = provider.page()
            && value(&chart.patient, page).await.is_some()
        {
            return Some((provider, page.path));
        }
    }
    None
}

async fn version(patient: &Patient, provider: Provider) -> Option<String> {
    let version = value(patient, provider.version()?).await?;
    Some(patient.quotes.quote(version.as_str()?)).filter(|version| !version.is_empty())
}

/// What a page says, if there is one.
async fn value(patient: &Patient, page: Page) -> Option<Value> {
    let reply = patient.page(page.path).await.ok()?;
    let found = reply.json().pointer_mut(page.pointer).map(Value::take);
    found.filter(|value| reply.status.is_success() && !value.is_null())
}

pub(super) async fn models(chart: &mut Chart) -> Finding {
    const PROBE: Probe = Probe::Models;
    if chart.models.is_none() {
        chart.models = Some(chart.patient.models().await);
    }
    let reply = match &chart.models {
        Some(Ok(reply)) => reply,
        Some(Err(error)) => return chart.failed(PROBE, error),
        None => return Finding::new(PROBE, Verdict::Unknown, "not asked"),
    };
    if !reply.status.is_success() {
        let error = Error::response(
            reply.status,
            &reply.headers,
            &reply.body,
            chart.patient.quotes.secrets(),
        );
        return chart.failed(PROBE, &error);
    }
    let Some(names) = models::names(&reply.body) else {
        return Finding::new(PROBE, Verdict::Warn, "the answer is no list of models");
    };
    let model = &*chart.learned.model;
    let is_it = |name: &String| name == model || name.strip_suffix(":latest") == Some(model);
    if names.iter().any(is_it) {
        let seen = match names.len() {
            1 => format!("{model} is the only one"),
            number => format!("{model} is one of {number}"),
        };
        return Finding::new(PROBE, Verdict::Ok, seen);
    }
    let mut list = names[..names.len().min(NAMED)].join(", ");
    if names.len() > NAMED {
        list += &format!(" and {} more", names.len() - NAMED);
    }
    let list =
        if names.is_empty() { "it is empty".to_owned() } else { chart.patient.quotes.quote(&list) };
    Finding::new(PROBE, Verdict::Warn, format!("{model} is not on the list: {list}"))
        .advise(chart.advice(Lack::Model))
}

pub(super) async fn context(chart: &mut Chart) -> Finding {
    const PROBE: Probe = Probe::Context;
    let Some(tokens) = context_tokens(chart).await else {
        return Finding::new(PROBE, Verdict::Unknown, "the server does not tell how large it is");
    };
    chart.learned.context_tokens = Some(tokens);
    let seen = format!("{tokens} tokens");
    if tokens >= SMALL_CONTEXT {
        return Finding::new(PROBE, Verdict::Ok, seen);
    }
    let seen = format!("{seen}: little for tools and their results");
    Finding::new(PROBE, Verdict::Warn, seen).advise(chart.advice(Lack::Context))
}

async fn context_tokens(chart: &Chart) -> Option<u64> {
    let model = &*chart.learned.model;
    let positive = |value: &Value| value.as_u64().filter(|tokens| *tokens > 0);
    match chart.provider.and_then(Provider::context_size) {
        Some(ContextSize::At(page)) => {
            if let Some(tokens) = value(&chart.patient, page).await.as_ref().and_then(positive) {
                return Some(tokens);
            }
        }
        Some(ContextSize::In { list, member }) => {
            let list = value(&chart.patient, list).await;
            let found = list.as_ref().and_then(|list| entry(list, model));
            if let Some(tokens) = found.and_then(|entry| positive(&entry[member])) {
                return Some(tokens);
            }
        }
        None => {}
    }
    // Many tell it in the list of models itself.
    let Some(Ok(reply)) = &chart.models else { return None };
    let list = reply.json();
    let entry = entry(&list["data"], model)?;
    ["/max_model_len", "/context_length", "/context_window", "/meta/n_ctx"]
        .into_iter()
        .find_map(|pointer| positive(entry.pointer(pointer)?))
}

/// The entry of a model in a list of them.
fn entry<'a>(list: &'a Value, model: &str) -> Option<&'a Value> {
    let is_it = |entry: &&Value| {
        ["id", "model", "name"].into_iter().any(|member| {
            entry[member]
                .as_str()
                .is_some_and(|name| name == model || name.strip_suffix(":latest") == Some(model))
        })
    };
    list.as_array()?.iter().find(is_it)
}
