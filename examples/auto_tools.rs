//! Tools in auto mode: shared state, a fixed set of values, progress, and blocking work. Also shows the limit
//! on tool iterations.
//!
//!     cargo run --example auto_tools

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::tools::Progress;
use open_agent::{AgentEvent, Client, FinishReason, FnTool, ToolEvent, json, tool};

const QUESTION: &str = "How many apples are there? If fewer than 20, order 30 by express. Then forecast how \
                        many are left in 7 days.";
/// The number of times that this program extends the limit.
const EXTENSIONS: u32 = 2;

/// Shared state of the tools, invisible to the model.
struct Stock(Mutex<BTreeMap<String, i64>>);

impl Stock {
    fn change(&self, item: &str, pieces: i64) -> i64 {
        let mut items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = items.entry(item.to_owned()).or_default();
        *left += pieces;
        *left
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("auto_tools.rs"))?;
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    let stock = BTreeMap::from([("apples".to_owned(), 12), ("pears".to_owned(), 40)]);
    let options = model
        .options()
        .system_prompt("You run a small shop. Call one tool at a time.")
        .tools([count(), order(), forecast()])
        .state(Stock(Mutex::new(stock)))
        .auto_execute_tools(true)
        .max_tool_iterations(2)
        .build()?;

    let mut client = Client::new(options)?;
    terminal.prompt(QUESTION);
    client.send(QUESTION).await?;
    for extension in 0..=EXTENSIONS {
        while let Some(event) = client.next_event().await? {
            match event {
                AgentEvent::Block(block) => terminal.block(&block),
                AgentEvent::Tool(ToolEvent::Progress(event)) => {
                    let message = event.progress.message.unwrap_or_default();
                    let (done, total) = (event.progress.done, event.progress.total.unwrap_or(0));
                    terminal.note(&format!("  {} {done}/{total} {message}", event.tool_name));
                }
                _ => {}
            }
        }
        // At this point the history is a valid conversation: the extra calls have error results.
        let is_limited = client.finish_reason() == Some(&FinishReason::MaxToolIterations);
        if !is_limited || extension == EXTENSIONS {
            break;
        }
        terminal.note("The limit of two tool rounds is reached. This program allows two more.");
        client.continue_turn().await?;
    }
    terminal.gap();
    if let Some(reason) = client.finish_reason() {
        terminal.note(&format!("finish reason: {reason}"));
    }
    Ok(())
}

fn count() -> FnTool {
    tool("count", "Counts the pieces of an item in stock")
        .param("item", "string")
        .build_with_context(|args, cx| async move {
            let stock = cx.state::<Stock>().ok_or("the shop is closed")?;
            let item = args["item"].as_str().unwrap_or_default();
            Ok(json!({ "pieces": stock.change(item, 0) }))
        })
}

fn order() -> FnTool {
    tool("order", "Orders more pieces of an item and waits for them")
        .param("item", "string")
        .param_with("pieces", json!({ "type": "integer", "minimum": 1 }))
        .param("speed", "string")
        .values("speed", ["express", "standard"])
        .default("speed", "standard")
        .build_with_context(|args, cx| async move {
            let pieces = args["pieces"].as_i64().unwrap_or_default();
            let pause = if args["speed"] == "express" { 40 } else { 120 };
            for (step, message) in (1..).zip(["ordered", "on its way", "delivered"]) {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                cx.emit_progress(Progress::new(step, Some(3)).with_message(message));
            }
            let stock = cx.state::<Stock>().ok_or("the shop is closed")?;
            let item = args["item"].as_str().unwrap_or_default();
            Ok(json!({ "pieces": stock.change(item, pieces) }))
        })
}

/// CPU-bound work: `build_blocking` keeps it off the async threads.
fn forecast() -> FnTool {
    tool("forecast", "Forecasts how many pieces are left after some days of sales")
        .param("pieces", "integer")
        .describe("pieces", "How many there are now")
        .param("days", "integer")
        .build_blocking(|args| {
            let pieces = args["pieces"].as_i64().unwrap_or_default();
            let days = args["days"].as_i64().unwrap_or_default();
            if !(0..=365).contains(&days) {
                return Err("the forecast covers at most a year".into());
            }
            // Up to ten pieces are sold per day; the mean over many simulated weeks.
            const RUNS: i64 = 20_000;
            let mut random = 1_u64;
            let mut left = 0;
            for _ in 0..RUNS {
                let mut sold = 0;
                for _ in 0..days {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    sold += i64::try_from((random >> 33) % 11)?;
                }
                left += (pieces - sold).max(0);
            }
            Ok(json!({ "left": left / RUNS }))
        })
}

/// The stand-in without a model: four rules.
fn stand_in(chat: &Chat<'_>) -> Reply {
    let pieces = |tool: &str| chat.result(tool).and_then(|result| result["pieces"].as_i64());
    let left = chat.result("forecast").and_then(|result| result["left"].as_i64());
    match (pieces("count"), pieces("order"), left) {
        (None, _, _) => Reply::text("I count them.").call("count", json!({ "item": "apples" })),
        (Some(few @ ..20), None, _) => Reply::text(format!("{few} are few: I order more."))
            .call("order", json!({ "item": "apples", "pieces": 30, "speed": "express" })),
        (Some(counted), ordered, None) => Reply::text("Now the week ahead.")
            .call("forecast", json!({ "pieces": ordered.unwrap_or(counted), "days": 7 })),
        (_, _, Some(left)) => Reply::text(format!("In a week there will be about {left} apples.")),
    }
}
