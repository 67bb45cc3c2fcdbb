//! One conversation: its agent, its run, and the events that viewers read.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use oa_client::SteerHandle;
use oa_event_log::{
    CallAnswer, ConversationEvent, EventId, EventLog, Next, RunEvent, RunState, SubAgent,
    SubAgents, WaitingCall, WaitingKind,
};
use oa_events::AgentEvent;
use oa_session::{Error, ErrorKind};
use oa_types::Usage;
use tokio::sync::{OwnedMutexGuard, RwLock, watch};
use tokio::time::{Instant, sleep};

use crate::error::Refusal;
use crate::front_session::{BeginFront, Front};
use crate::limits::{Permit, ServeLimits};
use crate::seat::Seat;

/// A conversation in memory.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// Held by a run from its beginning to its end. The order of locks is `entry`, `seat`, `saving`, `state`;
    /// no guard of `state` lives across an `.await`.
    pub(crate) seat: Arc<tokio::sync::Mutex<Seat>>,
    /// Serializes the requests of front ends: each holds it until its run has begun.
    pub(crate) entry: Arc<tokio::sync::Mutex<()>>,
    /// Held for writing while the history is saved, so that a reader of the store knows which events it covers.
    pub(crate) saving: RwLock<()>,
    state: Mutex<State>,
    changed: watch::Sender<()>,
    viewers: watch::Sender<usize>,
    most_viewers: usize,
}

#[derive(Debug)]
struct State {
    log: EventLog,
    run: Option<Running>,
    last_run: u64,
    waiting: Vec<WaitingCall>,
    /// Calls of the last turn that were answered: each is answered once.
    answered: Vec<String>,
    usage: Option<Usage>,
    /// The last event that the stored history covers.
    stored: Option<EventId>,
    /// True if the last save failed, and a later one may succeed.
    is_unsaved: bool,
    /// The sub-agents up to `stored`; `run_agents` holds those of this run.
    agents: Vec<SubAgent>,
    run_agents: SubAgents,
    /// Messages that the model has not read yet.
    steering: Vec<Steered>,
    /// The last run for a front end.
    front: Option<Front>,
    is_deleted: bool,
    used_at: Instant,
}

/// The arguments of [`Conversation::begin`].
#[derive(Debug)]
pub(crate) struct Begin {
    pub(crate) steer: SteerHandle,
    pub(crate) permit: Permit,
    /// The time, in milliseconds since 1970.
    pub(crate) now: u64,
    /// The event that announces the prompt to viewers.
    pub(crate) prompt: Option<ConversationEvent>,
    pub(crate) front: Option<BeginFront>,
}

/// The handles that stop and steer a run in progress.
#[derive(Debug)]
struct Running {
    stop: watch::Sender<bool>,
    steer: SteerHandle,
}

/// A run that has begun, owned by the task that drives it. Dropping it before its end counts as a failure.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) conversation: Arc<Conversation>,
    pub(crate) id: u64,
    pub(crate) stop: watch::Receiver<bool>,
    /// Counts toward the server's limit of concurrent runs.
    _permit: Permit,
    is_over: bool,
}

/// The state of a conversation, except for its messages.
#[derive(Debug)]
pub(crate) struct Status {
    pub(crate) is_running: bool,
    pub(crate) stored: Option<EventId>,
    pub(crate) usage: Option<Usage>,
    pub(crate) waiting: Vec<WaitingCall>,
    pub(crate) agents: Vec<SubAgent>,
    pub(crate) steering: Vec<String>,
}

/// A message that the model has not read yet.
#[derive(Debug)]
struct Steered {
    text: String,
    is_by_front: bool,
}

impl State {
    fn is_answered(&self, call_id: &str) -> bool {
        self.answered.iter().any(|answered| answered == call_id)
    }

