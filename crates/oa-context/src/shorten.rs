//! Shortens conversations during a turn.

use std::ops::Range;
use std::{fmt, iter};

use oa_types::{ContentBlock, Message, MessageRole, ToolResultBlock, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::calibration::Calibration;
use crate::counter::TokenCounter;
use crate::estimate::share;
use crate::exchange::{exchanges, leading_system};
use crate::policy::{ContextPolicy, Overflow};
use crate::scaled::{Scaled, scale};
use crate::summary::{FRAME, Summary, is_summary};
use crate::truncate::Truncated;

/// A conversation that is about to be sent, ending with a turn in progress.
#[derive(Clone, Copy)]
pub struct RunningTurn<'a> {
    messages: &'a [Message],
    prompt: Option<usize>,
    keep_from: usize,
    system: Option<&'a Message>,
    tools: &'a [ToolSpec],
    reported: Option<(u64, usize)>,
    is_overflow: bool,
    /// The sizes of the prompt and the context, as stated by the server when it rejected the request.
    refused: (Option<u64>, Option<u64>),
    summarizes: bool,
    readable: Option<&'a Readable<'a>>,
}

type Readable<'a> = dyn Fn(&ToolResultBlock) -> Option<String> + Send + Sync + 'a;

/// A planned shortening: the results to clear, the messages to drop, and optionally a summary to write.
///
/// If there is a [`summary`](Self::summary), have a model answer its requests. Then call [`finish`](Self::finish).
#[derive(Clone, Debug)]
#[must_use = "nothing is shortened until it is finished"]
pub struct Shortening {
    /// The whole conversation, with old results cleared.
    messages: Vec<Message>,
    cut: Truncated,
    summary: Option<Box<Summary>>,
    archived: Vec<Message>,
    cleared: usize,
    before: usize,
    /// The token count of everything except messages.
    fixed: usize,
    ratio: f64,
}

/// A conversation that was shortened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Shortened {
    /// The remaining messages.
    pub messages: Vec<Message>,
    /// The removed messages in full: those whose results were cleared, and those that were dropped or summarized.
    pub archived: Vec<Message>,
    /// The number of cleared results, not counting dropped messages.
    pub cleared: usize,
    /// The number of messages dropped or summarized.
    pub dropped: usize,
    /// True if a summary replaces the dropped messages.
    pub is_summarized: bool,
    /// The tokens before shortening, including tools and system prompt.
    pub before: usize,
    /// The estimated tokens after shortening.
    pub after: usize,
}

/// The event that a conversation was shortened.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ContextShortened {
    /// The tokens before shortening, including tools and system prompt: the last reported number plus an estimate of
    /// the messages added since.
    pub before: usize,
    /// The estimated tokens after shortening.
    pub after: usize,
    /// The changes made to the conversation.
    pub how: HowShortened,
}

/// The changes made by shortening. Several of the numbers may be nonzero.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HowShortened {
    /// The number of tool results whose content was cleared.
    pub results_cleared: usize,
    /// The number of messages dropped.
    pub messages_dropped: usize,
    /// The number of messages replaced by a summary.
    pub messages_summarized: usize,
    /// The error of a failed summary, because of which messages were dropped instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_error: Option<String>,
}

impl Shortened {
    /// Returns the event.
    #[must_use]
    pub fn event(&self) -> ContextShortened {
        let Self { cleared, dropped, is_summarized, before, after, .. } = *self;
        let how = HowShortened {
            results_cleared: cleared,
            messages_dropped: if is_summarized { 0 } else { dropped },
            messages_summarized: if is_summarized { dropped } else { 0 },
            summary_error: None,
        };
        ContextShortened { before, after, how }
    }
}

impl<'a> RunningTurn<'a> {
    /// Describes a conversation. `prompt` is the index of the prompt that began the turn; it and all later user
    /// messages are kept. All messages from `keep_from` on are kept, too: the last answer and its results.
    #[must_use]
    pub fn new(messages: &'a [Message], prompt: Option<usize>, keep_from: usize) -> Self {
        Self {
            messages,
            prompt,
            keep_from: keep_from.min(messages.len()),
            system: None,
            tools: &[],
            reported: None,
            is_overflow: false,
            refused: (None, None),
            summarizes: true,
            readable: None,
        }
    }

    /// Sets the system prompt and the tools that are sent with the messages.
    #[must_use]
    pub fn with_fixed(mut self, system: Option<&'a Message>, tools: &'a [ToolSpec]) -> Self {
        (self.system, self.tools) = (system, tools);
        self
    }

