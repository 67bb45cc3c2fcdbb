//! A program to run. It displays as the shell command that repeats it.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::tally::Tally;
use crate::{Result, watchdog};

/// The most failed tests that are run again: more failures are not by chance.
const MOST_FLAKY: usize = 3;

#[derive(Clone, Debug)]
pub(crate) struct Run {
    program: String,
    args: Vec<String>,
    envs: Vec<(String, String)>,
    dir: Option<PathBuf>,
}

impl Run {
    pub(crate) fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: Vec::new(), envs: Vec::new(), dir: None }
    }

    /// `cargo` with the given words; an argument with a space in it needs `arg`.
    pub(crate) fn cargo(words: &str) -> Self {
        Self::new("cargo").args(words.split_whitespace())
    }

    pub(crate) fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub(crate) fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.envs.push((key.into(), value.into()));
        self
    }

    pub(crate) fn dir(mut self, dir: &Path) -> Self {
        self.dir = Some(dir.to_owned());
        self
    }

    /// Runs with inherited standard streams.
    pub(crate) fn status(&self) -> Result<()> {
        let status = self.command().status().map_err(|error| self.not_started(&error))?;
        self.check(status)
    }

    /// Runs the program, passes its output on as it arrives, and counts the tests in it.
    ///
    /// A run that fails without naming a failed test (it did not compile, or the test process died)
    /// counts as one failed test, so that the sum never looks green. So does a run in which no test ends within
    /// `patience`, which is killed.
    pub(crate) fn tests(&self, patience: Duration, tally: &mut Tally) -> Result<()> {
        self.tests_to(patience, &mut io::stdout().lock(), tally)
    }

    /// Like [`tests`](Self::tests), but if a few tests fail among many, they run once more, alone: on a busy machine a
    /// test of real processes can lose a race with the clock. Those that pass then are reported as flaky.
    pub(crate) fn tests_twice(&self, patience: Duration, tally: &mut Tally) -> Result<()> {
        self.twice_to(patience, &mut io::stdout().lock(), tally)
    }

    fn twice_to(&self, patience: Duration, out: &mut impl Write, all: &mut Tally) -> Result<()> {
        let mut tally = Tally::default();
        let mut result = self.tests_to(patience, out, &mut tally);
        // Only if every binary has printed its result: after a crash, nobody knows what else would have
        // failed.
        let failed = tally.failures.complete().unwrap_or_default();
        if result.is_err() && (1..=MOST_FLAKY).contains(&failed.len()) {
            let names = failed.iter().map(|failure| failure.name.clone());
            let separator = (!self.args.iter().any(|arg| arg == "--")).then_some("--");
            let again = self.clone().args(separator).arg("--exact").args(names);
            let mut second = Tally::default();
            let passes = again.tests_to(patience, out, &mut second).is_ok();
            // Names that match no test pass as well, so the tests are counted.
            if passes && second.passed >= failed.len() as u64 {
                tally.forgive();
                result = Ok(());
            }
        }
        all.add(tally);
        result
    }

    fn tests_to(&self, patience: Duration, out: &mut impl Write, tally: &mut Tally) -> Result<()> {
        let failed_before = tally.failed;
        let mut child = self
            .command()
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| self.not_started(&error))?;
        let watched = watchdog::watch(&mut child, patience, out, tally);
        let status = child.wait().map_err(|error| format!("waiting for `{self}`: {error}"))?;
        let hangs = watched.map_err(|error| format!("reading from `{self}`: {error}"))?;
        tally.failed += hangs.len() as u64;
        let result = if hangs.is_empty() { self.check(status) } else { Err(hangs.join("; ")) };
        if result.is_err() && tally.failed == failed_before {
            tally.failed += 1;
        }
        result
    }

    /// Runs silently and returns standard output.
    pub(crate) fn output(&self) -> Result<String> {
        let output = self
            .command()
            .stdin(Stdio::null())
            .output()
            .map_err(|error| self.not_started(&error))?;
        self.check(output.status)
            .map_err(|e| format!("{e}\n{}", String::from_utf8_lossy(&output.stderr).trim_end()))?;
        String::from_utf8(output.stdout).map_err(|_| format!("`{self}` printed no UTF-8"))
    }

    /// Returns true if the program starts and succeeds; for calls such as `--version`.
    pub(crate) fn works(&self) -> bool {
        self.output().is_ok()
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).envs(self.envs.iter().map(|(k, v)| (k, v)));
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        command
    }

    fn check(&self, status: ExitStatus) -> Result<()> {
        if status.success() { Ok(()) } else { Err(format!("`{self}` failed: {status}")) }
    }

    fn not_started(&self, error: &io::Error) -> String {
        format!("`{self}` did not start: {error}")
    }
}

