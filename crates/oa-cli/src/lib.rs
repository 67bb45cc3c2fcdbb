//! The program `oa`: chat with local models, give them tools, look at their servers.
//!
//! This library is the program in parts that can be tested: [`markdown`] as it streams in, the [`chat`] as a screen, and the
//! [`settings`]. Programs that use models want the crate `open-agent` instead.

pub mod args;
pub mod chat;
pub mod markdown;
pub mod settings;
pub mod style;
pub mod wrap;

mod agent;
mod config;
mod doctor;
mod environment;
mod failure;
mod files;
mod find;
mod models;
mod places;
mod stand_in;

use std::io::{IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Cli, Command, SettingArgs};
use crate::failure::Result;
use crate::settings::Settings;

/// Runs the program and returns its exit status.
#[must_use]
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    match run_command(&cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tell(&format!("oa: {failure}"));
            failure.exit_code()
        }
    }
}

fn run_command(command: &Command) -> Result<()> {
    match command {
        Command::Chat(args) => chat::run(args, settings(&args.settings)?),
        Command::Models(args) => models::run(&settings(&args.settings)?),
        Command::Doctor(args) => doctor::run(args, &settings(&args.settings)?),
        Command::Config(args) => config::run(args),
        Command::Completions { shell } => {
            let mut out = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "oa", &mut out);
            Ok(stdout().write_all(&out)?)
        }
        Command::Man => Ok(clap_mangen::Man::new(Cli::command()).render(&mut stdout())?),
    }
}

/// Returns the settings in effect.
fn settings(args: &SettingArgs) -> Result<Settings> {
    let file = config::read_file(args)?;
    let file = file.as_ref().map(|(path, text)| (path.as_path(), text.as_str()));
    Ok(Settings::merge(&args.told(), environment::variable, file)?)
}

/// Returns true if output has styles.
fn has_styles(settings: &Settings, is_terminal: bool) -> bool {
    match settings.text("color") {
        Some("always") => true,
        Some("never") => false,
        _ => is_terminal && !environment::wants_no_color(),
    }
}

/// Writes a line to standard output.
fn write_line(line: &str) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Writes a line for the person to standard error, dimmed at a terminal. Where that fails, nobody reads.
fn tell(line: &str) {
    let line = open_agent::redact::printable(line);
    let _ = writeln!(stderr().lock(), "{line}");
}

/// Returns a runtime for a command that does one thing.
fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Returns true if progress can be shown.
fn shows_progress() -> bool {
    stderr().is_terminal()
}
