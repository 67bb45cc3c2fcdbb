//! Simple query example
//!
//! Demonstrates basic usage of the query function, including reading the finish reason
//! to learn why generation stopped.

use open_agent::{AgentOptions, ContentBlock, FinishReason, query};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Configure the agent
    let options = AgentOptions::builder()
        .system_prompt("You are a helpful assistant")
        .model("qwen3:8b")
        .base_url("http://localhost:11434/v1")
        .temperature(0.7)
        .max_tokens(500)
        .build()?;

    println!("Sending query to model...\n");

    // Send query and stream response
    let mut stream = query("What's the capital of France? Please be brief.", &options).await?;

    print!("Response: ");

    while let Some(block) = stream.next().await {
        match block? {
            ContentBlock::Text(text) => {
                print!("{}", text.text);
                std::io::Write::flush(&mut std::io::stdout())?;
            }
            ContentBlock::ToolUse(tool) => {
                println!("\nTool called: {} (id: {})", tool.name, tool.id);
                println!("Arguments: {}", tool.input);
            }
            _ => {}
        }
    }
    // After its end, the stream knows why it ended. `Length` means the response was cut off
    // at the token cap rather than finished — worth knowing before treating a partial answer
    // as the model's final word.
    match stream.finish_reason() {
        Some(FinishReason::Length) => println!("\n[truncated at the token cap]"),
        Some(reason) => println!("\n[stopped: {reason}]"),
        None => {}
    }

    println!("\nQuery complete!");

    Ok(())
}
