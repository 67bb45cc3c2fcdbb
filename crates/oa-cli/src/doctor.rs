//! `oa doctor`.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use open_agent::{Doctor, Probe, Verdict};

use crate::advice;
use crate::agent::{self, Person};
use crate::args::DoctorArgs;
use crate::failure::{Failure, Result};
use crate::output::{shows_progress, write_line};
use crate::runtime::runtime;
use crate::settings::Settings;

/// Runs the command.
pub(crate) fn run(args: &DoctorArgs, settings: &Settings) -> Result<()> {
    if settings.is_on("stand_in") {
        let why = "the stand-in is a few rules in this program: there is no server to examine";
        return Err(Failure::usage(why).advise(&advice::no_server(None)));
    }
    runtime()?.block_on(examine(args, settings))
}

async fn examine(args: &DoctorArgs, settings: &Settings) -> Result<()> {
    let agent = agent::build(settings, Person::Nobody).await?;
    let mut doctor = Doctor::new(&agent.options)?;
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
        Verdict::Fail => Err(Failure::new("something does not work: see above")),
        _ => Ok(()),
    }
}