    /// Updates sub-agents and steered messages from an event.
    fn note(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Nested(nested) => {
                self.run_agents.follow(nested);
            }
            AgentEvent::Steered(message) => {
                // A hook may have changed the text; then remove the message that has waited longest.
                let text = message.text();
                let place = self.steering.iter().position(|waiting| waiting.text == text);
                self.forget_steered(place.unwrap_or_default());
            }
            AgentEvent::SteerBlocked(_) => self.forget_steered(0),
            _ => {}
        }
    }

    fn forget_steered(&mut self, place: usize) {
        if place < self.steering.len() {
            self.steering.remove(place);
        }
    }

    /// Records that the stored history covers all events so far.
    fn is_stored(&mut self) {
        self.stored = self.log.last();
        self.agents = self.run_agents.kept(&self.agents);
    }
}

impl Conversation {
    pub(crate) fn new(seat: Seat, limits: &ServeLimits) -> Self {
        let mark = seat.mark();
        let state = State {
            log: EventLog::new(limits.kept_bytes, limits.kept_events),
            run: None,
            last_run: mark.as_ref().map_or(0, |mark| mark.run),
            waiting: seat.waiting(),
            answered: Vec::new(),
            usage: None,
            stored: None,
            is_unsaved: false,
            agents: seat.agents(),
            run_agents: SubAgents::default(),
            steering: Vec::new(),
            front: mark.map(Front::of_mark),
            is_deleted: false,
            used_at: Instant::now(),
        };
        Self {
            seat: Arc::new(tokio::sync::Mutex::new(seat)),
            entry: Arc::default(),
            saving: RwLock::new(()),
            state: Mutex::new(state),
            changed: watch::Sender::new(()),
            viewers: watch::Sender::new(0),
            most_viewers: limits.viewers,
        }
    }

    /// Begins a run.
    pub(crate) fn begin(self: &Arc<Self>, begin: Begin) -> Result<Run, Refusal> {
        let Begin { steer, permit, now, prompt, front } = begin;
        let mut state = self.state();
        if state.is_deleted {
            return Err(deleted());
        }
        if state.run.is_some() {
            return Err(running());
        }
        // Two runs may begin in the same millisecond, and the clock may be set back. Event ids and
        // `EventLog::drop_before` rely on growing numbers.
        let id = now.max(state.last_run + 1);
        // Keep the previous run for viewers that have not seen its end.
        let before = state.last_run;
        state.log.drop_before(before);
        state.last_run = id;
        state.waiting.clear();
        state.run_agents = SubAgents::default();
        // A continued run keeps the list: a second answer to one of its calls is a conflict (409), not a 404.
        if prompt.is_some() {
            state.answered.clear();
        }
        let (stop, stopped) = watch::channel(false);
        state.run = Some(Running { stop, steer });
        // The prompt, if any, is pushed below: it is the first event.
        let first = state.log.next();
        state.front = front.map(|front| front.begun(id, first));
        if let Some(prompt) = prompt {
            state.log.push(id, prompt);
        }
        let started = RunEvent { run: id, ..RunEvent::default() };
        state.log.push(id, ConversationEvent::Run(started));
        drop(state);
        self.changed.send_replace(());
        let conversation = Arc::clone(self);
        Ok(Run { conversation, id, stop: stopped, _permit: permit, is_over: false })
    }

    /// Stops the run in progress, if there is one.
    pub(crate) fn stop(&self) {
        if let Some(run) = &self.state().run {
            run.stop.send_replace(true);
        }
    }

    /// Steers a message into the run in progress.
    pub(crate) fn steer(&self, text: String) -> Result<(), Refusal> {
        let mut state = self.state();
        let Some(run) = &state.run else {
            return Err(Refusal::conflict(
                "no run is in progress in this conversation: send a prompt",
            ));
        };
        run.steer.steer(&*text)?;
        state.steering.push(Steered { text, is_by_front: false });
        Ok(())
    }

    /// Records the prompt of a front end that is steered after the results of calls.
    pub(crate) fn steered_by_front(&self, text: String) {
        self.state().steering.push(Steered { text, is_by_front: true });
    }

