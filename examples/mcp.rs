//! An agent with the tools of an MCP server that asks the user a question and changes its list of tools while the
//! agent runs. The server is this program, started again with `--serve`.
//!
//!     cargo run --example mcp --features mcp
//!     cargo run --example mcp --features mcp -- --config mcp.json "What can you do?"
//!
//! With `--config`, it uses the servers in a file in the format of editors (`mcpServers`) instead.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::time::Duration;

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::executor::ToolEvent;
use open_agent::mcp::{ElicitationAnswer, McpServer, Servers};
use open_agent::{AgentEvent, AgentOptions, Client, McpHost, Value, json};

const PROMPTS: [&str; 3] =
    ["What time is it in Lisbon?", "Wait for three ticks.", "Wake me when they are over."];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = Arguments::read(include_str!("mcp.rs"));
    if arguments.flag("--serve") {
        return serve();
    }
    let servers = match arguments.value("--config")? {
        Some(file) => {
            Servers::from_json(&std::fs::read_to_string(file)?, |name| std::env::var(name).ok())?
        }
        None => {
            let own = std::env::current_exe()?;
            // The permissions and hooks of these options decide whether the user is asked.
            let host = McpHost::new(|| AgentOptions::builder().model("any"))?;
            let clock = McpServer::stdio("clock", own.to_string_lossy()).arg("--serve");
            let clock = clock.on_elicitation(host.elicitation(|question, _| async move {
                println!("{} asks: {}", question.server, question.message);
                ElicitationAnswer::Accept(json!({ "sound": "birds" })) // or the user's input
            }));
            Servers::new().add(clock).add(McpServer::stdio("missing", "no-such-program"))
        }
    };
    let words = arguments.words()?;

    let mut terminal = Terminal::new();
    let connected = servers.connect().await?;
    for connection in connected.connections() {
        let prefix = format!("{}__", connection.name());
        let tools = connected.tools();
        let names = tools.iter().map(|tool| tool.name()).filter(|name| name.starts_with(&prefix));
        terminal.line(&format!("{}: {}", connection.name(), names.collect::<Vec<_>>().join(", ")));
    }
    for failure in connected.failures() {
        terminal.line(&failure.error().to_string());
    }

    let model = Model::find(&mut terminal, stand_in).await?;
    let options =
        model.options().tool_source(connected.source()).auto_execute_tools(true).build()?;
    let mut client = Client::new(options)?;
    let prompts = if words.is_empty() { PROMPTS.to_vec() } else { vec![&*words] };
    for prompt in prompts {
        if prompt == PROMPTS[2] {
            // The changed list is read after a quarter of a second, and the stand-in answers faster than that.
            let _ = tokio::time::timeout(Duration::from_secs(5), connected.changed()).await;
        }
        terminal.prompt(prompt);
        client.send(prompt).await?;
        while let Some(event) = client.next_event().await? {
            match event {
                AgentEvent::Tool(ToolEvent::Progress(progress)) => {
                    terminal.line(&progress.progress.message.unwrap_or_default());
                }
                AgentEvent::Block(block) => terminal.block(&block),
                _ => {}
            }
        }
        terminal.gap();
    }
    connected.close().await;
    Ok(())
}

/// Serves three tools over standard input and output, one message per line. A call of `wait` replaces the first tool.
fn serve() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    let mut lines = io::stdin().lock().lines();
    let mut has_waited = false;
    while let Some(line) = lines.next() {
        let message: Value = serde_json::from_str(&line?)?;
        let (id, params) = (&message["id"], &message["params"]);
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "clock", "version": "1" },
            }),
            Some("tools/list") => json!({ "tools": [
                {
                    "name": if has_waited { "wake" } else { "now" },
                    "description": if has_waited { "Wakes a person" } else { "Tells the time here" },
                    "inputSchema": { "type": "object" },
                },
                {
                    "name": "time",
                    "description": "Tells the time in a city",
                    "inputSchema": {
                        "type": "object",
                        "properties": { "city": { "type": "string" } },
                        "required": ["city"],
                    },
                },
                {
                    "name": "wait",
                    "description": "Waits for some ticks",
                    "inputSchema": { "type": "object", "properties": { "ticks": { "type": "integer" } } },
                },
            ] }),
            Some("tools/call") => {
                let arguments = &params["arguments"];
                let text = if params["name"] == "time" {
                    format!("14:30 in {}", arguments["city"].as_str().unwrap_or("nowhere"))
                } else if params["name"] == "wake" {
                    let schema = json!({ "type": "object", "properties": { "sound": { "type": "string" } } });
                    let question = json!({ "message": "Which sound?", "requestedSchema": schema });
                    writeln!(
                        out,
                        "{}",
                        json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": question })
                    )?;
                    out.flush()?;
                    let answer: Value =
                        serde_json::from_str(&lines.next().transpose()?.unwrap_or_default())?;
                    format!(
                        "with {}",
                        answer["result"]["content"]["sound"].as_str().unwrap_or("no sound")
                    )
                } else {
                    has_waited = true;
                    writeln!(
                        out,
                        "{}",
                        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })
                    )?;
                    let ticks = arguments["ticks"].as_u64().unwrap_or(1);
                    for tick in 1..=ticks {
                        let params = json!({
                            "progressToken": params["_meta"]["progressToken"],
                            "progress": tick,
                            "total": ticks,
                            "message": format!("tick {tick} of {ticks}"),
                        });
                        writeln!(
                            out,
                            "{}",
                            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
                        )?;
                    }
                    format!("{ticks} ticks")
                };
                json!({ "content": [{ "type": "text", "text": text }] })
            }
            // Notifications get no response.
            _ => continue,
        };
        writeln!(out, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
        out.flush()?;
    }
    Ok(())
}

/// The stand-in without a model.
fn stand_in(chat: &Chat<'_>) -> Reply {
    match chat.calls().last() {
        Some(call) => match (call.name, call.result) {
            ("clock__time", Ok(time)) => {
                Reply::text(format!("It is {}.", time.as_str().unwrap_or("late")))
            }
            ("clock__wait", Ok(waited)) => {
                Reply::text(format!("I have waited: {}.", waited.as_str().unwrap_or("long")))
            }
            (_, Ok(woken)) => {
                Reply::text(format!("You were woken {}.", woken.as_str().unwrap_or("late")))
            }
            (_, Err(error)) => Reply::text(format!("It does not work: {error}.")),
        },
        None if chat.prompt().contains("Lisbon") => {
            Reply::new().call("clock__time", json!({ "city": "Lisbon" }))
        }
        None if chat.prompt().contains("Wake") => Reply::new().call("clock__wake", json!({})),
        None => Reply::new().call("clock__wait", json!({ "ticks": 3 })),
    }
}
