//! A turn at a terminal: events, keys and time on one side, the screen on the other.

use std::io::{Write, stdout};
use std::pin::pin;
use std::time::Duration;

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, Event};
use crossterm::{execute, terminal};
use open_agent::session::{FollowError, SavedSession};
use open_agent::{AgentEvent, Client, InterruptHandle, SteerHandle};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::command::{Entered, parse};
use super::composer::{Composer, Input};
use super::conversation::Conversation;
use super::history;
use super::keys::Keys;
use super::person::Questions;
use super::prompt::SIGN;
use super::screen::Screen;
use super::view::View;
use crate::failure::{Result, with_causes};
use crate::output::write_line;
use crate::style::{Color, Line, Span, Style};
use crate::wrap::wrap;

/// The time after which the screen changes by itself.
const TICK: Duration = Duration::from_millis(100);
/// Events on their way to the screen.
const EVENTS: usize = 64;
/// The size of a terminal that does not tell.
const SIZE: (usize, usize) = (80, 24);

/// Something of a turn.
pub(super) enum Told {
    Event(AgentEvent),
    /// The conversation could not be saved.
    Unsaved(String),
}

/// The terminal, between turns and during them.
#[derive(Debug)]
pub(super) struct Terminal {
    has_styles: bool,
    questions: Questions,
    composer: Composer,
    screen: Screen,
    /// Messages that came too late for a turn: they go with the next.
    late: Vec<String>,
}

impl Terminal {
    pub(super) fn new(has_styles: bool, questions: Questions) -> Self {
        let (width, height) = size();
        Self {
            has_styles,
            questions,
            composer: Composer::default(),
            screen: Screen::new(width, height, has_styles),
            late: Vec::new(),
        }
    }

    /// Returns the text that was typed during the last turn and not sent.
    pub(super) fn take_unsent(&mut self) -> String {
        self.composer.take()
    }

    /// Prints a remark.
    pub(super) fn say(&mut self, text: &str) {
        self.print(text, Style::DIMMED);
    }

    /// Prints an error.
    pub(super) fn fail(&mut self, text: &str) {
        self.print(text, Style::PLAIN.color(Color::Red));
    }

    /// Prints text with line breaks.
    fn print(&mut self, text: &str, style: Style) {
        let width = size().0.saturating_sub(1);
        let lines = wrap(&[Span::new(text, style)], &[], &[], width);
        self.print_lines(lines);
    }

    /// Prints lines.
    pub(super) fn print_lines(&mut self, lines: Vec<Line>) {
        let text: Vec<_> = lines.iter().map(|line| line.ansi(self.has_styles)).collect();
        // A terminal that is gone is found out by the editor.
        let _ = write_line(&text.join("\n"));
        self.screen.note(lines);
    }

    /// Notes the prompt, which the editor has printed.
    pub(super) fn note_prompt(&mut self, prompt: &str) {
        let first = [Span::new(SIGN, Style::PLAIN.color(Color::Green))];
        let next = [Span::new("  ", Style::PLAIN)];
        let width = size().0.saturating_sub(1);
        self.screen.note(wrap(&[Span::new(prompt, Style::PLAIN)], &first, &next, width));
    }

