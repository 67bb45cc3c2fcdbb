//! Options for what a server reports in addition to its answer.

use super::AgentOptionsBuilder;

impl AgentOptionsBuilder {
    /// Asks the server to report how far it has read the prompt, as
    /// [`AgentEvent::PromptProgress`](crate::AgentEvent::PromptProgress) before the answer begins. Only llama.cpp's server
    /// supports this, so set the [`provider`](Self::provider) or a profile; other servers are not asked. Off by default.
    pub fn prompt_progress(mut self, reports: bool) -> Self {
        self.chat.prompt_progress = reports;
        self
    }
}
