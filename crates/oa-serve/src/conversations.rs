//! The conversations of a server.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use futures_util::{StreamExt, stream};
use oa_client::{AgentOptions, Client};
use oa_event_log::{CallAnswer, ConversationEvent, WaitingKind};
use oa_session::{
    ErrorKind, List, MemoryStore, NewSession, SavedSession, Session, SessionId, SessionInfo,
    SessionPage, SessionStore, Timestamp,
};
use oa_types::Message;
use serde_json::{Map, Value};
use tokio::sync::{OwnedMutexGuard, watch};
use tokio::time::timeout;

use crate::conversation::{Begin, Conversation, Status};
use crate::error::Refusal;
use crate::front_session::{answer_members, with_claims, without_claim};
use crate::limits::{Permit, ServeLimits};
use crate::run::{Phase, Policy, Start, drive, save_again};
use crate::seat::{Seat, give};

/// The conversations of a server, with their runs and their store.
///
/// Clones share the conversations. Call [`shutdown`](Self::shutdown) to let runs finish before the program exits.
#[derive(Clone, Debug)]
pub struct Conversations(Arc<Shared>);

/// The key of a conversation in memory.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum Key {
    /// A conversation of an OpenAI client that waits for results of the client's tools: the hash of the messages before
    /// the answer, and the client's ids of the calls.
    Completion(u64, Vec<String>),
    /// A stored conversation.
    Stored(SessionId),
}

#[derive(Debug)]
struct Shared {
    agent: AgentOptions,
    store: Arc<dyn SessionStore>,
    limits: ServeLimits,
    open: Mutex<HashMap<Key, Arc<Conversation>>>,
    /// The number of runs in progress.
    runs: Arc<watch::Sender<usize>>,
    phase: watch::Sender<Phase>,
    hasher: RandomState,
    /// The random name of this server in claims.
    server: String,
    /// The sessions in order of creation, if the server has no store.
    created: Option<Mutex<VecDeque<SessionId>>>,
}

impl Conversations {
    pub(crate) fn new(
        agent: AgentOptions,
        store: Option<Arc<dyn SessionStore>>,
        limits: ServeLimits,
    ) -> Self {
        let created = store.is_none().then(Mutex::default);
        let store = store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let runs = Arc::new(watch::Sender::new(0));
        let (open, phase) = (Mutex::default(), watch::Sender::new(Phase::Open));
        let hasher = RandomState::new();
        let server = format!("{:016x}", RandomState::new().hash_one(now()));
        Self(Arc::new(Shared { agent, store, limits, open, runs, phase, hasher, server, created }))
    }

    /// Returns the number of runs in progress.
    #[must_use]
    pub fn running(&self) -> usize {
        *self.0.runs.borrow()
    }

    /// Rejects new runs, and waits until those in progress have ended. After [`ServeLimits::shutdown`] they are
    /// interrupted, and their conversations are saved with the text so far.
    ///
    /// Event streams end when no run is in progress in their conversation. At last, within the same time, conversations
    /// whose last save failed are saved again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing: the runs still end.
    pub async fn shutdown(&self) {
        self.0.phase.send_if_modified(|phase| {
            let is_open = *phase == Phase::Open;
            if is_open {
                *phase = Phase::Closing(self.0.limits.shutdown);
            }
            is_open
        });
        // The sender lives as long as `self`.
        let _ = self.0.runs.subscribe().wait_for(|runs| *runs == 0).await;
        let saved = stream::iter(self.unsaved()).for_each(|unsaved| self.save_again(unsaved));
        let _ = timeout(self.0.limits.shutdown, saved).await;
    }

    pub(crate) fn agent(&self) -> &AgentOptions {
        &self.0.agent
    }

    pub(crate) fn limits(&self) -> &ServeLimits {
        &self.0.limits
    }

    /// Returns the hasher for messages, whose seed differs in each process.
    pub(crate) fn hasher(&self) -> &RandomState {
        &self.0.hasher
    }

    pub(crate) fn phase(&self) -> watch::Receiver<Phase> {
        self.0.phase.subscribe()
    }

    /// Creates a conversation with an unguessable id.
    pub(crate) async fn create(&self) -> Result<SessionId, Refusal> {
        let id = SessionId::new(unguessable_id())?;
        self.0.store.create(NewSession::new(id.clone(), Timestamp::now())).await?;
        self.created(&id).await;
        Ok(id)
    }

