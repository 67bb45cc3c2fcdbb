//! A calculator agent over HTTP, for the built-in page, `useChat`, CopilotKit and any OpenAI client.
//!
//!     cargo run --example serve --features serve
//!     cargo run --example serve --features serve -- --port 9000 --token secret
//!     cargo run --example serve --features serve -- --try
//!
//! With `--try`, it asks itself one question over HTTP and exits.

use std::error::Error;
use std::future::pending;
use std::net::SocketAddr;

use examples::{Arguments, Model, Terminal, stand_in};
use open_agent::serve::AgentServer;
use open_agent::{Value, json, tool};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = Arguments::read(include_str!("serve.rs"));
    let is_trial = arguments.flag("--try");
    let port = arguments.value("--port")?.unwrap_or_else(|| "8080".to_owned());
    let token = arguments.value("--token")?;
    arguments.end()?;
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in::answer).await?;
    let add = tool("add", "Add two numbers").param("a", "number").param("b", "number");
    let agent = model
        .options()
        .system_prompt("You are a calculator. Use the tools.")
        .tool(add.build(|args| async move {
            let number = |name: &str| args[name].as_f64().unwrap_or_default();
            Ok(json!({"sum": number("a") + number("b")}))
        }))
        .auto_execute_tools(true)
        .build()?;

    let mut server = AgentServer::new(agent).name("calculator");
    if let Some(token) = token {
        server = server.bearer_token(token);
    }
    if is_trial {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        tokio::spawn(server.serve_until(listener, pending()));
        let question = "What is 25 + 17?";
        terminal.prompt(question);
        terminal.line(&ask(addr, question).await?);
        return Ok(());
    }
    terminal.line(&format!("http://127.0.0.1:{port} for the page"));
    terminal.line(&format!("http://127.0.0.1:{port}/v1 for OpenAI clients, model `calculator`"));
    terminal.line(&format!("http://127.0.0.1:{port}/api/chat for useChat, /ag-ui for AG-UI"));
    terminal.line("Press Ctrl-C to stop.");
    server.serve(format!("127.0.0.1:{port}")).await?;
    Ok(())
}

/// Asks as an OpenAI client does.
async fn ask(addr: SocketAddr, question: &str) -> Result<String, Box<dyn Error>> {
    let messages = json!([{"role": "user", "content": question}]);
    let body = json!({"model": "calculator", "messages": messages}).to_string();
    let mut stream = TcpStream::connect(addr).await?;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    let completion: Value = serde_json::from_str(body)?;
    let text = completion["choices"][0]["message"]["content"].as_str();
    Ok(text.ok_or("no text")?.to_owned())
}
