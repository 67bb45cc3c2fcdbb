//! One prompt, without a conversation at a terminal: from arguments or a pipe.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::{IsTerminal, Read, Write, stderr, stdin, stdout};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use oa_files::Attachment;
use open_agent::events::TurnText;
use open_agent::redact::visible;
use open_agent::{AgentEvent, ContentBlock, FinishReason, ToolEvent};
use tokio::sync::mpsc;

use super::conversation::{Conversation, TurnRecord};
use super::turn::{Begin, TurnUpdate, drive};
use super::view::{View, call_text, denied_text, failed_text, remark, result_text};
use super::{attached, history, person};
use crate::agent::Person;
use crate::args::ChatArgs;
use crate::failure::{Failure, Result};
use crate::output::{BYTE_ORDER_MARK, columns, has_styles, tell};
use crate::runtime::Interrupts;
use crate::settings::Settings;

/// The longest prompt from a pipe, in bytes.
const LONGEST: u64 = 16 * 1024 * 1024;
/// The time after which a pipe without an end is reported.
const QUIET: Duration = Duration::from_secs(2);
const UNENDING: &str = "waiting for the end of standard input, which is part of the prompt; if it is not meant to be, use </dev/null";

/// Sends the prompt, prints the answer, and returns.
pub(super) async fn run(
    args: &ChatArgs,
    settings: Settings,
    mut files: Vec<Attachment>,
) -> Result<()> {
    let prompt = prompt(args, &mut files)?;
    let (mut questions, terminal) = person::from_stdin();
    let person = if stdin().is_terminal() && stderr().is_terminal() {
        Person::Terminal(terminal)
    } else {
        Person::Nobody
    };
    let has_styles = stdout().is_terminal() && has_styles(&settings, true);
    let mut conversation = Conversation::start(args, settings, person, files).await?;
    #[cfg(feature = "mcp")]
    for failure in conversation.agent.mcp.iter().flat_map(|mcp| mcp.failures()) {
        tell(&format!("MCP server {}", failure.error()));
    }
    let mut answer: Box<dyn Answer> = if stdout().is_terminal() {
        Box::new(Rendered::new(has_styles))
    } else {
        Box::new(Plain::default())
    };
    let waiting = waiting(&conversation);
    let (events, mut told) = mpsc::channel(64);
    let is_stopped = AtomicBool::new(false);
    let judge = conversation.judge();
    let interrupt = conversation.client.interrupt_handle();
    let mut unsaved = None;
    let Conversation { client, saved, attached, .. } = &mut conversation;
    let mut interrupts = Interrupts::new()?;
    let prompt = attached::message(prompt, attached);
    let (at_start, before) = (client.history().len(), Cell::new(None));
    let mut is_shortened = false;
    let outcome = {
        let mut turn = pin!(async {
            let mut saved = saved.as_mut();
            if waiting {
                let begin = Begin::Waiting(judge.as_ref());
                drive(client, saved.as_deref_mut(), begin, events.clone(), &is_stopped).await?;
                if is_stopped.load(Ordering::Acquire) {
                    return Ok(());
                }
            }
            before.set(Some(client.history().len()));
            drive(client, saved, Begin::Prompt(prompt.clone()), events, &is_stopped).await
        });
        loop {
            tokio::select! {
                biased;
                // First, because there may always be another event.
                () = interrupts.next() => {
                    // A second one does not wait for the answer to an open question.
                    if is_stopped.swap(true, Ordering::AcqRel) {
                        break Ok(());
                    }
                    // Behind `^C`, which the terminal shows.
                    if stdin().is_terminal() && stderr().is_terminal() {
                        tell("");
                    }
                    interrupt.interrupt();
                }
                Some(update) = told.recv() => {
                    is_shortened |= is_shortening(&update);
                    show(&mut *answer, update, &mut unsaved)?;
                }
                // After everything that the model wrote before the call.
                Some(question) = questions.recv() => {
                    stderr().write_all(question.as_bytes())?;
                }
                outcome = &mut turn => break outcome,
            }
        }
    };
    while let Ok(update) = told.try_recv() {
        is_shortened |= is_shortening(&update);
        show(&mut *answer, update, &mut unsaved)?;
    }
    answer.end()?;
    let reason = client.finish_reason().cloned();
    // A later step may have saved what an earlier one could not.
    let is_saved = saved.as_ref().is_none_or(|it| it.session().conversation() == client.history());
    let unsaved = unsaved.filter(|_| !is_saved);
    let unsaved = unsaved.map(|why| format!("the conversation could not be saved: {why}"));
    let (prompt, before) = match before.get() {
        Some(before) => (Some(prompt), before),
        None => (None, conversation.client.history().len()),
    };
    let continued = before.saturating_sub(at_start);
    let record = TurnRecord { prompt, before, continued, is_shortened, repeats: 0 };
    conversation.note_turn(record).await;
    conversation.close().await;
    let is_stopped =
        is_stopped.load(Ordering::Acquire) || reason == Some(FinishReason::Interrupted);
    let ended = match outcome {
        Ok(()) if is_stopped => Err(Failure::interrupted("stopped")),
        outcome => outcome.map_err(Failure::from),
    };
    if ended.is_err() {
        unsaved.iter().for_each(|why| tell(why));
        return ended;
    }
    reason.as_ref().and_then(history::why_it_ended).into_iter().for_each(tell);
    unsaved.map_or(Ok(()), |why| Err(Failure::new(why)))
}

