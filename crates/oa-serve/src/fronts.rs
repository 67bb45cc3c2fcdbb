//! Runs for front ends that keep the history themselves.

use std::sync::Arc;

use oa_client::{AgentOptions, Client};
use oa_tools::{FnTool, Tool};
use oa_types::MessageRole;
use tokio::sync::OwnedMutexGuard;

use crate::conversation::{Begin, Conversation, From, Seat, Viewer};
use crate::conversations::{Conversations, Key, now};
use crate::error::Refusal;
use crate::front::FrontTurn;
use crate::log::RunEvent;
use crate::run::{Policy, Start, drive};

/// A run for a front end: its events from the beginning, and how it is named.
#[derive(Debug)]
pub(crate) struct FrontRun {
    pub(crate) viewer: Viewer,
    pub(crate) message_id: String,
    pub(crate) denied: Vec<String>,
}

/// A request for a run.
pub(crate) struct FrontRequest {
    pub(crate) turn: FrontTurn,
    /// Calls of which the front end says that the user denied them.
    pub(crate) denied: Vec<String>,
    /// The tools that the front end runs; `None` if it runs those that the agent declares as external.
    pub(crate) tools: Option<Vec<FnTool>>,
    /// The agent, if it is not the one that is served.
    pub(crate) agent: Option<AgentOptions>,
    /// The id of the message that the run continues.
    pub(crate) continues: Option<String>,
    pub(crate) policy: Policy,
}

impl Conversations {
    /// Begins a run in the conversation of this name. What still runs in it ends first.
    pub(crate) async fn run_front(
        &self,
        key: Key,
        request: FrontRequest,
    ) -> Result<FrontRun, Refusal> {
        let conversation = self.open_as(key, || self.new_front())?;
        self.run_in(&conversation, request, |_| {}).await
    }

    /// Creates a conversation that is not stored here.
    pub(crate) fn new_front(&self) -> Result<Arc<Conversation>, Refusal> {
        let client = Client::new(self.agent().clone())?;
        let seat = Seat { client, saved: None };
        Ok(Arc::new(Conversation::new(seat, self.limits())))
    }

    /// Begins a run in a conversation, as [`run_front`](Self::run_front) does.
    pub(crate) async fn run_in(
        &self,
        conversation: &Arc<Conversation>,
        request: FrontRequest,
        ending: impl FnOnce(&RunEvent) + Send + 'static,
    ) -> Result<FrontRun, Refusal> {
        let FrontRequest { turn, denied, tools, agent, continues, policy } = request;
        // One after another: each of several requests at once ends the one before.
        let _entry = conversation.entry.lock().await;
        conversation.stop();
        conversation.idle().await;
        let permit = self.permit()?;
        let mut seat = Arc::clone(&conversation.seat).lock_owned().await;
        let before = conversation.last_run();
        let is_same = match (conversation.front(), &continues) {
            (Some((front, _)), Some(continued)) => front.message_id == *continued,
            (None, Some(_)) => false,
            (_, None) => true,
        };
        let goes_on = is_same && turn.answers.concern(&seat.client, before);
        let (start, denied) = if goes_on {
            go_on(&mut seat, &turn, before)?
        } else {
            rebuild(
                &mut seat,
                agent.as_ref().unwrap_or_else(|| self.agent()),
                turn,
                tools,
                &denied,
            )?
        };
        // Before the run begins: it would stop at once without a reader.
        let mut viewer = conversation.view(From::Next)?;
        let begin = Begin {
            steer: seat.client.steer_handle(),
            permit,
            now: now(),
            prompt: None,
            front: Some((continues, denied)),
        };
        let run = conversation.begin(begin)?;
        if let Some((front, _)) = conversation.front() {
            viewer.skip_to(front.first);
            tokio::spawn(drive(run, seat, start, policy, self.phase(), ending));
            return Ok(FrontRun { viewer, message_id: front.message_id, denied: front.denied });
        }
        Err(Refusal::busy("the run was replaced before it began"))
    }

