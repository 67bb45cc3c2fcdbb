//! Runs for front ends that keep the history themselves.

use std::collections::HashSet;
use std::sync::Arc;

use axum::http::StatusCode;
use oa_client::{AgentOptions, Client};
use oa_event_log::{CallAnswer, ConversationEvent, RunEvent};
use oa_session::SessionId;
use oa_tools::{FnTool, Tool};
use oa_types::{ContentBlock, MessageRole, ToolUseBlock};
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use crate::conversation::{Begin, Conversation, From, Viewer};
use crate::conversations::{Conversations, Key, now, to_the_end};
use crate::error::Refusal;
use crate::front::FrontTurn;
use crate::front_session::{BeginFront, Front, FrontMark, FrontProtocol, session_id};
use crate::history::{Joined, closed, join};
use crate::limits::Permit;
use crate::openai::{CallIds, Sampling};
use crate::run::{Policy, Start, drive};
use crate::seat::Seat;

/// A run for a front end: its events from the beginning, and its identifiers.
#[derive(Debug)]
pub(crate) struct FrontRun {
    pub(crate) viewer: Viewer,
    pub(crate) message_id: String,
    pub(crate) denied: Vec<String>,
    /// The tools that the front end runs.
    pub(crate) external: Arc<HashSet<String>>,
    /// True if the run goes on after calls of an earlier one, which may have run tools.
    pub(crate) goes_on: bool,
}

impl FrontRun {
    fn new(viewer: Viewer, front: Front, goes_on: bool) -> Self {
        let Front { message_id, denied, external, .. } = front;
        Self { viewer, message_id, denied, external, goes_on }
    }
}

/// A request for a run.
pub(crate) struct FrontRequest {
    pub(crate) turn: FrontTurn,
    /// Calls that the user denied, according to the front end.
    pub(crate) denied: Vec<String>,
    /// The tools that the front end runs; `None` if it runs those that the agent declares as external.
    pub(crate) tools: Option<Vec<FnTool>>,
    /// The agent, if it is not the served one.
    pub(crate) agent: Option<AgentOptions>,
    /// The request parameters that the front end sets.
    pub(crate) sampling: Option<Sampling>,
    /// The state that the front end shares with tools.
    pub(crate) state: Option<Value>,
    /// The id of the message that the run continues.
    pub(crate) continues: Option<String>,
    pub(crate) policy: Policy,
}

impl Conversations {
    /// Begins a run in the conversation that the front end names, after stopping any run in progress.
    pub(crate) async fn run_front(
        &self,
        protocol: FrontProtocol,
        name: &str,
        request: FrontRequest,
    ) -> Result<FrontRun, Refusal> {
        let conversation = self.open_or_new(&front_id(protocol, name)?).await?;
        self.run_in(&conversation, request, |_| {}).await
    }

    /// Creates a conversation that is not stored.
    pub(crate) fn new_front(&self) -> Result<Arc<Conversation>, Refusal> {
        let client = Client::new(self.agent().clone())?;
        Ok(Arc::new(Conversation::new(Seat::new(client, None), self.limits())))
    }

    /// Begins a run in a conversation, as [`run_front`](Self::run_front) does.
    pub(crate) async fn run_in(
        &self,
        conversation: &Arc<Conversation>,
        request: FrontRequest,
        ending: impl FnOnce(&RunEvent) + Send + 'static,
    ) -> Result<FrontRun, Refusal> {
        // No turn accepts it, and the run in progress must not be stopped for it.
        let is_blank = |it: &ContentBlock| it.as_text().is_some_and(|text| text.trim().is_empty());
        if request.turn.prompt.as_ref().is_some_and(|it| it.content.iter().all(is_blank)) {
            return Err(Refusal::bad_request("the prompt is empty"));
        }
        let (conversations, conversation) = (self.clone(), Arc::clone(conversation));
        // Concurrent requests take turns, and each stops the run of the one before. One whose client hangs up
        // while it waits does not run.
        let entry = Arc::clone(&conversation.entry).lock_owned().await;
        // The same answers again, such as from a second tab, must not stop the run that they have continued.
        let answers = &request.turn.answers;
        if request.turn.prompt.is_none() && answers.calls().any(|it| conversation.is_taken(it)) {
            return Err(answered_before());
        }
        conversation.stop();
        conversation.idle().await;
        let permit = self.permit()?;
        // Otherwise a client that hangs up could leave answers that no run continues.
        to_the_end(async move {
            let _entry = entry;
            conversations.run_now(&conversation, permit, request, ending).await
        })
        .await
    }