    /// Sets the token count that the server last reported, including tools and system prompt, and the number of
    /// messages that it covers, from the first.
    #[must_use]
    pub fn with_reported(mut self, reported: Option<(u64, usize)>) -> Self {
        let length = self.messages.len();
        self.reported = reported.map(|(tokens, messages)| (tokens, messages.min(length)));
        self
    }

    /// Sets whether the server has just rejected the conversation as too long. It is then shortened regardless of its
    /// estimated size, to half the target and to at most half of that size, because the estimate was wrong by an
    /// unknown factor. If the server [stated the sizes](Self::with_refused), those are used.
    #[must_use]
    pub fn after_overflow(mut self, is_overflow: bool) -> Self {
        self.is_overflow = is_overflow;
        self
    }

    /// Sets the sizes, in tokens, that the server stated when it rejected the conversation. The conversation then
    /// counts as `prompt` tokens, including tools and system prompt, and is shortened to at most half of that. A
    /// `context` below the policy's limit replaces the limit. Has no effect unless set [after an
    /// overflow](Self::after_overflow).
    #[must_use]
    pub fn with_refused(mut self, prompt: Option<u64>, context: Option<u64>) -> Self {
        self.refused = (prompt, context);
        self
    }

    /// Drops messages instead of summarizing them, whatever the policy.
    #[must_use]
    pub fn without_summary(mut self, without: bool) -> Self {
        self.summarizes = !without;
        self
    }

    /// Sets a function that stores a result before it is cleared and returns a sentence that tells the model how to
    /// read it. By default, the note says that the model can call the tool again.
    #[must_use]
    pub fn with_readable(mut self, readable: &'a Readable<'a>) -> Self {
        self.readable = Some(readable);
        self
    }

    /// Returns the size, by the server's numbers if possible.
    fn size<C: TokenCounter + ?Sized>(&self, counter: &C) -> Size {
        let system = self.system.map_or(0, |system| counter.count_message(system));
        let fixed = counter.count_tools(self.tools).saturating_add(system);
        let measured = self.measured(fixed, counter);
        let is_measured = measured.is_some();
        let reported = measured.or_else(|| self.reported(fixed, counter));
        let ratio = reported.map_or(1.0, |reported| reported.ratio);
        let (counter, fixed) = (Scaled { counter, ratio }, scale(fixed, ratio));
        let before = match reported {
            Some(Measured { tokens, messages, .. }) => {
                let added = self.messages[messages..].iter().map(|new| counter.count_message(new));
                total(iter::once(usize::try_from(tokens).unwrap_or(usize::MAX)).chain(added))
            }
            None => counter.count_messages(self.messages).saturating_add(fixed),
        };
        Size { before, fixed, ratio, is_measured }
    }

    /// Returns the size of the whole conversation, if the server stated it with a rejection.
    fn measured<C: TokenCounter + ?Sized>(&self, fixed: usize, counter: &C) -> Option<Measured> {
        let tokens = self.refused.0.filter(|_| self.is_overflow)?;
        let messages = self.messages.len();
        let ratio = self.ratio(tokens, messages, fixed, counter)?;
        // At the bound, the estimate of the rest is unreliable.
        (ratio < Calibration::MAX).then_some(Measured { ratio, tokens, messages })
    }

    /// Returns the last reported size.
    fn reported<C: TokenCounter + ?Sized>(&self, fixed: usize, counter: &C) -> Option<Measured> {
        let (tokens, messages) = self.reported?;
        let ratio = self.ratio(tokens, messages, fixed, counter)?;
        Some(Measured { ratio, tokens, messages })
    }

    /// Returns the ratio between reported and estimated tokens, unless the report cannot be trusted.
    fn ratio<C>(&self, tokens: u64, messages: usize, fixed: usize, counter: &C) -> Option<f64>
    where
        C: TokenCounter + ?Sized,
    {
        let estimated = counter.count_messages(&self.messages[..messages]).saturating_add(fixed);
        // A server that counts far less has cut the prompt.
        let is_usable = estimated > 0 && !Calibration::is_cut_short(estimated, tokens);
        let ratio = tokens as f64 / estimated as f64;
        is_usable.then(|| ratio.clamp(Calibration::MIN, Calibration::MAX))
    }

    /// Returns true if this message must be kept.
    fn stays(&self, place: usize) -> bool {
        let is_prompt = self.prompt.is_some_and(|prompt| prompt <= place);
        place >= self.keep_from
            || place < leading_system(self.messages)
            || is_prompt && self.messages[place].role == MessageRole::User
    }

