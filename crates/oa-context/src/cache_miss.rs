//! Detects from reported usage that a server read a prompt again although it should have had it in its cache.

use oa_types::Usage;
use serde::{Deserialize, Serialize};

/// Ignored differences, in tokens: servers cache prompts in blocks, and some always read the end of a prompt again.
const SLACK: u64 = 256;

/// A prompt cache miss: the server had far fewer tokens of this prompt in its cache than of the previous prompt of the
/// same conversation. It has to read them again, which takes time.
///
/// Either the beginning of the request has changed, and [`first_changed`](Self::first_changed) says where: move the
/// changing parts to the end. Or it is unchanged and the server has dropped the cache, because other conversations
/// share its slots or another model was loaded.
///
/// # Thresholds
///
/// A miss is reported if the cached tokens are less than half of the previous number and at least 256 fewer, and at
/// least 256 tokens of the prompt were not cached. Both answers must report cached tokens and be from the same model.
/// A request that has no message in common with the previous one starts a new conversation, for which nothing is
/// reported.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CacheMiss {
    /// The cached tokens of the previous prompt.
    pub cached_before: u64,
    /// The cached tokens of this prompt.
    pub cached_now: u64,
    /// The first part that differs from the previous request; `None` if this request only extends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_changed: Option<ChangedPart>,
}

/// A part of a request that differs from the previous request.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangedPart {
    /// The part before the messages: the system prompt or the tools.
    BeforeMessages,
    /// The message with this index in the conversation.
    Message(usize),
}

/// Compares the cached tokens of successive requests in one conversation, and returns a [`CacheMiss`] if they
/// collapsed.
///
/// `P` stands for everything before the messages: equal values mean equal bytes. Nothing is stored while the server
/// reports no cached tokens.
///
/// ```
/// use oa_context::{CacheMissDetector, ChangedPart, SentPrefix};
/// use oa_types::Usage;
///
/// let mut detector = CacheMissDetector::default();
/// let mut usage = Usage::default();
/// (usage.prompt_tokens, usage.cached_tokens) = (Some(4_000), Some(3_900));
/// assert_eq!(detector.check(SentPrefix::new("qwen3:8b", "You are kind.", &[1, 2, 3]), &usage), None);
/// // The second message was changed.
/// (usage.prompt_tokens, usage.cached_tokens) = (Some(4_100), Some(40));
/// let miss = detector.check(SentPrefix::new("qwen3:8b", "You are kind.", &[1, 4, 3]), &usage);
/// assert_eq!(miss.unwrap().first_changed, Some(ChangedPart::Message(1)));
/// ```
#[derive(Clone, Debug)]
pub struct CacheMissDetector<P> {
    last: Option<Last<P>>,
}

#[derive(Clone, Debug)]
struct Last<P> {
    model: String,
    before: P,
    revisions: Vec<u64>,
    cached: u64,
}

/// The parts of a request that determine how much of it can be cached.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SentPrefix<'a, P> {
    /// The model.
    pub model: &'a str,
    /// The part of the request before the messages.
    pub before: P,
    /// The revision of each message. Equal revisions mean equal messages.
    pub revisions: &'a [u64],
}

impl<'a, P> SentPrefix<'a, P> {
    /// Describes a request.
    #[must_use]
    pub fn new(model: &'a str, before: P, revisions: &'a [u64]) -> Self {
        Self { model, before, revisions }
    }
}

impl<P: PartialEq> CacheMissDetector<P> {
    /// Records an answered request with its reported usage, and compares it with the previous one.
    pub fn check(&mut self, sent: SentPrefix<'_, P>, usage: &Usage) -> Option<CacheMiss> {
        let SentPrefix { model, before, revisions } = sent;
        let Some(cached) = usage.cached_tokens else {
            self.last = None;
            return None;
        };
        let (model, revisions) = (model.to_owned(), revisions.to_vec());
        let now = Last { model, before, revisions, cached };
        // Evaluated from left to right: the old one is taken before the new one is stored.
        let (last, now) = (self.last.take(), self.last.insert(now));
        let last = last.filter(|last| last.model == now.model)?;
        // Without a count of the whole prompt, the loss alone decides.
        let uncached = usage.prompt_tokens.map_or(SLACK, |prompt| prompt.saturating_sub(cached));
        let lost = last.cached.saturating_sub(cached);
        if lost < SLACK || cached >= last.cached.div_ceil(2) || uncached < SLACK {
            return None;
        }
        let first_changed = now.first_changed(&last);
        let is_new = first_changed == Some(ChangedPart::Message(0))
            && !now.revisions.iter().any(|revision| last.revisions.contains(revision));
        (!is_new).then_some(CacheMiss {
            cached_before: last.cached,
            cached_now: cached,
            first_changed,
        })
    }
}

impl<P: PartialEq> Last<P> {
    /// Returns the first part that differs from the previous request.
    fn first_changed(&self, last: &Self) -> Option<ChangedPart> {
        if self.before != last.before {
            return Some(ChangedPart::BeforeMessages);
        }
        let same = self.revisions.iter().zip(&last.revisions).take_while(|(now, old)| now == old);
        Some(same.count()).filter(|same| *same < last.revisions.len()).map(ChangedPart::Message)
    }
}

impl<P> Default for CacheMissDetector<P> {
    fn default() -> Self {
        Self { last: None }
    }
}
