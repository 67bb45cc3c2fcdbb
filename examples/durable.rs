//! A turn that survives a crash of its worker. The worker is this program, started again with `--worker`. It is killed
//! in the middle of a tool call, and another worker finishes the turn.
//!
//!     cargo run --example durable --features restate
//!
//! The engine is the Restate server at `OPEN_AGENT_RESTATE_URL` and `OPEN_AGENT_RESTATE_ADMIN_URL`. Without these, the
//! program starts one that it gets from npm.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use examples::{Arguments, Chat, Engine, Model, Terminal};
use oa_testkit::Reply;
use open_agent::restate::{AgentWorker, SessionPrompt, Sessions};
use open_agent::tools::FnTool;
use open_agent::{AgentOptions, AgentOptionsBuilder, json, tool};
use tokio::sync::mpsc;
use tokio::time::sleep;

const SESSION: &str = "order-1";
const PROMPT: &str = "Look up order 1, and print its labels.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = Arguments::read(include_str!("durable.rs"));
    if arguments.flag("--worker") {
        return work(&mut arguments).await;
    }
    arguments.end()?;
    let mut terminal = Terminal::new();
    let Some(engine) = Engine::find()? else {
        terminal.line("Skipped: no Restate. Install Node with npm, or name a server.");
        return Ok(());
    };
    let model = Model::find(&mut terminal, stand_in).await?;
    let options = agent(model.options())?;

    // Both workers listen at the same address, so the engine sees one worker.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let address = format!("http://127.0.0.1:{port}");
    let (lines, mut said) = mpsc::unbounded_channel();
    let mut first = Running::start(port, &engine, &options, lines.clone())?;
    if said.recv().await.as_deref() != Some("a worker listens") {
        return Err("the worker exited before it was listening".into());
    }
    AgentWorker::new(options.clone()).register(engine.admin_url(), &address).await?;

    terminal.prompt(PROMPT);
    let sessions = Sessions::new(engine.url());
    let turn = tokio::spawn({
        let sessions = sessions.clone();
        async move { sessions.prompt(SESSION, &SessionPrompt::text(PROMPT), Some("message-1")).await }
    });
    let mut second = None;
    while let Some(line) = said.recv().await {
        terminal.line(&format!("  {line}"));
        if second.is_none() && line.starts_with("label 2") {
            first.kill()?;
            terminal.line("The worker is killed. Another one starts.");
            second = Some(Running::start(port, &engine, &options, lines.clone())?);
        }
        if line.starts_with("done") {
            break;
        }
    }
    let reply = turn.await??;
    terminal.say(&reply.text);
    terminal.gap();
    let messages = sessions.history(SESSION).await?.len();
    terminal.line(&format!("Turn {} of the session, {messages} messages.", reply.turn));
    sessions.clear(SESSION).await?;
    Ok(())
}

/// Runs as a worker.
async fn work(arguments: &mut Arguments) -> Result<(), Box<dyn Error>> {
    let mut value = |name: &str| arguments.value(name).map(Option::unwrap_or_default);
    let (port, ingress) = (value("--port")?, value("--ingress")?);
    let (model, url) = (value("--model")?, value("--url")?);
    // Standard input closes when the parent process exits. Exit with it.
    std::thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let options = agent(AgentOptions::builder().model(model).base_url(url))?;
    let listener = AgentWorker::listen(format!("127.0.0.1:{port}").parse()?)?;
    say("a worker listens");
    Ok(AgentWorker::new(options).ingress(&ingress).serve(listener).await?)
}

/// Adds the tools.
fn agent(builder: AgentOptionsBuilder) -> Result<AgentOptions, open_agent::Error> {
    let look_up = tool("look_up", "Look up an order").param("order", "integer").build(|_| async {
        say("looked up the order");
        Ok(json!({ "labels": 3 }))
    });
    let print = tool("print_labels", "Print labels").param("count", "integer").build(print);
    let tools: [FnTool; 2] = [look_up, print];
    builder.tools(tools).auto_execute_tools(true).build()
}

async fn print(input: open_agent::Value) -> Result<open_agent::Value, open_agent::ToolError> {
    let count = input["count"].as_u64().unwrap_or_default();
    for label in 1..=count {
        sleep(Duration::from_millis(300)).await;
        say(&format!("label {label} of {count}"));
    }
    say("done");
    Ok(json!({ "printed": count }))
}

fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// A worker process, killed on drop.
struct Running(Child);

impl Running {
    /// Starts a worker and forwards its output to `lines`, line by line.
    fn start(
        port: u16,
        engine: &Engine,
        options: &AgentOptions,
        lines: mpsc::UnboundedSender<String>,
    ) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--worker", "--port", &port.to_string(), "--ingress", engine.url()]);
        command.args(["--model", options.model(), "--url", options.base_url()]);
        let mut worker = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = worker.stdout.take().map(BufReader::new);
        std::thread::spawn(move || {
            for line in output.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
                let _ = lines.send(line);
            }
        });
        Ok(Self(worker))
    }

    fn kill(&mut self) -> io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(drop)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Answers in place of a model: looks up the order, prints the labels, and reports that.
fn stand_in(chat: &Chat<'_>) -> Reply {
    match chat.calls().count() {
        0 => Reply::new().say("Let me see.").call("look_up", json!({ "order": 1 })),
        1 => Reply::new().call("print_labels", json!({ "count": 3 })),
        _ => Reply::text("The 3 labels of order 1 are printed."),
    }
}
