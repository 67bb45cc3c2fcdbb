//! The view of a turn: a state machine that turns events into lines.

mod call;
mod nested;
mod text;

pub(super) use self::text::{
    call_text, denied_text, failed_text, one_line, remark, result_text, typed,
};

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use oa_markdown::{Block, Color, Line, Markdown, Span, Style, excerpt, wrap};
use open_agent::{AgentEvent, ContentBlock, ToolEvent, Usage};

use self::call::CallRow;
use crate::figure::{grouped, percent, seconds, spinner};

/// The view of a turn at a terminal.
///
/// Push events, take the [permanent lines](Self::take_lines), and show the [changing rows](Self::rows) below them. The
/// view reads no clock: `now` is the time since the turn began.
#[derive(Debug)]
pub struct View {
    width: usize,
    lines: Vec<Line>,
    part: Part,
    /// True if an empty line comes before the next permanent line.
    wants_gap: bool,
    /// True if the last permanent line belongs to a call.
    after_call: bool,
    calls: Vec<CallRow>,
    /// The ids of calls whose end was shown.
    ended: HashSet<String>,
    steered: VecDeque<String>,
    question: Option<String>,
    /// The last row of the question, with the possible answers. The rows above it are permanent.
    last_row: String,
    doing: String,
    /// The tokens of all answers of the turn, and the time to generate them.
    written: u64,
    writing: Duration,
    /// True if anything was shown.
    has_shown: bool,
}

#[derive(Debug)]
enum Part {
    None,
    Text(Markdown),
    Thinking(Markdown),
}

/// The shortest time from which a speed is meaningful.
const MEASURED: Duration = Duration::from_millis(100);
/// The maximum number of characters shown of a steered message.
const STEERED: usize = 200;

