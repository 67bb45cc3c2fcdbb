use oa_client::AgentEvent;
use oa_executor::ToolEvent;
use oa_tools::Progress;
use oa_types::ContentBlock;

/// The number of characters between progress reports, so that callers with a timeout see activity.
const REPORT: usize = 400;

/// Converts an agent's events to progress of the tool that runs it: a growing count without a known total.
#[derive(Default)]
pub(crate) struct AgentProgress {
    steps: u64,
    /// The characters received in this answer, and the count last reported.
    characters: usize,
    reported: usize,
}

impl AgentProgress {
    /// Returns the progress report for an event, if it deserves one.
    pub(crate) fn read(&mut self, event: &AgentEvent) -> Option<Progress> {
        let message = self.message(event)?;
        self.steps += 1;
        Some(Progress::new(self.steps, None).with_message(message))
    }

    fn message(&mut self, event: &AgentEvent) -> Option<String> {
        Some(match event {
            AgentEvent::AnswerStart => {
                (self.characters, self.reported) = (0, 0);
                "the model answers".to_owned()
            }
            AgentEvent::Block(block) => {
                let written = match block {
                    ContentBlock::Text(block) => block.text.chars().count(),
                    ContentBlock::Thinking(block) => block.thinking.chars().count(),
                    _ => return None,
                };
                self.characters += written;
                if self.characters - self.reported < REPORT {
                    return None;
                }
                self.reported = self.characters;
                format!("the model answers: {} characters", self.characters)
            }
            AgentEvent::Nested(nested) => {
                format!("{}: {}", nested.agent, self.message(&nested.event)?)
            }
            AgentEvent::PromptProgress(progress) => {
                format!("the model reads: {} of {} tokens", progress.processed, progress.total)
            }
            AgentEvent::Tool(event) => of_tool(event)?,
            _ => return None,
        })
    }
}

fn of_tool(event: &ToolEvent) -> Option<String> {
    Some(match event {
        ToolEvent::CallComplete(result) if result.is_error() => {
            format!("{} failed", result.tool_name)
        }
        ToolEvent::CallComplete(result) => format!("{} is done", result.tool_name),
        ToolEvent::CallStart(start) => format!("{} runs", start.tool_name),
        ToolEvent::Progress(event) => {
            let Progress { done, total, message, .. } = &event.progress;
            let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
            let why = message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
            format!("{}: {done}{of}{why}", event.tool_name)
        }
        ToolEvent::Status(event) => format!("{}: {}", event.tool_name, event.status),
        _ => return None,
    })
}
