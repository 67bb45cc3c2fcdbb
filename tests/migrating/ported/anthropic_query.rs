//! Anthropic messages endpoint
//!
//! The same single-turn query as `simple_query.rs`, against Anthropic's endpoint for chat
//! completions. There is no second protocol to choose: a server that speaks only the messages
//! protocol needs a gateway such as LiteLLM, or a chat service of your own.
//!
//! Run with:
//!
//! ```bash
//! ANTHROPIC_API_KEY=sk-... cargo run --example anthropic_query
//! ```

use open_agent::{AgentOptions, ContentBlock, query};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let api_key = std::env::var("ANTHROPIC_API_KEY")
        .map_err(|_| "set ANTHROPIC_API_KEY to run this example")?;

    let options = AgentOptions::builder()
        .system_prompt("You are a helpful assistant")
        .model("claude-sonnet-5")
        .base_url("https://api.anthropic.com/v1")
        .api_key(api_key)
        // Optional on Anthropic itself, required by some Anthropic-shaped third-party
        // endpoints. Unset means the field is omitted, so the server decides.
        .max_tokens(500)
        .build()?;

    println!("Sending query to {}...\n", options.model());

    let mut stream = query("What's the capital of France? Please be brief.", &options).await?;

    print!("Response: ");

    while let Some(block) = stream.next().await {
        match block? {
            ContentBlock::Text(text) => {
                print!("{}", text.text);
                std::io::Write::flush(&mut std::io::stdout())?;
            }
            ContentBlock::Thinking(thinking) => {
                print!("\n[thinking] {}", thinking.thinking);
                std::io::Write::flush(&mut std::io::stdout())?;
            }
            _ => {}
        }
    }
    if let Some(reason) = stream.finish_reason() {
        println!("\n[stopped: {reason}]");
    }

    println!("\nQuery complete!");

    Ok(())
}
