//! The program `oa`: chat with local models, give them tools, and inspect their servers.
//!
//! This library contains the testable parts of the program: the screen of the [`chat`], and the [`settings`]. To use models in your own program, use the crate `open-agent`.
//!
//! # Features
//!
//! - `mcp` (default): tools of MCP servers.
//! - `serve` (default): agents over HTTP, with a chat page.
//! - `sqlite`: sessions in a database file.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod args;
pub mod chat;
pub mod settings;

mod advice;
mod agent;
mod batch;
mod config;
mod doctor;
mod environment;
mod failure;
mod figure;
mod find;
mod likeness;
mod manual;
#[cfg(feature = "mcp")]
mod mcp;
mod models;
mod output;
mod places;
mod runtime;
#[cfg(feature = "serve")]
mod serve;
mod sessions;
mod stand_in;

use std::io::{Write, stdout};
use std::process::ExitCode;

use clap::FromArgMatches;

use crate::args::{Cli, Command};
use crate::failure::Result;

/// Runs the program and returns its exit status.
#[must_use]
pub fn run() -> ExitCode {
    let cli = match Cli::from_arg_matches(&args::command().get_matches()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    match run_command(&cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_silent() {
                output::tell(&format!("oa: {failure}"));
            }
            failure.exit_code()
        }
    }
}

fn run_command(command: &Command) -> Result<()> {
    match command {
        Command::Chat(args) => chat::run(args, config::settings(&args.settings)?),
        Command::Models(args) => models::run(&config::settings(args)?),
        Command::Doctor(args) => doctor::run(args, &config::settings(&args.settings)?),
        Command::Batch(args) => batch::run(args, &config::settings(&args.settings)?),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => mcp::run(&config::settings(args)?),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(args, &config::settings(&args.settings)?),
        Command::Sessions(args) => sessions::run(args, &config::settings(&args.settings)?),
        Command::Config(args) => config::run(args),
        Command::Completions { shell } => {
            let mut out = Vec::new();
            clap_complete::generate(*shell, &mut args::command(), "oa", &mut out);
            Ok(stdout().write_all(&out)?)
        }
        Command::Man { command } => manual::run(command.as_deref()),
    }
}