    async fn run_now(
        &self,
        conversation: &Arc<Conversation>,
        permit: Permit,
        request: FrontRequest,
        ending: impl FnOnce(&RunEvent) + Send + 'static,
    ) -> Result<FrontRun, Refusal> {
        // Brings the seat up to date, applies the answers or the history of the request, and begins the run.
        let FrontRequest { turn, denied, tools, agent, sampling, state, continues, policy } =
            request;
        let mut seat = Arc::clone(&conversation.seat).lock_owned().await;
        match self.refresh(conversation, &mut seat).await {
            // Another process has deleted the conversation: start a new one.
            Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {
                *seat = Seat::new(Client::new(self.agent().clone())?, seat.id.take());
            }
            refreshed => refreshed?,
        }
        let has_tools = tools.is_some();
        let agent = agent.as_ref().unwrap_or_else(|| self.agent());
        let options = match tools {
            Some(tools) => with_tools(agent, tools)?,
            None => agent.clone(),
        };
        // Calls of the front end's tools were restored without these tools, so they would wait for approval.
        if seat.is_restored && has_tools {
            seat.restore(&options)?;
            conversation.forget_steering();
        }
        self.save_from_now_on(&mut seat).await?;
        // Ids of approvals contain the number of the run that asked. `begin` below gives out the next number.
        let before = conversation.last_run();
        let is_same = match (conversation.front(), &continues) {
            (Some((front, _)), Some(continued)) => front.message_id == *continued,
            // The last run, if any, was not for a front end: the message to continue is from before it.
            (None, Some(_)) => false,
            (_, None) => true,
        };
        let answered = turn.answers.concern(&seat.client, before);
        let goes_on = is_same && !answered.is_empty();
        if let Some(sampling) = &sampling
            && sampling.has_format()
            && agent.tool_mode().is_text()
            && !options.tools().is_empty()
        {
            let message =
                "response_format is not supported: this agent writes its tool calls as text";
            return Err(Refusal::bad_request(message).of("response_format"));
        }
        // The viewer comes before the answers, because there may be no place for it; and before the run, which
        // may otherwise stop at once for lack of viewers.
        let mut viewer = conversation.view(From::Next)?;
        // A prompt that is steered is announced when the model reads it.
        let mut prompt = None;
        let (start, denied) = if goes_on {
            // A front end repeats the prompt with each answer, until a run reads it.
            if let Some(prompt) = &turn.prompt
                && !conversation.is_steered_by_front(&prompt.text())
            {
                // The model reads the prompt after the results. Before the claim, because it may be refused.
                seat.client.steer_handle().steer_message(prompt.clone())?;
                conversation.steered_by_front(prompt.text());
            }
            self.claim(conversation, &mut seat, &answered).await?;
            let (start, denied, unkept) = go_on(conversation, &mut seat, &turn, before)?;
            if matches!(start, Start::Nothing) {
                // Another server could not continue the turn without these answers.
                for call in unkept {
                    self.release(&mut seat, &call).await;
                }
            }
            (start, denied)
        } else {
            conversation.forget_steering();
            prompt = turn.prompt.as_ref().map(ConversationEvent::of_prompt);
            rebuild(&mut seat, options, turn, &denied).await?
        };
        if let Some(sampling) = sampling {
            // Not the client's parameters: these may be from the request before.
            let own = agent.chat_options().parameters.clone();
            seat.client.change_parameters(|parameters| sampling.apply(&own, parameters))?;
        }
        seat.share_state(state);
        let external = seat.client.options().tools().iter().filter(|tool| tool.is_external());
        let external = external.map(|tool| tool.name().to_owned()).collect();
        let begin = Begin {
            steer: seat.client.steer_handle(),
            permit,
            now: now(),
            prompt,
            front: Some(BeginFront { continues, denied, external }),
        };
        let run = conversation.begin(begin)?;
        if let Some((front, _)) = conversation.front() {
            let mark = FrontMark { run: run.id, message_id: front.message_id.clone() };
            let is_stored = seat.id.is_some();
            seat.begin(is_stored.then_some(&mark), matches!(start, Start::Nothing));
            viewer.skip_to(front.first);
            tokio::spawn(drive(run, seat, start, policy, self.phase(), ending));
            return Ok(FrontRun::new(viewer, front, goes_on));
        }
        Err(Refusal::busy("the run was replaced before it began"))
    }

