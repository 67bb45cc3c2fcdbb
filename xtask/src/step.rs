//! One step of the gate: how it ends, and whether a missing tool is a failure.

use crate::Result;
use crate::ci::Options;

/// The end of a step that did not fail.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// A tool is not installed.
    Missing {
        message: String,
        need: Need,
    },
    /// There was nothing to check.
    Nothing(String),
    Ok,
}

/// Where a tool must be installed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Need {
    /// In CI, because no other step covers the same checks.
    InCi,
    /// Nowhere, unless asked for with `--strict`.
    Optional,
}

/// A line of the closing table.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) name: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) seconds: f64,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Failed(String),
    Ok,
    Skipped(String),
}

impl Verdict {
    pub(crate) fn of(result: Result<Outcome>, options: Options) -> Self {
        match result {
            Err(reason) => Self::Failed(reason),
            Ok(Outcome::Ok) => Self::Ok,
            Ok(Outcome::Nothing(reason)) => Self::Skipped(reason),
            Ok(Outcome::Missing { message, need }) => {
                if options.strict || (options.in_ci && need == Need::InCi) {
                    Self::Failed(message)
                } else {
                    Self::Skipped(message)
                }
            }
        }
    }

    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Failed(_) => "FAILED",
            Self::Ok => "ok",
            Self::Skipped(_) => "skipped",
        }
    }

    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Failed(reason) | Self::Skipped(reason) => reason,
            Self::Ok => "",
        }
    }
}

/// The closing table: one line for each step.
pub(crate) fn table(reports: &[Report]) -> String {
    let mut out = format!("{:<12} {:<8} {:>8}\n", "step", "result", "seconds");
    for Report { name, verdict, seconds } in reports {
        let reason = verdict.reason().lines().next().unwrap_or_default();
        let line = format!("{name:<12} {:<8} {seconds:>8.1}  {reason}", verdict.word());
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(need: Need) -> Result<Outcome> {
        Ok(Outcome::Missing { message: "no tool".into(), need })
    }

    #[test]
    fn a_missing_tool_is_skipped_unless_needed() {
        let plain = Options::default();
        let in_ci = Options { in_ci: true, ..plain };
        let strict = Options { strict: true, ..plain };
        let verdict = |need, options| Verdict::of(missing(need), options).word();

        assert_eq!(verdict(Need::InCi, plain), "skipped");
        assert_eq!(verdict(Need::InCi, in_ci), "FAILED");
        assert_eq!(verdict(Need::InCi, strict), "FAILED");
        assert_eq!(verdict(Need::Optional, plain), "skipped");
        assert_eq!(verdict(Need::Optional, in_ci), "skipped");
        assert_eq!(verdict(Need::Optional, strict), "FAILED");
    }

    #[test]
    fn table_shows_first_line_of_reasons() {
        let reports = [
            Report { name: "fmt", verdict: Verdict::Ok, seconds: 0.44 },
            Report { name: "test", verdict: Verdict::Failed("a\nb".into()), seconds: 10.0 },
        ];
        assert_eq!(
            table(&reports),
            "step         result    seconds\n\
             fmt          ok            0.4\n\
             test         FAILED       10.0  a\n"
        );
    }
}
