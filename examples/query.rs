//! One prompt, one answer, streamed.
//!
//!     OPEN_AGENT_MODEL=qwen3:8b OPEN_AGENT_BASE_URL=http://localhost:11434/v1 \
//!         cargo run --example query -- "Why is the sky blue?"

use std::error::Error;

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::{ContentBlock, query};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words = Arguments::read(include_str!("query.rs")).words()?;
    let prompt = if words.is_empty() { "Why is the sky blue?" } else { &words };
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    let options = model.options().system_prompt("You are brief.").build()?;

    terminal.prompt(prompt);
    let mut answer = query(prompt, &options).await?;
    while let Some(block) = answer.next().await {
        match block? {
            ContentBlock::Text(text) => terminal.say(&text.text),
            ContentBlock::Thinking(thinking) => terminal.think(&thinking.thinking),
            _ => {}
        }
    }
    terminal.gap();
    if let (Some(reason), Some(usage)) = (answer.finish_reason(), answer.usage()) {
        let tokens = usage.total_tokens.unwrap_or_default();
        terminal.note(&format!("finish reason: {reason}, tokens: {tokens}"));
    }
    Ok(())
}

/// The stand-in without a model: it knows one answer.
fn stand_in(chat: &Chat<'_>) -> Reply {
    if chat.prompt().to_lowercase().contains("sky") {
        return Reply::new().think("Short, then. ").say("Because air scatters blue light most.");
    }
    Reply::text("I am a stand-in and know one answer only. Ask me why the sky is blue.")
}