    pub(crate) async fn list(&self, list: List) -> Result<SessionPage, Refusal> {
        Ok(self.0.store.list(list).await?)
    }

    pub(crate) fn is_running(&self, id: &SessionId) -> bool {
        self.open_now()
            .get(&Key::Stored(id.clone()))
            .is_some_and(|conversation| conversation.is_running())
    }

    /// Returns a conversation, loading it from the store if necessary.
    pub(crate) async fn open(&self, id: &SessionId) -> Result<Arc<Conversation>, Refusal> {
        let key = Key::Stored(id.clone());
        let known = self.open_now().get(&key).cloned();
        if let Some(known) = known {
            known.touch();
            return Ok(known);
        }
        // Loads without the lock of `open`. If another request has loaded it meanwhile, `open_as` returns that one.
        let saved = SavedSession::open(Arc::clone(&self.0.store), id).await?;
        self.keep(key, Seat::stored(&self.0.agent, saved)?).await
    }

    /// Returns a conversation as [`open`](Self::open) does; if it is not stored, a new one that is stored when its
    /// first run begins.
    pub(crate) async fn open_or_new(&self, id: &SessionId) -> Result<Arc<Conversation>, Refusal> {
        match self.open(id).await {
            Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {}
            opened => return opened,
        }
        let seat = Seat::new(Client::new(self.0.agent.clone())?, Some(id.clone()));
        self.keep(Key::Stored(id.clone()), seat).await
    }

    /// Keeps a conversation in memory, unless there is one with this key.
    async fn keep(&self, key: Key, seat: Seat) -> Result<Arc<Conversation>, Refusal> {
        let conversation = Arc::new(Conversation::new(seat, &self.0.limits));
        let keep = || self.open_as(key.clone(), || Ok(Arc::clone(&conversation)));
        let kept = keep();
        // One that is saved again makes room.
        if kept.is_err()
            && let Some(unsaved) = self.unsaved().into_iter().next()
        {
            self.save_again(unsaved).await;
            return keep();
        }
        kept
    }

    /// Returns the conversations without a run whose last save failed, least recently used first.
    fn unsaved(&self) -> Vec<Arc<Conversation>> {
        let open = self.open_now();
        let unsaved = open.values().filter_map(|it| Some((it.unsaved_since()?, Arc::clone(it))));
        let mut unsaved: Vec<_> = unsaved.collect();
        unsaved.sort_by_key(|(since, _)| *since);
        unsaved.into_iter().map(|(_, conversation)| conversation).collect()
    }

    async fn save_again(&self, conversation: Arc<Conversation>) {
        if let Ok(mut seat) = conversation.idle_seat().await {
            // If it fails, it is the turn of another one.
            conversation.touch();
            save_again(&conversation, &mut seat).await;
        }
    }

    /// Creates the session of a new conversation, unless it has one or is not stored.
    pub(crate) async fn save_from_now_on(&self, seat: &mut Seat) -> Result<(), Refusal> {
        let (None, Some(id)) = (&seat.saved, &seat.id) else { return Ok(()) };
        let new = NewSession::new(id.clone(), Timestamp::now());
        let saved = SavedSession::open_or_create(Arc::clone(&self.0.store), new).await?;
        self.created(&saved.session().info.id).await;
        seat.saved = Some(saved);
        Ok(())
    }

    /// Records a new session. On a server without a store, deletes the oldest sessions beyond the limit.
    async fn created(&self, id: &SessionId) {
        let Some(created) = &self.0.created else { return };
        // The lock is released before the deletions, which wait for the store.
        let mut surplus = Vec::new();
        {
            let mut created = created.lock().unwrap_or_else(PoisonError::into_inner);
            // A conversation that was deleted and continues: it must not make room for itself.
            created.retain(|known| known != id);
            // Spares conversations at work: while they exceed the limit, only those that have ended since are deleted.
            while created.len() >= self.0.limits.stored.max(1)
                && let Some(oldest) = created.iter().position(|id| !self.is_running(id))
            {
                surplus.extend(created.remove(oldest));
            }
            created.push_back(id.clone());
        }
        let conversations = self.clone();
        // Nobody else knows the surplus any more, so a client that hangs up must not end this.
        let _ = to_the_end(async move {
            for oldest in surplus {
                // The user may have deleted it already.
                let _ = conversations.delete(&oldest).await;
            }
            Ok(())
        })
        .await;
    }

