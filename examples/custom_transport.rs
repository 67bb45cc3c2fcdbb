//! Text and tool calls from a recorded stream: a custom transport needs only the parser and the aggregator.
//!
//!     cargo run --example custom_transport [FILE.sse]

use std::error::Error;
use std::fs::File;
use std::io::Read;

use oa_aggregate::{Aggregator, ContentBlock, Delta, StreamStatus};
use oa_redact::{printable, visible};
use oa_sse::{Item, Parser};

fn main() -> Result<(), Box<dyn Error>> {
    let recorded =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/live/llamacpp-tools-parallel.sse");
    let path = std::env::args().nth(1).unwrap_or_else(|| recorded.to_owned());
    if path == "--help" || path == "-h" {
        println!("cargo run --example custom_transport [FILE.sse]");
        return Ok(());
    }
    let mut file = File::open(path)?;

    let mut parser = Parser::new();
    let mut aggregator = Aggregator::new();
    let mut buffer = [0; 512]; // small, as network reads may be
    'body: loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            parser.finish_lenient();
        } else {
            parser.push_slice(&buffer[..count]);
        }
        while let Some(item) = parser.next_item()? {
            let status = push(&mut aggregator, &item)?;
            show(&mut aggregator);
            if status == StreamStatus::Done {
                break 'body;
            }
        }
        if count == 0 {
            break;
        }
    }
    aggregator.finish()?;
    show(&mut aggregator);

    let answer = aggregator.into_answer();
    println!();
    for block in &answer.blocks {
        match block {
            ContentBlock::ToolUse(call) => {
                let call = format!("call {}: {}({})", call.id, call.name, call.input);
                println!("{}", visible(&call));
            }
            ContentBlock::ToolUseError(error) => {
                println!("broken call: {}", visible(&error.error));
            }
            _ => {}
        }
    }
    let reason = answer.finish_reason.to_string();
    println!("finish reason: {}, usage: {:?}", visible(&reason), answer.usage);
    Ok(())
}

/// Some servers report errors in events named `error`, in a field of that name, or in bare lines of JSON.
fn push(aggregator: &mut Aggregator, item: &Item<'_>) -> Result<StreamStatus, oa_aggregate::Error> {
    match item {
        Item::Event(event) if event.is_named("error") => aggregator.push_error(event.raw_data()),
        Item::Event(event) => aggregator.push(event.raw_data()),
        Item::Unknown(line) => aggregator.push_line(line),
        _ => Ok(StreamStatus::More), // a comment
    }
}

fn show(aggregator: &mut Aggregator) {
    while let Some(delta) = aggregator.next_delta() {
        match delta {
            Delta::Text(text) | Delta::Thinking(text) => print!("{}", printable(text)),
            Delta::Problem(problem) => {
                eprintln!("problem: {}", visible(&problem.to_string()));
            }
            _ => {}
        }
    }
}
