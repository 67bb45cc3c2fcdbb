//! Tools and an agent as an MCP server, for editors and other programs.
//!
//!     cargo run --example mcp_server --features mcp                          # over standard input and output
//!     cargo run --example mcp_server --features mcp -- --http 127.0.0.1:8000 # at http://127.0.0.1:8000/mcp
//!
//! The agent behind `ask` uses the model `OPEN_AGENT_MODEL` at `OPEN_AGENT_BASE_URL`; without them, a stand-in.

use std::error::Error;
use std::io::IsTerminal;
use std::time::Duration;

use examples::{Arguments, Chat};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use oa_testkit::{MemoryServer, Reply, Script};
use open_agent::mcp::{HttpService, ToolServer};
use open_agent::tools::{FnTool, Registry, ToolContext, ToolError};
use open_agent::{AgentOptions, AgentTool, ImageBlock, json, tool};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = Arguments::read(include_str!("mcp_server.rs"));
    let address = arguments.value("--http")?;
    arguments.end()?;
    let server = ToolServer::new(tools()?)
        .name("examples")
        .version("0.1.0")
        .instructions("Use add for sums. ask is an agent with a tool of its own.");
    if let Some(address) = address {
        return listen(&address, server.http_service()).await;
    }
    if std::io::stdin().is_terminal() {
        eprintln!("Reading MCP messages from standard input, one per line. Press Ctrl+D to stop.");
    }
    server.serve_stdio().await?;
    Ok(())
}

async fn listen(address: &str, service: HttpService) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        // An error affects only this client, whose connection is closed.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

fn tools() -> Result<Registry, Box<dyn Error>> {
    let mut tools = Registry::from_tools([
        tool("echo", "Says a text again")
            .param("text", "string")
            .build(|args| async move { Ok(args["text"].clone()) }),
        tool("add", "Adds two numbers")
            .param("a", "number")
            .param("b", "number")
            .output_schema(json!({
                "type": "object",
                "properties": { "sum": { "type": "number" } },
                "required": ["sum"],
            }))
            .category("read")
            .build(|args| async move {
                let number = |name: &str| args[name].as_f64().unwrap_or_default();
                Ok(json!({ "sum": number("a") + number("b") }))
            }),
        tool("fail", "Fails, to show what that looks like").build(|_| async {
            let cause = std::io::Error::other("the disk is full");
            Err(ToolError::from(cause).context("it failed"))
        }),
        tool("picture", "Draws a dot").build_with_context(|_, cx| async move {
            cx.attach_image(ImageBlock::from_base64(DOT, "image/png")?)?;
            Ok(json!(""))
        }),
        slow(),
    ])?;
    tools.add(AgentTool::new("ask", "Asks an agent that can wait", agent()?)?)?;
    Ok(tools)
}

fn slow() -> FnTool {
    tool("slow", "Takes a number of steps of some milliseconds")
        .param("steps", "integer")
        .param("ms", "integer")
        .build_with_context(|args, cx: ToolContext| async move {
            let number = |name: &str| args[name].as_u64().unwrap_or(1);
            for step in 1..=number("steps") {
                tokio::time::sleep(Duration::from_millis(number("ms"))).await;
                cx.emit_progress((step, number("steps")));
            }
            Ok(json!(format!("{} steps", number("steps"))))
        })
}

fn agent() -> Result<AgentOptions, Box<dyn Error>> {
    let mut options = AgentOptions::builder()
        .system_prompt("You wait as long as you are asked to, by your tool.")
        .tool(slow())
        .auto_execute_tools(true);
    if std::env::var_os("OPEN_AGENT_BASE_URL").is_none() {
        let answer = |request: &oa_testkit::Request| stand_in(&Chat::of(request));
        let model = MemoryServer::new(Script::new().otherwise(Reply::by(answer)));
        options = options.model("stand-in").transport(model);
    }
    Ok(options.build()?)
}

/// The stand-in without a model: `Take 3 steps of 20 ms.`
fn stand_in(chat: &Chat<'_>) -> Reply {
    if let Some(call) = chat.calls().last() {
        return match call.result {
            Ok(steps) => Reply::text(format!("I took {}.", steps.as_str().unwrap_or("none"))),
            Err(error) => Reply::text(format!("It does not work: {error}.")),
        };
    }
    let numbers = chat.prompt().split(' ').filter_map(|word| word.parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    match numbers[..] {
        [steps, ms] => Reply::new().call("slow", json!({ "steps": steps, "ms": ms })),
        _ => Reply::text("Tell me the number of steps, and the milliseconds of each."),
    }
}

/// One pixel.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
