//! Five ways to stop an agent: after a timeout, on certain text in its answer, from another task, during a tool
//! call, and with Ctrl-C. Each time, the client is ready for the next prompt.
//!
//!     cargo run --example interrupt

use std::error::Error;
use std::time::{Duration, Instant};

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::{Client, ContentBlock, FinishReason, Result, json, tool};
use tokio::signal::ctrl_c;
use tokio::time::{sleep, timeout};

const COUNT: &str = "Count from 1 to 300.";
const NAP: &str = "Take a nap of 60 seconds.";
const GO_ON: &str = "Go on.";
const HELLO: &str = "Say hello.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("interrupt.rs"))?;
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    let nap = tool("nap", "Sleeps").param("seconds", "integer").build(|args| async move {
        sleep(Duration::from_secs(args["seconds"].as_u64().unwrap_or_default())).await;
        Ok(json!("slept well"))
    });
    let options = model.options().tool(nap).auto_execute_tools(true).build()?;
    let mut client = Client::new(options)?;

    after_a_time(&mut client, &mut terminal).await?;
    by_its_answer(&mut client, &mut terminal).await?;
    from_another_task(&mut client, &mut terminal).await?;
    in_a_tool(&mut client, &mut terminal).await?;
    by_ctrl_c(&mut client, &mut terminal).await?;

    terminal.title("The client is ready for the next prompt");
    terminal.line(&client.ask(HELLO).await?.text);
    Ok(())
}

/// Stops after a timeout. `receive` may be dropped at any time, so it works with `timeout`. The run itself
/// continues until it is interrupted.
async fn after_a_time(client: &mut Client, terminal: &mut Terminal) -> Result<()> {
    terminal.title("After a time");
    client.send(COUNT).await?;
    if timeout(Duration::from_millis(300), read(client, terminal)).await.is_err() {
        client.interrupt();
    }
    // After an interrupt, `receive` returns `None`.
    read(client, terminal).await?;
    tell(client, terminal);
    Ok(())
}

async fn by_its_answer(client: &mut Client, terminal: &mut Terminal) -> Result<()> {
    terminal.title("By something in its answer");
    client.send(COUNT).await?;
    let mut answer = String::new();
    while let Some(block) = client.receive().await? {
        if let ContentBlock::Text(text) = block {
            terminal.say(&text.text);
            answer.push_str(&text.text);
        }
        if answer.contains("13") {
            client.interrupt();
        }
    }
    tell(client, terminal);
    Ok(())
}

/// Interrupts through a handle, which works from anywhere: a button, another task, a signal handler.
async fn from_another_task(client: &mut Client, terminal: &mut Terminal) -> Result<()> {
    terminal.title("From another task");
    let handle = client.interrupt_handle();
    client.send(COUNT).await?;
    tokio::spawn(async move {
        sleep(Duration::from_millis(200)).await;
        handle.interrupt();
    });
    read(client, terminal).await?;
    tell(client, terminal);
    Ok(())
}

/// Interrupts a tool, which causes no delay: its future is dropped, and the call is recorded as canceled.
async fn in_a_tool(client: &mut Client, terminal: &mut Terminal) -> Result<()> {
    terminal.title("In the middle of a tool");
    client.send(NAP).await?;
    let asked = Instant::now();
    while let Some(block) = client.receive().await? {
        terminal.block(&block);
        if let ContentBlock::ToolUse(_) = block {
            let handle = client.interrupt_handle();
            tokio::spawn(async move {
                sleep(Duration::from_millis(100)).await;
                handle.interrupt();
            });
        }
    }
    tell(client, terminal);
    terminal.note(&format!("  after {:.1} s, not 60", asked.elapsed().as_secs_f32()));
    Ok(())
}

/// Ends the answer, but not the program, on Ctrl-C. An interrupted answer cannot be resumed, so `continue_turn`
/// would be an error; a new prompt continues from what was received.
async fn by_ctrl_c(client: &mut Client, terminal: &mut Terminal) -> Result<()> {
    terminal.title("By Ctrl-C");
    terminal.note("  Press Ctrl-C while it counts.");
    let handle = client.interrupt_handle();
    let listening = tokio::spawn(async move {
        if ctrl_c().await.is_ok() {
            handle.interrupt();
        }
    });
    client.send(COUNT).await?;
    read(client, terminal).await?;
    listening.abort();
    tell(client, terminal);
    if client.finish_reason() == Some(&FinishReason::Interrupted) {
        client.send(GO_ON).await?;
        read(client, terminal).await?;
    }
    Ok(())
}

async fn read(client: &mut Client, terminal: &mut Terminal) -> Result<()> {
    while let Some(block) = client.receive().await? {
        terminal.block(&block);
    }
    Ok(())
}

/// Prints how the run ended. History keeps what was received.
fn tell(client: &Client, terminal: &mut Terminal) {
    let reason = client.finish_reason().map_or("none", |reason| reason.as_str());
    let messages = client.history().len();
    terminal.note(&format!("  finish reason: {reason}, messages in history: {messages}"));
}

/// The stand-in without a model: four rules.
fn stand_in(chat: &Chat<'_>) -> Reply {
    match chat.prompt() {
        COUNT => {
            let numbers: Vec<_> = (1..=300).map(|number| number.to_string()).collect();
            Reply::text(numbers.join(" "))
        }
        NAP => Reply::text("Good night.").call("nap", json!({ "seconds": 60 })),
        GO_ON => Reply::text("... and so on, up to 300."),
        _ => Reply::text("Hello! I was interrupted several times, and here I am."),
    }
}