    /// Returns the units that can be dropped, oldest first: whole exchanges before the prompt, then steps of the turn.
    fn units(&self) -> Vec<Range<usize>> {
        // Of a system message, a question, its answer, the prompt, a call, its result and a last answer to be
        // kept, the units are 1..3 and 4..6.
        let system = leading_system(self.messages);
        let Some(prompt) = self.prompt.filter(|prompt| *prompt >= system) else {
            return Vec::new();
        };
        let end = prompt.min(self.keep_from);
        let earlier = &self.messages[..end];
        let mut units: Vec<Range<usize>> =
            exchanges(earlier).iter().map(|exchange| exchange.range()).collect();
        // Messages before the first prompt are dropped with it.
        match units.first_mut() {
            Some(first) => first.start = system,
            None if system < end => units.push(system..end),
            None => {}
        }
        for place in prompt..self.keep_from {
            match self.messages[place].role {
                MessageRole::User => {}
                // Results follow the answer with their calls.
                MessageRole::Tool => match units.last_mut() {
                    Some(last) if last.end == place => last.end += 1,
                    _ => units.push(place..place + 1),
                },
                _ => units.push(place..place + 1),
            }
        }
        units
    }
}

impl ContextPolicy {
    /// Plans how to shorten a conversation before it is sent; `None` if there is room, or nothing can be removed.
    ///
    /// The size is the last reported number plus an estimate of newer messages, or an estimate alone. If it
    /// exceeds the [trigger](Self::with_trigger), all tool results but the [last few](Self::with_kept_results) are
    /// cleared. If that does not reach the [target](Self::with_target), the oldest exchanges and then the oldest steps
    /// of the turn are dropped or summarized. A summary becomes a separate user message, which a later summary
    /// replaces. It is shorter than the messages that it replaces; those hardly longer than a summary are dropped.
    ///
    /// Leading system messages, the turn's prompt, later user messages, and the last answer with its results are
    /// always kept. A system message between other messages belongs to its exchange, and leaves with it. If what is
    /// kept is more than twice the context by itself, nothing is shortened: it could not fit.
    ///
    /// ```
    /// use oa_context::{ContextPolicy, Estimator, RunningTurn};
    /// use oa_types::{Message, ToolResultBlock, ToolUseBlock};
    /// use serde_json::json;
    ///
    /// let mut messages = vec![Message::user("Read all pages.")];
    /// for page in 0..9 {
    ///     let id = format!("call_{page}");
    ///     messages.push(Message::assistant(vec![
    ///         ToolUseBlock::new(&*id, "read", json!({ "page": page })).into(),
    ///     ]));
    ///     let text = format!("Page {page}. {}", "It goes on and on. ".repeat(30));
    ///     messages.push(Message::tool(ToolResultBlock::new(id, json!(text))));
    /// }
    /// let turn = RunningTurn::new(&messages, Some(0), messages.len() - 2);
    /// let shortening = ContextPolicy::new(1_500).with_target(0.7).shorten(&turn, &Estimator::new());
    /// let shortened = shortening.expect("it is too long").finish(&Estimator::new());
    /// assert_eq!((shortened.cleared, shortened.dropped), (6, 0));
    /// assert!(shortened.after < 1_050 && shortened.messages.len() == messages.len());
    /// ```
    #[must_use]
    pub fn shorten<C>(&self, turn: &RunningTurn<'_>, counter: &C) -> Option<Shortening>
    where
        C: TokenCounter + ?Sized,
    {
        let size = turn.size(counter);
        let goal = self.goal(turn, &size)?;
        // From here on, all counts are in the tokens of the server.
        let counter = Scaled { counter, ratio: size.ratio };
        let (messages, cleared) = cleared(turn, goal.kept_results);
        // Counted after clearing, so that messages are dropped only for what clearing did not save.
        let weights: Vec<usize> =
            messages.iter().map(|message| counter.count_message(message)).collect();
        let (cut, summary) = self.cut(turn, &weights, &size, &goal, &counter)?;
        let dropped = cut.dropped();
        let is_dropped = |place: &usize| dropped.iter().any(|range| range.contains(place));
        // The places are in order.
        let leaves = |place: &usize| is_dropped(place) || cleared.binary_search(place).is_ok();
        let leaving = (0..turn.messages.len()).filter(leaves);
        let archived: Vec<_> = leaving.map(|place| turn.messages[place].clone()).collect();
        let cleared = cleared.iter().filter(|place| !is_dropped(place)).count();
        let Size { before, fixed, ratio, .. } = size;
        (!archived.is_empty()).then_some(Shortening {
            messages,
            cut,
            summary,
            archived,
            cleared,
            before,
            fixed,
            ratio,
        })
    }

    /// Returns the limits to meet; `None` if there is room.
    fn goal(&self, turn: &RunningTurn<'_>, size: &Size) -> Option<Goal> {
        let context = turn.refused.1.filter(|_| turn.is_overflow);
        let context = context.and_then(|context| usize::try_from(context).ok());
        let limit = self.limit().min(context.unwrap_or(usize::MAX));
        let trigger = share(limit, self.trigger());
        let target = share(limit, self.target()).min(trigger);
        let capacity = context.unwrap_or_else(|| self.limit());
        if !turn.is_overflow {
            let goal = Goal { kept_results: self.kept_results(), target, capacity };
            return (size.before >= trigger).then_some(goal);
        }
        // An estimate was wrong by an unknown amount.
        let target = if size.is_measured { target } else { target / 2 };
        // The answer may need room too, and the context may be smaller than the limit: the same size again would be
        // refused again.
        Some(Goal { kept_results: 0, target: target.min(size.before / 2), capacity })
    }

    /// Returns which messages remain, and the summary to write of the others; `None` if what must stay could not fit.
    /// The weights are the tokens of the messages after clearing.
    fn cut<C: TokenCounter + ?Sized>(
        &self,
        turn: &RunningTurn<'_>,
        weights: &[usize],
        size: &Size,
        goal: &Goal,
        counter: &Scaled<'_, C>,
    ) -> Option<(Truncated, Option<Box<Summary>>)> {
        let sum = |range: Range<usize>| total(weights[range].iter().copied());
        let room = goal.target.saturating_sub(size.fixed.saturating_add(counter.costs().reply));
        let all = 0..weights.len();
        if sum(all.clone()) <= room {
            return Some((Truncated::of(vec![all], weights.len()), None));
        }
        let must_stay = all.clone().filter(|place| turn.stays(*place));
        let must_stay = total(must_stay.map(|place| weights[place]));
        // Estimates are not wrong by as much, so the rest would be lost in vain.
        if must_stay.saturating_add(size.fixed) / HOPELESS > goal.capacity {
            return None;
        }
        let summarizes = turn.summarizes && self.overflow() == Overflow::Summarize;
        let (summary, frame) =
            if summarizes { (room / 5, scale(FRAME, size.ratio)) } else { (0, 0) };
        let mut left = room.saturating_sub(summary.saturating_add(frame)).saturating_sub(must_stay);
        // From the newest unit back, and not beyond the first that does not fit: what stays has no gaps.
        let units = turn.units();
        let fits = units.iter().rev().take_while(|unit| {
            let rest = left.checked_sub(sum((*unit).clone()));
            left = rest.unwrap_or(left);
            rest.is_some()
        });
        let mut gone = &units[..units.len() - fits.count()];
        // Summarizing only an earlier summary saves almost nothing.
        let is_summary = |unit: &Range<usize>| turn.messages[unit.clone()].iter().all(is_summary);
        // Also true if nothing goes.
        let is_old = summarizes && gone.iter().all(is_summary);
        if is_old && !turn.is_overflow {
            gone = &[];
        }
        let mut stays = vec![true; weights.len()];
        for unit in gone {
            stays[unit.clone()].fill(false);
        }
        let kept = all.filter(|place| stays[*place]).map(|place| place..place + 1).collect();
        let cut = Truncated::of(kept, weights.len());
        // Cleared results count in full, because the summary covers them.
        let lost = gone.iter().flat_map(|unit| &turn.messages[unit.clone()]);
        let lost = total(lost.map(|message| counter.count_message(message)));
        let summary = Summary::room(summary, lost, frame).filter(|_| !is_old).map(|room| {
            let words = self.instructions().to_owned();
            let summary =
                Summary::new(turn.messages, cut.clone(), words, room, goal.target, counter);
            Box::new(summary.standing_apart())
        });
        Some((cut, summary))
    }
}

impl Shortening {
    /// Returns the summary to write, if there is one. Send its requests to a model; without answers, the messages are
    /// dropped.
    pub fn summary(&mut self) -> Option<&mut Summary> {
        self.summary.as_deref_mut()
    }