    /// Returns true if a front end's prompt with this text waits to be read.
    pub(crate) fn is_steered_by_front(&self, text: &str) -> bool {
        self.state().steering.iter().any(|steered| steered.is_by_front && steered.text == text)
    }

    /// Forgets steered messages that the model has not read, because the agent that held them is replaced.
    pub(crate) fn forget_steering(&self) {
        self.state().steering.clear();
    }

    /// Returns the sub-agents to store, if this run added any.
    pub(crate) fn agents_to_store(&self) -> Option<Vec<SubAgent>> {
        let state = self.state();
        (!state.run_agents.is_empty()).then(|| state.run_agents.kept(&state.agents))
    }

    /// Waits until no run is in progress.
    pub(crate) async fn idle(&self) {
        // Subscribes before it looks, so that an end in between completes `changed`.
        let mut changed = self.changed.subscribe();
        while self.state().run.is_some() {
            // The sender lives as long as this conversation.
            let _ = changed.changed().await;
        }
    }

    /// Waits for the seat, which others hold for a moment. Refused while a run is in progress, which holds it to its end.
    pub(crate) async fn idle_seat(&self) -> Result<OwnedMutexGuard<Seat>, Refusal> {
        // As in `idle`: the beginning of a run completes `changed`.
        let mut changed = self.changed.subscribe();
        let mut seat = pin!(Arc::clone(&self.seat).lock_owned());
        while !self.is_running() {
            tokio::select! {
                biased;
                seat = &mut seat => return Ok(seat),
                _ = changed.changed() => {}
            }
        }
        Err(running())
    }

    /// Adopts the state of a conversation that another process has changed. `server` names this one in claims. Returns
    /// true if the answer to a claimed call is not stored yet.
    pub(crate) fn adopt(&self, seat: &Seat, server: &str) -> bool {
        let (mut state, open) = (self.state(), seat.waiting());
        state.answered = seat.claimed_by_others(server);
        let (claimed, waiting): (Vec<_>, _) =
            open.into_iter().partition(|call| state.is_answered(&call.call_id));
        // What this server alone held is given up, and the events about it with it.
        (state.stored, state.is_unsaved, state.usage) = (state.log.last(), false, None);
        (state.agents, state.run_agents) = (seat.agents(), SubAgents::default());
        state.waiting = waiting;
        // The agent that held these messages is replaced.
        state.steering.clear();
        if let Some(mark) = seat.mark() {
            // Approvals name the run that asked for them, here the one of the other process.
            state.last_run = state.last_run.max(mark.run);
            state.front = Some(Front::of_mark(mark));
        }
        !claimed.is_empty()
    }

    /// Marks a waiting call as answered.
    pub(crate) fn answered(&self, call_id: &str, answer: CallAnswer) {
        let mut state = self.state();
        state.waiting.retain(|call| call.call_id != call_id);
        state.answered.push(call_id.to_owned());
        let (run, call_id) = (state.last_run, call_id.to_owned());
        state.log.push(run, ConversationEvent::Answered { call_id, answer });
        drop(state);
        self.changed.send_replace(());
    }

    /// Returns a waiting call, or the refusal if it cannot be answered this way.
    pub(crate) fn waiting_call(
        &self,
        call_id: &str,
        kind: WaitingKind,
    ) -> Result<WaitingCall, Refusal> {
        let state = self.state();
        // A front end's run that was refused for this reason has already replaced the agent, which had the call.
        if state.is_deleted {
            return Err(deleted());
        }
        if state.is_answered(call_id) {
            return Err(Refusal::conflict("this call was already answered"));
        }
        let is_it = |call: &&WaitingCall| call.call_id == call_id;
        match state.waiting.iter().find(is_it) {
            None => Err(Refusal::not_found(
                "no call with this id is waiting for an answer; another viewer may have answered it",
            )),
            Some(call) if call.kind != kind => Err(Refusal::conflict(match call.kind {
                WaitingKind::Approval => "this call is waiting for an approval, not a result",
                WaitingKind::Result => "this call is waiting for a result, not an approval",
            })),
            Some(call) => Ok(call.clone()),
        }
    }