/// Returns true if calls of the session wait for permission, and a person or the mode can decide about them.
fn waiting(conversation: &Conversation) -> bool {
    let calls = conversation.client.pending_approvals();
    // Calls of an earlier run that nobody can decide about do not stop this one: the prompt continues without
    // them.
    let can_decide = conversation.person.is_some() || conversation.mode == "all";
    if !can_decide {
        for call in &calls {
            let call = call_text(&call.name, &call.input);
            tell(&visible(&format!("✗ {call} waited for permission and was not run")));
        }
    }
    can_decide && !calls.is_empty()
}

/// Returns the prompt: the arguments, followed by piped input, unless that is one of the files.
fn prompt(args: &ChatArgs, files: &mut Vec<Attachment>) -> Result<String> {
    let mut prompt = args.prompt.join(" ");
    let is_file = args.attach.iter().any(|path| path.as_os_str() == attached::INPUT);
    if is_file || !stdin().is_terminal() {
        let bytes = piped()?;
        if bytes.len() as u64 > LONGEST {
            return Err(Failure::usage("standard input is longer than 16 MiB"));
        }
        if is_file {
            let file = Attachment::from_bytes("standard input", &bytes);
            files.push(file.map_err(open_agent::Error::from)?);
        }
        let bytes = if is_file { Vec::new() } else { bytes };
        let piped = String::from_utf8(bytes)
            .map_err(|_| Failure::usage("standard input is not valid UTF-8"))?;
        let piped = piped.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&piped);
        if !prompt.is_empty() && !piped.trim().is_empty() {
            prompt.push_str("\n\n");
        }
        prompt.push_str(piped);
    }
    if prompt.trim().is_empty() {
        return Err(Failure::usage(
            "there is no prompt: pass one as an argument of `oa chat`, or on standard input",
        ));
    }
    Ok(prompt)
}

/// Reads standard input, one byte beyond the limit. Schedulers and other programs often leave it open without an end, so
/// this says what it waits for; but not on a terminal, where an editor that feeds the pipe may be drawing.
fn piped() -> Result<Vec<u8>> {
    let (reading, is_over) = channel::<()>();
    thread::Builder::new().name("oa-input".to_owned()).spawn(move || {
        // Ends with the input, because the sender is dropped.
        let waits = is_over.recv_timeout(QUIET) == Err(RecvTimeoutError::Timeout);
        if waits && !stderr().is_terminal() {
            tell(UNENDING);
        }
    })?;
    let mut bytes = Vec::new();
    let read = stdin().lock().take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::from(error).at("standard input"))?;
    drop(reading);
    Ok(bytes)
}

/// Returns true if older messages were left out.
fn is_shortening(update: &TurnUpdate) -> bool {
    matches!(update, TurnUpdate::Event(AgentEvent::ContextShortened(_)))
}

/// Shows an update, except that the reason why the conversation could not be saved is kept for the end.
fn show(answer: &mut dyn Answer, update: TurnUpdate, unsaved: &mut Option<String>) -> Result<()> {
    match update {
        TurnUpdate::Event(event) => answer.push(&event),
        TurnUpdate::Unsaved(why) => {
            *unsaved = Some(why);
            Ok(())
        }
    }
}

/// The answer on standard output.
trait Answer {
    fn push(&mut self, event: &AgentEvent) -> Result<()>;
    fn end(&mut self) -> Result<()>;
}

/// Plain text as it arrives; calls and remarks on standard error.
#[derive(Default)]
struct Plain {
    /// True if the text so far does not end with a line break.
    is_mid_line: bool,
    turn: TurnText,
    /// The ids of calls whose end was reported.
    ended: HashSet<String>,
}

impl Answer for Plain {
    fn push(&mut self, event: &AgentEvent) -> Result<()> {
        match event {
            AgentEvent::Block(ContentBlock::Text(text)) if !text.text.is_empty() => {
                let mut out = stdout().lock();
                out.write_all(self.turn.before(&text.text).as_bytes())?;
                out.write_all(open_agent::redact::printable(&text.text).as_bytes())?;
                out.flush()?;
                self.is_mid_line = !text.text.ends_with('\n');
            }
            AgentEvent::Block(ContentBlock::ToolUseError(error))
                if error.id.as_ref().is_none_or(|id| !self.ended.contains(&**id)) =>
            {
                tell(&visible(&format!("✗ {}", failed_text(error))));
            }
            AgentEvent::AnswerStart => self.turn.begin_answer(),
            AgentEvent::Tool(ToolEvent::CallComplete(result)) => {
                self.ended.insert(result.call_id.clone());
                let sign = if result.is_error() { "✗" } else { "✓" };
                let call = call_text(&result.tool_name, &result.input);
                tell(&visible(&format!("{sign} {call} → {}", result_text(&result.result))));
            }
            AgentEvent::CallDenied(denied) => {
                self.ended.insert(denied.call_id.clone());
                let call = call_text(&denied.tool_name, &denied.input);
                tell(&visible(&format!("✗ {call} {}", denied_text(&denied.reason))));
            }
            event => remark(event).iter().for_each(|remark| tell(&visible(remark))),
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        if self.is_mid_line {
            stdout().write_all(b"\n")?;
        }
        Ok(())
    }
}

/// Markdown on a terminal: a block at a time.
struct Rendered {
    view: View,
    has_styles: bool,
}

impl Rendered {
    fn new(has_styles: bool) -> Self {
        Self { view: View::new(columns()), has_styles }
    }

    fn print(&mut self) -> Result<()> {
        let mut out = stdout().lock();
        for line in self.view.take_lines() {
            writeln!(out, "{}", line.ansi(self.has_styles))?;
        }
        Ok(out.flush()?)
    }
}

impl Answer for Rendered {
    fn push(&mut self, event: &AgentEvent) -> Result<()> {
        self.view.push(event, Duration::ZERO);
        self.print()
    }

    fn end(&mut self) -> Result<()> {
        self.view.end();
        self.print()
    }
}
