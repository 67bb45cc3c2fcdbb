//! Whether the length of an answer can be bounded.

use oa_types::Message;

use super::chart::Chart;
use super::finding::{Finding, Probe, Verdict};
use crate::error::Error;

const PROMPT: &str = "Count from one to three hundred in words, with commas in between.";
/// What is asked for, in tokens.
const LIMIT: u32 = 16;

/// What came of a limit.
enum Effect {
    Acts,
    /// It cuts, and the server says that the model was done.
    Hidden,
    Ignored,
    /// The model had less to say.
    Unused,
}

pub(super) async fn token_limit(chart: &mut Chart) -> Finding {
    const PROBE: Probe = Probe::TokenLimit;
    let name = chart.patient.token_limit_name();
    let first = attempt(chart).await;
    if let Ok(Effect::Acts | Effect::Hidden | Effect::Unused) = first {
        return told(chart, name, &first);
    }
    if let Err(error) = &first
        && !error.refuses(name)
    {
        return chart.failed(PROBE, error);
    }
    let how = if first.is_ok() { "ignored" } else { "refused" };
    chart.patient.swap_token_limit();
    let other = chart.patient.token_limit_name();
    match attempt(chart).await {
        Ok(Effect::Acts) => {
            chart.learned.token_limit = Some(chart.patient.profile.token_limit);
            let seen = format!("`{name}` is {how}, and `{other}` acts");
            Finding::new(PROBE, Verdict::Warn, seen)
                .advise("read the profile, which says so, or name the provider")
        }
        second => {
            chart.patient.swap_token_limit();
            let also = match second {
                Ok(Effect::Ignored) => "ignored",
                Ok(_) => "of no visible effect",
                Err(_) => "refused",
            };
            Finding::new(
                PROBE,
                Verdict::Fail,
                format!("`{name}` is {how}, and `{other}` is {also}"),
            )
            .advise("do not rely on .max_tokens(..): bound answers by .total_timeout(..)")
        }
    }
}

fn told(chart: &mut Chart, name: &str, effect: &Result<Effect, Error>) -> Finding {
    let finding = |verdict, seen: String| Finding::new(Probe::TokenLimit, verdict, seen);
    match effect {
        Ok(Effect::Acts) => {
            chart.learned.token_limit = Some(chart.patient.profile.token_limit);
            finding(Verdict::Ok, format!("`{name}` cuts after {LIMIT} tokens"))
        }
        Ok(Effect::Hidden) => {
            chart.learned.token_limit = Some(chart.patient.profile.token_limit);
            let seen = format!("`{name}` cuts, and the server does not say that it did");
            finding(Verdict::Warn, seen)
                .advise("an answer that was cut off cannot be told from a whole one here")
        }
        _ => finding(Verdict::Unknown, "the model had less to say than was asked for".to_owned()),
    }
}

async fn attempt(chart: &Chart) -> Result<Effect, Error> {
    let prompt = [Message::user(PROMPT)];
    let observed = chart.patient.chat(&prompt, |request| request.max_tokens = Some(LIMIT)).await?;
    let limit = u64::from(LIMIT);
    let told = observed.message.usage.and_then(|usage| usage.completion_tokens);
    let tokens = told.filter(|tokens| *tokens > 0).unwrap_or(observed.deltas);
    if let Some(error) = observed.failure {
        return Err(error);
    }
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
