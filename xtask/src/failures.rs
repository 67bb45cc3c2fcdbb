//! The names and the output of failed tests, parsed from libtest's output.

/// The number of lines kept of a failed test's output: the first and the last ones.
const KEPT_LINES: usize = 40;

/// The longest line kept, in characters.
const LONGEST_LINE: usize = 400;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) name: String,
    /// Its output lines, truncated in the middle; empty if the run did not capture them.
    pub(crate) output: Vec<String>,
}

/// Reads the lines of one or more test binaries.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Failures {
    failed: Vec<Failure>,
    /// The output of the current binary's failed tests.
    printed: Vec<Failure>,
    part: Part,
    /// Binaries that began without printing a result: they were killed or crashed.
    unfinished: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Part {
    #[default]
    Tests,
    /// After the first `failures:`: the output of each failed test.
    Printed,
    /// After the second: their names.
    Names,
}

impl Failures {
    pub(crate) fn read(&mut self, line: &str) {
        if line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test")) {
            self.unfinished += 1;
            self.part = Part::Tests;
            self.printed.clear();
        } else if line.starts_with("test result: ") {
            self.unfinished = self.unfinished.saturating_sub(1);
            self.part = Part::Tests;
        } else if line == "failures:" {
            // Libtest prints this line before the output and before the names. Some runs have only the second.
            self.part = if self.part == Part::Tests { Part::Printed } else { Part::Names };
        } else if let Some(name) = section(line).filter(|_| self.part != Part::Tests) {
            self.part = Part::Printed;
            self.printed.push(Failure { name: name.to_owned(), output: Vec::new() });
        } else if self.part == Part::Printed {
            if let Some(last) = self.printed.last_mut() {
                keep(&mut last.output, line);
            } else {
                self.name(line);
            }
        } else if self.part == Part::Names {
            self.name(line);
        }
    }

    /// A line of the closing list; without captured output it is the only list there is.
    fn name(&mut self, line: &str) {
        let Some(name) = line.strip_prefix("    ") else {
            return;
        };
        let printed = self.printed.iter().position(|failure| failure.name == name);
        let output = printed.map(|at| self.printed.swap_remove(at).output).unwrap_or_default();
        self.failed.push(Failure { name: name.to_owned(), output });
    }

    /// Returns the failed tests if they are complete: every binary printed its result.
    pub(crate) fn complete(&self) -> Option<&[Failure]> {
        (self.unfinished == 0 && !self.failed.is_empty()).then_some(&self.failed)
    }

    pub(crate) fn all(&self) -> &[Failure] {
        &self.failed
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.failed.extend(other.failed);
        self.unfinished += other.unfinished;
    }
}

/// The test of a line such as `---- log::reads stdout ----`.
fn section(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// Adds a line: keeps a limited number of first lines and of last lines.
fn keep(lines: &mut Vec<String>, line: &str) {
    if lines.len() == KEPT_LINES {
        lines.remove(KEPT_LINES / 2);
        "[...]".clone_into(&mut lines[KEPT_LINES / 2]);
    }
    lines.push(line.chars().take(LONGEST_LINE).collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Failures {
        let mut failures = Failures::default();
        text.lines().for_each(|line| failures.read(line));
        failures
    }

    #[test]
    fn failed_tests_have_their_output() {
        let failures = read(
            "running 3 tests\ntest a ... ok\ntest b::c ... FAILED\ntest d ... FAILED\n\n\
             failures:\n\n---- b::c stdout ----\nleft: 1\nfailures:\nmore\n\n---- d stdout ----\n\
             why\n\n\nfailures:\n    b::c\n    d\n\n\
             test result: FAILED. 1 passed; 2 failed; 0 ignored\n\
             running 1 test\ntest e ... ok\n\ntest result: ok. 1 passed; 0 failed\n",
        );
        let failed = failures.complete().unwrap();
        let names: Vec<&str> = failed.iter().map(|failure| failure.name.as_str()).collect();
        assert_eq!(names, ["b::c", "d"]);
        assert_eq!(failed[1].output, ["why", "", ""]);
    }

    #[test]
    fn uncaptured_runs_list_only_names() {
        let failures = read(
            "running 1 test\ntest a ... said\nFAILED\n\nfailures:\n\nfailures:\n    a\n\n\
             test result: FAILED. 0 passed; 1 failed\n",
        );
        assert_eq!(failures.complete().unwrap().len(), 1);
        let failures = read(
            "running 1 test\ntest a ... said\nFAILED\n\nfailures:\n    a\n\n\
             test result: FAILED. 0 passed; 1 failed\n",
        );
        assert_eq!(failures.complete().unwrap().len(), 1);
    }

    #[test]
    fn missing_result_makes_list_incomplete() {
        let failures = read(
            "running 1 test\ntest a ... FAILED\nfailures:\n    a\n\ntest result: FAILED. 0 passed; 1 failed\n\
             running 2 tests\ntest b ... ok\n",
        );
        assert_eq!(failures.complete(), None);
        assert_eq!(failures.all().len(), 1);
        assert_eq!(read("running 1 test\ntest result: ok. 1 passed").complete(), None);
    }

    #[test]
    fn long_output_is_cut_in_its_middle() {
        let mut lines = Vec::new();
        for line in 0..1000 {
            keep(&mut lines, &line.to_string());
        }
        assert_eq!(lines.len(), KEPT_LINES);
        assert_eq!((lines[0].as_str(), lines[20].as_str()), ("0", "[...]"));
        assert_eq!(lines.last().unwrap(), "999");
    }
}
