//! The probe of the token limit.

use oa_chat::Error;
use oa_types::Message;
use oa_types::wire::{ChatParameters, TokenLimit};

use crate::context::ProbeContext;
use crate::finding::{Finding, Probe, Verdict};
use crate::target::{name_of, other_than};

const PROMPT: &str = "Count from one to three hundred in words, with commas in between.";
/// The limit in the request, in tokens.
const LIMIT: u32 = 16;

/// The effect of a limit.
enum Effect {
    Acts,
    /// It cuts the answer, but the server reports that the model had finished.
    Hidden,
    Ignored,
    /// The answer was shorter than the limit.
    Unused,
}

pub(crate) async fn token_limit(cx: &mut ProbeContext) -> Finding {
    const PROBE: Probe = Probe::TokenLimit;
    let limit = cx.target.traits.token_limit;
    let name = name_of(limit);
    let first = attempt(cx, limit).await;
    if let Ok(Effect::Acts | Effect::Hidden | Effect::Unused) = first {
        return told(cx, name, &first);
    }
    if let Err(error) = &first
        && !error.refuses(name)
    {
        return cx.failed(PROBE, error);
    }
    let how = if first.is_ok() { "ignored" } else { "rejected" };
    let other_limit = other_than(limit);
    let other = name_of(other_limit);
    match attempt(cx, other_limit).await {
        Ok(effect @ (Effect::Acts | Effect::Hidden)) => {
            // Kept only now that it works, and later probes send it: a probe that is dropped while it waits starts
            // with the first name again.
            cx.target.traits.token_limit = other_limit;
            cx.learned.token_limit = Some(other_limit);
            let hidden = match effect {
                Effect::Hidden => ", although the server does not report the cut",
                _ => "",
            };
            let seen = format!("`{name}` is {how}, but `{other}` works{hidden}");
            Finding::new(PROBE, Verdict::Warn, seen)
                .advise("load the profile, which says so, or set the provider")
        }
        // It says nothing about the other name: it may have been slow, or the connection broke.
        Err(error) if !error.refuses(other) && !cx.is_refusal(&error) => {
            let seen = format!("`{name}` is {how}; with `{other}`: {}", cx.target.quote(&error));
            Finding::new(PROBE, Verdict::Unknown, seen)
        }
        second => {
            let also = match second {
                Ok(Effect::Ignored) => "ignored",
                Ok(_) => "without visible effect",
                Err(_) => "rejected",
            };
            Finding::new(
                PROBE,
                Verdict::Fail,
                format!("`{name}` is {how}, and `{other}` is {also}"),
            )
            .advise("do not rely on .max_tokens(..): limit answers with .total_timeout(..)")
        }
    }
}

fn told(cx: &mut ProbeContext, name: &str, effect: &Result<Effect, Error>) -> Finding {
    let finding = |verdict, seen: String| Finding::new(Probe::TokenLimit, verdict, seen);
    match effect {
        Ok(Effect::Acts) => {
            cx.learned.token_limit = Some(cx.target.traits.token_limit);
            finding(Verdict::Ok, format!("`{name}` stops after {LIMIT} tokens"))
        }
        Ok(Effect::Hidden) => {
            cx.learned.token_limit = Some(cx.target.traits.token_limit);
            let seen = format!("`{name}` works, but the server does not report the cut");
            finding(Verdict::Warn, seen).advise("truncated answers look like complete ones here")
        }
        _ => finding(Verdict::Unknown, "the answer was too short to tell".to_owned()),
    }
}

async fn attempt(cx: &ProbeContext, name: TokenLimit) -> Result<Effect, Error> {
    let prompt = [Message::user(PROMPT)];
    let limited = |request: &mut ChatParameters| {
        (request.max_tokens, request.token_limit) = (Some(LIMIT), name);
    };
    let observed = cx.target.chat(&prompt, limited).await?;
    let limit = u64::from(LIMIT);
    let told = observed.message.usage.and_then(|usage| usage.completion_tokens);
    // A count of zero is no count.
    let tokens = told.filter(|tokens| *tokens > 0).unwrap_or(observed.deltas);
    if let Some(error) = observed.failure {
        return Err(error);
    }
    // The count may be one of deltas, which are not exactly tokens; twice the limit is certainly beyond it.
    Ok(if observed.is_endless || tokens > 2 * limit {
        Effect::Ignored
    } else if observed.message.finish_reason.is_length() {
        Effect::Acts
    } else if tokens.abs_diff(limit) <= 2 {
        Effect::Hidden
    } else {
        Effect::Unused
    })
}
