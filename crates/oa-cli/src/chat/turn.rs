//! A turn at a terminal: events, keys and ticks update the screen.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oa_markdown::{Color, Line, Style};
use open_agent::session::{FollowError, SavedSession};
use open_agent::{
    AgentEvent, Client, ErrorKind, InterruptHandle, Message, Permission, PermissionRequest,
    Problem, SteerHandle, TerminalPrompt,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::command::{Command, Entered, parse};
use super::composer::{CUT, Input};
use super::conversation::{Conversation, TurnRecord};
use super::history;
use super::keyboard::RawMode;
use super::keys::Keys;
use super::prompt::SIGN;
use super::terminal::{TICK, Terminal, write};
use super::view::View;
use crate::advice::GONE;
use crate::failure::{Result, with_causes};
use crate::output::size;

/// The remark on files of a prompt that could not be sent, for example because the model cannot see.
const STILL_ATTACHED: &str =
    "The files are still attached: /attach lists them, and /attach none removes them.";

/// The number of events that may wait for the screen.
const EVENTS: usize = 64;

/// An update of a turn.
pub(super) enum TurnUpdate {
    Event(AgentEvent),
    /// The conversation could not be saved.
    Unsaved(String),
}

/// The start of a turn.
pub(super) enum Begin<'a> {
    /// A prompt is sent.
    Prompt(Message),
    /// Calls of an earlier run wait for permission: this person is asked, or all calls are allowed if there is none.
    /// Then the turn continues.
    Waiting(Option<&'a TerminalPrompt>),
}

impl Terminal {
    /// Runs a turn and shows it, including failures of the model and the server.
    pub(super) async fn turn(
        &mut self,
        conversation: &mut Conversation,
        begin: Begin<'_>,
    ) -> Result<()> {
        let context = conversation.settings.integer("context");
        let (width, height) = size();
        self.screen.set_size(width, height);
        let mut view = View::new(self.screen.columns());
        for late in self.late.drain(..) {
            view.steer(&late);
        }
        let (tell, mut told) = mpsc::channel(EVENTS);
        let handles = Handles {
            interrupt: conversation.client.interrupt_handle(),
            steer: conversation.client.steer_handle(),
            is_stopped: AtomicBool::new(false),
        };
        // Before the keys, so that an error drops it after them: reading stops, then raw mode ends.
        let mut raw = RawMode::enter()?;
        let began = Instant::now();
        let mut keys = Keys::read()?;
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        write(&self.screen.draw(vec![Line::default()], &[], (0, 0)))?;
        let Conversation { client, saved, .. } = conversation;
        let prompt = match &begin {
            Begin::Prompt(prompt) => Some(prompt.clone()),
            Begin::Waiting(_) => None,
        };
        let messages = client.history().len();
        let (mut is_shortened, mut repeats) = (false, 0);
        let mut push = |view: &mut View, update: TurnUpdate| {
            match &update {
                TurnUpdate::Event(AgentEvent::ContextShortened(_)) => is_shortened = true,
                TurnUpdate::Event(AgentEvent::Steered(message)) => {
                    repeats += usize::from(prompt.as_ref() == Some(message));
                }
                _ => {}
            }
            push(view, update, began.elapsed());
        };
        let outcome = {
            let mut turn = pin!(drive(client, saved.as_mut(), begin, tell, &handles.is_stopped));
            loop {
                tokio::select! {
                    biased;
                    outcome = &mut turn => break outcome,
                    // Before events, so that a fast answer cannot keep Ctrl-C waiting.
                    key = keys.next() => {
                        let mut key = Some(key);
                        // Those that have already arrived are drawn together.
                        while let Some(event) = key {
                            match self.composer.on(&event) {
                                Input::Suspend => {
                                    raw = self.suspend(raw).await?;
                                    view.resize(self.screen.columns());
                                }
                                input => self.on_input(input, &mut view, &handles)?,
                            }
                            key = keys.next_now();
                        }
                        self.keyboard.report_waiting_keys();
                    }
                    Some(event) = told.recv() => push(&mut view, event),
                    question = self.questions.next() => self.ask(question, &mut view),
                    _ = tick.tick() => {}
                }
                // Events that have already arrived are drawn together.
                while let Ok(event) = told.try_recv() {
                    push(&mut view, event);
                }
                let sign = if view.is_asking() { "? " } else { SIGN };
                let rows = view.rows(began.elapsed());
                self.draw(view.take_lines(), rows, sign)?;
            }
        };
        while let Ok(event) = told.try_recv() {
            push(&mut view, event);
        }
        // The thread that waits for the answer must end: it holds the prompt, and the next question would
        // wait for it.
        if view.is_asking() {
            self.questions.answer("");
            self.unask();
        }
        self.take_rest(keys);
        self.questions.refuse_rest();
        view.end();
        match outcome {
            Err(error) => {
                view.note(&with_causes(&error), Style::PLAIN.color(Color::Red));
                if error.kind() == ErrorKind::Connect {
                    view.note(GONE, Style::DIMMED);
                }
            }
            Ok(()) => {
                let is_stopped = handles.is_stopped.load(Ordering::Acquire);
                let why = client.finish_reason().and_then(history::why_it_ended);
                let why = why.or_else(|| is_stopped.then_some("stopped"));
                view.figures(why, client.usage().as_ref(), context, began.elapsed());
            }
        }
        let count = conversation.client.history().len();
        let continued = if prompt.is_some() { 0 } else { count.saturating_sub(messages) };
        let record = TurnRecord { prompt, before: messages, continued, is_shortened, repeats };
        conversation.note_turn(record).await;
        if conversation.unanswered.is_some() && !conversation.attached.is_empty() {
            view.note(STILL_ATTACHED, Style::DIMMED);
        }
        self.late = view.take_steered();
        for late in &self.late {
            let late = late.replace('\n', "⏎");
            view.note(&format!("» {late}  (will be sent with your next prompt)"), Style::DIMMED);
        }
        let mut out = self.screen.draw(view.take_lines(), &[], (0, 0));
        out.push_str(&self.screen.clear());
        write(&out)?;
        drop(raw);
        Ok(())
    }

    /// Shows a question. Text typed before it is set aside, because it does not answer the question.
    fn ask(&mut self, question: String, view: &mut View) {
        let typed = self.composer.take();
        if !typed.is_empty() {
            self.set_aside = Some(typed);
        }
        self.hint = None;
        view.ask(question);
    }

    /// Restores the text that was typed before a question.
    fn unask(&mut self) {
        self.hint = None;
        match self.set_aside.take() {
            Some(typed) => self.composer.restore(typed),
            None => drop(self.composer.take()),
        }
    }

    fn on_input(&mut self, input: Input, view: &mut View, handles: &Handles) -> Result<()> {
        match input {
            Input::Cut => self.hint = Some(CUT.to_owned()),
            Input::Edited | Input::Suspend => self.hint = None,
            Input::Ended if view.is_asking() => {}
            Input::Ended => {
                self.hint = Some("Ctrl-C stops the answer; /quit ends the program".to_owned());
            }
            Input::Interrupt => self.stop(view, handles),
            Input::Resize(width, height) => {
                let out = self.screen.resize(width, height);
                view.resize(self.screen.columns());
                write(&out)?;
            }
            Input::Sent(line) => match view.question() {
                Some(question) if TerminalPrompt::is_answer(question, &line) => {
                    view.answer(&line);
                    self.questions.answer(&line);
                    self.unask();
                }
                Some(_) => {
                    self.hint = Some("y runs the call; n or n REASON denies it".to_owned());
                    self.composer.restore(line);
                }
                None => self.on_line(line, view, handles),
            },
        }
        Ok(())
    }

    /// Handles a line that was sent while the model works.
    fn on_line(&mut self, line: String, view: &mut View, handles: &Handles) {
        match parse(&line) {
            Entered::Nothing => {}
            Entered::Prompt(_) if self.has_files_ahead() => self.send_ahead(line),
            Entered::Prompt(text) => match handles.steer.steer(text.clone()) {
                Ok(()) => {
                    view.steer(&text);
                    self.steered.push(text);
                }
                Err(error) => {
                    self.hint = Some(error.to_string());
                    self.composer.restore(line);
                }
            },
            // The next prompt takes the line and ends the program, after this turn has been saved.
            Entered::Command(Command::Quit) => {
                self.send_ahead(line);
                self.stop(view, handles);
            }
            Entered::Command(_) => self.send_ahead(line),
            Entered::Unknown(why) => {
                self.hint = Some(why);
                self.composer.restore(line);
            }
        }
    }

    fn stop(&mut self, view: &mut View, handles: &Handles) {
        handles.is_stopped.store(true, Ordering::Release);
        // An interrupt alone would leave the thread of the question waiting for a line.
        if view.answer("") {
            self.questions.answer("");
            self.unask();
        }
        handles.interrupt.interrupt();
    }
}

struct Handles {
    interrupt: InterruptHandle,
    steer: SteerHandle,
    /// True if the user has stopped the turn.
    is_stopped: AtomicBool,
}

fn push(view: &mut View, told: TurnUpdate, now: Duration) {
    match told {
        TurnUpdate::Event(event) => view.push(&event, now),
        TurnUpdate::Unsaved(why) => {
            let why = format!("the conversation could not be saved: {why}");
            view.note(&why, Style::PLAIN.color(Color::Red));
        }
    }
}

/// Runs a turn to its end. If there is a session, saves the conversation after each step.
pub(super) async fn drive(
    client: &mut Client,
    saved: Option<&mut SavedSession>,
    begin: Begin<'_>,
    tell: mpsc::Sender<TurnUpdate>,
    is_stopped: &AtomicBool,
) -> open_agent::Result<()> {
    match begin {
        Begin::Prompt(prompt) => client.send_message(prompt).await?,
        Begin::Waiting(person) => {
            if !decide(client, person, is_stopped).await? {
                return Ok(());
            }
            client.continue_turn().await?;
        }
    }
    let mut updates = Updates { tell, problem: None };
    let Some(saved) = saved else {
        loop {
            match client.next_event().await {
                Ok(Some(event)) => updates.send(TurnUpdate::Event(event)).await,
                Ok(None) => return updates.end(Ok(())).await,
                Err(error) => return updates.end(Err(error)).await,
            }
        }
    };
    let mut following = saved.follow(client);
    let mut unsaved = None;
    let outcome = loop {
        let told = match following.next_event().await {
            Ok(Some(event)) => TurnUpdate::Event(event),
            Ok(None) => break Ok(()),
            Err(FollowError::Conversation(error)) => break Err(error),
            Err(FollowError::Store(error)) => {
                let why = with_causes(&error);
                // Each step tries again, and fails for the same reason.
                if unsaved.replace(why.clone()).as_ref() == Some(&why) {
                    continue;
                }
                TurnUpdate::Unsaved(why)
            }
        };
        updates.send(told).await;
    };
    // The prefix names the revision that was saved last.
    client.set_key_prefix(saved.key_prefix());
    updates.end(outcome).await
}

/// Sends the updates of a turn. A problem waits for the next update, because the error of a turn repeats the problem
/// that ended it.
struct Updates {
    tell: mpsc::Sender<TurnUpdate>,
    problem: Option<Problem>,
}

impl Updates {
    async fn send(&mut self, update: TurnUpdate) {
        self.send_problem().await;
        match update {
            TurnUpdate::Event(AgentEvent::Problem(problem)) => self.problem = Some(problem),
            // A dropped receiver does not need the update.
            update => drop(self.tell.send(update).await),
        }
    }

    async fn send_problem(&mut self) {
        if let Some(problem) = self.problem.take() {
            drop(self.tell.send(TurnUpdate::Event(AgentEvent::Problem(problem))).await);
        }
    }

    async fn end(mut self, outcome: open_agent::Result<()>) -> open_agent::Result<()> {
        let error = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
        if !self.problem.as_ref().is_some_and(|problem| error.contains(&problem.to_string())) {
            self.send_problem().await;
        }
        outcome
    }
}

/// Decides about the waiting calls. Returns false if the user stopped it; the calls then keep waiting.
async fn decide(
    client: &mut Client,
    person: Option<&TerminalPrompt>,
    is_stopped: &AtomicBool,
) -> open_agent::Result<bool> {
    for call in client.pending_approvals() {
        let Some(person) = person else {
            client.approve(&call.id)?;
            continue;
        };
        let tool = client.options().tool(&call.name).map(|tool| tool.spec());
        let request = PermissionRequest::new(&*call.name, call.input, &*call.id, vec![]);
        let permission = person.ask(request.with_tool(tool)).await;
        // Checked after the answer: stopping a turn answers the open question with an empty line, which the
        // prompt reads as a denial.
        if is_stopped.load(Ordering::Acquire) {
            return Ok(false);
        }
        match permission {
            Permission::Allow => client.approve(&call.id)?,
            Permission::Deny(reason) => client.deny(&call.id, reason)?,
            _ => client.deny(&call.id, "the user said no")?,
        }
    }
    Ok(true)
}
