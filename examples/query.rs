//! One prompt, one answer, streamed.
//!
//!     OPEN_AGENT_MODEL=qwen3:8b OPEN_AGENT_BASE_URL=http://localhost:11434/v1 \
//!         cargo run --example query -- "Why is the sky blue?"
//!
//! Without a model in the environment a scripted one answers.

use std::io::Write;

use oa_testkit::{MemoryServer, Reply};
use open_agent::{AgentOptions, ContentBlock, Result, query};

#[tokio::main]
async fn main() -> Result<()> {
    let prompt = std::env::args().nth(1).unwrap_or_else(|| "Why is the sky blue?".to_owned());
    let options = AgentOptions::default();
    let options = if options.model().is_empty() {
        println!("(OPEN_AGENT_MODEL is not set: a script answers)\n");
        let script =
            Reply::new().think("Short, then.").say("Because air scatters blue light most.");
        AgentOptions::builder().model("script").transport(MemoryServer::new(script)).build()?
    } else {
        options
    };

    let mut answer = query(&prompt, &options).await?;
    while let Some(block) = answer.next().await {
        match block? {
            ContentBlock::Text(text) => print!("{}", text.text),
            ContentBlock::Thinking(thinking) => print!("\x1b[2m{}\x1b[0m", thinking.thinking),
            _ => {}
        }
        std::io::stdout().flush().ok();
    }
    println!();
    if let (Some(reason), Some(usage)) = (answer.finish_reason(), answer.usage()) {
        println!("[{reason}, {} tokens]", usage.total_tokens.unwrap_or_default());
    }
    Ok(())
}
