//! Tools for models without function calling: the same agent with its calls as text, in three dialects, and in
//! the mode that switches to text automatically. The program and the history are the same in every mode. The last
//! mode needs no second request: results replace markers in the text.
//!
//!     cargo run --example fallback
//!     cargo run --example fallback -- "What is 5 km in mi and 2.5 kg in lb?"

use std::error::Error;

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::fallback::{Dialect, Markers, React, TaggedJson};
use open_agent::{
    AgentEvent, Client, ContentBlock, FnTool, Message, ToolMode, ToolUseBlock, json, tool,
};

const QUESTION: &str = "What is 25 km in mi and 70 kg in lb?";
/// Conversion factors between units.
const FACTORS: [(&str, &str, f64); 4] = [
    ("km", "mi", 0.621_371),
    ("m", "ft", 3.280_84),
    ("kg", "lb", 2.204_62),
    ("l", "gal", 0.264_172),
];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words = Arguments::read(include_str!("fallback.rs")).words()?;
    let question = if words.is_empty() { QUESTION } else { &words };
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    terminal.prompt(question);

    // A custom dialect is a `Dialect` in `ToolMode::Custom`.
    let modes: [(ToolMode, Option<Box<dyn Dialect>>); 4] = [
        (ToolMode::React, Some(Box::new(React::new()))),
        (ToolMode::Markers, Some(Box::new(Markers::new()))),
        (ToolMode::TaggedJson, Some(Box::new(TaggedJson::new()))),
        // The default: function calling, or text once the server reports that the model does not support tools.
        (ToolMode::Auto, None),
    ];
    let mut stories = Vec::new();
    for (mode, dialect) in modes {
        let client = converse(&model, mode, question, &mut terminal).await?;
        if let Some(dialect) = dialect {
            terminal.title("  Between client and server");
            for line in wire(&*dialect, client.history()).lines() {
                terminal.note(&format!("    {line}"));
            }
        }
        stories.push(story(client.history()));
    }

    terminal.title("History");
    for step in &stories[0] {
        terminal.line(&format!("  {step}"));
    }
    let same = stories.iter().all(|story| story == &stories[0]);
    let same = if same { "  the same in each" } else { "  of the first; others differ" };
    terminal.note(same);
    converse(&model, ToolMode::MarkersInline, question, &mut terminal).await?;
    terminal.gap();
    Ok(())
}

/// Asks an agent that calls tools in this mode.
async fn converse(
    model: &Model,
    mode: ToolMode,
    question: &str,
    terminal: &mut Terminal,
) -> Result<Client, Box<dyn Error>> {
    terminal.title(&format!("{mode:?}"));
    let options = model
        .options()
        .system_prompt("You convert units. Use the tool for every number.")
        .tool(convert())
        .auto_execute_tools(true)
        .tool_mode(mode)
        .build()?;
    let mut client = Client::new(options)?;
    client.send(question).await?;
    while let Some(event) = client.next_event().await? {
        match event {
            AgentEvent::Block(block) => terminal.block(&block),
            AgentEvent::ToolsRefused(words) => {
                terminal.note(&format!("  Switching to calls as text: {words}"));
            }
            _ => {}
        }
    }
    Ok(client)
}

fn convert() -> FnTool {
    let (from, to) = (FACTORS.map(|(from, ..)| from), FACTORS.map(|(_, to, _)| to));
    tool("convert", "Converts an amount from one unit to another")
        .param("amount", "number")
        .param("from", "string")
        .describe("from", &from.join(", "))
        .param("to", "string")
        .describe("to", &to.join(", "))
        .build(|args| async move {
            // Arguments are parsed by parameter type, so a number is a number in every dialect.
            let amount = args["amount"].as_f64().unwrap_or_default();
            let fits =
                |(from, to, _): &&(&str, &str, f64)| args["from"] == *from && args["to"] == *to;
            let (from, to, factor) =
                FACTORS.iter().find(fits).ok_or("no conversion between these units")?;
            Ok(json!(format!("{amount} {from} = {:.2} {to}", amount * factor)))
        })
}

/// Formats calls and results as the dialect writes them. A client does this automatically.
fn wire(dialect: &dyn Dialect, history: &[Message]) -> String {
    let blocks = history.iter().flat_map(|message| &message.content);
    let lines = blocks.filter_map(|block| match block {
        ContentBlock::ToolUse(call) => Some(dialect.write_call(call)),
        ContentBlock::ToolResult(result) => Some(dialect.write_result(result, "convert")),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The history without call ids, which are generated.
fn story(history: &[Message]) -> Vec<String> {
    let blocks = history
        .iter()
        .flat_map(|message| message.content.iter().map(|block| (message.role.as_str(), block)));
    let steps = blocks.map(|(role, block)| match block {
        ContentBlock::Text(text) => format!("{role}: {}", text.text),
        ContentBlock::ToolUse(call) => format!("{role}: calls {} {}", call.name, call.input),
        ContentBlock::ToolResult(result) => format!("{role}: {}", result.content),
        _ => role.to_owned(),
    });
    steps.collect()
}

/// Stands in for a model without function calling. It follows the dialect's instructions and then, as small
/// models do, guesses the tool's result.
fn stand_in(chat: &Chat<'_>) -> Reply {
    if !chat.tools().is_empty() {
        return Reply::error(400, "this model does not support tools.");
    }
    let mut said = chat.prompts();
    // "25 km in mi"
    let words: Vec<_> = said.next().unwrap_or_default().split([' ', '?', ',']).collect();
    let asked: Vec<_> = words
        .windows(4)
        .filter_map(|words| match words {
            [amount, from, "in" | "to", to] => Some((amount.parse::<f64>().ok()?, *from, *to)),
            _ => None,
        })
        .collect();
    let results: Vec<_> = said.collect();
    if !results.is_empty() {
        let results = results.concat();
        let answers = asked.iter().map(|(amount, from, to)| {
            let question = format!("{amount} {from}");
            let found = results.split_once(&format!("{question} = "));
            match found.and_then(|(_, rest)| rest.split(['"', '\n', '\\']).next()) {
                Some(answer) => format!("{question} is {answer}"),
                None => format!("{question} cannot be converted to {to}"),
            }
        });
        return Reply::text(format!("{}.", answers.collect::<Vec<_>>().join("; ")));
    }
    let dialects: [(&str, Box<dyn Dialect>); 3] = [
        ("Action: ", Box::new(React::new())),
        ("[TOOL:", Box::new(Markers::new())),
        ("<tool_call>", Box::new(TaggedJson::new())),
    ];
    let dialect = dialects.iter().find(|(mark, _)| chat.system().contains(mark));
    match dialect {
        Some((_, dialect)) if !asked.is_empty() => {
            let calls = asked.iter().map(|(amount, from, to)| {
                let input = json!({ "amount": amount, "from": from, "to": to });
                dialect.write_call(&ToolUseBlock::new("", "convert", input))
            });
            let calls = calls.collect::<Vec<_>>();
            if chat.system().contains("replaced by the result") {
                return Reply::text(format!("Here you are: {}.", calls.join(", and ")));
            }
            let calls = calls.join("\n");
            Reply::text(format!("I convert.\n{calls}\nIt will be about 99, I guess."))
        }
        _ => Reply::text("Ask me for a number in other units: \"What is 5 km in mi?\""),
    }
}