/// Writes the line to paste into a shell.
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(dir) = &self.dir {
            write!(f, "cd {} && ", quoted(&dir.display().to_string()))?;
        }
        for (key, value) in &self.envs {
            write!(f, "{key}={} ", quoted(value))?;
        }
        f.write_str(&quoted(&self.program))?;
        for arg in &self.args {
            write!(f, " {}", quoted(arg))?;
        }
        Ok(())
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn prints_as_a_line_for_the_shell() {
        let run = Run::cargo("doc --no-deps")
            .arg("it's")
            .env("RUSTDOCFLAGS", "-D warnings")
            .dir(Path::new("crates/a"));
        assert_eq!(
            run.to_string(),
            r"cd crates/a && RUSTDOCFLAGS='-D warnings' cargo doc --no-deps 'it'\''s'"
        );
    }

    #[test]
    fn failure_without_failed_tests_counts_once() {
        let (mut out, mut tally) = (Vec::new(), Tally::default());
        let dies = Run::new("sh").arg("-c").arg("echo hello; exit 3");
        assert!(
            dies.tests_to(PATIENCE, &mut out, &mut tally).unwrap_err().contains("exit status: 3")
        );
        assert_eq!(tally.failed, 1);

        let fails = "echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored'; exit 1";
        let fails = Run::new("sh").arg("-c").arg(fails);
        fails.tests_to(PATIENCE, &mut out, &mut tally).unwrap_err();
        assert_eq!(tally.to_string(), "1 passed, 3 failed, 0 skipped");
        assert!(out.starts_with(b"hello\ntest result: FAILED"));
    }

    #[test]
    fn a_few_tests_that_fail_run_again_alone() {
        // The names come behind `--`; `$1` is that word.
        let fails = "printf 'running 2 tests\\n\\nfailures:\\n    a\\n\\n\
                     test result: FAILED. 1 passed; 1 failed; 0 ignored\\n'";
        let passes = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
        let run = |script: String| {
            let mut tally = Tally::default();
            let run = Run::new("sh").arg("-c").arg(script).arg("sh");
            let result = run.twice_to(PATIENCE, &mut Vec::new(), &mut tally);
            (result.is_ok(), tally)
        };

        let (is_ok, tally) =
            run(format!("[ \"$*\" = '-- --exact a' ] && {passes} || {{ {fails}; exit 101; }}"));
        assert!(is_ok);
        assert_eq!(tally.to_string(), "2 passed, 0 failed, 0 skipped");
        assert!(tally.report().starts_with("--- flaky: a\n"));

        let (is_ok, tally) = run(format!("{fails}; exit 101"));
        assert!(!is_ok, "it fails alone as well");
        assert_eq!(tally.to_string(), "1 passed, 1 failed, 0 skipped");
        assert!(tally.report().starts_with("--- failed: a\n"));

        let (is_ok, _) =
            run(format!("[ $# = 0 ] && {{ {fails}; echo running 1 test; exit 101; }}; {passes}"));
        assert!(!is_ok, "a binary that told no result has failed, whatever its tests do alone");

        let (is_ok, _) = run(format!("[ $# = 0 ] && {{ {fails}; exit 101; }}; exit 0"));
        assert!(!is_ok, "nothing passed, so nothing ran");
    }

    #[test]
    fn output_carries_what_a_failing_program_said() {
        let run = Run::new("sh").arg("-c").arg("echo why >&2; exit 1");
        assert!(run.output().unwrap_err().ends_with("\nwhy"));
    }
}
