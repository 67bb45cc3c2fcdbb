//! Functions as tools, with `#[tool]`: enums, nested structs, defaults, shared state, progress, and a model's mistake
//! that the types catch.
//!
//!     cargo run --example typed_tools --features macros

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::{AgentEvent, Client, ToolContext, ToolError, ToolEvent, json, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const QUESTION: &str = "Book the first ferry to the island for Ada and Ben.";

/// The ferry office: shared state, invisible to the model.
struct Office {
    seats: AtomicU32,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Route {
    Coast,
    Island,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Class {
    First,
    Second,
}

#[derive(Debug, Serialize)]
struct Departure {
    number: u32,
    time: &'static str,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Passenger {
    /// The full name.
    name: String,
    /// In years, for the fare.
    age: u8,
}

#[derive(Debug, Serialize)]
struct Booking {
    departure: u32,
    class: Class,
    fare: u32,
    seats_left: u32,
}

/// Lists the departures of a route.
#[tool(category = "read")]
async fn departures(
    route: Route,
    /// At most this many.
    #[default(2)]
    limit: usize,
) -> Vec<Departure> {
    let times = if route == Route::Island {
        ["08:15", "12:45", "17:30"]
    } else {
        ["09:00", "13:00", "18:00"]
    };
    (1..).zip(times).map(|(number, time)| Departure { number, time }).take(limit).collect()
}

/// Books seats on a departure.
///
/// Children below six travel for free.
#[tool(category = "write", exclusive)]
async fn book(
    /// The number of the departure.
    departure: u32,
    passengers: Vec<Passenger>,
    #[default(Class::Second)] class: Class,
    /// A wish for the crew, if there is one.
    wish: Option<String>,
    context: &ToolContext,
    #[state] office: &Office,
) -> Result<Booking, ToolError> {
    if passengers.is_empty() {
        return Err("`passengers` must not be empty".into());
    }
    let price = match class {
        Class::First => 40,
        Class::Second => 25,
    };
    let (mut fare, total) = (0, passengers.len());
    for (done, passenger) in (1..).zip(&passengers) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        context.emit_status(format_args!("{} has a seat, {done} of {total}", passenger.name));
        fare += if passenger.age < 6 { 0 } else { price };
    }
    if let Some(wish) = wish {
        context.emit_log(format_args!("wish: {wish}"));
    }
    let seats = u32::try_from(total)?;
    let take = |left: u32| left.checked_sub(seats);
    let before = office.seats.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
    let before = before.map_err(|left| format!("only {left} seats are left"))?;
    Ok(Booking { departure, class, fare, seats_left: before - seats })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("typed_tools.rs"))?;
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    let options = model
        .options()
        .system_prompt("You sell ferry tickets. Ada is 36, and Ben is 4. Call one tool at a time.")
        .tools([departures::tool(), book::tool()])
        .state(Office { seats: AtomicU32::new(12) })
        .auto_execute_tools(true)
        .build()?;

    terminal.title("What the model sees of `book`");
    terminal.line(&format!("{:#}", book::tool().to_openai_format()["function"]));

    let mut client = Client::new(options)?;
    terminal.prompt(QUESTION);
    client.send(QUESTION).await?;
    while let Some(event) = client.next_event().await? {
        match event {
            AgentEvent::Block(block) => terminal.block(&block),
            AgentEvent::Tool(ToolEvent::Status(event)) => {
                terminal.note(&format!("  {}", event.status))
            }
            _ => {}
        }
    }
    terminal.gap();

    terminal.title("The same function, called by Rust");
    let first = departures(Route::Coast, 1).await;
    terminal.line(&format!("  {first:?}"));
    Ok(())
}

/// The stand-in without a model. It forgets an age first, as models do.
fn stand_in(chat: &Chat<'_>) -> Reply {
    let booking = |passengers| json!({ "departure": 1, "passengers": passengers });
    if let Some(booked) = chat.result("book") {
        let class = booked["class"].as_str().unwrap_or_default();
        return Reply::text(format!("Booked for {} crowns, {class} class.", booked["fare"]));
    }
    match chat.calls().last() {
        None => {
            Reply::text("I look at the timetable.").call("departures", json!({ "route": "island" }))
        }
        Some(call) if call.name == "book" && call.result.is_err() => {
            let passengers = json!([{ "name": "Ada", "age": 36 }, { "name": "Ben", "age": 4 }]);
            Reply::text("I forgot how old they are.").call("book", booking(passengers))
        }
        Some(_) => Reply::text("I book it.")
            .call("book", booking(json!([{ "name": "Ada", "age": 36 }, { "name": "Ben" }]))),
    }
}
