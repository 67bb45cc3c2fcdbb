//! `oa doctor`.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use open_agent::{AgentOptions, Doctor, Probe, Verdict};

#[cfg(not(feature = "serve"))]
use crate::advice;
use crate::agent::{self, Person};
use crate::args::DoctorArgs;
use crate::failure::{Failure, Result};
use crate::output::{shows_progress, tell, write_line};
use crate::runtime::runtime;
use crate::settings::Settings;
#[cfg(feature = "serve")]
use crate::stand_in;

/// Runs the command.
pub(crate) fn run(args: &DoctorArgs, settings: &Settings) -> Result<()> {
    runtime()?.block_on(examine(args, settings))
}

/// Returns options that reach the stand-in as a server, so that its answers pass through requests and streams.
#[cfg(feature = "serve")]
fn stand_in(settings: &Settings) -> Result<AgentOptions> {
    use open_agent::serve::AgentServer;

    let model = settings.text("model").unwrap_or(stand_in::NAME);
    let agent = AgentOptions::builder().model(model).chat_service(stand_in::StandIn);
    // The probes answer the calls of the tools that they offer.
    let server = AgentServer::new(agent.auto_execute_tools(true).build()?).name(model).router();
    let address = "http://127.0.0.1/v1";
    Ok(AgentOptions::builder().model(model).base_url(address).transport(server).build()?)
}

#[cfg(not(feature = "serve"))]
fn stand_in(_: &Settings) -> Result<AgentOptions> {
    let why =
        "this program was built without `serve`, so the stand-in cannot be tested as a server";
    Err(Failure::usage(why).advise(&advice::no_server(None)))
}

async fn examine(args: &DoctorArgs, settings: &Settings) -> Result<()> {
    let options = if settings.is_on("stand_in") {
        tell(
            "the stand-in is a few rules, not a language model: this shows what a report looks like",
        );
        stand_in(settings)?
    } else {
        agent::build(settings, Person::Nobody).await?.options
    };
    let mut doctor = Doctor::new(&options)?;
    let bar = if shows_progress() {
        ProgressBar::new(Probe::ALL.len() as u64)
    } else {
        ProgressBar::hidden()
    };
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} of {len}  {msg}  {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    for probe in Probe::ALL {
        bar.set_message(probe.name());
        if doctor.next_finding().await.is_none() {
            break;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let report = doctor.into_report();
    if let Some(path) = &args.profile {
        report.profile.write(path)?;
    }
    let text = if args.json {
        serde_json::to_string_pretty(&report).map_err(|error| Failure::new(error.to_string()))?
    } else {
        open_agent::redact::printable(&report.to_string()).into_owned()
    };
    write_line(&text)?;
    match report.verdict() {
        Verdict::Fail => Err(Failure::new("some probes failed: see above")),
        _ => Ok(()),
    }
}