    /// Begins a run for a completion. `asked` is the hash of the request's messages, and `answered` that of the
    /// messages before the calls that it answers. If the agent still waits for these answers, it continues with the
    /// results of its own tools, which the client does not have. The client knows its calls by `calls`.
    pub(crate) async fn run_completion(
        &self,
        asked: u64,
        answered: Option<(u64, Vec<String>)>,
        calls: CallIds,
        mut request: FrontRequest,
    ) -> Result<FrontRun, Refusal> {
        // Removes it, so that the same results continue a turn only once. A repeated request works from the
        // client's history.
        let key = answered.map(|(asked, ids)| Key::Completion(asked, ids));
        let waiting = key.and_then(|key| Some((self.take(&key)?, key)));
        let (conversation, key) = match waiting {
            Some((conversation, key)) => {
                for result in &mut request.turn.answers.results {
                    result.call_id = CallIds::known(&result.call_id).to_owned();
                }
                (conversation, Some(key))
            }
            None => (self.new_front()?, None),
        };
        let (conversations, waits) = (self.clone(), Arc::downgrade(&conversation));
        // Called before the end is published, so that the key is known when the client sends the results.
        let ending = move |end: &RunEvent| {
            let mut ids: Vec<_> =
                end.waiting.iter().map(|call| calls.shown(&call.call_id)).collect();
            ids.sort();
            if let (false, Some(waits)) = (ids.is_empty(), waits.upgrade()) {
                // A failure is ignored: the next request then works from the client's history alone.
                let _ = conversations.open_as(Key::Completion(asked, ids), || Ok(waits));
            }
        };
        let run = self.run_in(&conversation, request, ending).await;
        if let (Err(_), Some(key)) = (&run, key) {
            // OpenAI's libraries repeat a request that a busy server refuses, and its calls still wait.
            let _ = self.open_as(key, || Ok(conversation));
        }
        run
    }

    /// Returns the run in progress, from its beginning, if there is one. A run that continues a message is left out:
    /// the client would replace the whole message by its continuation.
    pub(crate) fn view_front(
        &self,
        protocol: FrontProtocol,
        name: &str,
    ) -> Result<Option<FrontRun>, Refusal> {
        let key = Key::Stored(front_id(protocol, name)?);
        let Some(conversation) = self.known(&key) else { return Ok(None) };
        match conversation.front() {
            Some((front, true)) if !front.is_continued => {
                // If the run ends in between, the log still has its events.
                let viewer = conversation.view(From::Number(front.first))?;
                Ok(Some(FrontRun::new(viewer, front, false)))
            }
            _ => Ok(None),
        }
    }

    /// Stops the run in progress in the conversation with this name, and waits until it has ended.
    pub(crate) async fn stop_front(
        &self,
        protocol: FrontProtocol,
        name: &str,
    ) -> Result<(), Refusal> {
        if let Some(conversation) = self.known(&Key::Stored(front_id(protocol, name)?)) {
            conversation.stop();
            conversation.idle().await;
        }
        Ok(())
    }
}

