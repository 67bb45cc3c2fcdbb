//! The table for people, and the report for programs.

use std::time::Duration;

use insta::assert_snapshot;
use oa_client::AgentOptions;
use oa_doctor::{Doctor, Probe, Verdict, doctor};
use oa_testkit::{Reply, Request, SocketServer};
use serde_json::json;

use crate::{MODEL, healthy, only, options, report, server};

#[tokio::test(start_paused = true)]
async fn table_of_a_healthy_server() {
    let report = report(server(healthy)).await;
    assert_eq!(report.verdict(), Verdict::Ok);
    assert_snapshot!(report.to_string(), @r#"
    http://localhost:11434/v1, model qwen3:8b, Ollama 0.11.4

    reach           ok       answers after 0 ms; recognized as Ollama by the owner of its models
    models          ok       qwen3:8b is one of 2
    context         ok       40960 tokens
    streaming       ok       12 deltas within 220 ms, then [DONE]
    usage           ok       in a separate last chunk: 24 tokens sent, 24 received
    thinking        ok       none seen
    idle            ok       silence for 40 ms before the first token
    speed           ok       first token after 40 ms, then 105 tokens a second
    token limit     ok       `max_tokens` stops after 16 tokens
    forced calls    ok       get_weather({"city":"Paris"}), in 4 fragments
    auto calls      ok       get_weather({"city":"Paris"}), in 4 fragments
    parallel calls  ok       get_weather({"city":"Paris"}), get_weather({"city":"Rome"}), in 8 fragments
    tool results    ok       a call and its result are accepted and answered
    schema          ok       kept: {"city":"Paris","millions":2}
    unknown model   ok       404: model "no-such-model-0f3a" not found
    bad request     ok       400: messages must be a list

    16 ok, 0 warn, 0 fail, 0 unknown
    "#);
}

#[tokio::test(start_paused = true)]
async fn table_of_a_server_that_rejects_all() {
    let refuses = server(|_| Reply::error(400, "this model does not support chat"));
    assert_snapshot!(report(refuses).await.to_string(), @"
    http://localhost:11434/v1, model qwen3:8b, Ollama 0.11.4

    reach           ok       answers after 0 ms; recognized as Ollama by the owner of its models
    models          ok       qwen3:8b is one of 2
    context         ok       40960 tokens
    streaming       fail     the server answered 400 Bad Request: this model does not support chat
    usage           unknown  a plain prompt was not answered
    thinking        unknown  a plain prompt was not answered
    idle            unknown  a plain prompt was not answered
    speed           unknown  a plain prompt was not answered
    token limit     fail     the server answered 400 Bad Request: this model does not support chat
    forced calls    fail     the server answered 400 Bad Request: this model does not support chat
    auto calls      fail     the server answered 400 Bad Request: this model does not support chat
    parallel calls  fail     the server answered 400 Bad Request: this model does not support chat
    tool results    fail     the server answered 400 Bad Request: this model does not support chat
    schema          fail     the server answered 400 Bad Request: this model does not support chat
    unknown model   ok       400: this model does not support chat
    bad request     ok       400: this model does not support chat

    5 ok, 0 warn, 7 fail, 4 unknown
    ");
}

#[tokio::test]
async fn table_over_a_socket_is_the_same() {
    let server = SocketServer::start(server(healthy)).await.unwrap();
    let options = AgentOptions::builder().model(MODEL).base_url(server.base_url());
    let report = doctor(&options.build().unwrap()).await.unwrap();
    assert_eq!(report.verdict(), Verdict::Ok, "{report}");
    assert_eq!(report.findings.len(), Probe::ALL.len());
    assert_eq!(report.version.as_deref(), Some("0.11.4"));
}

#[tokio::test(start_paused = true)]
async fn strict_servers_accept_all_probes() {
    let strict = server(healthy).strict();
    let good = Probe::ALL.iter().copied().filter(|probe| *probe != Probe::BadRequest);
    let report = Doctor::new(&options(strict)).unwrap().only(good).examine().await;
    assert_eq!(report.verdict(), Verdict::Ok, "{report}");
}

#[tokio::test(start_paused = true)]
async fn json_report_has_findings_and_profile() {
    let report = report(server(healthy)).await;
    let value = serde_json::to_value(&report).unwrap();
    assert_eq!(value["provider"], "Ollama");
    assert_eq!(value["findings"][9]["probe"], "forced_calls");
    assert_eq!(value["findings"][9]["verdict"], "ok");
    assert_eq!(value["findings"].as_array().unwrap().len(), Probe::ALL.len());
    assert_eq!(value["profile"]["open_agent_profile"], 1);
    assert_eq!(value["profile"]["think_tags"], json!(null));
}

#[tokio::test(start_paused = true)]
async fn findings_arrive_one_by_one() {
    let mut doctor = Doctor::new(&options(server(healthy))).unwrap();
    let mut probes = Vec::new();
    while let Some(finding) = doctor.next_finding().await {
        probes.push(finding.probe);
    }
    assert_eq!(probes, Probe::ALL);
    assert_eq!(doctor.into_report().findings.len(), probes.len());
}

#[tokio::test(start_paused = true)]
async fn tables_fit_their_terminal() {
    let report = report(server(|_| Reply::error(400, "this model does not support chat"))).await;
    let words = |table: &str| table.split_whitespace().collect::<Vec<_>>().join(" ");
    for columns in [0, 50, 79, 100, 300] {
        let table = report.table(columns);
        assert_eq!(words(&table), words(&report.to_string()));
        let longest = table.lines().skip(2).map(|line| line.chars().count()).max();
        assert!(longest <= Some(columns.clamp(45, 100)), "{columns}: {table}");
    }
    assert_eq!(report.table(100), report.to_string());
}

#[tokio::test(start_paused = true)]
async fn slow_models_have_a_rate() {
    let numbers = "one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve";
    for (seconds, rate) in [(3, "0.7"), (1, "2.1")] {
        let delay = Duration::from_secs(seconds);
        let slow = move |_: &Request| Reply::text(numbers).usage(24, 24).delay(delay);
        let seen = only(Probe::Speed, server(slow)).await.seen;
        assert!(seen.ends_with(&format!(", then {rate} tokens a second")), "{seen}");
    }
}