    /// Sends a prompt and shows the turn. Failures of the model and the server are shown, too.
    pub(super) async fn turn(
        &mut self,
        conversation: &mut Conversation,
        prompt: &str,
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
        };
        let raw = RawMode::enter()?;
        let began = Instant::now();
        let mut keys = Keys::read()?;
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let Conversation { client, saved, .. } = conversation;
        let outcome = {
            let mut turn = pin!(drive(client, saved.as_mut(), prompt, tell));
            loop {
                tokio::select! {
                    biased;
                    outcome = &mut turn => break outcome,
                    key = keys.next() => self.on_key(key, &mut view, &handles)?,
                    Some(event) = told.recv() => push(&mut view, event, began.elapsed()),
                    question = self.questions.next() => view.ask(question),
                    _ = tick.tick() => {}
                }
                // What has arrived already is drawn together.
                while let Ok(event) = told.try_recv() {
                    push(&mut view, event, began.elapsed());
                }
                self.draw(&mut view, began.elapsed())?;
            }
        };
        while let Ok(event) = told.try_recv() {
            push(&mut view, event, began.elapsed());
        }
        // What was typed until now belongs to the next prompt.
        for key in keys.stop() {
            if let Input::Sent(line) = self.composer.on(&key) {
                self.composer.restore(line);
            }
        }
        if view.is_asking() {
            self.questions.answer("");
        }
        self.questions.refuse_rest();
        view.end();
        match outcome {
            Err(error) => view.note(&with_causes(&error), Style::PLAIN.color(Color::Red)),
            Ok(()) => {
                let why = client.finish_reason().and_then(history::why_it_ended);
                view.figures(why, client.usage().as_ref(), context, began.elapsed());
            }
        }
        self.late = view.take_steered();
        for late in &self.late {
            view.note(&format!("» {late}  (goes with your next prompt)"), Style::DIMMED);
        }
        let mut out = self.screen.draw(view.take_lines(), &[], (0, 0));
        out.push_str(&self.screen.clear());
        write(&out)?;
        drop(raw);
        Ok(())
    }

    fn on_key(&mut self, key: Event, view: &mut View, handles: &Handles) -> Result<()> {
        match self.composer.on(&key) {
            Input::Edited => {}
            Input::Interrupt => {
                if view.answer("") {
                    self.questions.answer("");
                }
                handles.interrupt.interrupt();
            }
            Input::Resize(width, height) => {
                let out = self.screen.resize(width, height);
                view.resize(self.screen.columns());
                write(&out)?;
            }
            Input::Sent(line) if view.answer(&line) => self.questions.answer(&line),
            Input::Sent(line) => match parse(&line) {
                Entered::Nothing => {}
                Entered::Prompt(text) => match handles.steer.steer(text.clone()) {
                    Ok(()) => view.steer(&text),
                    Err(error) => {
                        self.composer.restore(line);
                        view.note(&error.to_string(), Style::DIMMED);
                    }
                },
                Entered::Command(_) | Entered::Unknown(_) => {
                    self.composer.restore(line);
                    view.note(
                        "commands wait for the end of the answer; Ctrl-C ends it",
                        Style::DIMMED,
                    );
                }
            },
        }
        Ok(())
    }

    fn draw(&mut self, view: &mut View, now: Duration) -> Result<()> {
        let mut rows = view.rows(now);
        let sign = if view.is_asking() { "? " } else { SIGN };
        let (row, column) = self.composer.row(sign, self.screen.columns());
        rows.push(row);
        let cursor = (rows.len() - 1, column);
        let out = self.screen.draw(view.take_lines(), &rows, cursor);
        write(&out)
    }
}

struct Handles {
    interrupt: InterruptHandle,
    steer: SteerHandle,
}

fn push(view: &mut View, told: Told, now: Duration) {
    match told {
        Told::Event(event) => view.push(&event, now),
        Told::Unsaved(why) => {
            let why = format!("the conversation could not be saved: {why}");
            view.note(&why, Style::PLAIN.color(Color::Red));
        }
    }
}

/// Runs a turn to its end. Saves the conversation as it goes, if it is kept.
pub(super) async fn drive(
    client: &mut Client,
    saved: Option<&mut SavedSession>,
    prompt: &str,
    tell: mpsc::Sender<Told>,
) -> open_agent::Result<()> {
    client.send(prompt).await?;
    let Some(saved) = saved else {
        while let Some(event) = client.next_event().await? {
            // Whoever stopped reading has no use for it.
            let _ = tell.send(Told::Event(event)).await;
        }
        return Ok(());
    };
    let mut following = saved.follow(client);
    loop {
        let told = match following.next_event().await {
            Ok(Some(event)) => Told::Event(event),
            Ok(None) => return Ok(()),
            Err(FollowError::Conversation(error)) => return Err(error),
            Err(FollowError::Store(error)) => Told::Unsaved(with_causes(&error)),
        };
        let _ = tell.send(told).await;
    }
}

fn size() -> (usize, usize) {
    terminal::size().map_or(SIZE, |(width, height)| {
        if width == 0 || height == 0 { SIZE } else { (width.into(), height.into()) }
    })
}

fn write(out: &str) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let mut stdout = stdout().lock();
    stdout.write_all(out.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Keys arrive one by one, until it is dropped.
struct RawMode;

impl RawMode {
    fn enter() -> Result<Self> {
        terminal::enable_raw_mode()?;
        let raw = Self;
        execute!(stdout(), EnableBracketedPaste)?;
        Ok(raw)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        restore();
    }
}

/// Brings the terminal back to how it was. Where that fails, there is no terminal.
fn restore() {
    let _ = execute!(stdout(), DisableBracketedPaste, crossterm::cursor::Show);
    let _ = terminal::disable_raw_mode();
}

/// Restores the terminal when the program is told to end, and ends it.
pub(super) async fn restore_at_termination() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        let kinds = (SignalKind::terminate(), SignalKind::hangup());
        let (Ok(mut terminate), Ok(mut hang_up)) = (signal(kinds.0), signal(kinds.1)) else {
            return;
        };
        let kind = tokio::select! {
            _ = terminate.recv() => kinds.0,
            _ = hang_up.recv() => kinds.1,
        };
        restore();
        std::process::exit(128 + kind.as_raw_value());
    }
}
