//! Detects whether a server cut the prompt.

mod estimates;

use std::sync::Arc;

use oa_context::{Calibration, Costs, Estimator, Observation, TokenCounter};
use oa_types::{Message, MessageRole, Usage};
use serde_json::Value;

use crate::event::PromptCut;
use crate::settings::Settings;

use self::estimates::{Estimates, Parts};

/// Compares the token counts that servers report with estimates of what they were sent.
///
/// Estimates are expensive, and there may be hundreds of answers. So the known length of a request is checked
/// first, which is nearly always enough; then the lengths of messages, each measured once. Only then are tokens
/// estimated, for each message once, and again only after the conversation has grown by a quarter; for a prompt
/// that extends one that was cut, they are derived from its length.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    sent: Option<Sent>,
    /// Boxed, because it is rarely needed.
    known: Option<Box<Known>>,
}

/// State of the conversation, kept once its length alone did not decide.
#[derive(Debug, Default)]
struct Known {
    /// The revisions of the messages whose lengths are known, and the sum up to each.
    revisions: Vec<u64>,
    sums: Vec<Sum>,
    /// The tokens of the same messages, as far as they were needed.
    estimates: Estimates,
    around: Option<Around>,
    verdict: Verdict,
}

/// The last request.
#[derive(Debug)]
struct Sent {
    settings: Arc<Settings>,
    tools: bool,
    /// Its length, if known.
    bytes: Option<usize>,
}

/// The tokens sent around the messages.
#[derive(Debug)]
struct Around {
    settings: Arc<Settings>,
    system_prompt: usize,
    tools: usize,
}

/// Tokens by length.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    all: usize,
    /// Up to the last answer, without it and with it.
    before_answer: usize,
    with_answer: usize,
}

/// The last finding about the current conversation.
#[derive(Clone, Copy, Debug, Default)]
enum Verdict {
    /// It was cut.
    Cut(Size),
    /// Undecided.
    Open(Size),
    #[default]
    Unknown,
}

/// The size of the conversation at that time.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// As estimated.
    tokens: usize,
    /// By length.
    length: usize,
}

impl Size {
    /// Returns the tokens of the conversation at a new length, if the added part is as dense as the rest.
    fn grown_to(self, length: usize) -> usize {
        (self.tokens as u128 * length as u128 / self.length.max(1) as u128) as usize
    }

    /// True if the conversation has grown enough to be estimated again, and may be too long by now.
    fn is_outgrown(self, length: usize, reported: u64) -> bool {
        length > self.length + self.length / 4
            && self.grown_to(length) as u64 > reported.saturating_mul(2)
    }
}

impl Gauge {
    /// Records a request with this many bytes of messages.
    pub(crate) fn sent(&mut self, settings: &Arc<Settings>, tools: bool, messages: usize) {
        let bytes = settings.chat.overhead(tools).map(|around| messages + around);
        self.sent = Some(Sent { settings: Arc::clone(settings), tools, bytes });
    }

    /// Decides whether the last request was cut, from its reported usage and its history.
    pub(crate) fn read(
        &mut self,
        history: &[Message],
        revisions: &[u64],
        usage: &Usage,
    ) -> Option<PromptCut> {
        let sent = self.sent.take()?;
        let cached = usage.cached_tokens.unwrap_or_default();
        let reported = usage.prompt_tokens?.saturating_add(cached);
        let is_plenty = |bytes: usize| reported.saturating_mul(BYTES_PER_TOKEN) >= bytes as u64;
        if sent.bytes.is_some_and(is_plenty) {
            return None;
        }
        self.known.get_or_insert_default().read(history, revisions, &sent, [reported, cached])
    }
}

impl Known {
    /// Decides whether a request was cut, from the reported tokens: all, and the cached ones among them.
    fn read(
        &mut self,
        history: &[Message],
        revisions: &[u64],
        sent: &Sent,
        [reported, cached]: [u64; 2],
    ) -> Option<PromptCut> {
        let around = self.around(sent);
        self.follow(history, revisions);
        let sum = self.sums.last().copied().unwrap_or_default();
        let length = sum.all + around;
        let tokens = match self.verdict {
            Verdict::Cut(size) => size.grown_to(length),
            Verdict::Open(size) if !size.is_outgrown(length, reported) => return None,
            Verdict::Open(_) | Verdict::Unknown => {
                let uncached = [sum.all - sum.with_answer, sum.all - sum.before_answer];
                if cached == 0 && (reported <= REPEATED || is_clearly(reported, uncached)) {
                    return None;
                }
                let parts = self.estimates.parts(&estimator(), history);
                let tokens = parts.tokens() + around;
                if cached == 0 && parts.may_be_uncached(reported) {
                    self.verdict = Verdict::Open(Size { tokens, length });
                    return None;
                }
                tokens
            }
        };
        // Nothing is learnt from it here: what matters is the verdict.
        if Calibration::new().observe(tokens, reported) != Observation::CutShort {
            self.verdict = Verdict::Open(Size { tokens, length });
            return None;
        }
        self.verdict = Verdict::Cut(Size { tokens, length });
        Some(PromptCut { estimated: tokens as u64, reported })
    }

