//! Examines a server and a model before an agent relies on them.
//!
//! [`doctor`] sends about a dozen short requests and reports what works: tool calls, structured output, usage,
//! the context. Its report contains a [`ServerProfile`](oa_chat::ServerProfile), which an agent's options can load.
//!
//! # When to use this crate directly
//!
//! Rarely: the facade `open-agent` re-exports it as `doctor` and `Doctor`.

mod finding;
mod report;

mod advice;
mod context;
mod observed;
mod quote;
mod signs;
mod tap;
mod target;

mod calls;
mod errors;
mod plain;
mod reach;
mod schema;
mod server;
mod table;
mod token_limit;

use std::time::Duration;

use oa_chat::{Error, Result, Timeout};
use oa_client::AgentOptions;
use tokio::time::Instant;

pub use crate::finding::{Finding, Probe, Verdict};
pub use crate::report::Report;
pub use crate::server::{count_text_tokens, count_tokens, list_models};

use crate::context::ProbeContext;

/// Examines a server and a model with [all probes](Probe::ALL), and reports the findings.
///
/// Sends about a dozen short requests, one after another, with the address, key, headers and model from the options,
/// but without the tools, hooks and system prompt. A failed probe does not stop the others. Use [`Doctor`] to choose
/// probes and set limits.
///
/// ```
/// use oa_client::AgentOptions;
/// use oa_doctor::{Probe, Verdict, doctor};
/// # use oa_testkit::{MemoryServer, Reply, Script};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), oa_client::Error> {
/// # let script = Script::new().models(["qwen3:8b"]).otherwise(Reply::text("one, two, three"));
/// let options = AgentOptions::builder()
///     .model("qwen3:8b")
/// #   .transport(MemoryServer::new(script))
///     .build()?;
/// let report = doctor(&options).await?;
/// println!("{report}");
/// if report.finding(Probe::AutoCalls).is_some_and(|finding| finding.verdict > Verdict::Ok) {
///     println!("an agent on this model would call no tools");
/// }
/// # let path = std::env::temp_dir().join(format!("profile-{}.json", std::process::id()));
/// report.profile.write(&path)?; // for AgentOptions::builder().profile_file(&path)
/// # std::fs::remove_file(&path).unwrap();
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `Config` if the options have no model, or a [`chat_service`](oa_client::AgentOptionsBuilder::chat_service).
/// Failures of the server are findings.
///
/// # Panics
///
/// When polled outside of a tokio runtime, or in one without time or I/O.
///
/// # Cancel safety
///
/// Dropping the future closes the connection and stops the examination.
pub async fn doctor(options: &AgentOptions) -> Result<Report> {
    Ok(Doctor::new(options)?.examine().await)
}

/// Examines a server and a model, probe by probe; see [`doctor()`].
#[derive(Debug)]
#[must_use = "a doctor does nothing until `examine` or `next_finding` is called"]
pub struct Doctor {
    cx: ProbeContext,
    probes: Vec<Probe>,
    total_time_limit: Duration,
    begun: bool,
    findings: Vec<Finding>,
}

impl Doctor {
    /// Creates a doctor for the server and the model of these options.
    ///
    /// # Errors
    ///
    /// `Config` if they have no model, or a [`chat_service`](oa_client::AgentOptionsBuilder::chat_service), which
    /// hides its servers.
    pub fn new(options: &AgentOptions) -> Result<Self> {
        options.check()?;
        let Some(endpoint) = options.endpoint() else {
            let why = "a chat service of your own cannot be examined: examine its servers instead";
            return Err(Error::config(why));
        };
        Ok(Self {
            cx: ProbeContext::new(options, endpoint),
            probes: Probe::ALL.to_vec(),
            total_time_limit: Duration::from_secs(600),
            begun: false,
            findings: Vec::new(),
        })
    }

    /// Runs only these probes, in the usual order.
    pub fn only(mut self, probes: impl IntoIterator<Item = Probe>) -> Self {
        let wanted: Vec<_> = probes.into_iter().collect();
        self.probes.retain(|probe| wanted.contains(probe));
        self
    }

    /// Limits each answer, in tokens; 256 by default. Models that think need more.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.cx.target.max_tokens = tokens.max(1);
        self
    }

    /// Limits the time of each request; 60 seconds by default. A model that is not loaded yet needs more.
    pub fn time_limit(mut self, limit: impl Into<Timeout>) -> Self {
        self.cx.target.time_limit = limit.into().or_max();
        self
    }

    /// Limits the time of all requests together; 10 minutes by default. Later probes are
    /// [`Unknown`](Verdict::Unknown).
    pub fn total_time_limit(mut self, limit: impl Into<Timeout>) -> Self {
        self.total_time_limit = limit.into().or_max();
        self
    }

    /// Runs the next probe and returns its finding; `None` when all have run.
    ///
    /// # Panics
    ///
    /// When polled outside of a tokio runtime, or in one without time or I/O.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the next call runs its probe again.
    pub async fn next_finding(&mut self) -> Option<&Finding> {
        if !self.begun {
            let end = Instant::now().checked_add(self.total_time_limit);
            // If the deadline overflows, each request still has its own limit.
            self.cx.target.deadline = end.unwrap_or(self.cx.target.deadline);
            self.begun = true;
        }
        let probe = *self.probes.get(self.findings.len())?;
        let finding = self.probe(probe).await;
        self.findings.push(finding);
        self.findings.last()
    }

    /// Runs the remaining probes and returns the report.
    ///
    /// # Panics
    ///
    /// As [`next_finding`](Self::next_finding).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection and stops the examination.
    pub async fn examine(mut self) -> Report {
        while self.next_finding().await.is_some() {}
        self.into_report()
    }

    /// Returns the report so far.
    #[must_use]
    pub fn into_report(self) -> Report {
        self.cx.into_report(self.findings)
    }

    async fn probe(&mut self, probe: Probe) -> Finding {
        let cx = &mut self.cx;
        if cx.is_unreachable && probe != Probe::Reach {
            return Finding::new(probe, Verdict::Unknown, "skipped: no connection");
        }
        if Instant::now() >= cx.target.deadline {
            return Finding::new(probe, Verdict::Unknown, "skipped: no time left");
        }
        match probe {
            Probe::AutoCalls => calls::auto(cx).await,
            Probe::BadRequest => errors::bad_request(cx).await,
            Probe::Context => reach::context(cx).await,
            Probe::ForcedCalls => calls::forced(cx).await,
            Probe::Idle => plain::idle(cx).await,
            Probe::Models => reach::models(cx).await,
            Probe::ParallelCalls => calls::parallel(cx).await,
            Probe::Reach => reach::reach(cx).await,
            Probe::Schema => schema::schema(cx).await,
            Probe::Speed => plain::speed(cx).await,
            Probe::Streaming => plain::streaming(cx).await,
            Probe::Thinking => plain::thinking(cx).await,
            Probe::TokenLimit => token_limit::token_limit(cx).await,
            Probe::ToolResults => calls::results(cx).await,
            Probe::UnknownModel => errors::unknown_model(cx).await,
            Probe::Usage => plain::usage(cx).await,
        }
    }
}

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
