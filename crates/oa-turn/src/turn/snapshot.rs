//! Snapshots: turns that move between processes.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use oa_types::{ContentBlock, Message, MessageRole};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Turn;
use super::failed::{Failure, SubmittedPrompt};
use super::output_state::OutputState;
use super::phase::{Phase, Rest};
use super::progress::Progress;
use super::shorten_state::ShortenState;
use crate::call::{Call, CallState};
use crate::conversation::Conversation;
use crate::error::{Error, ErrorKind};
use crate::options::{Mode, Options};
use crate::plan::StepPlan;
use crate::repair::{is_open, is_valid};
use crate::round::Round;

/// The format version of snapshots. Increment it when a change of [`State`] or its parts would make an older reader
/// misread new data, or this one misread old data.
const VERSION: u64 = 1;

/// A serializable [`Turn`]: history, calls, budgets, counters, options, and pending actions.
///
/// Create it with [`Turn::snapshot`], store it as JSON or in any other self-describing serde format, and turn it back
/// into a `Turn` with [`Turn::restore`]. Its content is private and may change with any version of this crate. It
/// carries a format version, and older formats stay readable.
///
/// Deserializing from JSON text fails if values are nested more than 100 levels deep.
///
/// ```
/// use oa_turn::{Action, Options, Turn, TurnSnapshot};
/// use oa_types::Message;
///
/// let mut turn = Turn::new(Options::auto());
/// turn.submit(Message::user("Hi."))?;
/// let request = turn.next_action();
/// let json = serde_json::to_string(&turn.snapshot())?;
///
/// // In another process, which performs the pending action.
/// let snapshot: TurnSnapshot = serde_json::from_str(&json)?;
/// let turn = Turn::restore(snapshot)?;
/// assert_eq!(turn.pending_action(), request);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TurnSnapshot(SnapshotForm);

#[derive(Clone)]
enum SnapshotForm {
    Known(Box<State>),
    /// A snapshot from another version of this crate.
    Other(Envelope<Value>),
}

#[derive(Clone, Deserialize, Serialize)]
struct Envelope<T> {
    version: u64,
    turn: T,
}

/// The fields of a [`Turn`].
#[derive(Clone, Debug, Deserialize, Serialize)]
struct State {
    options: Options,
    conversation: Conversation,
    phase: Phase,
    round: Round,
    out: VecDeque<ContentBlock>,
    final_text: Box<str>,
    progress: Progress,
    asked: Option<SubmittedPrompt>,
    failure: Option<Box<Failure>>,
    turns: u32,
    answers: u64,
    requests: u64,
    key_seed: Box<str>,
    output_tool: Option<String>,
    /// The invalid answers, if structured output is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    invalid_output: Option<Vec<u64>>,
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    external_tools: Box<[String]>,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    steered: VecDeque<Message>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<Box<StepPlan>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shortening: Option<Box<ShortenState>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused: Vec<Range<usize>>,
}

impl Turn {
    /// Returns a snapshot of the turn. It can be taken at any time, even while an action is being performed.
    /// History is shared, not copied.
    #[must_use]
    pub fn snapshot(&self) -> TurnSnapshot {
        // Without `..`, so that a new field of `Turn` cannot be forgotten.
        let Self {
            options,
            conversation,
            phase,
            round,
            out,
            final_text,
            progress,
            asked,
            failure,
            turns,
            answers,
            requests,
            key_seed,
            output,
            external_tools,
            steered,
            plan,
            shortening,
            refused,
        } = self;
        TurnSnapshot(SnapshotForm::Known(Box::new(State {
            options: *options,
            conversation: conversation.clone(),
            phase: phase.clone(),
            round: round.clone(),
            out: out.clone(),
            final_text: final_text.clone(),
            progress: progress.clone(),
            asked: asked.clone(),
            failure: failure.clone(),
            turns: *turns,
            answers: *answers,
            requests: *requests,
            key_seed: (&**key_seed).into(),
            output_tool: output.as_ref().and_then(|output| output.tool.clone()),
            invalid_output: output.as_ref().map(|output| output.invalid.clone()),
            external_tools: external_tools.clone(),
            steered: steered.clone(),
            plan: plan.clone(),
            shortening: shortening.clone(),
            refused: refused.clone(),
        })))
    }