    /// Returns the conversation with this key, creating it if it is not in memory.
    pub(crate) fn open_as(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Arc<Conversation>, Refusal>,
    ) -> Result<Arc<Conversation>, Refusal> {
        let mut open = self.open_now();
        if let Some(known) = open.get(&key) {
            known.touch();
            return Ok(Arc::clone(known));
        }
        make_room(&mut open, self.0.limits.conversations)?;
        // Under the lock, so that each key has one conversation: `make` must not use `open`.
        let conversation = make()?;
        open.insert(key, Arc::clone(&conversation));
        Ok(conversation)
    }

    /// Returns the conversation with this key if it is in memory.
    pub(crate) fn known(&self, key: &Key) -> Option<Arc<Conversation>> {
        self.open_now().get(key).cloned()
    }

    /// Removes the conversation with this key from memory and returns it.
    pub(crate) fn take(&self, key: &Key) -> Option<Arc<Conversation>> {
        self.open_now().remove(key)
    }

    /// Returns the session with its messages, and the status of the conversation. The messages cover the events up to
    /// [`Status::stored`].
    pub(crate) async fn load(&self, id: &SessionId) -> Result<(Session, Status), Refusal> {
        let conversation = self.open(id).await?;
        // Another server may have asked or answered since this one has seen the conversation. A run would have seen it.
        if let Ok(mut seat) = conversation.idle_seat().await {
            self.refresh(&conversation, &mut seat).await?;
            if let Some(saved) = &seat.saved {
                return Ok((saved.session().clone(), conversation.status()));
            }
        }
        // No save can end while this guard lives, so `stored` of the status names the last event that these
        // messages cover.
        let _saving = conversation.saving.read().await;
        let session = self.0.store.load(id).await?;
        Ok((session, conversation.status()))
    }

    pub(crate) async fn set_title(
        &self,
        id: &SessionId,
        title: &str,
    ) -> Result<SessionInfo, Refusal> {
        let title = Map::from_iter([("title".to_owned(), Value::from(title))]);
        Ok(self.0.store.set_metadata(id, title, Timestamp::now()).await?)
    }

    /// Deletes a conversation, after stopping its run.
    pub(crate) async fn delete(&self, id: &SessionId) -> Result<(), Refusal> {
        let (conversations, id) = (self.clone(), id.clone());
        to_the_end(async move {
            let key = Key::Stored(id.clone());
            let known = conversations.open_now().get(&key).cloned();
            if let Some(conversation) = &known {
                // First marks it, so that no run can begin once it is idle.
                conversation.delete();
                conversation.stop();
                conversation.idle().await;
            }
            if let Some(created) = &conversations.0.created {
                let mut created = created.lock().unwrap_or_else(PoisonError::into_inner);
                created.retain(|known| *known != id);
            }
            let deleted = conversations.0.store.delete(&id).await;
            // After the deletion: until then, a request would load the conversation again.
            if known.is_some() || deleted.is_ok() {
                let late = conversations.open_now().remove(&key);
                if let Some(late) = late {
                    // It may have been loaded meanwhile: its viewers are told of its end.
                    late.delete();
                    late.stop();
                }
            }
            Ok(deleted?)
        })
        .await
    }

    /// Starts a run with a prompt, and returns the number of the run.
    pub(crate) async fn prompt(&self, id: &SessionId, prompt: Message) -> Result<u64, Refusal> {
        let conversation = self.open(id).await?;
        let permit = self.permit()?;
        let mut seat = conversation.idle_seat().await?;
        self.refresh(&conversation, &mut seat).await?;
        let event = ConversationEvent::of_prompt(&prompt);
        self.start(&conversation, seat, permit, Start::Prompt(prompt), Some(event))
    }

    /// Removes and returns the steered messages that no run has read. Refused while a run is in progress.
    pub(crate) async fn take_steered(&self, id: &SessionId) -> Result<Vec<String>, Refusal> {
        let conversation = self.open(id).await?;
        let mut seat = conversation.idle_seat().await?;
        let messages = seat.client.take_steered();
        conversation.forget_steering();
        Ok(messages.iter().map(Message::text).collect())
    }