    /// Begins a run for a completion. `asked` names the messages of the request, `answered` those before the calls that it
    /// answers: if the agent still waits for these answers, it goes on and knows what its own tools did meanwhile.
    pub(crate) async fn run_completion(
        &self,
        asked: u64,
        answered: Option<(u64, Vec<String>)>,
        request: FrontRequest,
    ) -> Result<FrontRun, Refusal> {
        let waiting = answered.and_then(|(asked, ids)| self.take(&Key::Completion(asked, ids)));
        let conversation = match waiting {
            Some(conversation) => conversation,
            None => self.new_front()?,
        };
        let (conversations, waits) = (self.clone(), Arc::downgrade(&conversation));
        let ending = move |end: &RunEvent| {
            let mut ids: Vec<_> = end.waiting.iter().map(|call| call.call_id.clone()).collect();
            ids.sort();
            if let (false, Some(waits)) = (ids.is_empty(), waits.upgrade()) {
                // Without room the next request is answered as well, only without this memory.
                let _ = conversations.open_as(Key::Completion(asked, ids), || Ok(waits));
            }
        };
        self.run_in(&conversation, request, ending).await
    }

    /// Returns the run in progress, from its beginning; `None` if nothing runs.
    pub(crate) fn view_front(&self, key: &Key) -> Result<Option<FrontRun>, Refusal> {
        let Some(conversation) = self.known(key) else { return Ok(None) };
        match conversation.front() {
            Some((front, true)) => {
                let viewer = conversation.view(From::Number(front.first))?;
                Ok(Some(FrontRun { viewer, message_id: front.message_id, denied: front.denied }))
            }
            _ => Ok(None),
        }
    }

    /// Stops what runs in the conversation of this name, and waits until it has ended.
    pub(crate) async fn stop_front(&self, key: &Key) {
        if let Some(conversation) = self.known(key) {
            conversation.stop();
            conversation.idle().await;
        }
    }
}

/// Replaces the agent by one with the history that the front end sent. Calls in it never run.
fn rebuild(
    seat: &mut OwnedMutexGuard<Seat>,
    agent: &AgentOptions,
    turn: FrontTurn,
    tools: Option<Vec<FnTool>>,
    denied: &[String],
) -> Result<(Start, Vec<String>), Refusal> {
    let options = match tools {
        Some(tools) => with_tools(agent, tools)?,
        None => agent.clone(),
    };
    let FrontTurn { history, prompt, answers } = turn;
    if let Some(prompt) = prompt {
        seat.client = Client::with_history(options, history)?;
        return Ok((Start::Prompt(prompt), Vec::new()));
    }
    let mut client = Client::resume(options, history)?;
    let has_open = !client.pending_approvals().is_empty() || !client.pending_calls().is_empty();
    let denied = answers.give_to_rebuilt(&mut client, denied)?;
    let last = client.history().last().map(|message| message.role);
    if !has_open && !matches!(last, Some(MessageRole::Tool | MessageRole::User)) {
        return Err(Refusal::bad_request("there is nothing to continue: send a prompt"));
    }
    seat.client = client;
    Ok((Start::Continue, denied))
}

/// Answers calls that wait here, with their inputs as they were shown.
fn go_on(
    seat: &mut OwnedMutexGuard<Seat>,
    turn: &FrontTurn,
    before: u64,
) -> Result<(Start, Vec<String>), Refusal> {
    let denied = turn.answers.give(&mut seat.client, before)?;
    if !seat.waiting().is_empty() {
        return Ok((Start::Nothing, denied));
    }
    if let Some(prompt) = &turn.prompt {
        // It is read after the results.
        seat.client.steer_handle().steer_message(prompt.clone())?;
    }
    Ok((Start::Continue, denied))
}

/// Returns the agent with the tools that the front end runs. None of them takes the place of one that runs here, and the
/// agent's own external tools stay only if the front end declares them.
fn with_tools(agent: &AgentOptions, tools: Vec<FnTool>) -> Result<AgentOptions, Refusal> {
    let own = agent.tools().iter().filter(|tool| !tool.is_external()).cloned();
    let mut all: Vec<Arc<dyn Tool>> = own.collect();
    for tool in tools {
        if all.iter().all(|other| other.name() != tool.name()) {
            all.push(Arc::new(tool));
        }
    }
    let mut client = Client::new(agent.clone())?;
    client.set_tools(all).map_err(|error| Refusal::bad_request(error.to_string()))?;
    Ok(client.options().clone())
}
