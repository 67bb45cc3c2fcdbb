//! Detects from reported usage that a server truncated a prompt.

mod counters;
mod running;

use oa_types::{Message, ToolSpec, Usage};
use serde::{Deserialize, Serialize};

use crate::calibration::Calibration;
use crate::counter::TokenCounter;

use self::counters::{LengthCounter, estimator};
use self::running::{Parts, RunningCounts};

/// A prompt that the server seems to have truncated: it reports far fewer tokens than were sent (QUIRKS row 101).
///
/// Some servers drop the part of a prompt that does not fit into the model's context, and answer as if nothing had
/// happened: the model never sees its tools or the system prompt. Load the model with a larger context, or send less.
///
/// # Accuracy
///
/// A prompt counts as truncated if the server reports less than half of an estimate that ignores images and audio and
/// counts tools at half their size, because templates vary. Not detected: a truncation that keeps more than half of
/// the prompt, a server that counts the tokens it received instead of those the model read, and a server that reports
/// no usage.
///
/// Some servers count only tokens that were not in their prompt cache. If they report cached tokens, those are added.
/// If they do not, no cut is reported as long as the count could be that of messages since the last answer, or of a
/// whole conversation whose tools and system prompt were cached. With such a server, a long prompt that shares its
/// beginning with another conversation can still look truncated.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PromptCut {
    /// A lower bound on the estimated tokens of the request.
    pub estimated: u64,
    /// The tokens that the server reports as read, including cached ones.
    pub reported: u64,
}

/// One request, as a [`PromptCutDetector`] needs it.
#[derive(Debug)]
#[non_exhaustive]
pub struct SentPrompt<'a, O> {
    /// The conversation, without [`system_prompt`](Self::system_prompt).
    pub messages: &'a [Message],
    /// The revision of each message: within one conversation, equal revisions mean equal messages. Messages without a
    /// revision are not counted.
    pub revisions: &'a [u64],
    /// A value that stands for the model, the system prompt and the tools: equal values mean that these are equal.
    pub options: &'a O,
    /// The system prompt, unless it is one of the messages. `None` by default.
    pub system_prompt: Option<&'a str>,
    /// The tools that this request offers; none by default. Requests with equal options offer the same tools, or none.
    pub tools: &'a [ToolSpec],
    /// The length of the request body in bytes, if known, which saves most of the work. `None` by default.
    pub bytes: Option<usize>,
}

impl<'a, O> SentPrompt<'a, O> {
    /// Describes a request of unknown length without a system prompt and tools.
    #[must_use]
    pub fn new(messages: &'a [Message], revisions: &'a [u64], options: &'a O) -> Self {
        Self { messages, revisions, options, system_prompt: None, tools: &[], bytes: None }
    }
}

/// Detects truncated prompts by comparing the token counts that the server reports with estimates.
///
/// Use one detector per conversation, and call [`check`](Self::check) with each answer. [`PromptCut`] describes the
/// accuracy.
///
/// `O` identifies the options of a request, for example a revision number, or a shared pointer compared by address. It
/// is cloned only if the lengths alone do not decide. Findings about other options are discarded, because those may be
/// of a model with a larger context.
///
/// # Cost
///
/// Estimates are expensive, and a conversation may have hundreds of answers. So the length of the request is compared
/// first, without allocations; that decides whenever the server reports plenty of tokens. Next come the lengths of the
/// messages, each measured once. Only then are tokens estimated: once for each message, and again only after the
/// conversation has grown by a quarter. If a prompt extends a truncated one, its tokens are extrapolated from its
/// length.
///
/// # Examples
///
/// ```
/// use oa_context::{PromptCutDetector, SentPrompt};
/// use oa_types::{Message, Usage};
///
/// let history = [Message::user("Once upon a time there was a fox. ".repeat(1_000))];
/// let options = 1; // to be raised whenever the model, the system prompt or the tools change
/// let mut sent = SentPrompt::new(&history, &[1], &options);
/// sent.system_prompt = Some("You are brief.");
///
/// let mut usage = Usage::default();
/// usage.prompt_tokens = Some(2_048); // reported with the answer
/// let mut detector = PromptCutDetector::new();
/// let cut = detector.check(&sent, &usage).expect("the server read a quarter of it");
/// assert_eq!(cut.reported, 2_048);
/// assert!((8_000..10_000).contains(&cut.estimated));
///
/// usage.prompt_tokens = Some(9_000);
/// assert_eq!(detector.check(&sent, &usage), None);
/// ```
#[derive(Clone, Debug)]
pub struct PromptCutDetector<O> {
    /// `None` until a request whose length did not decide. Boxed, because it is rarely needed.
    state: Option<Box<State<O>>>,
}

impl<O: Clone + PartialEq> PromptCutDetector<O> {
    /// Creates a detector for a new conversation.
    #[must_use]
    pub fn new() -> Self {
        Self { state: None }
    }

