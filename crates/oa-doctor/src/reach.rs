//! Probes of the server, its provider, and what it reports about its model.

use oa_chat::{ErrorKind, Provider, model_names};
use serde_json::Value;

use crate::advice::Lack;
use crate::context::{NO_KEY, ProbeContext, shown};
use crate::finding::{Finding, Probe, Verdict};
use crate::signs::{ContextSize, Evidence, Page, recognize, signs};
use crate::target::ProbeTarget;

/// The maximum number of models named.
const NAMED: usize = 5;
/// A context too small for tools and their results, in tokens.
const SMALL_CONTEXT: u64 = 8192;

pub(crate) async fn reach(cx: &mut ProbeContext) -> Finding {
    const PROBE: Probe = Probe::Reach;
    let reply = cx.target.models().await;
    let (status, took) = match &reply {
        Ok(reply) => (reply.status, reply.took),
        Err(error) => {
            // With `Config` no request leaves the program, such as one to `https` without TLS. The error says what to
            // do about it; starting a server would not help.
            let is_refused_here = error.kind() == ErrorKind::Config;
            cx.is_unreachable = is_refused_here || error.kind() == ErrorKind::Connect;
            let finding = Finding::new(PROBE, Verdict::Fail, cx.target.quote(error));
            return if is_refused_here { finding } else { finding.advise(cx.advice(Lack::Reach)) };
        }
    };
    cx.models = Some(reply);
    let seen = format!("answers after {}", shown(took));
    if matches!(status, 401 | 403) {
        let seen = format!("{seen}, but rejects the list of models with {}", status);
        return Finding::new(PROBE, Verdict::Fail, seen).advise(NO_KEY);
    }
    let named = cx.provider;
    match recognized(cx).await {
        None => Finding::new(
            PROBE,
            Verdict::Ok,
            match named {
                Some(_) => seen,
                None => format!("{seen}; the server was not recognized"),
            },
        ),
        Some((found, by)) => {
            let seen = format!("{seen}; recognized as {} by {by}", found.name());
            match named {
                Some(named) if named != found => {
                    let seen = format!("{seen}, but {} was configured", named.name());
                    let advice =
                        "set the right one with .provider(..), unless a gateway is in between";
                    Finding::new(PROBE, Verdict::Warn, seen).advise(advice)
                }
                named => {
                    cx.provider = Some(found);
                    // What the options say about the server takes precedence over what it looks like.
                    if named.is_none() && !cx.has_profile {
                        cx.target.traits = found.traits();
                    }
                    cx.version = version(&cx.target, found).await;
                    Finding::new(PROBE, Verdict::Ok, seen)
                }
            }
        }
    }
}

/// Returns the provider, and the sign by which it was recognized.
async fn recognized(cx: &ProbeContext) -> Option<(Provider, &'static str)> {
    let Some(Ok(list)) = &cx.models else { return None };
    let models = list.json();
    let authority = cx.target.endpoint.base_url().split("://").nth(1)?;
    let authority = authority.split('/').next()?;
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let evidence = Evidence { host, headers: &list.headers, models: &models };
    // Signs in the response cost nothing; pages are requests, and only local servers are asked for them.
    if let Some(found) = recognize(evidence) {
        return Some(found);
    }
    for &provider in Provider::LOCAL {
        if let Some(page) = signs(provider).page
            && value(&cx.target, page).await.is_some()
        {
            return Some((provider, page.path));
        }
    }
    None
}

async fn version(target: &ProbeTarget, provider: Provider) -> Option<String> {
    let version = value(target, signs(provider).version?).await?;
    Some(target.quotes.quote(version.as_str()?)).filter(|version| !version.is_empty())
}

/// Returns the value on a page, if there is one.
async fn value(target: &ProbeTarget, page: Page) -> Option<Value> {
    let reply = target.page(page.path).await.ok()?;
    let found = reply.json().pointer_mut(page.pointer).map(Value::take);
    found.filter(|value| reply.is_success() && !value.is_null())
}

pub(crate) async fn models(cx: &mut ProbeContext) -> Finding {
    const PROBE: Probe = Probe::Models;
    if cx.models.is_none() {
        cx.models = Some(cx.target.models().await);
    }
    let reply = match &cx.models {
        Some(Ok(reply)) => reply,
        Some(Err(error)) => return cx.failed(PROBE, error),
        None => return Finding::new(PROBE, Verdict::Unknown, "skipped"),
    };
    if !reply.is_success() {
        let error = reply.to_error(&cx.target.endpoint);
        return cx.failed(PROBE, &error);
    }
    let Some(names) = model_names(&reply.body) else {
        return Finding::new(
            PROBE,
            Verdict::Warn,
            "the answer is not a list of models, or is longer than 4 MiB",
        );
    };
    let model = &*cx.learned.model;
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
        if names.is_empty() { "it is empty".to_owned() } else { cx.target.quotes.quote(&list) };
    Finding::new(PROBE, Verdict::Warn, format!("{model} is not on the list: {list}"))
        .advise(cx.advice(Lack::Model))
}

pub(crate) async fn context(cx: &mut ProbeContext) -> Finding {
    const PROBE: Probe = Probe::Context;
    let mut tokens = context_tokens(cx).await;
    // Such a list has only models that are loaded, and the first prompt loads this one.
    let lists_loaded =
        cx.provider.is_some_and(|it| matches!(signs(it).context, Some(ContextSize::In { .. })));
    if tokens.is_none() && lists_loaded && cx.plain.is_none() {
        cx.ask().await;
        tokens = context_tokens(cx).await;
    }
    let Some(tokens) = tokens else {
        return Finding::new(PROBE, Verdict::Unknown, "the server does not report its size");
    };
    cx.learned.context_tokens = Some(tokens);
    let seen = format!("{tokens} tokens");
    if tokens >= SMALL_CONTEXT {
        return Finding::new(PROBE, Verdict::Ok, seen);
    }
    let seen = format!("{seen}: little for tools and their results");
    Finding::new(PROBE, Verdict::Warn, seen).advise(cx.advice(Lack::Context))
}

async fn context_tokens(cx: &ProbeContext) -> Option<u64> {
    let model = &*cx.learned.model;
    let positive = |value: &Value| value.as_u64().filter(|tokens| *tokens > 0);
    match cx.provider.and_then(|provider| signs(provider).context) {
        Some(ContextSize::At(page)) => {
            if let Some(tokens) = value(&cx.target, page).await.as_ref().and_then(positive) {
                return Some(tokens);
            }
        }
        Some(ContextSize::In { list, member }) => {
            let list = value(&cx.target, list).await;
            let found = list.as_ref().and_then(|list| entry(list, model));
            if let Some(tokens) = found.and_then(|entry| positive(&entry[member])) {
                return Some(tokens);
            }
        }
        None => {}
    }
    // Many servers report it in the list of models.
    let Some(Ok(reply)) = &cx.models else { return None };
    let list = reply.json();
    let entry = entry(&list["data"], model)?;
    ["/max_model_len", "/context_length", "/context_window", "/meta/n_ctx"]
        .into_iter()
        .find_map(|pointer| positive(entry.pointer(pointer)?))
}

/// Returns the entry of a model in a list of models.
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
