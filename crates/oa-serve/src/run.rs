//! A run: a task that drives a conversation's agent through one turn and publishes its events.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::time::Duration;

use oa_client::Client;
use oa_event_log::{ConversationEvent, FailureKind, RunEvent, RunState, state_change};
use oa_session::{Error, ErrorKind, Follow, FollowProgress, SavedSession, Timestamp};
use oa_types::{ContentBlock, Message, MessageRole};
use serde_json::{Map, Value};
use tokio::sync::{OwnedMutexGuard, watch};
use tokio::time::sleep;

use crate::conversation::{Conversation, Run};
use crate::front_session::{agent_members, answer_members, refuse_answer, remove_agents};
use crate::front_state::FrontState;
use crate::review::Review;
use crate::seat::Seat;

/// The first step of a run.
#[derive(Debug)]
pub(crate) enum Start {
    /// Continues the history, in which all calls have results.
    Continue,
    /// Ends at once, because calls still wait.
    Nothing,
    Prompt(Message),
}

/// The rules of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// The time that the run continues without viewers.
    pub(crate) unread: Duration,
    /// True if there is no user to ask: calls that need approval are denied, and the turn continues.
    pub(crate) denies_approvals: bool,
}

/// The longest title made from a prompt, in characters.
const TITLE: usize = 80;

/// The number of times that a turn continues after calls were denied for lack of a user to ask. A model that keeps
/// making such calls has not understood the denial.
const MOST_DENIALS: u32 = 8;

/// The state of the server: open to new runs, or closing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    Open,
    /// Runs may finish within this time.
    Closing(Duration),
}

/// Drives a turn until it ends, is stopped, has had no viewers for too long, or the server closes. `ending` is called
/// with the final event before that is published.
///
/// On a panic, parameters are dropped in reverse order: the seat is released before the run, as at a normal end.
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
        // Never dropped to stop it: an interrupted turn still ends its calls and saves what has arrived.
        let mut is_stopped = false;
        poll_fn(|cx| {
            let polled = turn.as_mut().poll(cx);
            if polled.is_pending() {
                // A future that has completed must not be polled again.
                is_stopped = is_stopped || stopped.as_mut().poll(cx).is_ready();
                if is_stopped {
                    // An interrupt before the turn has begun has no effect, so each poll repeats it.
                    interrupt.interrupt();
                }
            }
            polled
        })
        .await
    };
    // Release the seat first: a viewer of the final event may start the next run at once.
    drop(seat);
    ending(&event);
    run.end(event, is_stored);
}

/// Waits until runs must end because the server shuts down.
async fn closed(phase: &mut watch::Receiver<Phase>) {
    // Copies the phase out of the guard, which would block the sender during the sleep.
    match phase.wait_for(|phase| matches!(phase, Phase::Closing(_))).await.map(|phase| *phase) {
        Ok(Phase::Closing(limit)) => sleep(limit).await,
        // The server was dropped without a shutdown: its runs continue.
        _ => pending().await,
    }
}

/// Runs a turn. Returns its final event, and true if all of the turn is stored.
async fn turn(run: &Run, seat: &mut Seat, start: Start, policy: Policy) -> (RunEvent, bool) {
    if let (Start::Continue, Some(prefix)) = (&start, seat.key_prefix()) {
        seat.client.set_key_prefix(prefix);
    }
    let Seat { client, saved, members, state, refused, .. } = seat;
    // Begins the turn, follows it to its end, and continues it as long as calls were denied for lack of a
    // user. The history is saved at each checkpoint and once more at the end.
    let is_untitled = saved.as_ref().is_some_and(|saved| saved.session().info.title().is_none());
    let mut saving = Saving { run, saved: saved.as_mut(), members, is_untitled, error: None };
    let mut outcome = match start {
        Start::Continue => client.continue_turn().await,
        // `follow` saves the answers, and finds no turn in progress.
        Start::Nothing => Ok(()),
        Start::Prompt(prompt) => client.send_message(prompt).await,
    };
    let (mut denials, mut review) = (0, Review::default());
    while outcome.is_ok() {
        outcome = follow(run, client, &mut saving, state.as_ref(), &mut review).await;
        let asks = policy.denies_approvals && outcome.is_ok() && denials < MOST_DENIALS;
        // At the limit, the run ends with calls that still wait for approval.
        if !asks || !deny_all(client) {
            break;
        }
        denials += 1;
        outcome = client.continue_turn().await;
    }
    if outcome.as_ref().is_err_and(|error| error.kind() == oa_client::ErrorKind::Blocked) {
        review.refuse();
    }
    for answer in review.take_refused() {
        saving.members.extend(refuse_answer(refused, &answer));
    }
    if let Some(agents) = run.conversation.agents_to_store() {
        saving.members.extend(agent_members(&agents));
    }
    // A failure may have removed the prompt from history.
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
            event.failure = failure(&error);
        }
    }
    (event, is_stored)
}