    /// Returns the finding if the server seems to have truncated this request, given the usage of its answer.
    ///
    /// A usage without [`prompt_tokens`](Usage::prompt_tokens) is ignored.
    pub fn check(&mut self, sent: &SentPrompt<'_, O>, usage: &Usage) -> Option<PromptCut> {
        let cached = usage.cached_tokens.unwrap_or_default();
        // Some servers report cached tokens in addition to the others. If the others include them, they count twice,
        // and a cut may be missed.
        let tokens = usage.prompt_tokens?.saturating_add(cached);
        if sent.bytes.is_some_and(|bytes| is_plenty(tokens, bytes)) {
            return None;
        }
        self.state.get_or_insert_default().check(sent, Reported { tokens, cached })
    }
}

impl<O: Clone + PartialEq> Default for PromptCutDetector<O> {
    fn default() -> Self {
        Self::new()
    }
}

/// Tokens that a server reports as read.
#[derive(Clone, Copy, Debug)]
struct Reported {
    /// All of them, including cached ones.
    tokens: u64,
    /// The cached ones, if the server reports them.
    cached: u64,
}

/// The conversation as last sent, kept once the length of a request did not decide.
#[derive(Clone, Debug)]
struct State<O> {
    /// The messages whose lengths are known.
    revisions: Vec<u64>,
    lengths: RunningCounts,
    /// The estimated tokens of the same messages, as far as they were needed.
    estimates: RunningCounts,
    overhead: Option<Overhead<O>>,
    finding: Finding,
}

/// The estimated tokens of everything except the messages.
#[derive(Clone, Debug)]
struct Overhead<O> {
    options: O,
    system_prompt: usize,
    /// `None` until a request offers tools.
    tools: Option<usize>,
}

/// The last finding about the current conversation and options.
#[derive(Clone, Copy, Debug, Default)]
enum Finding {
    /// It was truncated at this size, so anything that extends it was, too.
    Cut(PromptSize),
    /// No truncation was found at this size.
    NotCut(PromptSize),
    #[default]
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct PromptSize {
    /// As estimated.
    tokens: usize,
    /// In the tokens of [`LengthCounter`].
    length: usize,
}

impl<O: Clone + PartialEq> State<O> {
    fn check(&mut self, sent: &SentPrompt<'_, O>, reported: Reported) -> Option<PromptCut> {
        // Cheapest first: an earlier finding, then lengths, then estimates. Only estimates lead to a cut.
        let numbered = sent.messages.len().min(sent.revisions.len());
        let messages = &sent.messages[..numbered];
        let overhead = self.overhead(sent);
        self.follow(messages, &sent.revisions[..numbered]);
        let lengths = self.lengths.parts();
        let length = lengths.tokens() + overhead;
        let tokens = match self.finding {
            // `follow` and `overhead` have dropped a finding that this prompt does not extend.
            Finding::Cut(size) => size.grown_to(length),
            Finding::NotCut(size) if !size.is_outgrown(length, reported.tokens) => return None,
            Finding::NotCut(_) | Finding::Unknown => {
                // A server that reports cached tokens has included them in the count, so that a low count
                // means a cut.
                if reported.cached == 0 && lengths.are_surely_uncached(reported.tokens) {
                    return None;
                }
                self.estimates.follow(&estimator(), messages);
                let parts = self.estimates.parts();
                let tokens = parts.tokens() + overhead;
                if reported.cached == 0 && parts.may_be_uncached(reported.tokens) {
                    self.finding = Finding::NotCut(PromptSize { tokens, length });
                    return None;
                }
                tokens
            }
        };
        let size = PromptSize { tokens, length };
        if !Calibration::is_cut_short(tokens, reported.tokens) {
            self.finding = Finding::NotCut(size);
            return None;
        }
        self.finding = Finding::Cut(size);
        Some(PromptCut { estimated: tokens as u64, reported: reported.tokens })
    }

    /// Returns the estimated tokens of the system prompt and the tools. Tools count half, because templates vary.
    fn overhead(&mut self, sent: &SentPrompt<'_, O>) -> usize {
        let is_same = |overhead: &Overhead<O>| overhead.options == *sent.options;
        let overhead = self.overhead.take().filter(is_same).unwrap_or_else(|| {
            // Another model may have more context.
            self.finding = Finding::Unknown;
            let prompt = sent.system_prompt.map(Message::system);
            Overhead {
                options: sent.options.clone(),
                system_prompt: prompt.map_or(0, |prompt| estimator().count_message(&prompt)),
                tools: None,
            }
        });
        let Overhead { system_prompt, tools, .. } = self.overhead.insert(overhead);
        if sent.tools.is_empty() {
            return *system_prompt;
        }
        *system_prompt + *tools.get_or_insert_with(|| estimator().count_tools(sent.tools) / 2)
    }

