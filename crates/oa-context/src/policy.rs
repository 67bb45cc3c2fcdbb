use oa_types::{Message, ToolSpec};

use crate::counter::TokenCounter;
use crate::estimate::share;
use crate::summary::Summary;
use crate::truncate::{Cut, Truncation};

/// Says when a conversation is too long, and what to do about it then.
///
/// It is asked, and answers with a [`Plan`]; nothing happens unless somebody carries that out. Asking is pure:
/// the same conversation gives the same plan.
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
}

/// What is done about a conversation that is too long.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Overflow {
    /// The oldest exchanges go.
    #[default]
    DropOldest,
    /// The oldest exchanges go, and a model's summary of them takes their place.
    Summarize,
}

/// What is to be done about a conversation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Plan {
    /// Some messages go: [`Cut::apply`].
    Drop(Cut),
    /// Nothing: there is room.
    Keep,
    /// It is too long, and nothing of it may go: the system's messages, the last prompt, and the last answer
    /// with its results.
    Stuck,
    /// Some messages go, and a model is asked to summarize them.
    Summarize(Summary),
}

impl ContextPolicy {
    /// Creates the policy for a model with a context of `limit` tokens.
    ///
    /// At 80 % of it the oldest exchanges go, until at most half of it is full.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            trigger: 0.8,
            target: 0.5,
            overflow: Overflow::default(),
            instructions: INSTRUCTIONS.to_owned(),
        }
    }

    /// Sets the part of the limit from which on something is done, from 0 to 1. The answer has to fit into
    /// what is above it.
    pub fn with_trigger(mut self, trigger: f64) -> Self {
        self.trigger = trigger;
        self
    }

    /// Sets the part of the limit to which the conversation is brought down, from 0 to 1. What is above the
    /// trigger counts as the trigger.
    pub fn with_target(mut self, target: f64) -> Self {
        self.target = target;
        self
    }

    /// Sets what is done.
    pub fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// Sets what a model is told when it is to write a summary.
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = instructions.into();
        self
    }

    /// Says what to do about a conversation which is sent with these tools.
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
        let target = share(self.limit, self.target).min(trigger).saturating_sub(tools);
        let cut = |tokens| Truncation::new().within(messages, tokens, counter);
        match self.overflow {
            Overflow::DropOldest => {
                let cut = cut(target);
                if cut.is_whole() { Plan::Stuck } else { Plan::Drop(cut) }
            }
            Overflow::Summarize => {
                // A fifth of what stays is for the summary.
                let room = target / 5;
                let cut = cut(target - room);
                if cut.is_whole() {
                    return Plan::Stuck;
                }
                let asked = share(self.limit, self.target.min(self.trigger));
                let instructions = self.instructions.clone();
                Plan::Summarize(Summary::new(messages, cut, instructions, room, asked, counter))
            }
        }
    }
}

const INSTRUCTIONS: &str = "\
Summarize the conversation below, so that an assistant which has read only your summary can go on with it. \
Keep what was asked and decided, facts, names, numbers, paths and results that may still matter, and what \
is left to be done. Leave out greetings and what turned out to be wrong. Write in the conversation's own \
language, in short plain sentences, without an introduction.";
