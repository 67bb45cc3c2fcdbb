//! The real servers of tests: `cargo xtask services`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use services::{SERVICES, Service, Unavailable};

use crate::Result;
use crate::command::Run;
use crate::step::{Need, Outcome};
use crate::tally::Tally;
use crate::workspace::Workspace;

const USAGE: &str = "`services` takes start, stop, or run COMMAND";

pub(crate) fn dispatch(args: &[&str]) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    match args {
        ["start"] => start(&workspace),
        ["stop"] => stop(&workspace),
        ["run", program, args @ ..] => run_with(program, args),
        _ => Err(USAGE.to_owned()),
    }
}

/// The step of the gate: each server starts and stops here.
pub(crate) fn run(_: &Workspace, _: &mut Tally) -> Result<Outcome> {
    for service in SERVICES {
        match (service.start)() {
            Ok(server) => {
                let addresses = server.variables().into_iter().map(|(_, url)| url);
                println!("{} runs at {}", service.name, addresses.collect::<Vec<_>>().join(", "));
            }
            Err(Unavailable::Missing(message)) => {
                return Ok(Outcome::Missing { message, need: Need::InCi });
            }
            Err(failed) => return Err(failed.to_string()),
        }
    }
    Ok(Outcome::Ok)
}

/// Starts all servers, which then run until they are stopped, and prints the lines for a shell.
fn start(workspace: &Workspace) -> Result<ExitCode> {
    for service in SERVICES {
        let record = record(workspace, service);
        if record.exists() {
            let message = format!("{} runs already: `cargo xtask services stop`", service.name);
            return Err(message);
        }
        let server = (service.start)().map_err(|error| error.to_string())?;
        let variables = server.variables();
        if let Some(folder) = record.parent() {
            fs::create_dir_all(folder).map_err(|error| at(folder, &error))?;
        }
        let files = server.detach().map_err(|error| error.to_string())?;
        fs::write(&record, files.display().to_string()).map_err(|error| at(&record, &error))?;
        for (variable, url) in variables {
            println!("export {variable}={url}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Stops the servers that were started, and removes their files.
fn stop(workspace: &Workspace) -> Result<ExitCode> {
    for service in SERVICES {
        let record = record(workspace, service);
        let Ok(files) = fs::read_to_string(&record) else {
            println!("{} was not started", service.name);
            continue;
        };
        (service.stop)(Path::new(&files)).map_err(|error| error.to_string())?;
        fs::remove_file(&record).map_err(|error| at(&record, &error))?;
        println!("{} has stopped", service.name);
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a command while all servers run, with their addresses in its environment.
fn run_with(program: &str, args: &[&str]) -> Result<ExitCode> {
    let mut run = Run::new(program).args(args.iter().copied());
    let mut servers = Vec::new();
    for service in SERVICES {
        let server = (service.start)().map_err(|error| error.to_string())?;
        for (variable, url) in server.variables() {
            run = run.env(variable, url);
        }
        servers.push(server);
    }
    run.status()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the file that names the folder of a server that was started.
fn record(workspace: &Workspace, service: &Service) -> PathBuf {
    workspace.target.join("services").join(service.name)
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
