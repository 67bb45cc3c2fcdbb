//! `oa chat`.

mod attached;
mod command;
mod commands;
mod composer;
mod conversation;
mod history;
mod keyboard;
mod keys;
mod once;
mod person;
mod prompt;
mod screen;
mod terminal;
mod turn;
mod view;

use std::io::{IsTerminal, stdin, stdout};
use std::sync::Arc;

use oa_files::Attachment;
use oa_markdown::Line;
use open_agent::Message;

use self::conversation::Conversation;
use self::keyboard::{Keyboard, restore_at_termination};
use self::person::Questions;
use self::prompt::{Entry, PromptEditor};
use self::terminal::Terminal;
use self::turn::Begin;
use crate::agent::Person;
use crate::args::ChatArgs;
use crate::failure::{Failure, Result};
use crate::output::has_styles;
use crate::settings::Settings;

pub use self::command::{COMMANDS, Command, Entered, KEYS, parse, reference};
pub use self::composer::{Composer, Input};
pub use self::screen::Screen;
pub use self::view::View;

/// Runs the command.
pub(crate) fn run(args: &ChatArgs, settings: Settings) -> Result<()> {
    // One worker thread, so that tool servers make progress while this thread waits for keys.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let has_terminal = stdin().is_terminal() && stdout().is_terminal();
    let talks = has_terminal && args.prompt.is_empty();
    let files = attached::read(&args.attach, talks)?;
    let result = if talks {
        talk(&runtime, args, settings, files)
    } else {
        runtime.block_on(once::run(args, settings, files))
    };
    // A tool that blocks must not keep the program from exiting.
    runtime.shutdown_background();
    result
}

/// Runs conversations until the user quits.
fn talk(
    runtime: &tokio::runtime::Runtime,
    args: &ChatArgs,
    settings: Settings,
    files: Vec<Attachment>,
) -> Result<()> {
    let has_styles = has_styles(&settings, stdout().is_terminal());
    let (questions, prompt) = Questions::new();
    let keyboard = Arc::new(Keyboard::take()?);
    let restore = {
        // Handlers of signals can only be registered within a runtime.
        let _in_runtime = runtime.enter();
        restore_at_termination(Arc::clone(&keyboard))?
    };
    runtime.spawn(restore);
    let mut terminal = Terminal::new(has_styles, Arc::clone(&keyboard), questions);
    let label = match settings.text("mcp") {
        Some(_) => "looking for a model and starting MCP servers",
        None => "looking for a model",
    };
    let start = Conversation::start(args, settings, Person::Terminal(prompt), files);
    let talked = converse(runtime, start, label, has_styles, &mut terminal);
    // Before MCP servers are closed, which may take a while: from here on, keys belong to the shell.
    keyboard.give_back();
    let conversation = talked?;
    runtime.block_on(conversation.close());
    Ok(())
}

/// Starts a conversation, and returns it when the user quits.
fn converse(
    runtime: &tokio::runtime::Runtime,
    start: impl Future<Output = Result<Conversation>>,
    label: &str,
    has_styles: bool,
    terminal: &mut Terminal,
) -> Result<Conversation> {
    let started = runtime.block_on(terminal.wait(label, start))?;
    let mut conversation = started.ok_or_else(|| Failure::interrupted("stopped"))??;
    let keyboard = Arc::clone(&terminal.keyboard);
    let mut editor = PromptEditor::new(has_styles, Arc::clone(&keyboard));
    let suspend = || runtime.block_on(keyboard.suspend());
    terminal.say(&conversation.title());
    commands::greet(&conversation, terminal);
    resume(runtime, &mut conversation, terminal)?;
    loop {
        terminal.print_lines(vec![Line::default()]);
        let line = match terminal.take_ahead() {
            Some(line) => {
                editor.remember(&line);
                line
            }
            None => match editor.read(terminal.take_unsent(), suspend)? {
                Entry::Quit => return Ok(conversation),
                Entry::Entered(line) => {
                    terminal.note_prompt(&line);
                    line
                }
            },
        };
        match parse(&line) {
            Entered::Nothing => {}
            Entered::Unknown(why) => terminal.say(&why),
            Entered::Command(Command::Quit) => return Ok(conversation),
            Entered::Command(Command::Retry) => retry(runtime, &mut conversation, terminal)?,
            Entered::Command(command) => {
                let is_load = matches!(command, Command::Load(Some(_)));
                commands::perform(runtime, &mut conversation, command, terminal)?;
                if is_load {
                    resume(runtime, &mut conversation, terminal)?;
                }
            }
            Entered::Prompt(prompt) => {
                let prompt = attached::message(prompt, &conversation.attached);
                runtime.block_on(terminal.turn(&mut conversation, Begin::Prompt(prompt)))?;
            }
        }
        for message in terminal.steered.drain(..) {
            editor.remember(&message);
        }
    }
}

/// Sends the last prompt again, in place of its answer, and the messages that were sent with it.
fn retry(
    runtime: &tokio::runtime::Runtime,
    conversation: &mut Conversation,
    terminal: &mut Terminal,
) -> Result<()> {
    let taken = runtime.block_on(terminal.wait("working", conversation.take_last()))?;
    let mut taken = match taken.transpose() {
        Ok(Some(taken)) => taken.into_iter(),
        Ok(None) => {
            terminal.say("stopped");
            return Ok(());
        }
        Err(failure) => {
            terminal.fail(&failure.to_string());
            return Ok(());
        }
    };
    let Some(prompt) = taken.next() else {
        terminal.say(commands::NO_PROMPT);
        return Ok(());
    };
    terminal.say(&format!("› {}", history::said(&prompt)));
    // Before those that wait for the next prompt.
    terminal.late.splice(0..0, taken.as_slice().iter().map(Message::text));
    let waiting = conversation.client.take_steered();
    conversation.send_late(taken.chain(waiting).collect())?;
    runtime.block_on(terminal.turn(conversation, Begin::Prompt(prompt)))
}

/// Continues a turn whose calls wait for permission.
fn resume(
    runtime: &tokio::runtime::Runtime,
    conversation: &mut Conversation,
    terminal: &mut Terminal,
) -> Result<()> {
    if conversation.client.pending_approvals().is_empty() {
        return Ok(());
    }
    terminal.say("The last answer is waiting for permission:");
    let person = conversation.judge();
    runtime.block_on(terminal.turn(conversation, Begin::Waiting(person.as_ref())))?;
    if !conversation.client.pending_approvals().is_empty() {
        terminal.say("It is still waiting; your next prompt continues without it.");
    }
    Ok(())
}
