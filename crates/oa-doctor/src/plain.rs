//! Probes of one plain prompt: streaming, usage, thinking, silence and speed.

use std::time::Duration;

use oa_aggregate::ThinkTags;
use oa_chat::{Error, ErrorKind};
use oa_json::ThinkingTags;
use oa_types::{Message, Usage};

use crate::advice::Lack;
use crate::context::{ProbeContext, count, shown};
use crate::finding::{Finding, Probe, Verdict};
use crate::observed::Observed;

const PROMPT: &str = "Count from one to twenty in words, with commas in between. Nothing else.";
/// A wait worth reporting.
const LONG: Duration = Duration::from_secs(10);
/// Slower than people read, in tokens per second.
const SLOW: f64 = 5.0;

impl ProbeContext {
    /// Sends the plain prompt, unless it was sent before.
    pub(crate) async fn ask(&mut self) {
        if self.plain.is_some() {
            return;
        }
        let mut answer = self.ask_plainly().await;
        // Loading a model looks like a buffered answer, so the prompt is sent again now that it is loaded.
        if answer.as_ref().is_ok_and(is_held_back) {
            answer = self.ask_plainly().await.or(answer);
        }
        // Set only now: a probe that is dropped while it waits asks again.
        self.plain = Some(answer);
    }

    /// Sends it, without the parts that the server rejects.
    async fn ask_plainly(&mut self) -> Result<Observed, Error> {
        let prompt = [Message::user(PROMPT)];
        let mut has_swapped = false;
        loop {
            let answer = self.target.chat(&prompt, |_| {}).await;
            let Err(error) = &answer else { return answer };
            if self.target.traits.asks_for_usage && error.refuses("stream_options") {
                self.usage_refusal = Some(self.target.quote(error));
                self.target.traits.asks_for_usage = false;
            // Once, because a server that rejects both names would be asked for ever.
            } else if !has_swapped && error.refuses(self.target.token_limit_name()) {
                has_swapped = true;
                self.target.swap_token_limit();
            } else {
                return answer;
            }
        }
    }
}

/// True if all of it arrived at once, after a wait.
fn is_held_back(observed: &Observed) -> bool {
    let Some(to_first) = observed.to_first() else { return false };
    // Tokens are generated one by one: eight of them within a twentieth of the wait for the first one were
    // ready long before, and something kept them.
    observed.deltas >= 8
        && to_first >= Duration::from_millis(300)
        && observed.spread() * 20 < to_first
}

pub(crate) async fn streaming(cx: &mut ProbeContext) -> Finding {
    const PROBE: Probe = Probe::Streaming;
    cx.ask().await;
    let observed = match &cx.plain {
        Some(Ok(observed)) => observed,
        Some(Err(error)) => return cx.failed(PROBE, error),
        None => return Finding::new(PROBE, Verdict::Unknown, "skipped"),
    };
    let (deltas, spread) = (observed.deltas, observed.spread());
    let warn = |seen: String| Finding::new(PROBE, Verdict::Warn, seen);
    let seen = format!("{} within {}", count(deltas, "delta"), shown(spread));
    if let Some(error) = &observed.unstreamed {
        return warn(format!("only in one piece: {}", cx.target.quote(error)))
            .advise("text will arrive all at once: use a server or gateway that streams");
    }
    if observed.bytewise.is_document {
        return warn("one JSON document instead of a stream".to_owned())
            .advise("text will arrive all at once: use a server or gateway that streams");
    }
    if let Some(error) = &observed.failure {
        let seen = format!("{seen}, then: {}", cx.target.quote(error));
        let is_slow = error.kind() == ErrorKind::Timeout;
        return Finding::new(PROBE, if is_slow { Verdict::Warn } else { Verdict::Fail }, seen);
    }
    if is_held_back(observed) {
        let wait = shown(observed.to_first().unwrap_or_default());
        return warn(format!("{}, all at once after {wait}", count(deltas, "delta"))).advise(
            "something buffers the stream: in a proxy such as nginx, set proxy_buffering off",
        );
    }
    match deltas {
        0 => warn("an answer without content".to_owned()),
        1 => warn("the whole answer in one delta".to_owned())
            .advise("text will arrive all at once, if the model said more than a word"),
        _ if !observed.is_complete() => warn(format!("{seen}, without a sign that it is complete"))
            .advise("truncated answers look like complete ones here"),
        _ if observed.bytewise.is_done => {
            Finding::new(PROBE, Verdict::Ok, format!("{seen}, then [DONE]"))
        }
        _ => Finding::new(PROBE, Verdict::Ok, format!("{seen}, without [DONE]")),
    }
}

