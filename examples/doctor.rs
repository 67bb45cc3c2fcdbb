//! Checks the capabilities of a server and its model, and finds missing server flags.
//!
//!     OPEN_AGENT_MODEL=qwen3:8b OPEN_AGENT_BASE_URL=http://localhost:11434/v1 \
//!         cargo run --example doctor
//!     cargo run --example doctor -- profile.json
//!
//! With a file name, it saves the results for `AgentOptions::builder().profile_file(..)`.

use std::error::Error;
use std::time::Duration;

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::{Reply, Request, Script};
use open_agent::{AgentOptions, Doctor, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = Arguments::read(include_str!("doctor.rs")).words()?;
    let file = Some(file).filter(|file| !file.is_empty());
    let mut terminal = Terminal::new();
    let script = Script::new().otherwise(Reply::by(stand_in));
    let model = Model::find_or(&mut terminal, script).await?;
    let options = model.options().build()?;

    terminal.gap();
    let mut doctor = Doctor::new(&options)?;
    while let Some(finding) = doctor.next_finding().await {
        terminal.line(&finding.to_string());
    }
    let report = doctor.into_report();

    terminal.gap();
    let Some(file) = file else {
        terminal.note("To save these results, name a file: cargo run --example doctor -- FILE");
        return Ok(());
    };
    report.profile.write(&file)?;
    terminal.note(&format!("Written to {file}:"));
    terminal.line(report.profile.to_json().trim_end());
    let options = AgentOptions::builder().profile_file(&file).build()?;
    terminal.note(&format!("Read back: {} at {}", options.model(), options.base_url()));
    Ok(())
}

/// The stand-in without a model: it calls an offered tool and ignores schemas.
fn stand_in(request: &Request) -> Reply {
    if !request.json()["messages"].is_array() {
        return Reply::error(400, "messages is not a list");
    }
    let chat = Chat::of(request);
    if chat.tools().is_empty() {
        let numbers = "one, two, three, four, five, six, seven, eight, nine, ten";
        return Reply::new()
            .think("They want numbers.")
            .say(numbers)
            .delay(Duration::from_millis(5));
    }
    if chat.result("get_weather").is_some() {
        return Reply::text("Clear, and 21 degrees.");
    }
    let named = ["Paris", "Rome"].into_iter().filter(|city| chat.prompt().contains(city));
    let cities: Vec<_> = named.collect();
    let cities = if cities.is_empty() { vec!["Oslo"] } else { cities };
    cities
        .iter()
        .fold(Reply::new(), |reply, city| reply.call("get_weather", json!({ "city": city })))
}