    /// Returns the tokens of the system prompt and of the tools that were sent; tools count half, because
    /// templates vary.
    fn around(&mut self, sent: &Sent) -> usize {
        let is_same = |around: &Around| Arc::ptr_eq(&around.settings, &sent.settings);
        let around = self.around.take().filter(is_same).unwrap_or_else(|| {
            // Another model may have more context.
            self.verdict = Verdict::Unknown;
            let prompt = sent.settings.chat.system_prompt.as_deref().map(Message::system);
            Around {
                settings: Arc::clone(&sent.settings),
                system_prompt: prompt.map_or(0, |prompt| estimator().count_message(&prompt)),
                tools: estimator().count_tools(&sent.settings.chat.parameters.tools) / 2,
            }
        });
        let Around { system_prompt, tools, .. } = self.around.insert(around);
        *system_prompt + if sent.tools { *tools } else { 0 }
    }

    /// Adds new messages. If earlier ones have changed, the last finding is dropped.
    fn follow(&mut self, history: &[Message], revisions: &[u64]) {
        let mut kept = self.revisions.len();
        if revisions.get(..kept) != Some(&*self.revisions) {
            let same = |(one, other): &(&u64, &u64)| one == other;
            kept = self.revisions.iter().zip(revisions).take_while(same).count();
            self.verdict = Verdict::Unknown;
        }
        self.revisions.truncate(kept);
        self.revisions.extend_from_slice(&revisions[kept..]);
        self.sums.truncate(kept);
        self.estimates.truncate(kept);
        let mut sum = self.sums.last().copied().unwrap_or_default();
        for message in &history[kept..] {
            let before = sum.all;
            sum.all += Lengths.count_message(message);
            if message.role == MessageRole::Assistant {
                (sum.before_answer, sum.with_answer) = (before, sum.all);
            }
            self.sums.push(sum);
        }
    }
}

impl Parts {
    fn tokens(&self) -> usize {
        self.before_answer + self.answer + self.since
    }

    /// True if the report may be low because the rest of the prompt was cached.
    fn may_be_uncached(&self, reported: u64) -> bool {
        let may_be = |least: usize, most: usize, images: usize| {
            let most = most * DENSEST + images * LARGEST_IMAGE + TEMPLATE;
            (least as u64 / 2..=most as u64).contains(&reported)
        };
        let [before, from] = self.images;
        // All but what is new was cached, and perhaps the answer before it;
        may_be(self.since, self.answer + self.since, from)
            // or what stands before the messages was.
            || may_be(self.tokens(), self.tokens(), before + from)
    }
}

/// True if a report is so near to this range that nothing has to be estimated.
fn is_clearly(reported: u64, [least, most]: [usize; 2]) -> bool {
    (least as u64 * 3 / 4..=(most + most / 2 + TEMPLATE) as u64).contains(&reported)
}

/// Ignores images: each model uses another number of tokens for them.
fn estimator() -> Estimator {
    Estimator::new().with_costs(costs())
}

fn costs() -> Costs {
    let mut costs = Costs::default();
    (costs.image_low, costs.image_auto, costs.image_high) = (0, 0, 0);
    costs
}

/// Counts any text as four bytes per token.
struct Lengths;

impl TokenCounter for Lengths {
    fn count_text(&self, text: &str) -> usize {
        text.len().div_ceil(4)
    }

    fn count_json(&self, value: &Value) -> usize {
        match value {
            Value::Array(list) => list.iter().map(|value| 1 + self.count_json(value)).sum(),
            Value::Object(members) => {
                let sums = members.iter();
                sums.map(|(name, value)| 1 + self.count_text(name) + self.count_json(value)).sum()
            }
            Value::String(text) => self.count_text(text),
            Value::Bool(_) | Value::Null | Value::Number(_) => 1,
        }
    }

    fn costs(&self) -> Costs {
        costs()
    }
}

/// A token has at least three bytes in nearly any request, with the JSON around it, and a prompt counts as cut if
/// less than half of it was read.
const BYTES_PER_TOKEN: u64 = 6;

/// The largest factor between actual and estimated tokens.
const DENSEST: usize = Calibration::MAX as usize;

/// Prompt tokens that remain to be read when the same prompt is sent again.
const REPEATED: u64 = 16;

/// Tokens that templates add to an answer and what follows it.
const TEMPLATE: usize = 64;

/// The tokens that an image may take.
const LARGEST_IMAGE: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::AgentOptions;

    /// Returns how many messages were estimated in a conversation of so many prompts, each reported so.
    fn estimated(prompts: usize, reported: impl Fn(usize) -> u64) -> usize {
        let options = AgentOptions::builder().model("any").build().unwrap();
        let settings = Arc::clone(&options.0);
        let (mut gauge, mut history) = (Gauge::default(), Vec::new());
        for number in 0..prompts {
            history.push(Message::user("A prompt of some words. ".repeat(50)));
            let revisions: Vec<u64> = (0..history.len() as u64).collect();
            gauge.sent(&settings, false, history.len() * 1_200);
            let mut usage = Usage::default();
            usage.prompt_tokens = Some(reported(number));
            gauge.read(&history, &revisions, &usage);
            history.push(Message::assistant(vec![oa_types::TextBlock::new("Yes.").into()]));
        }
        gauge.known.map_or(0, |known| known.estimates.len())
    }

    #[test]
    fn nothing_is_estimated_where_servers_report_almost_nothing() {
        assert_eq!(estimated(200, |_| 12), 0);
        // What is new alone.
        assert_eq!(estimated(200, |_| 260), 0);
    }

    #[test]
    fn a_cut_conversation_is_estimated_once() {
        let first = estimated(200, |_| 100);
        assert!((1..20).contains(&first), "{first}");
    }
}