    pub(crate) fn status(&self) -> Status {
        let state = self.state();
        Status {
            is_running: state.run.is_some(),
            stored: state.stored,
            usage: state.usage,
            waiting: state.waiting.clone(),
            agents: state.agents.clone(),
            steering: state.steering.iter().map(|steered| steered.text.clone()).collect(),
        }
    }

    /// Returns true if this call of the last turn was answered.
    pub(crate) fn is_answered(&self, call_id: &str) -> bool {
        self.state().is_answered(call_id)
    }

    /// Returns true if the run in progress continues with the answer to this call.
    pub(crate) fn is_taken(&self, call_id: &str) -> bool {
        let state = self.state();
        state.run.is_some() && state.is_answered(call_id)
    }

    /// Returns the number of the last run.
    pub(crate) fn last_run(&self) -> u64 {
        self.state().last_run
    }

    /// Returns the front of the last run, and true if the run is in progress.
    pub(crate) fn front(&self) -> Option<(Front, bool)> {
        let state = self.state();
        Some((state.front.clone()?, state.run.is_some()))
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state().run.is_some()
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.state().is_deleted
    }

    /// Marks the conversation as deleted, which ends its event streams once no run is in progress.
    pub(crate) fn delete(&self) {
        self.state().is_deleted = true;
        self.changed.send_replace(());
    }

