//! Tells the detector of `oa-context` for truncated prompts what was sent.

use std::sync::Arc;

use oa_context::{PromptCut, PromptCutDetector, SentPrompt};
use oa_types::{Message, Usage};

use crate::settings::Settings;

/// The detector, and the last request until it is answered.
#[derive(Default)]
pub(crate) struct PromptCutCheck {
    detector: PromptCutDetector<SharedSettings>,
    sent: Option<Sent>,
}

struct Sent {
    settings: SharedSettings,
    tools: bool,
    /// The size of the request, saturating; 0 if unknown.
    bytes: u32,
}

/// Settings compared by their address: a change makes new ones.
#[derive(Clone)]
struct SharedSettings(Arc<Settings>);

impl PartialEq for SharedSettings {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PromptCutCheck {
    /// Records a request with this many bytes of messages.
    pub(crate) fn sent(&mut self, settings: &Arc<Settings>, tools: bool, messages: usize) {
        let bytes = settings.chat.overhead(tools).map_or(0, |overhead| messages + overhead);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let settings = SharedSettings(Arc::clone(settings));
        self.sent = Some(Sent { settings, tools, bytes });
    }

    /// Returns the finding if the server seems to have truncated the last request, given its history and reported
    /// usage.
    pub(crate) fn answered(
        &mut self,
        history: &[Message],
        revisions: &[u64],
        usage: &Usage,
    ) -> Option<PromptCut> {
        let Sent { settings, tools, bytes } = self.sent.take()?;
        let chat = &settings.0.chat;
        let mut sent = SentPrompt::new(history, revisions, &settings);
        sent.system_prompt = chat.system_prompt.as_deref();
        sent.tools = if tools { &chat.parameters.tools } else { &[] };
        sent.bytes = (bytes > 0).then_some(bytes as usize);
        self.detector.check(&sent, usage)
    }
}