    /// Adds new messages. If earlier ones have changed, the last finding is dropped.
    fn follow(&mut self, messages: &[Message], revisions: &[u64]) {
        let mut kept = self.revisions.len();
        if revisions.get(..kept) != Some(&*self.revisions) {
            let same = |(one, other): &(&u64, &u64)| one == other;
            kept = self.revisions.iter().zip(revisions).take_while(same).count();
            self.finding = Finding::Unknown;
        }
        self.revisions.truncate(kept);
        self.revisions.extend_from_slice(&revisions[kept..]);
        self.lengths.truncate(kept);
        self.estimates.truncate(kept);
        self.lengths.follow(&LengthCounter, messages);
    }
}

impl<O> Default for State<O> {
    fn default() -> Self {
        Self {
            revisions: Vec::new(),
            lengths: RunningCounts::default(),
            estimates: RunningCounts::default(),
            overhead: None,
            finding: Finding::default(),
        }
    }
}

impl PromptSize {
    /// Returns the tokens of a prompt of another length that is as dense as this one.
    fn grown_to(self, length: usize) -> usize {
        let tokens = self.tokens as u128 * length as u128 / self.length.max(1) as u128;
        usize::try_from(tokens).unwrap_or(usize::MAX)
    }

    /// Returns true if the prompt has grown enough to be estimated again, and may be too long by now.
    fn is_outgrown(self, length: usize, reported: u64) -> bool {
        length > self.length + self.length / 4
            && self.grown_to(length) as u64 > reported.saturating_mul(2)
    }
}

impl Parts {
    /// Returns true if a report is so close to the lengths of the parts that may have been uncached that no estimate
    /// is needed.
    fn are_surely_uncached(&self, reported: u64) -> bool {
        // A narrower range than that of `may_be_uncached`, because lengths tell less than estimates.
        let (least, most) = (self.since_answer, self.answer + self.since_answer);
        reported <= REPEATED_PROMPT_TOKENS
            || (least as u64 * 3 / 4..=(most + most / 2 + TEMPLATE_TOKENS) as u64)
                .contains(&reported)
    }

    /// Returns true if a report may be low because the rest of the prompt was cached.
    fn may_be_uncached(&self, reported: u64) -> bool {
        let may_be = |least: usize, most: usize, media: usize| {
            let most = most * MAX_TOKENS_PER_ESTIMATED + media * MAX_IMAGE_TOKENS + TEMPLATE_TOKENS;
            (least as u64 / 2..=most as u64).contains(&reported)
        };
        // Either everything before the last answer was cached, and perhaps the answer itself;
        may_be(self.since_answer, self.answer + self.since_answer, self.media_from_answer)
            // or only the part before the messages was.
            || may_be(self.tokens(), self.tokens(), self.media())
    }
}

/// Returns true if a request of this length cannot have been truncated, given the tokens read.
fn is_plenty(tokens: u64, bytes: usize) -> bool {
    tokens.saturating_mul(MAX_BYTES_PER_TOKEN) >= bytes as u64
}

/// The number of bytes sent per token read up to which a prompt is not cut: a token takes at least three bytes in
/// nearly any request, including JSON syntax, and a prompt counts as cut if less than half of it was read.
const MAX_BYTES_PER_TOKEN: u64 = 6;

/// The largest factor between actual and estimated tokens.
const MAX_TOKENS_PER_ESTIMATED: usize = Calibration::MAX as usize;

/// The tokens that a server still reads when a cached prompt is sent again.
const REPEATED_PROMPT_TOKENS: u64 = 16;

/// The tokens that templates add to an answer and what follows it.
const TEMPLATE_TOKENS: usize = 64;

/// The tokens that an image may take.
const MAX_IMAGE_TOKENS: usize = 4_096;

#[cfg(test)]
mod tests {
    use oa_types::TextBlock;

    use super::*;

    /// Returns the number of messages that were estimated in a conversation of so many prompts, for a server that
    /// reports these tokens for each.
    fn estimated(prompts: usize, reported: u64) -> usize {
        let (mut detector, mut history) = (PromptCutDetector::new(), Vec::new());
        let mut usage = Usage::default();
        usage.prompt_tokens = Some(reported);
        for _ in 0..prompts {
            history.push(Message::user("A prompt of some words. ".repeat(50)));
            let revisions: Vec<u64> = (0..history.len() as u64).collect();
            let mut sent = SentPrompt::new(&history, &revisions, &());
            sent.bytes = Some(history.len() * 1_200);
            detector.check(&sent, &usage);
            history.push(Message::assistant(vec![TextBlock::new("Yes.").into()]));
        }
        detector.state.map_or(0, |state| state.estimates.len())
    }

    #[test]
    fn low_reports_need_no_estimate() {
        assert_eq!(estimated(200, 12), 0);
        // What is new alone.
        assert_eq!(estimated(200, 260), 0);
    }

    #[test]
    fn a_cut_conversation_is_estimated_once() {
        let first = estimated(200, 100);
        assert!((1..20).contains(&first), "{first}");
    }
}
