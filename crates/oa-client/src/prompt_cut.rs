//! Reports requests to the detector of truncated prompts in `oa-context`.

use std::borrow::Cow;
use std::sync::Arc;

use oa_context::{PromptCut, PromptCutDetector, SentPrompt};
use oa_turn::{StepPlan, Turn};
use oa_types::Usage;

use crate::settings::Settings;

/// The detector, and the last request until it is answered.
#[derive(Default)]
pub(crate) struct PromptCutCheck {
    detector: PromptCutDetector<Planned>,
    sent: Option<Sent>,
}

struct Sent {
    settings: Arc<Settings>,
    tools: bool,
    /// The size of the request, saturating; 0 if unknown.
    bytes: u32,
}

/// Settings, compared by their address because a change makes new ones, and the plan of the request.
#[derive(Clone)]
struct Planned(Arc<Settings>, StepPlan);

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) && self.1 == other.1
    }
}

impl PromptCutCheck {
    /// Records a request with this many bytes of messages.
    pub(crate) fn sent(&mut self, settings: &Arc<Settings>, tools: bool, messages: usize) {
        let bytes = settings.chat.overhead(tools).map_or(0, |overhead| messages + overhead);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.sent = Some(Sent { settings: Arc::clone(settings), tools, bytes });
    }

    /// Returns the finding if the server seems to have truncated the last request of a turn, given its reported usage.
    pub(crate) fn answered(&mut self, turn: &Turn, usage: &Usage) -> Option<PromptCut> {
        let Sent { settings, tools, bytes } = self.sent.take()?;
        let options = Planned(settings, turn.step_plan().cloned().unwrap_or_default());
        let Planned(settings, plan) = &options;
        let chat = &settings.chat;
        let mut offered =
            if tools { Cow::Borrowed(&*chat.parameters.tools) } else { Cow::default() };
        if plan.only_tools.is_some() {
            offered.to_mut().retain(|tool| plan.offers(&tool.name));
        }
        let mut sent = SentPrompt::new(turn.history(), turn.revisions(), &options);
        sent.system_prompt = chat.system_prompt.as_deref();
        sent.tools = &offered;
        sent.bytes = (bytes > 0).then_some(bytes as usize);
        self.detector.check(&sent, usage)
    }
}