pub(crate) async fn usage(cx: &mut ProbeContext) -> Finding {
    const PROBE: Probe = Probe::Usage;
    cx.ask().await;
    let Some(observed) = seen(cx) else { return unanswered(PROBE) };
    let advice = cx.advice(Lack::Usage);
    let bytewise = &observed.bytewise;
    let told = |usage: &Usage| usage.prompt_tokens.or(usage.completion_tokens).is_some();
    let finding =
        match observed.message.usage.filter(|usage| told(usage) || bytewise.usage.payloads > 0) {
            // Usage comes last, so an answer that was cut says nothing about it.
            None if observed.is_cut() => {
                Finding::new(PROBE, Verdict::Unknown, "the answer did not end")
            }
            None => Finding::new(PROBE, Verdict::Warn, "not reported").advise(advice),
            Some(usage) => {
                let (sent, got) = (usage.prompt_tokens, usage.completion_tokens);
                let place = match &bytewise.usage {
                    _ if bytewise.is_document => "in the document".to_owned(),
                    place if place.payloads > 1 => format!("in {} chunks", place.payloads),
                    place if place.in_choice => "inside the choice".to_owned(),
                    place if place.alone => "in a separate last chunk".to_owned(),
                    _ => "beside the finish reason".to_owned(),
                };
                match (sent, got) {
                    (Some(sent @ 1..), Some(got @ 1..)) => {
                        let seen = format!("{place}: {sent} tokens sent, {got} received");
                        Finding::new(PROBE, Verdict::Ok, seen)
                    }
                    _ => Finding::new(PROBE, Verdict::Warn, format!("{place}, without numbers"))
                        .advise(advice),
                }
            }
        };
    let asks = cx.target.traits.asks_for_usage;
    let finding = match &cx.usage_refusal {
        None => finding,
        // Usage that arrives without being requested is fine.
        Some(_) if finding.verdict == Verdict::Ok => finding,
        Some(words) => Finding::new(PROBE, Verdict::Warn, format!("cannot be requested: {words}"))
            .advise(advice),
    };
    cx.learned.ask_for_usage = Some(asks);
    finding
}

pub(crate) async fn thinking(cx: &mut ProbeContext) -> Finding {
    const PROBE: Probe = Probe::Thinking;
    cx.ask().await;
    let Some(observed) = seen(cx) else { return unanswered(PROBE) };
    let text = observed.text();
    let known = ThinkingTags::at_start_of(text.trim_start()).unwrap_or(ThinkingTags::THINK);
    let tags = match (text.find(known.open), text.find(known.close)) {
        // A closing tag without an opening one before it: the prompt's template has ended with `<think>`.
        (Some(opens), closes) if closes.is_none_or(|closes| opens < closes) => ThinkTags::Split,
        (_, Some(_)) => ThinkTags::StartsInThinking,
        // All of it may be thinking whose opening tag is in the prompt, and whose closing tag did not come.
        _ if observed.is_cut() && observed.bytewise.thinking.is_none() => {
            let seen = "none seen, but the answer did not end";
            return Finding::new(PROBE, Verdict::Unknown, seen)
                .advise("allow more tokens with Doctor::max_tokens (oa doctor: --max-tokens)");
        }
        _ => {
            return Finding::new(
                PROBE,
                Verdict::Ok,
                match observed.bytewise.thinking {
                    Some(member) => format!("apart from the text, in `{member}`"),
                    None => "none seen".to_owned(),
                },
            );
        }
    };
    let is_expected = cx.think_tags == tags;
    let seen = match tags {
        ThinkTags::Split => format!("in the text, between {} and {}", known.open, known.close),
        _ => "in the text, up to </think>: the opening tag is in the prompt".to_owned(),
    };
    let advice = cx.advice(Lack::SeparateThinking);
    cx.learned.think_tags = Some(tags);
    if is_expected {
        return Finding::new(PROBE, Verdict::Ok, seen);
    }
    Finding::new(PROBE, Verdict::Warn, seen).advise(advice)
}

pub(crate) async fn idle(cx: &mut ProbeContext) -> Finding {
    const PROBE: Probe = Probe::Idle;
    cx.ask().await;
    let Some((observed, wait)) = seen(cx).and_then(|it| Some((it, it.to_first()?))) else {
        return unanswered(PROBE);
    };
    if let Some(to_comment) = observed.to_comment() {
        let comments = count(u64::from(observed.bytewise.comments), "comment");
        let seen =
            format!("{comments} before the first token, the first after {}", shown(to_comment));
        return Finding::new(PROBE, Verdict::Ok, seen);
    }
    let seen = format!("silence for {} before the first token", shown(wait));
    if wait < LONG {
        return Finding::new(PROBE, Verdict::Ok, seen);
    }
    Finding::new(PROBE, Verdict::Warn, seen).advise(
        "keep .first_token_timeout(..) well above it; proxies may give up, because no comments arrive",
    )
}

pub(crate) async fn speed(cx: &mut ProbeContext) -> Finding {
    const PROBE: Probe = Probe::Speed;
    cx.ask().await;
    let Some((observed, wait)) = seen(cx).and_then(|it| Some((it, it.to_first()?))) else {
        return unanswered(PROBE);
    };
    let first = format!("first token after {}", shown(wait));
    let spread = observed.spread();
    let told = observed.message.usage.and_then(|usage| usage.completion_tokens);
    // Without usage, a delta counts as a token, which the finding marks as `about`.
    let tokens = told.unwrap_or(observed.deltas);
    if spread < Duration::from_millis(1) || tokens < 8 || is_held_back(observed) {
        return Finding::new(PROBE, Verdict::Ok, format!("{first}; the others came at once"));
    }
    // The time begins with the first token.
    let rate = (tokens - 1) as f64 / spread.as_secs_f64();
    let about = if told.is_some() { "" } else { "about " };
    // A large model on a small machine takes seconds for each.
    let digits = usize::from(rate < 10.0);
    let seen = format!("{first}, then {about}{rate:.digits$} tokens a second");
    if rate >= SLOW {
        return Finding::new(PROBE, Verdict::Ok, seen);
    }
    Finding::new(PROBE, Verdict::Warn, seen)
        .advise("check that the model runs on the GPU, or use a smaller one")
}

fn seen(cx: &ProbeContext) -> Option<&Observed> {
    cx.plain.as_ref()?.as_ref().ok()
}

fn unanswered(probe: Probe) -> Finding {
    Finding::new(probe, Verdict::Unknown, "a plain prompt was not answered")
}
