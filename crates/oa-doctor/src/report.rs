use std::fmt::{self, Write};

use oa_chat::{Provider, ServerProfile};
use serde::Serialize;

use crate::finding::{Finding, Probe, Verdict};
use crate::table::{WIDTH, write_row};

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

    /// Returns the table that `Display` prints, for a terminal with this many columns. Lines break at spaces, and
    /// those of findings have at most 100 characters.
    #[must_use]
    pub fn table(&self, columns: usize) -> String {
        let mut table = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut table, columns);
        table
    }

    fn write(&self, f: &mut impl Write, columns: usize) -> fmt::Result {
        write!(f, "{}, model {}", self.base_url, self.model)?;
        match (self.provider, &self.version) {
            (Some(provider), Some(version)) => write!(f, ", {} {version}", provider.name())?,
            (Some(provider), None) => write!(f, ", {}", provider.name())?,
            (None, _) => {}
        }
        f.write_str("\n\n")?;
        for finding in &self.findings {
            write_row(f, finding, columns)?;
            f.write_char('\n')?;
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

    fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, WIDTH)
    }
}
