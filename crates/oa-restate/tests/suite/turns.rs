//! Turns, without anything that dies.

use serde_json::json;

use crate::support::{ALONE, Site, check_history, work};

#[tokio::test]
async fn a_turn_is_durable() {
    let _alone = ALONE.lock().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let answer = site.prompt("s", &json!({ "rounds": [[work(1), work(1)], [work(1)]] })).await;
    assert_eq!(answer.status, 200, "{answer:?}\n{}", site.server.log());
    assert_eq!(answer.json["text"], "Done.");
    assert_eq!(answer.json["turn"], 1);
    let history = site.history("s").await;
    check_history(&history);
    assert_eq!(history.len(), 7, "{history:?}");
    let status = site.call("s", "status", None).await.json;
    assert_eq!(status["messages"], 7, "{status}");
    assert!(status["turn"].is_null(), "{status}");
}
