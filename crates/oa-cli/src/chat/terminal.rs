//! The terminal of a chat, between turns and during them.

use std::collections::VecDeque;
use std::io::{Write, stdout};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use oa_markdown::{Color, Line, Span, Style, wrap};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::command::{Command, Entered, parse};
use super::composer::{CUT, Composer, Input};
use super::keyboard::{Keyboard, RawMode};
use super::keys::Keys;
use super::person::Questions;
use super::prompt::SIGN;
use super::screen::Screen;
use super::view::typed;
use crate::failure::Result;
use crate::figure::{seconds, spinner};
use crate::output::{columns, size, write_line};

/// The interval at which the screen is redrawn without an event.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// The longest wait without a status line.
const QUICK: Duration = Duration::from_millis(100);
/// The maximum number of lines that wait for the next prompts.
const AHEAD: usize = 64;

/// The terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    has_styles: bool,
    pub(super) keyboard: Arc<Keyboard>,
    pub(super) questions: Questions,
    pub(super) composer: Composer,
    pub(super) screen: Screen,
    /// Lines for the next prompts, in order.
    ahead: VecDeque<String>,
    /// The text that was typed before a question was asked.
    pub(super) set_aside: Option<String>,
    /// A hint that is shown until the next key.
    pub(super) hint: Option<String>,
    /// Messages that came too late for a turn and are sent with the next.
    pub(super) late: Vec<String>,
    /// Messages that were sent while the model worked, for the history of prompts.
    pub(super) steered: Vec<String>,
}

impl Terminal {
    pub(super) fn new(has_styles: bool, keyboard: Arc<Keyboard>, questions: Questions) -> Self {
        let (width, height) = size();
        Self {
            has_styles,
            keyboard,
            questions,
            composer: Composer::default(),
            screen: Screen::new(width, height, has_styles),
            ahead: VecDeque::new(),
            set_aside: None,
            hint: None,
            late: Vec::new(),
            steered: Vec::new(),
        }
    }

    /// Returns the text that was typed and not sent.
    pub(super) fn take_unsent(&mut self) -> String {
        self.composer.take()
    }

    /// Takes the next waiting line, and prints it as the prompt would.
    pub(super) fn take_ahead(&mut self) -> Option<String> {
        let line = self.ahead.pop_front()?;
        self.print_lines(prompt_lines(&line));
        Some(line)
    }

    /// Keeps a line for the next prompt. If too many wait, the line stays in the composer.
    pub(super) fn send_ahead(&mut self, line: String) {
        if line.trim().is_empty() {
            return;
        }
        if self.ahead.len() == AHEAD {
            self.hint = Some(format!("{AHEAD} lines are already waiting"));
            self.composer.restore(line);
        } else {
            self.ahead.push_back(line);
        }
    }

    /// Gives the waiting lines back to be edited: a prompt among them would be sent without its files.
    pub(super) fn hold_ahead(&mut self) {
        let unsent = Some(self.composer.take()).filter(|text| !text.is_empty());
        let lines: Vec<_> = self.ahead.drain(..).chain(unsent).collect();
        self.composer.restore(lines.join("\n"));
    }

    /// Returns true if files wait for the next prompt, so that a prompt behind them has to wait, too.
    pub(super) fn has_files_ahead(&self) -> bool {
        let is_attach =
            |line: &String| matches!(parse(line), Entered::Command(Command::Attach(Some(_))));
        self.ahead.iter().any(is_attach)
    }

    /// Returns the rows of the waiting lines.
    pub(super) fn rows_ahead(&self) -> Vec<Line> {
        let row = |line: &String| {
            let mut row = Line::new("» ", Style::DIMMED);
            row.spans.push(typed(line, Style::DIMMED));
            row.and("  (waits for its turn)", Style::DIMMED).cut(self.screen.columns())
        };
        self.ahead.iter().map(row).collect()
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
        self.print_lines(wrap(&[Span::new(text, style)], &[], &[], columns()));
    }

