//! `oa chat`.

mod command;
mod commands;
mod composer;
mod conversation;
mod figure;
mod history;
mod keys;
mod once;
mod person;
mod prompt;
mod screen;
mod turn;
mod view;

use std::io::{IsTerminal, stdin, stdout};

use self::conversation::Conversation;
use self::person::Questions;
use self::prompt::{Line, PromptEditor};
use self::turn::Terminal;
use crate::agent::Person;
use crate::args::ChatArgs;
use crate::failure::Result;
use crate::output::has_styles;
use crate::settings::Settings;

pub use self::command::{COMMANDS, Command, Entered, parse};
pub use self::composer::{Composer, Input};
pub use self::screen::Screen;
pub use self::view::View;

/// Runs the command.
pub(crate) fn run(args: &ChatArgs, settings: Settings) -> Result<()> {
    // A worker beside this thread, which waits for keys: servers of tools go on meanwhile.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let has_terminal = stdin().is_terminal() && stdout().is_terminal();
    let result = if has_terminal && args.prompt.is_empty() {
        talk(&runtime, args, settings)
    } else {
        runtime.block_on(once::run(args, settings))
    };
    // A tool that blocks must not keep the program.
    runtime.shutdown_background();
    result
}

/// Talks until the person has enough.
fn talk(runtime: &tokio::runtime::Runtime, args: &ChatArgs, settings: Settings) -> Result<()> {
    let has_styles = has_styles(&settings, stdout().is_terminal());
    let (questions, prompt) = Questions::new();
    runtime.spawn(turn::restore_at_termination());
    let mut conversation =
        runtime.block_on(Conversation::start(args, settings, Person::Terminal(prompt)))?;
    let mut terminal = Terminal::new(has_styles, questions);
    let mut editor = PromptEditor::new(has_styles);
    terminal.say(&conversation.title());
    commands::greet(&conversation, &mut terminal);
    loop {
        match editor.read(terminal.take_unsent())? {
            Line::Quit => break,
            Line::Entered(line) => match parse(&line) {
                Entered::Nothing => {}
                Entered::Unknown(why) => terminal.say(&why),
                Entered::Command(Command::Quit) => break,
                Entered::Command(command) => {
                    let done = commands::run(&mut conversation, command, &mut terminal);
                    if let Err(failure) = runtime.block_on(done) {
                        terminal.fail(&failure.to_string());
                    }
                }
                Entered::Prompt(prompt) => {
                    terminal.note_prompt(&prompt);
                    runtime.block_on(terminal.turn(&mut conversation, &prompt))?;
                }
            },
        }
    }
    runtime.block_on(conversation.close());
    Ok(())
}
