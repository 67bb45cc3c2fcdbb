//! All tests of the workspace except doctests, which `cargo test` runs only by themselves.
//!
//! `cargo test` runs one test binary after another, and half of that time two cores are idle, because tests wait for
//! browsers, servers, child processes and timeouts. So two of it run side by side, each with half of the test targets.

use std::thread;
use std::time::Duration;

use crate::Result;
use crate::command::Run;
use crate::step::Outcome;
use crate::tally::Tally;
use crate::workspace::Workspace;

/// The longest time in which no test ends. On a slow machine, some have much to compile: the compiler's errors about
/// `#[tool]` need the crates below it once more, and all doctests of a crate are compiled before the first one prints.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// The test target that most crates have. All of that name take about as long as all others, with unit tests.
const COMMON: &str = "suite";

pub(crate) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<Outcome> {
    // Tests of the examples run what is built here. With the features of the tests, both share the crates below.
    let examples = "build --workspace --all-features --examples --profile test";
    let halves = halves(workspace);
    let build = cargo_test().arg("--no-run").args(halves.iter().flatten());
    for run in [Run::cargo(examples), build] {
        println!("{run}");
        run.status()?;
    }

    let [first, second] = halves.map(|targets| {
        let run = cargo_test().args(targets).env("OPEN_AGENT_EXAMPLES", "built");
        println!("{run}");
        run
    });
    let (result, aside) = thread::scope(|scope| {
        let aside = scope.spawn(|| {
            let (mut tally, mut output) = (Tally::default(), Vec::new());
            let result = second.tests_twice_to(PATIENCE, &mut output, &mut tally);
            (result, tally, output)
        });
        (first.tests_twice(PATIENCE, tally), aside.join())
    });
    let (second_result, second_tally, output) =
        aside.map_err(|_| "the thread of the second half panicked".to_owned())?;
    println!("\n{second}\n{}", String::from_utf8_lossy(&output));
    tally.add(second_tally);
    match (result, second_result) {
        (Err(first), Err(second)) => Err(format!("{first}; {second}")),
        (first, second) => first.and(second).map(|()| Outcome::Ok),
    }
}

fn cargo_test() -> Run {
    Run::cargo("test --workspace --all-features --no-fail-fast")
}

/// The targets as arguments of `cargo test`, each in one half. Benches and examples are not tests.
fn halves(workspace: &Workspace) -> [Vec<String>; 2] {
    let mut others: Vec<&str> =
        workspace.packages.iter().flat_map(|package| &package.tests).map(String::as_str).collect();
    others.retain(|name| *name != COMMON);
    others.sort_unstable();
    others.dedup();
    let arguments = |names: &[&str]| {
        names.iter().flat_map(|name| ["--test".to_owned(), (*name).to_owned()]).collect::<Vec<_>>()
    };
    let mut second: Vec<String> = ["--lib", "--bins"].map(str::to_owned).into();
    second.extend(arguments(&others));
    [arguments(&[COMMON]), second]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Package;

    #[test]
    fn each_target_is_in_one_half() {
        let package = |tests: &[&str]| Package {
            tests: tests.iter().map(|name| (*name).to_owned()).collect(),
            ..Package::default()
        };
        let packages = vec![package(&["suite"]), package(&[]), package(&["run", "crash", "suite"])];
        let packages = [packages, vec![package(&["crash"])]].into_iter().flatten().collect();
        let workspace = Workspace { root: ".".into(), target: "target".into(), packages };
        let [first, second] = halves(&workspace);
        assert_eq!(first.join(" "), "--test suite");
        assert_eq!(second.join(" "), "--lib --bins --test crash --test run");
    }
}
