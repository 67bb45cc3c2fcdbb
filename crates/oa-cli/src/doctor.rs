//! `oa doctor`.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, stdout};
use std::path::Path;
use std::time::Duration;

use open_agent::{AgentOptions, Doctor, Probe, Verdict};

#[cfg(not(feature = "serve"))]
use crate::advice;
use crate::agent::{self, Person};
use crate::args::DoctorArgs;
use crate::failure::{Failure, Result};
use crate::output::{columns, progress_bar, tell, write_line};
use crate::runtime::runtime;
use crate::settings::Settings;
#[cfg(feature = "serve")]
use crate::stand_in;

/// The limits of all requests together: this many times that of one, and at least this many seconds.
const REQUESTS: u64 = 10;
const SHORTEST: u64 = 600;

/// Runs the command.
pub(crate) fn run(args: &DoctorArgs, settings: &Settings) -> Result<()> {
    if let Some(path) = &args.profile {
        check_writable(path)
            .map_err(|error| Failure::usage(error.to_string()).at(path.display()))?;
    }
    runtime()?.block_on(examine(args, settings))
}

/// Checks, before minutes of probes, that a file can be written. Leaves it as it is.
fn check_writable(path: &Path) -> io::Result<()> {
    let exists = fs::symlink_metadata(path).is_ok();
    // A pipe must be opened only once, and a link may lead to a file that does not exist yet.
    if exists && !path.is_file() && !path.is_dir() {
        return Ok(());
    }
    OpenOptions::new().append(true).create(true).open(path)?;
    if exists { Ok(()) } else { fs::remove_file(path) }
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

/// Sets the limit of each request, in seconds, and with it that of all.
fn limited(doctor: Doctor, seconds: u64) -> Doctor {
    let all = Duration::from_secs(seconds.saturating_mul(REQUESTS).max(SHORTEST));
    doctor.time_limit(Duration::from_secs(seconds)).total_time_limit(all)
}

async fn examine(args: &DoctorArgs, settings: &Settings) -> Result<()> {
    let options = if settings.is_on("stand_in") {
        tell(
            "the stand-in is a few rules, not a language model: this shows what a report looks like",
        );
        stand_in(settings)?
    } else {
        let answer = Duration::from_secs(args.time_limit);
        agent::build_within(settings, Person::Nobody, answer).await?.options
    };
    let mut doctor = limited(Doctor::new(&options)?, args.time_limit);
    // The doctor leaves out the limit of the options: it has one of its own.
    if let Some(tokens) = settings.integer("max_tokens") {
        doctor = doctor.max_tokens(u32::try_from(tokens).unwrap_or(u32::MAX));
    }
    let bar = progress_bar(Probe::ALL.len() as u64, "{spinner} {pos} of {len}  {msg}  {elapsed}");
    for probe in Probe::ALL {
        bar.set_message(probe.name());
        if doctor.next_finding().await.is_none() {
            break;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let report = doctor.into_report();
    let written = args.profile.as_ref().map(|path| report.profile.write(path));
    let text = if args.json {
        serde_json::to_string_pretty(&report).map_err(|error| Failure::new(error.to_string()))?
    } else if stdout().is_terminal() {
        open_agent::redact::printable(&report.table(columns())).into_owned()
    } else {
        open_agent::redact::printable(&report.to_string()).into_owned()
    };
    write_line(&text)?;
    // The report has been printed even if its profile could not be written.
    written.transpose()?;
    match report.verdict() {
        Verdict::Fail => Err(Failure::new("some probes failed: see above")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_models_have_more_time_for_all_requests() {
        let check = |seconds: u64, one: &str, all: &str| {
            let options = AgentOptions::builder().model("m").build().unwrap();
            let doctor = format!("{:?}", limited(Doctor::new(&options).unwrap(), seconds));
            for limit in [format!(" time_limit: {one},"), format!(" total_time_limit: {all},")] {
                assert!(doctor.contains(&limit), "{limit}: {doctor}");
            }
        };
        check(1, "1s", "600s");
        check(60, "60s", "600s");
        check(900, "900s", "9000s");
        check(u64::MAX, "18446744073709551615s", "18446744073709551615s");
    }
}