    /// Creates a turn from a snapshot, in the state in which the snapshot was taken. Actions that were handed out
    /// before are not returned again by [`next_action`](Self::next_action); see
    /// [`pending_action`](Self::pending_action).
    ///
    /// # Errors
    ///
    /// `UnsupportedVersion` if the format version is not supported, `InvalidSnapshot` if the snapshot is inconsistent.
    pub fn restore(snapshot: TurnSnapshot) -> Result<Self, Error> {
        let state = match snapshot.0 {
            SnapshotForm::Known(state) => state.without_old_failure().with_handed_calls(),
            SnapshotForm::Other(Envelope { version, .. }) => {
                let message = format!(
                    "the snapshot has format version {version}, but this version of oa-turn supports only {VERSION}"
                );
                return Err(Error::new(ErrorKind::UnsupportedVersion, message));
            }
        };
        state.check().map_err(|why| {
            Error::new(ErrorKind::InvalidSnapshot, format!("the snapshot is damaged: {why}"))
        })?;
        let State {
            options,
            conversation,
            phase,
            round,
            out,
            final_text,
            progress,
            asked,
            failure,
            turns,
            answers,
            requests,
            key_seed,
            output_tool,
            invalid_output,
            external_tools,
            steered,
            plan,
            shortening,
            refused,
        } = state;
        // The first snapshots have the tool alone.
        let output = (output_tool.is_some() || invalid_output.is_some()).then(|| {
            let invalid = invalid_output.unwrap_or_default();
            Box::new(OutputState { tool: output_tool, invalid })
        });
        Ok(Self {
            options,
            conversation,
            phase,
            round,
            out,
            final_text,
            progress,
            asked,
            failure,
            turns,
            answers,
            requests,
            key_seed: key_seed.into(),
            output,
            external_tools,
            steered,
            plan,
            shortening,
            refused,
        })
    }
}

impl State {
    /// Drops a failure before a prompt that nothing removes any more. Earlier versions kept it.
    fn without_old_failure(mut self) -> Self {
        if self.phase.prompt().is_none() {
            self.failure = self.failure.filter(|failure| !failure.is_recorded);
        }
        self
    }

    /// Hands over the external calls of a turn that has ended for their results. Earlier versions did not record it.
    fn with_handed_calls(mut self) -> Self {
        let (Phase::Idle { rest } | Phase::Prompting { rest, .. } | Phase::Ending { rest, .. }) =
            self.phase
        else {
            return self;
        };
        if rest == Rest::Done && self.options.mode == Mode::Auto {
            let calls = self.round.calls.iter_mut();
            for call in calls.filter(|it| it.is_external && it.state == CallState::Allowed) {
                call.state = CallState::AwaitsResult;
            }
        }
        self
    }

    /// Checks the invariants of a turn: all indexes are valid, and results follow their calls.
    fn check(&self) -> Result<(), &'static str> {
        // `Turn` and `Round` index calls and history without checks, and a snapshot comes from outside.
        let Self { conversation, phase, round, asked, failure, .. } = self;
        let len = conversation.messages().len();
        conversation.check()?;
        let results_end = round.check(conversation.messages())?;
        let rest = match phase {
            Phase::Idle { rest } | Phase::Prompting { rest, .. } | Phase::Ending { rest, .. } => {
                *rest
            }
            Phase::Calling { .. } if round.calls.is_empty() => return Err("calls are missing"),
            Phase::Calling { started: true, .. }
                if round.calls.iter().any(|call| call.is_undecided() || call.is_waiting()) =>
            {
                return Err("a call is not decided");
            }
            Phase::Steering { .. } if self.steered.is_empty() => {
                return Err("the steered message is missing");
            }
            _ => Rest::Done,
        };
        // An external call may have been answered while another one waited, which was then denied.
        if rest == Rest::Approval && round.calls.is_empty() {
            return Err("no call is waiting for permission");
        }
        let failed = failure.as_deref();
        let places = [asked.as_ref(), failed.and_then(|failure| failure.asked.as_ref())];
        if places.into_iter().flatten().any(|asked| asked.place >= len) {
            return Err("a prompt is missing");
        }
        // A failure removes these messages, so they must be the last ones, after all results.
        let taken_back = match phase.prompt() {
            Some(prompt) if prompt.checked_add(1) != Some(len) => {
                return Err("the prompt is not the last message");
            }
            Some(_) => 1 + usize::from(failed.is_some_and(|failed| failed.is_recorded)),
            None => 0,
        };
        if results_end + taken_back > len {
            return Err("the prompt does not follow the results");
        }
        self.check_history(results_end)?;
        self.check_refused(len - taken_back, results_end)?;
        self.check_unshortened()
    }
}