    /// Returns the messages that will be removed, in full.
    #[must_use]
    pub fn archived(&self) -> &[Message] {
        &self.archived
    }

    /// Gives up the summary, so that the messages are dropped.
    pub fn give_up(&mut self) {
        self.summary = None;
    }

    /// Returns the shortened conversation. Pass the counter that was used for the plan.
    #[must_use]
    pub fn finish<C>(self, counter: &C) -> Shortened
    where
        C: TokenCounter + ?Sized,
    {
        let Self { messages, cut, summary, archived, cleared, before, fixed, ratio } = self;
        let summary = summary.filter(|summary| summary.is_written());
        let is_summarized = summary.is_some();
        let dropped = cut.dropped().into_iter().map(|range| range.len()).sum();
        let messages = match summary {
            Some(summary) => summary.finish(&messages),
            None => cut.apply(&messages),
        };
        let counter = Scaled { counter, ratio };
        let after = counter.count_messages(&messages).saturating_add(fixed);
        Shortened { messages, archived, cleared, dropped, is_summarized, before, after }
    }
}

impl fmt::Debug for RunningTurn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningTurn")
            .field("messages", &self.messages.len())
            .field("prompt", &self.prompt)
            .field("keep_from", &self.keep_from)
            .field("reported", &self.reported)
            .field("is_overflow", &self.is_overflow)
            .finish_non_exhaustive()
    }
}

