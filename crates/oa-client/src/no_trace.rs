//! Stands in for the spans without the feature `tracing`.

use oa_events::AgentEvent;
use oa_executor::ToolEvent;
use oa_redact::Secrets;
use oa_types::{AssistantMessage, FinishReason};

use crate::error::Error;
use crate::settings::Settings;

/// No spans. Boxed like the real ones; a box of nothing does not allocate.
#[derive(Debug)]
pub(crate) struct Trace;

#[expect(clippy::needless_pass_by_ref_mut, reason = "the real one changes")]
impl Trace {
    pub(crate) fn begin(_: &Settings) -> Box<Self> {
        Box::new(Self)
    }

    pub(crate) fn request(&mut self, _: &Settings, _: &str) {}

    pub(crate) fn came_from(&mut self, _: &Secrets) {}

    pub(crate) fn answer(&mut self, _: &AssistantMessage, _: Option<&Error>) {}

    pub(crate) fn warn(&self, _: &AgentEvent) {}

    pub(crate) fn failed(&mut self, _: &Error) {}

    pub(crate) fn tool(&mut self, _: &ToolEvent) {}

    pub(crate) fn end(self, _: Option<&FinishReason>, _: u32) {}
}
