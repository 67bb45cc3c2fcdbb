//! Recordings in prompts of the native interface.

use axum::http::StatusCode;
use oa_client::AgentOptions;
use oa_testkit::{MemoryServer, Reply, Script};
use serde_json::json;

use crate::app::{App, text};

const WAV: &str = "data:audio/wav;base64,UklGRg==";

fn app() -> App {
    let reply = |asked: &oa_testkit::Request| {
        Reply::text(
            asked.messages().last().map_or_else(String::new, |it| it["content"].to_string()),
        )
    };
    let model = MemoryServer::new(Script::new().otherwise(Reply::by(reply)));
    let agent = AgentOptions::builder().model("scripted").transport(model);
    App::of(agent, |server| server)
}

#[tokio::test]
async fn recordings_reach_the_model_and_viewers() {
    let app = app();
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    // As Firefox calls it.
    let body = json!({"text": "Who is it?", "audio": [WAV.replace("wav", "x-wav")]});
    let (status, body) = app.post(&format!("{path}/prompt"), body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{body}");
    let run = events.run().await;
    assert_eq!(run[0].data, json!({"text": "Who is it?", "images": [], "audio": [WAV]}));
    let sent = json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}});
    assert!(text(&run).contains(&sent.to_string()), "{}", text(&run));
    let stored = json!({"type": "audio", "data": "UklGRg==", "format": "wav"});
    assert_eq!(app.get(&path).await.1["messages"][0]["content"][1], stored);

    let (status, _) =
        app.post(&format!("{path}/prompt"), json!({"text": "", "audio": [WAV]})).await;
    assert_eq!(status, StatusCode::ACCEPTED, "a recording alone is a prompt");
    events.run().await;
}

#[tokio::test]
async fn urls_of_recordings_are_checked() {
    let app = app();
    let path = app.create().await;
    for (audio, part) in [
        (json!(["https://a.example/a.wav"]), "must be a data: URL"),
        (json!(["data:image/png;base64,aGk="]), "must be an audio type"),
        (json!(["data:audio/wav;base64,"]), "not valid base64"),
        (json!(vec![WAV; 1_001]), "at most 1000 images and recordings"),
        (json!([]), "the prompt is empty"),
        (json!(null), "the prompt is empty"),
    ] {
        let body = json!({"text": " ", "audio": audio});
        let (status, body) = app.post(&format!("{path}/prompt"), body).await;
        let message = body["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert!(message.contains(part), "{message}");
    }
}
