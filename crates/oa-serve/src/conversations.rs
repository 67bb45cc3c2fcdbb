//! The conversations of a server.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use oa_client::{AgentOptions, Client};
use oa_session::{
    List, MemoryStore, NewSession, SavedSession, SessionId, SessionInfo, SessionPage, SessionStore,
    Timestamp,
};
use oa_types::{ContentBlock, Message};
use serde_json::{Map, Value};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, watch};

use crate::conversation::{Begin, Conversation, running};
use crate::error::Refusal;
use crate::front_session::answer_members;
use crate::limits::ServeLimits;
use crate::log::{CallAnswer, ConversationEvent, WaitingKind};
use crate::run::{Phase, Policy, Start, drive};
use crate::seat::{Seat, give};

/// The longest title made from a prompt, in characters.
const TITLE: usize = 80;

/// The conversations of a server, with their runs and their store.
///
/// Clones share the conversations. Call [`shutdown`](Self::shutdown) to let runs finish before the program exits.
#[derive(Clone, Debug)]
pub struct Conversations(Arc<Shared>);

/// The key of a conversation in memory.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum Key {
    /// A conversation of an OpenAI client that waits for results of the client's tools: the hash of the messages before
    /// the answer, and the ids of the calls.
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
    runs: Arc<Semaphore>,
    phase: watch::Sender<Phase>,
    hasher: RandomState,
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
        let runs = Arc::new(Semaphore::new(limits.runs.min(Semaphore::MAX_PERMITS)));
        let (open, phase) = (Mutex::default(), watch::Sender::new(Phase::Open));
        let hasher = RandomState::new();
        Self(Arc::new(Shared { agent, store, limits, open, runs, phase, hasher, created }))
    }

    /// Returns the number of runs in progress.
    #[must_use]
    pub fn running(&self) -> usize {
        self.0.limits.runs.min(Semaphore::MAX_PERMITS) - self.0.runs.available_permits()
    }

    /// Rejects new runs, and waits until those in progress have ended. After [`ServeLimits::shutdown`] they are
    /// interrupted, and their conversations are saved with the text so far.
    ///
    /// Event streams end when no run is in progress in their conversation.
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
        // A run holds one permit, so all permits are free when no run is in progress. They are released at
        // once: new runs are refused by `phase`.
        let runs =
            u32::try_from(self.0.limits.runs.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let _ = self.0.runs.acquire_many(runs).await;
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
        // The keys of a `RandomState` are random and secret, so the hash of a known time cannot be guessed.
        let random = || RandomState::new().hash_one(Timestamp::now().as_millis());
        let id = SessionId::new(format!("{:016x}{:016x}", random(), random()))?;
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
        // Loads without the lock of `open`. If another request has loaded it meanwhile, `open_as` returns
        // that conversation and drops this one.
        let saved = SavedSession::open(Arc::clone(&self.0.store), id).await?;
        let seat = Seat::stored(&self.0.agent, saved)?;
        let conversation = Arc::new(Conversation::new(seat, &self.0.limits));
        self.open_as(key, || Ok(conversation))
    }

    /// Returns a conversation as [`open`](Self::open) does; if it is not stored, a new one that is stored when its
    /// first run begins.
    pub(crate) async fn open_or_new(&self, id: &SessionId) -> Result<Arc<Conversation>, Refusal> {
        match self.open(id).await {
            Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {}
            opened => return opened,
        }
        let seat = Seat::new(Client::new(self.0.agent.clone())?, Some(id.clone()));
        let conversation = Arc::new(Conversation::new(seat, &self.0.limits));
        self.open_as(Key::Stored(id.clone()), || Ok(conversation))
    }

    /// Creates the session of a new conversation, unless it has one or is not stored.
    pub(crate) async fn save_from_now_on(
        &self,
        seat: &mut Seat,
        prompt: Option<&Message>,
    ) -> Result<(), Refusal> {
        let (None, Some(id)) = (&seat.saved, &seat.id) else { return Ok(()) };
        let mut new = NewSession::new(id.clone(), Timestamp::now());
        if let Some(title) = prompt.and_then(title) {
            new = new.with_title(title);
        }
        let saved = SavedSession::open_or_create(Arc::clone(&self.0.store), new).await?;
        self.created(&saved.session().info.id).await;
        seat.saved = Some(saved);
        Ok(())
    }

    /// Records a new session. On a server without a store, deletes the oldest session beyond the limit.
    async fn created(&self, id: &SessionId) {
        let Some(created) = &self.0.created else { return };
        // The lock is released before the deletion, which waits for the store.
        let oldest = {
            let mut created = created.lock().unwrap_or_else(PoisonError::into_inner);
            created.push_back(id.clone());
            if created.len() > self.0.limits.stored.max(1) { created.pop_front() } else { None }
        };
        if let Some(oldest) = oldest {
            // Spares a conversation that is at work: it counts as new.
            if self.is_running(&oldest) {
                let mut created = created.lock().unwrap_or_else(PoisonError::into_inner);
                created.push_back(oldest);
                return;
            }
            // The user may have deleted it already.
            let _ = self.delete(&oldest).await;
        }
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
    /// [`Status::stored`](crate::conversation::Status::stored).
    pub(crate) async fn load(
        &self,
        id: &SessionId,
    ) -> Result<(oa_session::Session, crate::conversation::Status), Refusal> {
        let conversation = self.open(id).await?;
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
        let key = Key::Stored(id.clone());
        let known = self.open_now().get(&key).cloned();
        if let Some(conversation) = known {
            // First marks it, so that no run can begin once it is idle. A request that is dropped while it
            // waits leaves the mark behind; `DELETE` can be repeated.
            conversation.delete();
            conversation.stop();
            conversation.idle().await;
            self.open_now().remove(&key);
        }
        Ok(self.0.store.delete(id).await?)
    }

    /// Starts a run with a prompt, and returns the number of the run.
    pub(crate) async fn prompt(&self, id: &SessionId, prompt: Message) -> Result<u64, Refusal> {
        let conversation = self.open(id).await?;
        let permit = self.permit()?;
        // A run holds the seat until its end.
        let seat = Arc::clone(&conversation.seat);
        let mut seat = seat.try_lock_owned().map_err(|_| running())?;
        self.refresh(&conversation, &mut seat).await?;
        if let Some(saved) = &seat.saved
            && saved.session().info.title().is_none()
            && let Some(title) = title(&prompt)
        {
            // A failure is ignored: a conversation works without a title.
            let _ = self.set_title(id, &title).await;
        }
        let event = prompt_event(&prompt);
        self.start(&conversation, seat, permit, Start::Prompt(prompt), Some(event))
    }

    /// Removes and returns the steered messages that no run has read. Refused while a run is in progress.
    pub(crate) async fn take_steered(&self, id: &SessionId) -> Result<Vec<String>, Refusal> {
        let conversation = self.open(id).await?;
        // A run holds the seat until its end.
        let mut seat = Arc::clone(&conversation.seat).try_lock_owned().map_err(|_| running())?;
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
        let conversation = self.open(id).await?;
        let kind = match answer {
            CallAnswer::Approved { .. } | CallAnswer::Denied { .. } => WaitingKind::Approval,
            CallAnswer::Result { .. } => WaitingKind::Result,
        };
        conversation.waiting_call(call_id, kind)?;
        // The permit comes before the answer: if it were refused afterwards, the call would no longer wait,
        // and nothing would continue the turn.
        let permit = self.permit()?;
        let mut seat = Arc::clone(&conversation.seat).lock_owned().await;
        // Another viewer may have answered it in between.
        conversation.waiting_call(call_id, kind)?;
        give(&mut seat.client, call_id, &answer)?;
        if seat.waiting().is_empty() {
            conversation.answered(call_id, answer);
            self.start(&conversation, seat, permit, Start::Continue, None)?;
        } else {
            seat.answered_early(call_id, &answer);
            // First, because the request may be dropped while the answer is stored.
            conversation.answered(call_id, answer);
            self.save_early(&conversation, &mut seat).await;
        }
        Ok(())
    }

    /// Stores answers while other calls of the turn still wait. If that fails, the answers still count in this process,
    /// but after a restart the calls wait again.
    async fn save_early(&self, conversation: &Conversation, seat: &mut Seat) {
        let Seat { client, saved: Some(saved), early, .. } = seat else { return };
        let _saving = conversation.saving.write().await;
        // The history has the results, the metadata the approvals and denials. If the request is dropped in
        // between, only the latter are lost, and their calls wait again after a restart.
        let _ = saved.save_waiting_now(client.history()).await;
        if !early.is_empty() {
            let (id, members) = (saved.session().info.id.clone(), answer_members(early));
            let _ = self.0.store.set_metadata(&id, members, Timestamp::now()).await;
        }
    }

    fn start(
        &self,
        conversation: &Arc<Conversation>,
        mut seat: OwnedMutexGuard<Seat>,
        permit: OwnedSemaphorePermit,
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

    /// Reloads the conversation if another process has written to it.
    pub(crate) async fn refresh(
        &self,
        conversation: &Conversation,
        seat: &mut Seat,
    ) -> Result<(), Refusal> {
        let Some(saved) = &mut seat.saved else { return Ok(()) };
        // Changes of metadata, such as a title, do not change the revision.
        let known = saved.session().info.revision;
        saved.reload().await?;
        if saved.session().info.revision != known {
            seat.restore(&self.0.agent)?;
            conversation.forget_steering();
            conversation.adopt(seat);
        }
        Ok(())
    }

    pub(crate) fn permit(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        if *self.0.phase.borrow() != Phase::Open {
            return Err(Refusal::busy("the server is shutting down"));
        }
        Arc::clone(&self.0.runs).try_acquire_owned().map_err(|_| {
            Refusal::busy(format!("{} runs are in progress; try again later", self.0.limits.runs))
        })
    }

    fn open_now(&self) -> MutexGuard<'_, HashMap<Key, Arc<Conversation>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the time in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    u64::try_from(Timestamp::now().as_millis()).unwrap_or_default()
}

/// Returns the event that announces a prompt to viewers.
pub(crate) fn prompt_event(prompt: &Message) -> ConversationEvent {
    let images = prompt.content.iter().filter_map(|block| match block {
        ContentBlock::Image(image) => Some(image.url.clone()),
        _ => None,
    });
    ConversationEvent::Prompt { text: prompt.text(), images: images.collect() }
}

/// Makes room for one more conversation by evicting the least recently used idle ones.
fn make_room(open: &mut HashMap<Key, Arc<Conversation>>, most: usize) -> Result<(), Refusal> {
    while open.len() >= most.max(1) {
        // Requests, runs and viewers hold a clone. New ones are made under the lock of `open`, which the
        // caller holds, so a conversation that only the map holds stays unused until it is removed.
        let idle = open.iter().filter(|(_, conversation)| Arc::strong_count(conversation) == 1);
        let idle = idle.filter_map(|(id, conversation)| Some((conversation.idle_since()?, id)));
        let Some((_, id)) = idle.min() else {
            return Err(Refusal::busy(format!("{most} conversations are in use; try again later")));
        };
        let id = id.clone();
        open.remove(&id);
    }
    Ok(())
}

/// Returns a title for a conversation that starts with this prompt.
fn title(prompt: &Message) -> Option<String> {
    let text = prompt.text();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut title: String = line.chars().take(TITLE).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    Some(title)
}
