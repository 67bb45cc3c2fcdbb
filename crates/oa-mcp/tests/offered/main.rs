//! Serves the tools of the tests over standard input and output.

#![expect(clippy::print_stdout, reason = "what a tool prints where it must not")]

mod tools;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tools::server()?.serve_stdio().await?;
    Ok(())
}
