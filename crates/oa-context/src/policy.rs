use oa_types::{Message, ToolSpec};

use crate::counter::TokenCounter;
use crate::estimate::share;
use crate::summary::{FRAME, Summary};
use crate::truncate::{Truncated, Truncation};

/// Decides when a conversation is too long, and what to do about it.
///
/// It returns a [`Plan`] for the caller to carry out and does nothing by itself. It is deterministic: the same
/// conversation gives the same plan.
///
/// # Examples
///
/// ```
/// use oa_context::{ContextPolicy, Estimator, Overflow, Plan};
/// # use oa_types::{Message, TextBlock};
/// # fn model(request: Vec<Message>) -> String { "They spoke of bees.".into() }
/// # let answer = || Message::assistant(vec![TextBlock::new("Bees! ".repeat(80)).into()]);
/// # let mut history: Vec<Message> =
/// #     (0..10).flat_map(|_| [Message::user("What about bees?"), answer()]).collect();
///
/// let policy = ContextPolicy::new(1_000).with_overflow(Overflow::Summarize);
/// let counter = Estimator::new();
/// match policy.plan(&history, &[], &counter) {
///     Plan::Keep => {}
///     Plan::Drop(cut) => history = cut.apply(&history),
///     Plan::Summarize(mut summary) => {
///         while let Some(request) = summary.next_request() {
///             summary.push(model(request));
///         }
///         history = summary.finish(&history);
///     }
///     Plan::Stuck => eprintln!("the last exchange alone is too long"),
///     _ => {}
/// }
/// # assert!(history[0].text().contains("They spoke of bees."));
/// # assert!(matches!(policy.plan(&history, &[], &counter), Plan::Keep));
/// ```
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is asked"]
pub struct ContextPolicy {
    limit: usize,
    trigger: f64,
    target: f64,
    overflow: Overflow,
    instructions: String,
    kept_results: usize,
}

/// The strategy for a conversation that is too long.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Overflow {
    /// Drop the oldest exchanges.
    #[default]
    DropOldest,
    /// Replace the oldest exchanges with a summary written by a model; drop them if they are hardly longer than a
    /// summary.
    Summarize,
}

/// The plan for a conversation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Plan {
    /// Drop some messages: [`Truncated::apply`].
    Drop(Truncated),
    /// Do nothing; there is room.
    Keep,
    /// It is too long, but nothing can be dropped: the leading system messages, the last prompt and the last
    /// answer with its results must stay.
    Stuck,
    /// Drop some messages and have a model summarize them.
    Summarize(Summary),
}

impl ContextPolicy {
    /// Creates a policy for a model with a context of `limit` tokens.
    ///
    /// At 80 % of the limit, the oldest exchanges are dropped until at most half is full.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            trigger: 0.8,
            target: 0.5,
            overflow: Overflow::default(),
            instructions: INSTRUCTIONS.to_owned(),
            kept_results: 3,
        }
    }

    /// Sets the trigger as a fraction of the limit, from 0 to 1. The answer must fit into the rest.
    pub fn with_trigger(mut self, trigger: f64) -> Self {
        self.trigger = trigger;
        self
    }

    /// Sets the target size as a fraction of the limit, from 0 to 1; at most the trigger.
    pub fn with_target(mut self, target: f64) -> Self {
        self.target = target;
        self
    }

    /// Sets the strategy.
    pub fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// Sets the instructions for the model that writes a summary. After them, it reads how many words it may use: what
    /// fits into a fifth of the target. A longer summary is cut.
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = instructions.into();
        self
    }

    /// Sets the number of most recent tool results that are not cleared during a turn; 3 by default. See
    /// [`shorten`](Self::shorten).
    pub fn with_kept_results(mut self, results: usize) -> Self {
        self.kept_results = results;
        self
    }

    /// Checks the limit and its fractions. An agent checks its policy when it is built.
    ///
    /// # Errors
    ///
    /// The limit is 0, or the trigger or the target is not from 0 to 1.
    pub fn check(&self) -> Result<(), &'static str> {
        let is_fraction = |part: f64| (0.0..=1.0).contains(&part);
        if self.limit == 0 {
            return Err("the limit of a context must be at least 1 token");
        }
        if !is_fraction(self.trigger) {
            return Err("the trigger of a context must be from 0 to 1");
        }
        if !is_fraction(self.target) {
            return Err("the target of a context must be from 0 to 1");
        }
        Ok(())
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn trigger(&self) -> f64 {
        self.trigger
    }

    pub(crate) fn target(&self) -> f64 {
        self.target
    }

    pub(crate) fn overflow(&self) -> Overflow {
        self.overflow
    }

    pub(crate) fn instructions(&self) -> &str {
        &self.instructions
    }

    pub(crate) fn kept_results(&self) -> usize {
        self.kept_results
    }

    /// Returns the plan for a conversation that is sent with these tools.
    #[must_use]
    pub fn plan<C>(&self, messages: &[Message], tools: &[ToolSpec], counter: &C) -> Plan
    where
        C: TokenCounter + ?Sized,
    {
        let tools = counter.count_tools(tools);
        let count = counter.count_messages(messages).saturating_add(tools);
        let trigger = share(self.limit, self.trigger);
        if messages.is_empty() || count < trigger {
            return Plan::Keep;
        }
        // Below the trigger, or the next plan would shorten again.
        let target = share(self.limit, self.target).min(trigger.saturating_sub(1));
        let target = target.saturating_sub(tools);
        let cut = |tokens| Truncation::new().within(messages, tokens, counter);
        match self.overflow {
            Overflow::DropOldest => {
                let cut = cut(target);
                if cut.is_whole() { Plan::Stuck } else { Plan::Drop(cut) }
            }
            Overflow::Summarize => {
                // A fifth of the target is for the summary.
                let room = target / 5;
                let cut = cut(target - room);
                if cut.is_whole() {
                    return Plan::Stuck;
                }
                let gone = cut.dropped().into_iter().flat_map(|range| &messages[range]);
                let lost = gone.map(|message| counter.count_message(message));
                let lost = lost.fold(0, usize::saturating_add);
                let Some(room) = Summary::room(room, lost, FRAME) else { return Plan::Drop(cut) };
                let asked = share(self.limit, self.target.min(self.trigger));
                let instructions = self.instructions.clone();
                Plan::Summarize(Summary::new(messages, cut, instructions, room, asked, counter))
            }
        }
    }
}

const INSTRUCTIONS: &str = "\
Summarize the conversation below, so that an assistant that has read only your summary can continue it. \
Keep what was asked and decided, facts, names, numbers, paths and results that may still matter, and what \
is left to be done. Leave out greetings and what turned out to be wrong. Write in the conversation's own \
language, in short plain sentences, without an introduction.";