    /// Prints lines.
    pub(super) fn print_lines(&mut self, lines: Vec<Line>) {
        let text: Vec<_> = lines.iter().map(|line| line.ansi(self.has_styles)).collect();
        // If the terminal is gone, the editor reports it.
        let _ = write_line(&text.join("\n"));
        self.screen.note(lines);
    }

    /// Records the prompt, which the editor has printed.
    pub(super) fn note_prompt(&mut self, prompt: &str) {
        self.screen.note(prompt_lines(prompt));
    }

    /// Waits for a future that is not an answer, with a status line if it takes long. `None` if the user stopped it.
    pub(super) async fn wait<T>(
        &mut self,
        label: &str,
        work: impl Future<Output = T>,
    ) -> Result<Option<T>> {
        let mut work = pin!(work);
        if let Ok(done) = timeout(QUICK, &mut work).await {
            return Ok(Some(done));
        }
        let (width, height) = size();
        self.screen.set_size(width, height);
        let mut raw = RawMode::enter()?;
        let began = Instant::now();
        let mut keys = Keys::read()?;
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let done = 'over: loop {
            tokio::select! {
                biased;
                done = &mut work => break Some(done),
                key = keys.next() => {
                    let mut key = Some(key);
                    while let Some(event) = key {
                        match self.composer.on(&event) {
                            Input::Interrupt => break 'over None,
                            Input::Resize(width, height) => {
                                write(&self.screen.resize(width, height))?;
                            }
                            Input::Sent(line) => self.send_ahead(line),
                            Input::Cut => self.hint = Some(CUT.to_owned()),
                            Input::Edited | Input::Ended => self.hint = None,
                            Input::Suspend => raw = self.suspend(raw).await?,
                        }
                        key = keys.next_now();
                    }
                    self.keyboard.report_waiting_keys();
                }
                _ = tick.tick() => {}
            }
            let now = began.elapsed();
            let picture = Line::new(spinner(now), Style::PLAIN.color(Color::Cyan));
            let rest = format!(" {label}  {}  Ctrl-C stops it", seconds(now));
            self.draw(vec![], vec![picture.and(&rest, Style::DIMMED)], SIGN)?;
        };
        self.take_rest(keys);
        write(&self.screen.clear())?;
        drop(raw);
        Ok(done)
    }

    /// Suspends the program. The changing rows are drawn again afterwards, wherever the cursor is then.
    pub(super) async fn suspend(&mut self, raw: RawMode) -> Result<RawMode> {
        write(&self.screen.clear())?;
        drop(raw);
        self.keyboard.suspend().await?;
        let raw = RawMode::enter()?;
        let (width, height) = size();
        self.screen.set_size(width, height);
        Ok(raw)
    }

    /// Draws permanent lines, changing rows, and the line that is being typed.
    pub(super) fn draw(&mut self, stay: Vec<Line>, mut rows: Vec<Line>, sign: &str) -> Result<()> {
        rows.extend(self.rows_ahead());
        rows.extend(self.hint.as_ref().map(|hint| Line::new(hint, Style::DIMMED)));
        let (row, column) = self.composer.row(sign, self.screen.columns());
        rows.push(row);
        let cursor = (rows.len() - 1, column);
        write(&self.screen.draw(stay, &rows, cursor))
    }

    /// Stops reading keys. Text typed so far is kept for the next prompts.
    pub(super) fn take_rest(&mut self, keys: Keys) {
        self.hint = None;
        for key in keys.stop() {
            if let Input::Sent(line) = self.composer.on(&key) {
                self.send_ahead(line);
            }
        }
    }
}

/// Returns the lines of a prompt.
fn prompt_lines(prompt: &str) -> Vec<Line> {
    let first = [Span::new(SIGN, Style::PLAIN.color(Color::Green))];
    let next = [Span::new("  ", Style::PLAIN)];
    wrap(&[Span::new(prompt, Style::PLAIN)], &first, &next, columns())
}

pub(super) fn write(out: &str) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let mut stdout = stdout().lock();
    stdout.write_all(out.as_bytes())?;
    Ok(stdout.flush()?)
}
