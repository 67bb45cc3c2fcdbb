//! The commands of this workspace. `cargo xtask` lists them.

mod api;
mod bench;
mod ci;
mod command;
mod conformance;
mod deny;
mod failures;
mod features;
mod fuzz;
mod install;
mod layers;
mod minimal;
mod msrv;
mod package;
mod publish;
mod release;
mod rust;
mod server;
mod services;
mod step;
mod tally;
mod tidy;
mod venv;
mod watchdog;
mod workspace;

use std::process::ExitCode;

use step::Outcome;
use tally::Tally;
use workspace::Workspace;

/// The result of a command. An error is a sentence for the user.
pub(crate) type Result<T> = std::result::Result<T, String>;

const HELP: &str = "\
cargo xtask COMMAND

  api [--write]           the public surface against the committed list
                            --write   writes the list anew
  bench [--builds] [..]   our client beside others: instructions, memory, size
                            --builds  also builds each program anew, to time it
                            --page    measures nothing, and writes the page anew
                            PACKAGES of xtask/peers are counted and built alone
  ci [--fast] [--strict]  the whole gate, step by step
                            --fast    without the steps that take minutes
                            --strict  a step whose tool is not installed fails
  circles [CRATE]         the files that import each other in circles, with each import
  conformance             the client against a real server: OPEN_AGENT_BASE_URL, or one started here
  deny                    licenses, duplicate versions and sources of dependencies
  features                each feature of each crate alone, none, and all, and all
                            combinations of the facade's
  fuzz                    a short run of each fuzz target
  install                 the program oa, installed from its folder and asked for its version
  minimal                 the oldest version that is allowed of each direct dependency
  msrv                    the oldest supported Rust
  package                 every published crate, packed as for its registry
  publish OPTION          all published crates, each after those that it depends on
                            --dry-run  packs them, checks versions and changelogs, and
                                       uploads nothing
                            --upload   uploads them
  semver                  the version that each crate needs, compared with the last release
  services [start|stop]   the real servers of tests: starts each to see that it runs
                            start        starts them, and prints how programs find them
                            stop         stops these
                            run COMMAND  runs a command while they run
  tidy                    layers, names, docs and manifests
  help                    this page
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match dispatch(&args) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[&str]) -> Result<ExitCode> {
    let command = match args {
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return Ok(ExitCode::SUCCESS);
        }
        ["bench", options @ ..] => {
            bench::run(&Workspace::load()?, options)?;
            return Ok(ExitCode::SUCCESS);
        }
        ["ci", options @ ..] => return ci::run(ci::Options::parse(options)?),
        ["api"] => api::run,
        ["api", "--write"] => {
            api::write(&Workspace::load()?)?;
            return Ok(ExitCode::SUCCESS);
        }
        ["circles", name @ ..] if name.len() < 2 => {
            tidy::print_circles(&Workspace::load()?, name.first().copied())?;
            return Ok(ExitCode::SUCCESS);
        }
        ["conformance"] => conformance::run,
        ["deny"] => deny::run,
        ["features"] => features::run,
        ["fuzz"] => fuzz::run,
        ["install"] => install::run,
        ["minimal"] => minimal::run,
        ["msrv"] => msrv::run,
        ["package"] => package::run,
        ["publish", options @ ..] => {
            publish::run(&Workspace::load()?, options)?;
            return Ok(ExitCode::SUCCESS);
        }
        ["semver"] => {
            release::print(&Workspace::load()?)?;
            return Ok(ExitCode::SUCCESS);
        }
        ["services"] => services::run,
        ["services", args @ ..] => return services::dispatch(args),
        ["tidy"] => tidy::run,
        _ => return Err(format!("no command `{}`\n\n{HELP}", args.join(" "))),
    };
    // A step that is named explicitly must run: without its tool, it fails.
    match command(&Workspace::load()?, &mut Tally::default())? {
        Outcome::Ok => Ok(ExitCode::SUCCESS),
        Outcome::Nothing(reason) => {
            println!("nothing to do: {reason}");
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Missing { message, .. } => Err(message),
    }
}