    /// Returns the time of last use of a conversation that may be evicted; `None` if it is in use or unsaved.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        let is_idle = state.run.is_none() && *self.viewers.borrow() == 0;
        (is_idle && !state.is_unsaved).then_some(state.used_at)
    }

    /// Returns the time of last use of a conversation without a run whose last save failed.
    pub(crate) fn unsaved_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.run.is_none() && state.is_unsaved).then_some(state.used_at)
    }

    /// Records the outcome of saving all events so far.
    pub(crate) fn saved(&self, error: Option<&Error>) {
        let mut state = self.state();
        // Others do not pass: the store has another history, or cannot hold this one.
        let passes = [ErrorKind::Busy, ErrorKind::Closed, ErrorKind::Io];
        state.is_unsaved = error.is_some_and(|error| passes.contains(&error.kind()));
        if error.is_none() {
            state.is_stored();
        }
    }

    pub(crate) fn touch(&self) {
        self.state().used_at = Instant::now();
    }

    /// Returns a viewer of the events, starting at a position.
    pub(crate) fn view(self: &Arc<Self>, from: From) -> Result<Viewer, Refusal> {
        let most = self.most_viewers;
        // Checks and counts in one step. Nothing below may fail, because only the `Viewer` returns its place.
        let mut is_full = false;
        self.viewers.send_modify(|viewers| {
            is_full = *viewers >= most;
            *viewers += usize::from(!is_full);
        });
        if is_full {
            let message = format!("this conversation already has {most} viewers, the maximum");
            return Err(Refusal::busy(message));
        }
        let state = self.state();
        let (next, gap) = match from {
            From::Event(seen) => {
                let next = state.log.after(seen);
                (next.unwrap_or_else(|| state.log.first()), next.is_none())
            }
            From::First => (state.log.first(), false),
            From::Next => (state.log.next(), false),
            From::Number(number) => (number, false),
        };
        drop(state);
        let changed = self.changed.subscribe();
        Ok(Viewer { conversation: Arc::clone(self), changed, next, gap })
    }

    /// Waits until the conversation has had no viewers for this long.
    pub(crate) async fn unread_for(&self, limit: Duration) {
        let mut viewers = self.viewers.subscribe();
        loop {
            // The sender lives as long as this conversation.
            let _ = viewers.wait_for(|viewers| *viewers == 0).await;
            tokio::select! {
                _ = viewers.wait_for(|viewers| *viewers > 0) => {}
                () = sleep(limit) => return,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    pub(crate) fn publish(&self, event: ConversationEvent) {
        let mut state = self.conversation.state();
        if let ConversationEvent::Agent(event) = &event {
            state.note(event);
        }
        state.log.push(self.id, event);
        drop(state);
        self.conversation.changed.send_replace(());
    }

    /// Ends the run. Release the seat first, because another run may begin at once.
    pub(crate) fn end(mut self, mut event: RunEvent, is_stored: bool) {
        event.run = self.id;
        self.finish(event, is_stored);
    }

    fn finish(&mut self, event: RunEvent, is_stored: bool) {
        self.is_over = true;
        let mut state = self.conversation.state();
        // Under the same lock as the event: whoever sees that no run is in progress finds its end in the log.
        state.run = None;
        state.used_at = Instant::now();
        state.waiting.clone_from(&event.waiting);
        state.answered.clear();
        if event.usage.is_some() {
            state.usage = event.usage;
        }
        state.log.push(self.id, ConversationEvent::Run(event));
        // After the push, so that `stored` covers the final event.
        if is_stored {
            state.is_stored();
        }
        drop(state);
        self.conversation.changed.send_replace(());
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // The turn has panicked, or the runtime shuts down. The conversation must not stay running forever.
        if !self.is_over {
            let error = Some("the run ended unexpectedly".to_owned());
            let state = RunState::Failed;
            self.finish(RunEvent { run: self.id, state, error, ..RunEvent::default() }, false);
        }
    }
}

/// Returns the refusal of a prompt while a run is in progress.
pub(crate) fn running() -> Refusal {
    Refusal::conflict("a run is in progress in this conversation: stop or steer it, or wait")
}

fn deleted() -> Refusal {
    Refusal::not_found("the conversation was deleted")
}

/// The position at which a viewer starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum From {
    /// After this event.
    Event(EventId),
    /// At the oldest kept event.
    First,
    /// At the next new event.
    Next,
    /// At the event with this number.
    Number(u64),
}

/// A reader of a conversation's events. It holds a position in the log, not the events.
#[derive(Debug)]
pub(crate) struct Viewer {
    conversation: Arc<Conversation>,
    changed: watch::Receiver<()>,
    next: u64,
    /// True if events are missing at this position.
    gap: bool,
}

/// An item that a viewer reads.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and it is nearly always an event"
)]
pub(crate) enum View {
    Event(EventId, ConversationEvent),
    /// Events are missing here.
    Gap,
}

impl Viewer {
    /// Returns the next item, if any.
    pub(crate) fn read(&mut self) -> Option<View> {
        if !self.gap {
            match self.conversation.state().log.read(self.next) {
                Next::Event(id, event) => {
                    self.next = id.number + 1;
                    return Some(View::Event(id, event));
                }
                Next::Gap(next) => self.next = next,
                Next::Nothing => return None,
            }
        }
        self.gap = false;
        Some(View::Gap)
    }

    /// Returns true if all events so far have been read.
    pub(crate) fn is_at_end(&self) -> bool {
        !self.gap && self.next >= self.conversation.state().log.next()
    }

    /// Waits for a change, after which there may be more to read.
    /// Completes at once if anything was published after the previous call. The first call may miss what was
    /// published before `view` subscribed, so a viewer reads until there is nothing more, and then waits.
    pub(crate) async fn changed(&mut self) {
        // The sender lives as long as this conversation.
        let _ = self.changed.changed().await;
    }

    /// Continues at the event with this number.
    pub(crate) fn skip_to(&mut self, number: u64) {
        self.next = number;
    }

    pub(crate) fn conversation(&self) -> &Arc<Conversation> {
        &self.conversation
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.conversation.viewers.send_modify(|viewers| *viewers -= 1);
    }
}