    /// Answers a waiting call. After the last answer, the turn continues.
    pub(crate) async fn answer(
        &self,
        id: &SessionId,
        call_id: &str,
        answer: CallAnswer,
    ) -> Result<(), Refusal> {
        let (conversations, id, call_id) = (self.clone(), id.clone(), call_id.to_owned());
        // Otherwise a client that hangs up could leave a claimed call that nothing runs.
        to_the_end(async move { conversations.answer_now(&id, &call_id, answer).await }).await
    }

    async fn answer_now(
        &self,
        id: &SessionId,
        call_id: &str,
        answer: CallAnswer,
    ) -> Result<(), Refusal> {
        let conversation = self.open(id).await?;
        let kind = match answer {
            CallAnswer::Approved { .. } | CallAnswer::Denied { .. } => WaitingKind::Approval,
            CallAnswer::Result { .. } => WaitingKind::Result,
        };
        let mut seat = match conversation.waiting_call(call_id, kind) {
            Ok(_) => Arc::clone(&conversation.seat).lock_owned().await,
            // Another server may have asked since this one has seen the conversation. A run would have seen it.
            Err(refusal) => conversation.idle_seat().await.map_err(|_| refusal)?,
        };
        self.refresh(&conversation, &mut seat).await?;
        // Another viewer may have answered it in between, here or on another server.
        conversation.waiting_call(call_id, kind)?;
        // Before the answer: if it were refused afterwards, the call would no longer wait, and nothing would continue.
        let permit = self.permit()?;
        self.claim(&conversation, &mut seat, &[call_id.to_owned()]).await?;
        if let Err(error) = give(&mut seat.client, call_id, &answer) {
            // An input that does not match the schema: the call still waits, on all servers.
            self.release(&mut seat, call_id).await;
            return Err(error.into());
        }
        if seat.waiting().is_empty() {
            conversation.answered(call_id, answer);
            self.start(&conversation, seat, permit, Start::Continue, None)?;
        } else {
            if !seat.answered_early(call_id, &answer) {
                // Another server could not continue the turn without the answer.
                self.release(&mut seat, call_id).await;
            }
            // First, because the request may be dropped while the answer is stored.
            conversation.answered(call_id, answer);
            self.save_early(&conversation, &mut seat).await;
        }
        Ok(())
    }