impl View {
    /// Creates the view of a new turn, in a terminal with this many columns.
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self {
            width,
            lines: Vec::new(),
            part: Part::None,
            wants_gap: false,
            after_call: false,
            calls: Vec::new(),
            ended: HashSet::new(),
            steered: VecDeque::new(),
            question: None,
            last_row: String::new(),
            doing: "waiting for the model".to_owned(),
            written: 0,
            writing: Duration::ZERO,
            has_shown: false,
        }
    }

    /// Sets the number of columns.
    pub fn resize(&mut self, width: usize) {
        self.width = width;
    }

    /// Handles an event.
    pub fn push(&mut self, event: &AgentEvent, now: Duration) {
        match event {
            AgentEvent::AnswerStart => self.doing = "the model is answering".to_owned(),
            AgentEvent::AnswerEnd(answer) => {
                self.end_part();
                if let Some(usage) = &answer.usage {
                    let tokens = usage.completion_tokens.unwrap_or_default();
                    self.written = self.written.saturating_add(tokens);
                    let time = usage.generation_time.unwrap_or_default();
                    self.writing = self.writing.saturating_add(time);
                }
                self.doing = "waiting for the model".to_owned();
            }
            AgentEvent::Block(block) => self.block(block),
            AgentEvent::CallDenied(denied) => {
                self.question = None;
                let row = CallRow::new(&denied.call_id, &denied.tool_name, &denied.input, now);
                self.end_call(&row, Mark::Failed, &denied_text(&denied.reason), None);
            }
            AgentEvent::Nested(nested) => {
                let lines = match self.calls.iter_mut().find(|row| row.id == nested.call_id) {
                    Some(row) => row.inner.push(nested, self.width),
                    None => Vec::new(),
                };
                for line in lines {
                    self.inner_line(line);
                }
            }
            AgentEvent::PromptProgress(progress) if progress.total > 0 => {
                let percent = percent(progress.processed, progress.total);
                self.doing = format!("the server reads the prompt: {percent} %");
            }
            AgentEvent::SteerBlocked(reason) => {
                self.steered.pop_front();
                self.note(&format!("your message was blocked: {reason}"), Style::DIMMED);
            }
            AgentEvent::Steered(message) => {
                self.steered.pop_front();
                self.end_part();
                self.gap();
                let text = message.text();
                let text = [Span::new(&excerpt(&text, STEERED), Style::PLAIN)];
                let first = [Span::new("» ", Style::PLAIN.bold())];
                for line in wrap(&text, &first, &[Span::new("  ", Style::PLAIN)], self.width) {
                    self.stay(line);
                }
                self.wants_gap = true;
            }
            AgentEvent::Tool(event) => self.tool(event, now),
            AgentEvent::ToolUseDelta(delta) => {
                self.end_part();
                if let Some(name) = &delta.name {
                    self.doing = format!("the model is calling {name}");
                }
            }
            event => {
                let is_cut = matches!(event, AgentEvent::PromptCut(_));
                let style = if is_cut { Style::PLAIN.color(Color::Yellow) } else { Style::DIMMED };
                remark(event).iter().for_each(|remark| self.note(remark, style));
            }
        }
    }

    fn block(&mut self, block: &ContentBlock) {
        match block {
            ContentBlock::Text(text) => {
                if !matches!(self.part, Part::Text(_)) {
                    self.end_part();
                    self.part = Part::Text(Markdown::new(Style::PLAIN));
                }
                self.write(&text.text);
            }
            ContentBlock::Thinking(thinking) => {
                if !matches!(self.part, Part::Thinking(_)) {
                    self.end_part();
                    self.part = Part::Thinking(Markdown::new(Style::DIMMED));
                }
                self.write(&thinking.thinking);
            }
            ContentBlock::ToolUse(call) => {
                self.end_part();
                self.doing = format!("{} is about to run", call.name);
            }
            ContentBlock::ToolUseError(error) => {
                self.end_part();
                if error.id.as_ref().is_none_or(|id| !self.ended.contains(&**id)) {
                    self.failed(&failed_text(error));
                    // The call may have an error result as well, which is not shown again.
                    self.ended.extend(error.id.as_ref().map(ToString::to_string));
                }
            }
            ContentBlock::ToolResult(result)
                if result.is_error && !self.ended.contains(&*result.tool_use_id) =>
            {
                let name = result.name.as_deref().unwrap_or("a call");
                let why = result_text(&result.content);
                self.failed(&format!("{name}: {why}"));
            }
            _ => {}
        }
    }

    fn write(&mut self, text: &str) {
        let (Part::Text(markdown) | Part::Thinking(markdown)) = &mut self.part else { return };
        let blocks = markdown.push(text);
        self.stay_blocks(&blocks);
    }

    fn tool(&mut self, event: &ToolEvent, now: Duration) {
        match event {
            ToolEvent::CallStart(start) => {
                self.question = None;
                let row = CallRow::new(&start.call_id, &start.tool_name, &start.input, now);
                self.calls.push(row);
            }
            ToolEvent::Progress(event) => {
                if let Some(row) = self.row(&event.call_id) {
                    row.progress = Some(event.progress.clone());
                }
            }
            ToolEvent::Status(event) => {
                if let Some(row) = self.row(&event.call_id) {
                    row.doing = Some(event.status.clone());
                }
            }
            ToolEvent::Log(event) => {
                let line = format!("{}: {}", event.tool_name, event.message);
                self.note(&line, Style::DIMMED);
            }
            ToolEvent::Retry(event) => {
                let line = format!("{}: {}; retrying", event.tool_name, event.error);
                self.note(&line, Style::DIMMED);
            }
            ToolEvent::CallComplete(result) => {
                let at = self.calls.iter().position(|row| row.id == result.call_id);
                let row = match at {
                    Some(at) => self.calls.remove(at),
                    None => CallRow::new(&result.call_id, &result.tool_name, &result.input, now),
                };
                let mark = if result.is_error() { Mark::Failed } else { Mark::Done };
                let text = result_text(&result.result);
                self.end_call(&row, mark, &text, Some(result.duration));
            }
            _ => {}
        }
    }

    fn row(&mut self, id: &str) -> Option<&mut CallRow> {
        self.calls.iter_mut().find(|row| row.id == id)
    }

    fn end_call(&mut self, row: &CallRow, mark: Mark, result: &str, took: Option<Duration>) {
        self.end_part();
        self.ended.insert(row.id.clone());
        if !self.after_call {
            self.gap();
        }
        let (sign, color) = match mark {
            Mark::Done => ("✓ ", Color::Green),
            Mark::Failed => ("✗ ", Color::Red),
        };
        let took = took.map_or_else(String::new, |took| format!("  {}", seconds(took)));
        let line = Line::new(sign, Style::PLAIN.color(color)).and(&row.call, Style::PLAIN);
        // The call is cut to make room for its time.
        let room = self.width.saturating_sub(took.len()).max(8);
        self.stay(line.cut(room).and(&took, Style::DIMMED));
        let arrow = Line::new("  → ", Style::DIMMED).and(result, Style::DIMMED);
        self.stay(arrow.cut(self.width));
        self.after_call = true;
        self.wants_gap = true;
    }

    /// Adds a line of a sub-agent, below those of calls.
    fn inner_line(&mut self, line: Line) {
        self.end_part();
        if !self.after_call {
            self.gap();
        }
        self.stay(line);
        self.after_call = true;
        self.wants_gap = true;
    }

    fn failed(&mut self, text: &str) {
        self.gap();
        let line = Line::new("✗ ", Style::PLAIN.color(Color::Red)).and(text, Style::PLAIN);
        self.stay(line.cut(self.width));
        self.wants_gap = true;
    }

    /// Adds a permanent remark, which may have several lines.
    pub fn note(&mut self, text: &str, style: Style) {
        self.end_part();
        self.gap();
        for line in wrap(&[Span::new(text.trim_end(), style)], &[], &[], self.width) {
            self.stay(line);
        }
        self.wants_gap = true;
    }

    /// Shows a user's message that waits for the model's next step.
    pub fn steer(&mut self, text: &str) {
        self.steered.push_back(text.to_owned());
    }

    /// Takes the messages that have not reached the model.
    pub fn take_steered(&mut self) -> Vec<String> {
        self.steered.drain(..).collect()
    }

    /// Shows a question until it is [answered](Self::answer) or the turn continues.
    ///
    /// All of it can be read before the answer: only its last row changes, and the rows above scroll like an answer.
    pub fn ask(&mut self, question: String) {
        self.end_part();
        let mut rows = wrap(&yellow(&question), &[], &[], self.width);
        let last = rows.pop().unwrap_or_default();
        if !rows.is_empty() {
            self.gap();
            rows.into_iter().for_each(|row| self.stay(row));
        }
        // The blank before the answer, which `wrap` removes.
        let blank = &question[question.trim_end().len()..];
        self.last_row = format!("{}{blank}", last.plain());
        self.question = Some(question);
    }

    /// Returns the open question.
    #[must_use]
    pub fn question(&self) -> Option<&str> {
        self.question.as_deref()
    }

    /// Returns true while a question is open.
    #[must_use]
    pub fn is_asking(&self) -> bool {
        self.question.is_some()
    }

    /// Ends the open question and keeps it on the screen with its answer. Returns false if none was open.
    pub fn answer(&mut self, answer: &str) -> bool {
        if self.question.take().is_none() {
            return false;
        }
        self.gap();
        let [question] = yellow(&self.last_row);
        let spans = [question, typed(answer, Style::PLAIN.bold())];
        for line in wrap(&spans, &[], &[], self.width) {
            self.stay(line);
        }
        self.wants_gap = true;
        true
    }

    /// Ends the turn, and keeps unfinished output as it is.
    pub fn end(&mut self) {
        self.end_part();
        self.question = None;
        for row in std::mem::take(&mut self.calls) {
            self.end_call(&row, Mark::Failed, "stopped", None);
        }
    }

    /// Adds the summary of a turn: the reason for an early end, tokens and their speed, the use of the context, and the
    /// time.
    pub fn figures(
        &mut self,
        why: Option<&str>,
        usage: Option<&Usage>,
        context: Option<u64>,
        took: Duration,
    ) {
        let empty = (!self.has_shown).then_some("the answer is empty");
        let mut figures: Vec<_> = why.or(empty).map(str::to_owned).into_iter().collect();
        if self.written > 0 {
            figures.push(format!("{} tokens", grouped(self.written)));
        }
        if self.written > 0 && self.writing >= MEASURED {
            let speed = self.written as f64 / self.writing.as_secs_f64();
            figures.push(format!("{speed:.1} tokens/s"));
        }
        if let Some(usage) = usage {
            figures.extend(usage.total().map(|used| match context {
                Some(size) => format!("context {} of {}", grouped(used), grouped(size)),
                None => format!("context {}", grouped(used)),
            }));
        }
        figures.push(seconds(took));
        self.note(&figures.join(" · "), Style::DIMMED);
    }

    fn end_part(&mut self) {
        let (Part::Text(markdown) | Part::Thinking(markdown)) =
            std::mem::replace(&mut self.part, Part::None)
        else {
            return;
        };
        let blocks = markdown.finish();
        self.stay_blocks(&blocks);
        self.wants_gap = true;
    }

    fn stay_blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            for line in block.lines(self.width) {
                self.gap();
                self.stay(line);
            }
        }
    }

    fn gap(&mut self) {
        if std::mem::take(&mut self.wants_gap) {
            self.lines.push(Line::default());
        }
    }

    fn stay(&mut self, line: Line) {
        self.after_call = false;
        self.wants_gap = false;
        self.has_shown = true;
        self.lines.push(line);
    }

    /// Takes the permanent lines.
    pub fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    /// Returns the changing rows, without the line that is being typed.
    #[must_use]
    pub fn rows(&self, now: Duration) -> Vec<Line> {
        let mut rows = Vec::new();
        if let Part::Text(markdown) | Part::Thinking(markdown) = &self.part {
            rows.extend(markdown.live().iter().flat_map(|block| block.lines(self.width)));
        }
        // The gap that `stay_blocks` will add, so that text does not jump when it becomes permanent.
        if self.wants_gap && !rows.is_empty() {
            rows.insert(0, Line::default());
        }
        if self.question.is_some() {
            rows.extend(wrap(&yellow(&self.last_row), &[], &[], self.width));
            // Nothing else: what is typed below is the answer, and a spinner would suggest that the model
            // works.
            return rows;
        }
        rows.extend(self.calls.iter().map(|row| row.line(now).cut(self.width)));
        for text in &self.steered {
            let mut line = Line::new("» ", Style::DIMMED);
            line.spans.push(typed(&excerpt(text, STEERED), Style::DIMMED));
            rows.push(line.and("  (waits for the next step)", Style::DIMMED).cut(self.width));
        }
        let status = if self.calls.is_empty() { &*self.doing } else { "running tools" };
        let spinner = Line::new(spinner(now), Style::PLAIN.color(Color::Cyan));
        let rest = format!(" {status}  {}  Ctrl-C stops it", seconds(now));
        rows.push(spinner.and(&rest, Style::DIMMED).cut(self.width));
        rows
    }
}

/// Returns a question as it is shown.
fn yellow(question: &str) -> [Span; 1] {
    [Span::visible(question, Style::PLAIN.color(Color::Yellow))]
}

/// The end of a call.
#[derive(Clone, Copy)]
enum Mark {
    Done,
    Failed,
}

#[cfg(test)]
mod tests;