/// Tells errors that a repeated request does not mend from those that may pass.
fn failure(error: &oa_client::Error) -> FailureKind {
    use oa_client::ErrorKind::{
        Api, Blocked, Config, Connect, ContextOverflow, InvalidInput, Limit, MaxTurns, Output,
    };
    match (error.kind(), error.status()) {
        (Blocked, _) => FailureKind::Blocked,
        (ContextOverflow, _) => FailureKind::ContextOverflow,
        (Config | InvalidInput | Limit | MaxTurns | Output, _) => FailureKind::Lasting,
        // 408 Request Timeout, 409 Conflict, 425 Too Early and 429 Too Many Requests pass.
        (Api | Connect, Some(400..=407 | 410..=424 | 426..=428 | 430..=499)) => {
            FailureKind::Lasting
        }
        _ => FailureKind::Passing,
    }
}

/// Reads a turn to its end, publishes its events, and saves the history after each step.
async fn follow(
    run: &Run,
    client: &mut Client,
    saving: &mut Saving<'_>,
    state: Option<&FrontState>,
    review: &mut Review,
) -> Result<(), oa_client::Error> {
    let publish = |events: Vec<_>| {
        events.into_iter().for_each(|event| run.publish(ConversationEvent::Agent(event)));
    };
    // Save the prompt before the first answer.
    saving.save(client.history()).await;
    loop {
        match poll_fn(|cx| client.poll_progress(cx)).await? {
            // No event is published while this waits for the store, so the events so far are those that the
            // history covers.
            FollowProgress::Checkpoint => saving.save(client.history()).await,
            FollowProgress::Event(event) => {
                if let (Some(state), Some(change)) = (state, state_change(&event)) {
                    state.merge(change);
                }
                publish(review.follow(event, client));
            }
            FollowProgress::Over => {
                publish(review.rest(client.history()));
                return Ok(());
            }
        }
    }
}

/// Denies the calls that wait for approval, and returns true if the turn can continue.
fn deny_all(client: &mut Client) -> bool {
    let calls = client.pending_approvals();
    for call in &calls {
        // Denying cannot fail, because the calls are waiting.
        let denied = client
            .deny(&call.id, "this call needs approval, and no user is available to approve it");
        debug_assert!(denied.is_ok(), "{denied:?}");
    }
    !calls.is_empty() && client.pending_calls().is_empty()
}

/// Saves a conversation whose last save failed.
pub(crate) async fn save_again(conversation: &Conversation, seat: &mut Seat) {
    let Seat { client, saved: Some(saved), members, early, .. } = seat else { return };
    if !early.is_empty() {
        members.extend(answer_members(early));
    }
    let _saving = conversation.saving.write().await;
    let error = save(saved, members, client.history()).await.err();
    conversation.saved(error.as_ref());
}

/// Saves the history of a run.
struct Saving<'a> {
    run: &'a Run,
    saved: Option<&'a mut SavedSession>,
    /// Metadata members that must be stored before the history, because they identify its approval requests.
    members: &'a mut Map<String, Value>,
    /// True until the conversation has a title.
    is_untitled: bool,
    /// The error of the last attempt. The run continues, and the next attempt saves everything.
    error: Option<Error>,
}

impl Saving<'_> {
    async fn save(&mut self, history: &[Message]) {
        if let Some(saved) = &mut self.saved {
            // Held until `saved`: a reader of the store sees the history and its last event change together.
            let _saving = self.run.conversation.saving.write().await;
            // The prompt in history is the one that the hooks have accepted.
            if self.is_untitled
                && let Some(title) = title(history)
            {
                self.members.insert("title".to_owned(), title.into());
                self.is_untitled = false;
            }
            self.error = save(saved, self.members, history).await.err();
            self.run.conversation.saved(self.error.as_ref());
        }
    }
}

async fn save(
    saved: &mut SavedSession,
    members: &mut Map<String, Value>,
    history: &[Message],
) -> Result<(), Error> {
    if !members.is_empty() {
        let (store, id) = (saved.store(), &saved.session().info.id);
        let set = |members| store.set_metadata(id, members, Timestamp::now());
        let mut stored = set(members.clone()).await;
        // The metadata may hold much that is not the server's. Sub-agents are only shown, so they give way.
        if stored.as_ref().is_err_and(|error| error.kind() == ErrorKind::Limit)
            && remove_agents(members)
        {
            stored = set(members.clone()).await;
        }
        // Without its members, the history would have approval requests that nobody can answer after a restart.
        // The members are kept for the next attempt.
        stored?;
        members.clear();
    }
    saved.save_waiting_now(history).await
}

/// Returns a title for a conversation: the first line of the first text of a prompt that is not a file's.
fn title(history: &[Message]) -> Option<String> {
    let prompts = history.iter().filter(|message| message.role == MessageRole::User);
    let mut texts = prompts.flat_map(|prompt| &prompt.content).filter_map(ContentBlock::as_text);
    let text = texts.find(|text| !text.trim().is_empty() && !crate::front::is_attached(text))?;
    let line = text.trim().lines().next()?.trim_end();
    let mut title: String = line.chars().take(TITLE).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    Some(title)
}
