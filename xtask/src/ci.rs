//! The whole gate: runs every step in order, even after failures.

use std::num::NonZero;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::command::Run;
use crate::step::{self, Outcome, Report, Verdict};
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{api, conformance, deny, features, fuzz, install, msrv, package, services, tidy};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// Without the steps that take minutes.
    pub(crate) fast: bool,
    /// A missing tool fails its step.
    pub(crate) strict: bool,
    /// A missing tool fails its step if no other step covers it.
    pub(crate) in_ci: bool,
}

impl Options {
    pub(crate) fn parse(args: &[&str]) -> Result<Self> {
        let in_ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        let mut options = Self { in_ci, ..Self::default() };
        for arg in args {
            match *arg {
                "--fast" => options.fast = true,
                "--strict" => options.strict = true,
                _ => return Err(format!("`ci` takes --fast and --strict, not `{arg}`")),
            }
        }
        Ok(options)
    }
}

struct Step {
    name: &'static str,
    pace: Pace,
    action: Action,
}

#[derive(PartialEq)]
enum Pace {
    Fast,
    Slow,
}

enum Action {
    /// A command that only has to succeed.
    Check(Run),
    /// A command of this program, of the same name.
    Own(fn(&Workspace, &mut Tally) -> Result<Outcome>),
    /// A command that prints test results, at least one within each such period.
    Tests(Run, Duration),
}

/// The longest time in which no test ends. On a slow machine, some have much to compile: the compiler's errors about
/// `#[tool]` need the crates below it once more, and all doctests of a crate are compiled before the first one prints.
const PATIENCE: Duration = Duration::from_secs(600);

fn steps() -> Vec<Step> {
    use Action::{Check, Own, Tests};
    use Pace::{Fast, Slow};

    let clippy = "clippy --workspace --all-targets --all-features -- -D warnings";
    // Doctests are a separate step, and benches are not tests.
    let test = "test --workspace --all-features --no-fail-fast --lib --bins --tests";
    // Tests of real processes and sockets mostly wait.
    let threads = 2 * thread::available_parallelism().map_or(1, NonZero::get);
    let test = Run::cargo(test)
        .env("OPEN_AGENT_EXAMPLES", "built")
        .env("RUST_TEST_THREADS", threads.to_string());
    let doctest = "test --workspace --all-features --no-fail-fast --doc";
    // With the features of the tests, so that both share the crates below.
    let examples = "build --workspace --all-features --examples --profile test";
    let docs = Run::cargo("doc --workspace --all-features --no-deps");

    let step = |name, pace, action| Step { name, pace, action };
    vec![
        step("fmt", Fast, Check(Run::cargo("fmt --all --check"))),
        step("tidy", Fast, Own(tidy::run)),
        step("api", Fast, Own(api::run)),
        step("package", Fast, Own(package::run)),
        // Before the tests, most of which need them.
        step("services", Fast, Own(services::run)),
        step("clippy", Fast, Check(Run::cargo(clippy))),
        step("examples", Fast, Check(Run::cargo(examples))),
        step("test", Fast, Tests(test, PATIENCE)),
        step("doctest", Fast, Tests(Run::cargo(doctest), PATIENCE)),
        // As a newcomer runs it: in the dev profile, with default features.
        step("quickstart", Fast, Check(Run::cargo("run --example quickstart"))),
        step("install", Slow, Own(install::run)),
        step("docs", Slow, Check(docs.env("RUSTDOCFLAGS", "-D warnings"))),
        step("features", Slow, Own(features::run)),
        step("msrv", Slow, Own(msrv::run)),
        step("deny", Slow, Own(deny::run)),
        step("conformance", Slow, Own(conformance::run)),
        step("fuzz", Slow, Own(fuzz::run)),
    ]
}

pub(crate) fn run(options: Options) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let mut tally = Tally::default();
    let mut reports = Vec::new();
    for Step { name, pace, action } in steps() {
        if options.fast && pace == Pace::Slow {
            let verdict = Verdict::Skipped("--fast".to_owned());
            reports.push(Report { name, verdict, seconds: 0.0 });
            continue;
        }
        let repeat = match &action {
            Action::Check(run) | Action::Tests(run, _) => run.to_string(),
            Action::Own(_) => format!("cargo xtask {name}"),
        };
        println!("\n=== {name}: {repeat}");
        let start = Instant::now();
        let result = match action {
            Action::Check(run) => run.status().map(|()| Outcome::Ok),
            Action::Own(run) => run(&workspace, &mut tally),
            Action::Tests(run, patience) => {
                run.tests_twice(patience, &mut tally).map(|()| Outcome::Ok)
            }
        };
        let report = Report {
            name,
            verdict: Verdict::of(result, options),
            seconds: start.elapsed().as_secs_f64(),
        };
        let colon = if report.verdict.reason().is_empty() { "" } else { ": " };
        println!(
            "=== {name} {} in {:.1} s{colon}{}",
            report.verdict.word(),
            report.seconds,
            report.verdict.reason()
        );
        reports.push(report);
    }

    let failed = reports.iter().any(|report| matches!(report.verdict, Verdict::Failed(_)));
    print!("\n{}", tally.report());
    println!("\n{}", step::table(&reports));
    println!("{}", if failed { "the gate is closed" } else { "the gate is open" });
    // Must stay the last line, in this form: scripts parse it.
    println!("{tally}");
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