    /// Claims waiting calls in the store. If several servers share it, one of them can answer a call.
    ///
    /// After a restart, claimed calls wait again, because their run may have ended with the server.
    pub(crate) async fn claim(
        &self,
        conversation: &Conversation,
        seat: &mut Seat,
        calls: &[String],
    ) -> Result<(), Refusal> {
        // Only after a change by another server: otherwise the caller has checked it.
        if calls.iter().any(|call| conversation.is_answered(call)) {
            return Err(Refusal::conflict("this call was already answered"));
        }
        // No other server has the store of a server without one.
        let (Some(saved), None) = (&mut seat.saved, &self.0.created) else { return Ok(()) };
        let Some(pending) = saved.session().pending.clone() else { return Ok(()) };
        let claimed = with_claims(pending, &self.0.server, calls);
        match saved.set_pending(Some(claimed), Timestamp::now()).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.refresh(conversation, seat).await?;
                Err(Refusal::conflict(
                    "the conversation was changed by another server: load it again",
                ))
            }
            claimed => Ok(claimed?),
        }
    }

    /// Takes back a claim.
    pub(crate) async fn release(&self, seat: &mut Seat, call: &str) {
        let (Some(saved), None) = (&mut seat.saved, &self.0.created) else { return };
        if let Some(pending) = saved.session().pending.clone() {
            // After a failure, other servers refuse answers to the call, and this one still accepts them.
            let _ = saved.set_pending(Some(without_claim(pending, call)), Timestamp::now()).await;
        }
    }

    /// Stores answers while other calls of the turn still wait. If that fails, the answers still count in this process,
    /// but after a restart the calls wait again.
    async fn save_early(&self, conversation: &Conversation, seat: &mut Seat) {
        let Seat { client, saved: Some(saved), early, .. } = seat else { return };
        let _saving = conversation.saving.write().await;
        // The history has the results, the metadata the approvals and denials. If the request is dropped in
        // between, only the latter are lost, and their calls wait again after a restart.
        let mut stored = saved.save_waiting_now(client.history()).await;
        if !early.is_empty() {
            let (id, members) = (saved.session().info.id.clone(), answer_members(early));
            let set = self.0.store.set_metadata(&id, members, Timestamp::now()).await;
            stored = stored.and_then(|()| set.map(drop));
        }
        if let Err(error) = stored {
            conversation.saved(Some(&error));
        }
    }

    fn start(
        &self,
        conversation: &Arc<Conversation>,
        mut seat: OwnedMutexGuard<Seat>,
        permit: Permit,
        start: Start,
        prompt: Option<ConversationEvent>,
    ) -> Result<u64, Refusal> {
        seat.share_state(None);
        let (steer, now) = (seat.client.steer_handle(), now());
        let run = conversation.begin(Begin { steer, permit, now, prompt, front: None })?;
        let id = run.id;
        // After `begin`, which may refuse: until then the early answers belong to the calls that still wait.
        seat.begin(None, false);
        let policy = Policy { unread: self.0.limits.unread_run, denies_approvals: false };
        tokio::spawn(drive(run, seat, start, policy, self.phase(), |_| {}));
        Ok(id)
    }

    /// Reloads the conversation if another process has written to it, or has not yet stored an answer.
    pub(crate) async fn refresh(
        &self,
        conversation: &Conversation,
        seat: &mut Seat,
    ) -> Result<(), Refusal> {
        let Some(saved) = &mut seat.saved else { return Ok(()) };
        if saved.catch_up().await? || seat.is_behind {
            seat.restore(&self.0.agent)?;
            seat.is_behind = conversation.adopt(seat, &self.0.server);
        }
        Ok(())
    }

    pub(crate) fn permit(&self) -> Result<Permit, Refusal> {
        let permit = Permit::take(&self.0.runs, self.0.limits.runs);
        // After the permit, which `shutdown` waits for: a run that sees an open server is one of those.
        if *self.0.phase.borrow() != Phase::Open {
            return Err(Refusal::busy("the server is shutting down"));
        }
        permit.ok_or_else(|| {
            Refusal::busy(format!("{} runs are in progress; try again later", self.0.limits.runs))
        })
    }

    fn open_now(&self) -> MutexGuard<'_, HashMap<Key, Arc<Conversation>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a request to its end, even if the client hangs up and the future is dropped.
pub(crate) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) -> Result<T, Refusal> {
    match tokio::spawn(work).await {
        Ok(ended) => ended,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Refusal::busy("the server is shutting down")),
    }
}

/// Returns 32 hexadecimal digits that nobody can guess.
pub(crate) fn unguessable_id() -> String {
    // The keys of a `RandomState` are random and secret, and so is the hash of a known time.
    let random = || RandomState::new().hash_one(Timestamp::now().as_millis());
    format!("{:016x}{:016x}", random(), random())
}

/// Returns the time in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    u64::try_from(Timestamp::now().as_millis()).unwrap_or_default()
}

/// Makes room for one more conversation by evicting the least recently used idle ones that are saved.
fn make_room(open: &mut HashMap<Key, Arc<Conversation>>, most: usize) -> Result<(), Refusal> {
    while open.len() >= most.max(1) {
        // Requests, runs and viewers hold a clone. New ones are made under the lock of `open`, which the
        // caller holds, so a conversation that only the map holds stays unused until it is removed.
        let idle = open.iter().filter(|(_, conversation)| Arc::strong_count(conversation) == 1);
        let idle = idle.filter_map(|(id, conversation)| Some((conversation.idle_since()?, id)));
        let Some((_, id)) = idle.min() else {
            let message =
                format!("{most} conversations are in use or could not be saved; try again later");
            return Err(Refusal::busy(message));
        };
        let id = id.clone();
        open.remove(&id);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::to_the_end;

    #[tokio::test]
    #[should_panic(expected = "a bug")]
    async fn panics_are_passed_on() {
        let _ = to_the_end::<()>(async { panic!("a bug") }).await;
    }
}
