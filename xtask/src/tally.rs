//! Counts of tests, parsed from their output.

use std::fmt;

use crate::failures::{Failure, Failures};

/// Tests passed, failed and skipped, over all steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    pub(crate) failures: Failures,
    /// Tests that failed and then passed alone; they count as passed.
    pub(crate) flaky: Vec<Failure>,
}

impl Tally {
    /// Adds the numbers of a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; ...`;
    /// other lines can name failed tests.
    pub(crate) fn read(&mut self, line: &str) {
        self.failures.read(line);
        let Some(counts) = line.strip_prefix("test result: ") else {
            return;
        };
        for part in counts.split(';') {
            let mut words = part.split_whitespace().rev();
            let (Some(what), Some(number)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match what {
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                "passed" => self.passed += number,
                _ => {}
            }
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.failures.add(other.failures);
        self.flaky.extend(other.flaky);
    }

    /// Turns the failed tests, which passed when run again, into flaky ones.
    pub(crate) fn forgive(&mut self) {
        let failures = std::mem::take(&mut self.failures);
        let count = failures.all().len() as u64;
        self.failed = self.failed.saturating_sub(count);
        self.passed += count;
        self.flaky.extend(failures.all().iter().cloned());
    }

    /// The failed and the flaky tests with their output, for the end of the log.
    pub(crate) fn report(&self) -> String {
        let mut out = String::new();
        for (what, failures) in [("failed", self.failures.all()), ("flaky", &self.flaky)] {
            for Failure { name, output } in failures {
                out.push_str(&format!("--- {what}: {name}\n"));
                for line in output {
                    out.push_str(&format!("    {line}\n"));
                }
            }
        }
        out
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_result_lines_and_nothing_else() {
        let mut tally = Tally::default();
        for line in [
            "running 4 tests",
            "test a ... ok",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.00s",
            "said: test result: ok. 100 passed; 0 failed",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s",
            "test result: \u{1b}[32mok\u{1b}[m. 5 passed; 0 failed; 0 ignored",
        ] {
            tally.read(line);
        }
        assert_eq!(tally.to_string(), "9 passed, 2 failed, 1 skipped");
    }
}
