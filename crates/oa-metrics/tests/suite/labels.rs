//! Servers that try to make the metrics grow.

use super::*;

/// A server that names a new model in each answer makes nine series, whatever it does.
#[tokio::test(start_paused = true)]
async fn response_models_are_bounded() {
    let lab = Lab::new();
    let mut script = Script::new();
    for number in 0..100 {
        let model = format!("{}-{number}", "m".repeat(if number == 3 { 500 } else { 3 }));
        script = script.reply(named(&model, "Yes."));
    }
    let server = server(script);
    for _ in 0..100 {
        client(options(&lab, &server)).ask("Is it?").await.unwrap();
    }
    let lines = lab.lines();
    let durations: Vec<_> =
        lines.iter().filter(|line| line.starts_with("gen_ai.client.operation.duration")).collect();
    assert_eq!(durations.len(), 9, "{lines:#?}");
    assert!(durations.iter().all(|line| line.len() < 400), "{durations:#?}");
    let rest = durations.iter().find(|line| line.contains("gen_ai.response.model=_OTHER"));
    assert!(rest.is_some_and(|line| line.contains("} 92 x")), "{durations:#?}");
}

/// A program that puts something new into the name of its model each time.
#[tokio::test(start_paused = true)]
async fn requested_models_are_bounded() {
    let lab = Lab::new();
    let server = server(Script::new().otherwise(answer("Yes.")));
    for number in 0..80 {
        client(options(&lab, &server).model(format!("model-{number}")))
            .ask("Is it?")
            .await
            .unwrap();
    }
    let lines = lab.lines();
    let durations: Vec<_> =
        lines.iter().filter(|line| line.starts_with("gen_ai.client.operation.duration")).collect();
    // 64 of them, and the rest with the names of eight that answered.
    assert_eq!(durations.len(), 64 + 9, "{durations:#?}");
    let rest = durations.iter().find(|line| line.contains("gen_ai.response.model=_OTHER"));
    assert!(rest.is_some_and(|line| line.contains("} 8 x")), "{durations:#?}");
}