/// Returns the messages with old results cleared, and the indexes of the changed messages.
fn cleared(turn: &RunningTurn<'_>, kept: usize) -> (Vec<Message>, Vec<usize>) {
    let mut messages = turn.messages.to_vec();
    let has_result = |place: &usize| {
        let is_result = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult(_));
        turn.messages[*place].content.iter().any(is_result)
    };
    let results = (0..messages.len()).rev().filter(has_result);
    let mut places: Vec<usize> =
        results.skip(kept).filter(|place| *place < turn.keep_from).collect();
    places.reverse();
    places.retain(|place| {
        let mut is_cleared = false;
        for block in &mut messages[*place].content {
            if let ContentBlock::ToolResult(result) = block {
                is_cleared |= clear(result, turn.readable);
            }
        }
        is_cleared
    });
    (messages, places)
}

/// Replaces the content and images of a result with a note, unless it is short and has no images. Returns true if it
/// did.
fn clear(result: &mut ToolResultBlock, readable: Option<&Readable<'_>>) -> bool {
    let chars = match &result.content {
        Value::String(text) => text.chars().count(),
        value => value.to_string().chars().count(),
    };
    // A note is not cleared again: it would name its own length, and the stored result would be the note.
    let is_note = |text: &str| text.starts_with(NOTE) && text.len() < LONGEST_NOTE;
    let is_small = chars < SHORTEST_CLEARED || result.content.as_str().is_some_and(is_note);
    if is_small && result.images.is_empty() {
        return false;
    }
    let how = readable.and_then(|readable| readable(result));
    let how = how.as_deref().unwrap_or("Call the tool again if you need it.");
    let images = match std::mem::take(&mut result.images).len() {
        0 => String::new(),
        1 => " and 1 image".to_owned(),
        count => format!(" and {count} images"),
    };
    let note = format!("{NOTE}{chars} characters{images} and was cleared to save space. {how}]");
    result.content = Value::String(note);
    true
}

/// If what must stay is estimated as more than this many contexts, it does not fit.
const HOPELESS: usize = 2;

const NOTE: &str = "[This result had ";
/// A result may begin like a note, so longer ones are not taken for a note.
const LONGEST_NOTE: usize = 1_000;
/// Below this length, a result is hardly longer than the note.
const SHORTEST_CLEARED: usize = 300;

/// A reported size of the first messages, including tools and system prompt.
#[derive(Clone, Copy)]
struct Measured {
    tokens: u64,
    messages: usize,
    /// The reported tokens per estimated token.
    ratio: f64,
}

/// The size of a conversation with tools and system prompt, in the tokens of the server.
struct Size {
    before: usize,
    /// The tokens of everything except messages.
    fixed: usize,
    /// The server's tokens per estimated token.
    ratio: f64,
    /// True if the server has measured the whole conversation.
    is_measured: bool,
}

/// The limits that shortening has to meet.
struct Goal {
    /// The number of results that are not cleared.
    kept_results: usize,
    /// Tokens, including tools and system prompt.
    target: usize,
    /// The tokens that the model can read at all.
    capacity: usize,
}

fn total(tokens: impl Iterator<Item = usize>) -> usize {
    tokens.fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use oa_types::ImageBlock;

    use super::*;

    #[test]
    fn images_are_cleared_with_their_result() {
        let mut result = ToolResultBlock::new("call_1", "A page.".into());
        assert!(!clear(&mut result, None), "it is short");
        result.images.extend(ImageBlock::from_url("https://host/a.png"));
        assert!(clear(&mut result, None));
        assert!(result.images.is_empty());
        let note = result.content.as_str().unwrap().to_owned();
        assert!(
            note.starts_with("[This result had 7 characters and 1 image and was cleared"),
            "{note}"
        );
        assert!(!clear(&mut result, None), "once");
    }
}