impl State {
    /// Checks that a server accepts the conversation once the open calls have results, and the messages that will enter
    /// it.
    fn check_history(&self, results_end: usize) -> Result<(), &'static str> {
        let Self { conversation, phase, round, steered, .. } = self;
        let messages = conversation.messages();
        let open = round.answer_place().filter(|_| !round.calls.iter().all(Call::is_answered));
        // `is_valid` would answer the open calls, so the answer that made them and its results so far, which
        // `Round::check` has compared, are checked apart.
        let (closed, open) = messages.split_at(open.unwrap_or(messages.len()));
        if !is_valid(closed) || !open.is_empty() && !is_open(open, results_end - closed.len()) {
            return Err("the conversation is not valid");
        }
        let prompt = match phase {
            Phase::Prompting { prompt, .. } => Some(&**prompt),
            _ => None,
        };
        if steered.iter().chain(prompt).any(|message| Turn::check_message(message).is_err()) {
            return Err("a prompt is not valid");
        }
        Ok(())
    }

    /// Checks the conversation that a failure restores, as it is then.
    fn check_unshortened(&self) -> Result<(), &'static str> {
        let unshortened = self.shortening.as_ref().and_then(|state| state.unshortened.as_deref());
        let Some(before) = unshortened else { return Ok(()) };
        let Some(prompt) = before.conversation.messages().len().checked_sub(1) else {
            return Err("the conversation before shortening is missing");
        };
        let restored = Self {
            conversation: before.conversation.clone(),
            phase: Phase::Requesting { sent: true, prompt: Some(prompt) },
            round: before.round.clone(),
            failure: before.failure.clone(),
            asked: None,
            shortening: None,
            refused: Vec::new(),
            ..self.clone()
        };
        restored.check()
    }

    /// Checks that nothing refers to the messages that will be removed from history at the end of the turn.
    fn check_refused(&self, mut end: usize, results_end: usize) -> Result<(), &'static str> {
        let Self { conversation, phase, round, asked, failure, refused, .. } = self;
        let len = conversation.messages().len();
        if let Phase::Answered { place, .. } = phase {
            let is_answer = |message: &Message| message.role == MessageRole::Assistant;
            let answer = conversation.messages().get(*place);
            if !(answer.is_some_and(is_answer) && place + 1 == len || *place == len) {
                return Err("the answer is missing");
            }
            if !round.calls.is_empty() && results_end > *place {
                return Err("the answer does not follow the results");
            }
            end = *place;
        }
        let failed = failure.iter().filter_map(|failure| failure.asked.as_ref());
        let prompts = asked.iter().chain(failed);
        let mut taken: Vec<Range<usize>> =
            prompts.map(|asked| asked.place..asked.place.saturating_add(1)).collect();
        taken.extend(round.answer_place().map(|answer| answer..results_end));
        for range in refused.iter().rev() {
            let is_free =
                |taken: &Range<usize>| range.end <= taken.start || taken.end <= range.start;
            if range.is_empty() || range.end > end || !taken.iter().all(is_free) {
                return Err("a refused answer is missing");
            }
            end = range.start;
        }
        // They are all of the turn that the prompt began, and move with what follows it.
        let prompt = self.shortening.as_ref().and_then(|state| state.prompt);
        if !refused.is_empty() && prompt.is_some_and(|prompt| prompt >= end) {
            return Err("a refused answer comes before its prompt");
        }
        Ok(())
    }
}

impl Serialize for TurnSnapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            SnapshotForm::Known(turn) => Envelope { version: VERSION, turn }.serialize(serializer),
            SnapshotForm::Other(other) => other.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for TurnSnapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The version is read first, because another version may give the members other meanings.
        let envelope = Envelope::<Value>::deserialize(deserializer)?;
        if envelope.version != VERSION {
            return Ok(Self(SnapshotForm::Other(envelope)));
        }
        let state = serde_json::from_value(envelope.turn).map_err(D::Error::custom)?;
        Ok(Self(SnapshotForm::Known(state)))
    }
}

impl fmt::Debug for TurnSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = match &self.0 {
            SnapshotForm::Known(_) => VERSION,
            SnapshotForm::Other(other) => other.version,
        };
        f.debug_struct("TurnSnapshot").field("version", &version).finish_non_exhaustive()
    }
}