fn front_id(protocol: FrontProtocol, name: &str) -> Result<SessionId, Refusal> {
    session_id(protocol, name).ok_or_else(|| Refusal::bad_request("the conversation has no id"))
}

/// Replaces the agent by one with the history that the front end sent. Calls in that history never run.
async fn rebuild(
    seat: &mut OwnedMutexGuard<Seat>,
    options: AgentOptions,
    turn: FrontTurn,
    denied: &[String],
) -> Result<(Start, Vec<String>), Refusal> {
    let FrontTurn { history, prompt, answers } = turn;
    let kept = seat.client.history();
    if let Some(prompt) = prompt {
        let client = Client::with_history(options, history)?;
        let options = client.options().clone();
        // Both have results for all calls: the stored ones count, since only the server knows which calls ran.
        let kept = closed(kept.to_vec());
        let joined = join(&kept, client.history(), &options, &seat.refused).await?;
        seat.client = Client::with_history(options, joined.messages)?;
        return Ok((Start::Prompt(prompt), Vec::new()));
    }
    let mut client = Client::resume(options, history)?;
    let Joined { messages: mut history, answered } =
        join(kept, client.history(), client.options(), &seat.refused).await?;
    let is_answered = |call: &ToolUseBlock| answered.contains(&call.id);
    if client.pending_approvals().iter().chain(&client.pending_calls()).any(is_answered) {
        return Err(answered_before());
    }
    history.extend(answers.results_of_own_tools(&client, denied));
    client = Client::resume(client.options().clone(), history)?;
    let has_open = !client.pending_approvals().is_empty() || !client.pending_calls().is_empty();
    let denied = answers.give_to_rebuilt(&mut client, denied)?;
    let last = client.history().last().map(|message| message.role);
    if !has_open && !matches!(last, Some(MessageRole::Tool | MessageRole::User)) {
        return Err(Refusal::bad_request("there is nothing to continue: send a prompt"));
    }
    seat.client = client;
    Ok((Start::Continue, denied))
}

/// Returns the refusal of answers to calls that have been answered: by another viewer, or by the same request.
fn answered_before() -> Refusal {
    Refusal::conflict("this call was already answered: reload the conversation")
}

/// Answers waiting calls of the stored conversation, with the inputs that the user was shown. Returns the denied calls,
/// and those whose answers are too long to be stored.
fn go_on(
    conversation: &Conversation,
    seat: &mut OwnedMutexGuard<Seat>,
    turn: &FrontTurn,
    before: u64,
) -> Result<(Start, Vec<String>, Vec<String>), Refusal> {
    let (mut denied, mut unkept) = (Vec::new(), Vec::new());
    for (call_id, answer) in turn.answers.give(&mut seat.client, before)? {
        if !seat.answered_early(&call_id, &answer) {
            unkept.push(call_id.clone());
        }
        if matches!(answer, CallAnswer::Denied { .. }) {
            denied.push(call_id.clone());
        }
        conversation.answered(&call_id, answer);
    }
    let start = if seat.waiting().is_empty() { Start::Continue } else { Start::Nothing };
    Ok((start, denied, unkept))
}

/// Returns the agent with the tools that the front end runs. They do not replace tools that run on the server, and the
/// agent's own external tools are kept, as the agent declares them, only if the front end declares them, too.
fn with_tools(agent: &AgentOptions, tools: Vec<FnTool>) -> Result<AgentOptions, Refusal> {
    let now = agent.next_tools();
    let own = now.iter().filter(|tool| !tool.is_external()).cloned();
    let mut all: Vec<Arc<dyn Tool>> = own.collect();
    for tool in tools {
        if all.iter().all(|other| other.name() != tool.name()) {
            // The agent's own tool has the category that its rules are about.
            all.push(now.get(tool.name()).cloned().unwrap_or_else(|| Arc::new(tool)));
        }
    }
    let mut client = Client::new(agent.clone())?;
    client.set_tools(all).map_err(|error| Refusal::bad_request(error.to_string()))?;
    Ok(client.options().clone())
}
