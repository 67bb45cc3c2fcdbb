//! Turns of agents: however they end, each is recorded once.

use std::io;
use std::time::Duration;

use super::*;

const DURATION: &str = "gen_ai.invoke_agent.duration";

#[tokio::test(start_paused = true)]
async fn complete_turn_records_its_duration() {
    let lab = Lab::new();
    let server = server(answer("Yes.").delay_head(Duration::from_secs(2)));
    let agent = lab.metrics.agent().name("Sky").model("qwen3:8b");
    let mut client = client(options(&lab, &server));
    let reply = agent.turn(client.ask("Is it blue?")).await.unwrap();
    assert_eq!(reply.text, "Yes.");
    check(&lab, DURATION, &["{gen_ai.agent.name=Sky,gen_ai.request.model=qwen3:8b} 1 x, 2"]);
}

#[tokio::test(start_paused = true)]
async fn failed_turn_has_the_kind_of_its_error() {
    let lab = Lab::new();
    let server = server(Reply::error(400, "no"));
    let mut client = client(options(&lab, &server));
    lab.metrics.agent().turn(client.ask("Is it?")).await.unwrap_err();
    let other = async { Err::<(), _>(io::Error::other("not ours")) };
    lab.metrics.agent().turn(other).await.unwrap_err();
    check(&lab, DURATION, &["{error.type=_OTHER} 1 x, 0", "{error.type=api} 1 x, 0"]);
}

#[tokio::test(start_paused = true)]
async fn dropped_turn_is_interrupted() {
    let lab = Lab::new();
    let agent = lab.metrics.agent().name("Idle");
    let endless = agent.turn(std::future::pending::<Result<(), io::Error>>());
    tokio::time::timeout(Duration::from_secs(3), endless).await.unwrap_err();
    // One that never began was no turn.
    drop(agent.turn(std::future::pending::<Result<(), io::Error>>()));
    check(&lab, DURATION, &["{error.type=interrupted,gen_ai.agent.name=Idle} 1 x, 3"]);
}

#[tokio::test(start_paused = true)]
async fn names_of_agents_are_bounded() {
    let lab = Lab::new();
    for number in 0..100 {
        let agent = lab.metrics.agent().name(format!("agent {number}")).model("m");
        agent.turn(async { Ok::<_, io::Error>(()) }).await.unwrap();
    }
    let lines = lab.lines();
    assert_eq!(lines.len(), 65, "{lines:#?}");
    assert!(
        lines.contains(&format!("{DURATION}{{gen_ai.agent.name=_OTHER}} 36 x, 0")),
        "{lines:#?}"
    );
}
