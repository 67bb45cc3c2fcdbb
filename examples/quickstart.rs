//! Finds a model server on this machine and streams an answer from it; without one it brings up a
//! scripted model on a loopback socket, so that it always works.
//!
//!     cargo run --example quickstart
//!     cargo run --example quickstart -- "What is the capital of France?"

use std::error::Error;
use std::io::{IsTerminal, Write, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use oa_testkit::{Reply, Request, Script, SocketServer};
use open_agent::{AgentOptions, ContentBlock, ErrorKind, Provider, Result, list_models, query};

/// Long enough for a server on this machine to say what it has.
const LOOK: Duration = Duration::from_millis(700);

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let prompt = std::env::args().nth(1);
    let style = Style::of_terminal();
    println!("{}", style.dim("Looking for a model server ..."));

    let found = find_server(&style).await;
    let _script: SocketServer;
    let options = match found {
        Some(options) => options,
        None => {
            println!(
                "{}",
                style.dim("  none is running, so a built-in script stands in for a model:")
            );
            println!("{}", style.dim("  it streams over a real socket, but it cannot think."));
            println!(
                "{}",
                style.dim("  Start LM Studio, Ollama, llama.cpp or vLLM and run this again.\n")
            );
            let server = SocketServer::start(script()).await?;
            let options =
                AgentOptions::builder().model("script").base_url(server.base_url()).build()?;
            _script = server;
            options
        }
    };

    let prompt = prompt.unwrap_or_else(|| "In one sentence: what is a tool call?".to_owned());
    println!("{} {prompt}\n", style.bold(">"));
    Ok(answer(&prompt, &options, &style).await?)
}

/// The first server that answers: the one the environment names, else the usual addresses in order.
async fn find_server(style: &Style) -> Option<AgentOptions> {
    let named = AgentOptions::default();
    let is_named =
        Provider::LOCAL.iter().all(|provider| provider.base_url() != Some(named.base_url()));
    let mut candidates = Vec::new();
    if is_named {
        candidates.push(("OPEN_AGENT_BASE_URL", named.base_url().to_owned()));
    }
    candidates.extend(Provider::LOCAL.into_iter().filter_map(|provider| {
        Some((provider.name(), provider.base_url()?.to_owned()))
    }));

    // All at once: looking takes no longer than the slowest.
    let looks: Vec<_> = candidates
        .into_iter()
        .map(|(name, base_url)| (name, base_url.clone(), tokio::spawn(look(base_url))))
        .collect();
    for (name, base_url, look) in looks {
        let Ok(Some(model)) = look.await else { continue };
        println!("  found {} at {base_url}, model {}\n", style.bold(name), style.bold(&model));
        return AgentOptions::builder().model(model).base_url(base_url).build().ok();
    }
    None
}

/// The model to use at this address, if there is a server.
async fn look(base_url: String) -> Option<String> {
    let builder = AgentOptions::builder().base_url(base_url).model("any");
    let options = builder.connect_timeout(LOOK).first_token_timeout(LOOK).build().ok()?;
    let models = list_models(&options).await.ok()?;
    let wanted = AgentOptions::default();
    if !wanted.model().is_empty() {
        return Some(wanted.model().to_owned());
    }
    // Embedding models cannot chat.
    models.into_iter().find(|model| !model.contains("embed"))
}

async fn answer(prompt: &str, options: &AgentOptions, style: &Style) -> Result<()> {
    let asked = Instant::now();
    let mut answer = match query(prompt, options).await {
        Ok(answer) => answer,
        Err(error) if error.kind() == ErrorKind::Timeout => {
            println!("The model is still loading: run this again in a minute.");
            return Err(error);
        }
        Err(error) => return Err(error),
    };
    let mut first = None;
    while let Some(block) = answer.next().await {
        let block = block?;
        first.get_or_insert_with(|| asked.elapsed());
        match block {
            ContentBlock::Text(text) => print!("{}", text.text),
            ContentBlock::Thinking(thinking) => print!("{}", style.dim(&thinking.thinking)),
            ContentBlock::ToolUse(call) => print!("[{}({})]", call.name, call.input),
            _ => {}
        }
        stdout().flush().ok();
    }
    let tokens = answer.usage().and_then(|usage| usage.completion_tokens);
    let tokens = tokens.map(|tokens| format!(", {tokens} tokens")).unwrap_or_default();
    let first = first.unwrap_or_default().as_secs_f32() * 1000.0;
    let total = asked.elapsed().as_secs_f32() * 1000.0;
    println!(
        "\n\n{}",
        style.dim(&format!("first word after {first:.0} ms, all after {total:.0} ms{tokens}"))
    );
    Ok(())
}

/// What the stand-in says: it is honest about what it is.
fn script() -> Script {
    Script::new().otherwise(Reply::by(|request: &Request| {
        let prompt = request.messages().last().and_then(|message| message["content"].as_str().map(str::to_owned));
        let said = format!(
            "I am a script, not a model, and you asked: {:?}. A tool call is a model's request that \
             your program run a function and tell it the result. These words came through the same \
             path as a real model's: a socket, HTTP chunks, server-sent events, one delta at a time.",
            prompt.unwrap_or_default()
        );
        Reply::text(said).delay(Duration::from_millis(12))
    }))
}

/// Colours, where the output is a terminal.
struct Style {
    is_terminal: bool,
}

impl Style {
    fn of_terminal() -> Self {
        Self { is_terminal: stdout().is_terminal() }
    }

    fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.is_terminal { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
