use std::time::Duration;

use oa_aggregate::ThinkTags;
use oa_chat::{Endpoint, Error, ErrorKind, Provider, RawResponse, Result, ServerProfile};
use oa_client::AgentOptions;
use tokio::time::Instant;

use crate::advice::{Lack, advice};
use crate::finding::{Finding, Probe, Verdict};
use crate::observed::Observed;
use crate::quote::Quotes;
use crate::report::Report;
use crate::target::ProbeTarget;

/// The server and the model, what was learned about them, and the answers that probes share.
#[derive(Debug)]
pub(crate) struct ProbeContext {
    pub(crate) target: ProbeTarget,
    /// The way think tags are read, as the options say it.
    pub(crate) think_tags: ThinkTags,
    /// True if the options have a profile.
    pub(crate) has_profile: bool,
    pub(crate) is_unreachable: bool,
    /// The list of models, once requested.
    pub(crate) models: Option<Result<RawResponse>>,
    pub(crate) provider: Option<Provider>,
    pub(crate) version: Option<String>,
    /// The answer to the plain prompt, once requested.
    pub(crate) plain: Option<Result<Observed>>,
    /// The server's message if it rejected a request for usage.
    pub(crate) usage_refusal: Option<String>,
    pub(crate) learned: ServerProfile,
}

impl ProbeContext {
    pub(crate) fn new(options: &AgentOptions, endpoint: &Endpoint) -> Self {
        let think_tags = options.quirks().think_tags;
        let has_profile = options.profile().is_some();
        let options = options.chat_options();
        let base_url = endpoint.base_url();
        let target = ProbeTarget {
            options: options.clone(),
            traits: endpoint.traits(&options.parameters.model),
            quotes: Quotes::new(endpoint),
            endpoint: endpoint.clone(),
            max_tokens: 256,
            time_limit: Duration::from_secs(60),
            // Replaced when the first probe begins.
            deadline: Instant::now() + Duration::from_secs(24 * 60 * 60),
        };
        Self {
            target,
            think_tags,
            has_profile,
            is_unreachable: false,
            models: None,
            provider: endpoint.provider(),
            version: None,
            plain: None,
            usage_refusal: None,
            learned: ServerProfile::new(base_url, &options.parameters.model),
        }
    }

    /// Returns advice for something that is lacking.
    pub(crate) fn advice(&self, lack: Lack) -> &'static str {
        advice(self.provider, lack)
    }

    /// Returns a finding for a request that failed.
    pub(crate) fn failed(&self, probe: Probe, error: &Error) -> Finding {
        let verdict = match error.kind() {
            ErrorKind::Timeout => Verdict::Unknown,
            _ => Verdict::Fail,
        };
        let finding = Finding::new(probe, verdict, self.target.quote(error));
        match error.status() {
            Some(401 | 403) => finding.advise(NO_KEY),
            Some(503) => finding.advise("try again once the model is loaded"),
            _ if error.kind() == ErrorKind::Timeout => finding.advise(
                "allow more time with Doctor::time_limit (oa doctor: --time-limit): the model may be \
                 loading, or slow",
            ),
            _ => finding,
        }
    }

    /// Returns a finding for a failed request that has more in it than the plain prompt.
    pub(crate) fn refused(&self, probe: Probe, error: &Error, lack: Lack) -> Finding {
        let finding = self.failed(probe, error);
        if self.is_refusal(error) { finding.advise(self.advice(lack)) } else { finding }
    }

    /// True if the server seems to reject a part that the plain prompt does not have.
    pub(crate) fn is_refusal(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::Api
            && matches!(error.rejected_with(), Some(400 | 404 | 405 | 415 | 422 | 500 | 501))
            // If the plain prompt failed, too, the error is not about the rest of this request.
            && !matches!(self.plain, Some(Err(_)))
    }

    /// Returns a finding for an answer that was cut off before it showed anything.
    pub(crate) fn cut(&self, probe: Probe, observed: &Observed) -> Finding {
        let is_slow = |error: &&Error| error.kind() == ErrorKind::Timeout;
        if let Some(error) = observed.failure.as_ref().filter(|error| !is_slow(error)) {
            let seen = format!("the answer broke off: {}", self.target.quote(error));
            return Finding::new(probe, Verdict::Fail, seen);
        }
        if let Some(error) = &observed.failure {
            return self.failed(probe, error);
        }
        let seen = format!("the answer was cut off at {} tokens", self.target.max_tokens);
        Finding::new(probe, Verdict::Unknown, seen).advise(
            "allow more tokens with Doctor::max_tokens (oa doctor: --max-tokens), or less thinking \
             with .thinking(..)",
        )
    }

    pub(crate) fn into_report(self, findings: Vec<Finding>) -> Report {
        let mut profile = self.learned;
        profile.provider = self.provider;
        Report {
            base_url: profile.base_url.clone(),
            model: profile.model.clone(),
            provider: self.provider,
            version: self.version,
            findings,
            profile,
        }
    }
}

/// The advice for a server that requires a key.
pub(crate) const NO_KEY: &str =
    "set this server's key with .api_key(..) (oa doctor: OPEN_AGENT_API_KEY)";

/// Formats a time for people.
pub(crate) fn shown(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        return format!("{} ms", time.as_millis());
    }
    format!("{:.1} s", time.as_secs_f64())
}

/// Formats a number with its noun.
pub(crate) fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
