use std::fmt;

use oa_chat::{Provider, ServerProfile};
use serde::Serialize;

use crate::finding::{Finding, Probe, Verdict};

/// The result of [`doctor()`](crate::doctor()). `Display` prints a table; `Serialize` writes it for programs.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The address of the server.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// The provider, if it was recognized.
    pub provider: Option<Provider>,
    /// The version that the server reports.
    pub version: Option<String>,
    /// The findings, in the order of the probes.
    pub findings: Vec<Finding>,
    /// The profile that was learned, for options to read.
    pub profile: ServerProfile,
}

impl Report {
    /// Returns the finding of a probe, if it ran.
    #[must_use]
    pub fn finding(&self, probe: Probe) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.probe == probe)
    }

    /// Returns the worst verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Unknown)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, model {}", self.base_url, self.model)?;
        match (self.provider, &self.version) {
            (Some(provider), Some(version)) => write!(f, ", {} {version}", provider.name())?,
            (Some(provider), None) => write!(f, ", {}", provider.name())?,
            (None, _) => {}
        }
        f.write_str("\n\n")?;
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        write!(
            f,
            "\n{} ok, {} warn, {} fail, {} unknown",
            self.count(Verdict::Ok),
            self.count(Verdict::Warn),
            self.count(Verdict::Fail),
            self.count(Verdict::Unknown),
        )
    }
}
