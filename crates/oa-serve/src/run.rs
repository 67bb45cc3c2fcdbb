//! A run: a task that drives a conversation's agent through one turn and tells its viewers.

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use oa_client::Client;
use oa_session::{Error, Follow, FollowProgress, SavedSession, Timestamp};
use oa_types::Message;
use serde_json::{Map, Value};
use tokio::sync::{OwnedMutexGuard, watch};
use tokio::time::sleep;

use crate::conversation::Run;
use crate::encoder::state_change;
use crate::front_session::agent_members;
use crate::front_state::FrontState;
use crate::log::{ConversationEvent, RunEvent, RunState};
use crate::seat::Seat;

/// The first step of a run.
#[derive(Debug)]
pub(crate) enum Start {
    /// With the history as it is: all calls have their answers.
    Continue,
    /// Nothing but its end: calls still wait.
    Nothing,
    Prompt(Message),
}

/// The rules of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// The time that it goes on while nobody reads.
    pub(crate) unread: Duration,
    /// True if nobody can be asked: calls that need approval are denied, and the turn goes on.
    pub(crate) denies_approvals: bool,
}

/// The number of times that a turn goes on after calls were denied because nobody can be asked. A model that asks for more of them has
/// not understood.
const MOST_DENIALS: u32 = 8;

/// The state of the server: open to new runs, or closing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    Open,
    /// Runs may end, within the limit.
    Closing(Duration),
}

/// Drives a turn to its end, or until it is stopped, has no readers for long, or the server closes. `ending` gets the
/// end before anybody is told of it.
pub(crate) async fn drive(
    run: Run,
    mut seat: OwnedMutexGuard<Seat>,
    start: Start,
    policy: Policy,
    mut phase: watch::Receiver<Phase>,
    ending: impl FnOnce(&RunEvent) + Send,
) {
    let interrupt = seat.client.interrupt_handle();
    let mut stop = run.stop.clone();
    let (event, is_stored) = {
        let mut turn = pin!(turn(&run, &mut seat, start, policy));
        let mut stopped = pin!(async {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => {}
                () = run.conversation.unread_for(policy.unread) => {}
                () = closed(&mut phase) => {}
            }
        });
        let mut is_stopped = false;
        poll_fn(|cx| {
            let polled = turn.as_mut().poll(cx);
            if polled.is_pending() {
                is_stopped = is_stopped || stopped.as_mut().poll(cx).is_ready();
                if is_stopped {
                    // An interrupt before the turn has begun does nothing, so each poll repeats it.
                    interrupt.interrupt();
                }
            }
            polled
        })
        .await
    };
    // Whoever reads that the run has ended may begin the next one at once.
    drop(seat);
    ending(&event);
    run.end(event, is_stored);
}

/// Waits until runs must end because the server shuts down.
async fn closed(phase: &mut watch::Receiver<Phase>) {
    let closing =
        phase.wait_for(|phase| matches!(phase, Phase::Closing(_))).await.map(|phase| *phase);
    if let Ok(Phase::Closing(limit)) = closing {
        sleep(limit).await;
    }
}

/// Carries out a turn, and returns its end and whether all of it is stored.
async fn turn(run: &Run, seat: &mut Seat, start: Start, policy: Policy) -> (RunEvent, bool) {
    let Seat { client, saved, members, state, .. } = seat;
    let mut saving = Saving { run, saved: saved.as_mut(), members, error: None };
    let mut outcome = match start {
        Start::Continue => client.continue_turn().await,
        Start::Nothing => Ok(()),
        Start::Prompt(prompt) => client.send_message(prompt).await,
    };
    let mut denials = 0;
    while outcome.is_ok() {
        outcome = follow(run, client, &mut saving, state.as_ref()).await;
        let asks = policy.denies_approvals && outcome.is_ok() && denials < MOST_DENIALS;
        if !asks || !deny_all(client) {
            break;
        }
        denials += 1;
        outcome = client.continue_turn().await;
    }
    if let Some(agents) = run.conversation.agents_to_store() {
        saving.members.extend(agent_members(&agents));
    }
    // A failure may have taken the prompt back.
    saving.save(client.history()).await;
    let is_stored = saving.error.is_none();
    let unsaved = saving.error.map(|error| format!("the conversation could not be saved: {error}"));
    let mut event = RunEvent { waiting: seat.waiting(), ..RunEvent::default() };
    match outcome {
        Ok(()) => {
            event.state = RunState::Ended;
            event.error = unsaved;
            event.finish_reason = seat.client.finish_reason().cloned();
            event.usage = seat.client.usage();
        }
        Err(error) => {
            event.state = RunState::Failed;
            event.error = Some(error.to_string());
            event.status = error.status();
        }
    }
    (event, is_stored)
}

/// Reads a turn to its end, tells viewers of it, and saves the history after each step.
async fn follow(
    run: &Run,
    client: &mut Client,
    saving: &mut Saving<'_>,
    state: Option<&FrontState>,
) -> Result<(), oa_client::Error> {
    // The prompt is worth saving, too.
    saving.save(client.history()).await;
    loop {
        match poll_fn(|cx| client.poll_progress(cx)).await? {
            FollowProgress::Checkpoint => saving.save(client.history()).await,
            FollowProgress::Event(event) => {
                if let (Some(state), Some(change)) = (state, state_change(&event)) {
                    state.merge(change);
                }
                run.publish(ConversationEvent::Agent(event));
            }
            FollowProgress::Over => return Ok(()),
        }
    }
}

/// Denies the calls that wait for approval, and returns true if the turn can go on.
fn deny_all(client: &mut Client) -> bool {
    let calls = client.pending_approvals();
    for call in &calls {
        // They wait, so they can be denied.
        let denied = client.deny(&call.id, "it needs approval, and nobody can be asked");
        debug_assert!(denied.is_ok(), "{denied:?}");
    }
    !calls.is_empty() && client.pending_calls().is_empty()
}

/// Saves the history of a run.
struct Saving<'a> {
    run: &'a Run,
    saved: Option<&'a mut SavedSession>,
    /// Members of the metadata that must be stored first: a question in the history is known by them.
    members: &'a mut Map<String, Value>,
    /// The error of the last attempt. The run goes on, and the next attempt saves everything.
    error: Option<Error>,
}

impl Saving<'_> {
    async fn save(&mut self, history: &[Message]) {
        if let Some(saved) = &mut self.saved {
            let _saving = self.run.conversation.saving.write().await;
            if !self.members.is_empty() {
                let (store, id) = (saved.store(), &saved.session().info.id);
                let members = self.members.clone();
                self.error = store.set_metadata(id, members, Timestamp::now()).await.err();
                if self.error.is_some() {
                    return;
                }
                self.members.clear();
            }
            self.error = saved.save_waiting_now(history).await.err();
            if self.error.is_none() {
                self.run.is_stored();
            }
        }
    }
}
