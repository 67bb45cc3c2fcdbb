//! Options for what a server tells beside its answer.

use super::AgentOptionsBuilder;

impl AgentOptionsBuilder {
    /// Asks the server to report how far it has read the prompt: as
    /// [`AgentEvent::PromptProgress`](crate::AgentEvent::PromptProgress), before the answer begins. Only a llama.cpp
    /// server can, so set the [`provider`](Self::provider) or a profile; no other server is asked. Off by default.
    pub fn prompt_progress(mut self, reports: bool) -> Self {
        self.chat.prompt_progress = reports;
        self
    }
}
