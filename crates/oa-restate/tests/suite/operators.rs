//! Operators who cancel and kill invocations through the engine's admin API.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, MACHINE, Site, figure, prompting, results, work};

/// An operator's request works in milliseconds; a loaded machine gets more.
const SOON: Duration = Duration::from_secs(10);

impl Site {
    /// Cancels or kills an invocation.
    async fn operate(&self, how: &str, invocation: &str) {
        let url = format!("{}/invocations/{invocation}/{how}", self.server.admin_url());
        let answer = self.send("PATCH", &url, None, None).await;
        assert!(answer.status < 300, "{answer:?}");
    }

    /// Waits for the invocation of a session's turn.
    async fn invocation(&self, session: &str) -> String {
        let status = self.until_status(session, |status| !status["turn"].is_null()).await;
        status["turn"]["invocation"].as_str().unwrap_or_default().to_owned()
    }

    async fn open_invocations(&self) -> Vec<Value> {
        self.query("SELECT id, target, status FROM sys_invocation WHERE status <> 'completed'")
            .await
    }
}

/// A turn that is cancelled ends at once, in a request, in calls and in an approval: its state is saved, tools hear of it, and
/// the session takes the next prompt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_are_cancelled() {
    let _alone = MACHINE.write().await;
    let Some(site) = Site::start(2, json!({})).await else { return };
    let site = Arc::new(site);
    let cancelled = async |session: &str, prompt: tokio::task::JoinHandle<Answer>| {
        let invocation = site.invocation(session).await;
        let since = Instant::now();
        site.operate("cancel", &invocation).await;
        let answer = prompt.await.unwrap();
        assert_eq!(answer.status, 409, "{answer:?}");
        assert!(since.elapsed() < SOON, "{session}: {:?}", since.elapsed());
        since.elapsed()
    };
    let prompt = prompting(&site, "request", json!({ "think_ms": 600_000, "say": "Slow." }));
    site.until_effect(|line| !line["asked"].is_null()).await;
    let request = cancelled("request", prompt).await;
    site.end("request", 1).await;

    let prompt = prompting(&site, "calls", json!({ "rounds": [[work(60_000), work(60_001)]] }));
    let starts = || site.effects().iter().filter(|line| !line["start"].is_null()).count();
    site.until(|| starts() == 2).await;
    let calls = cancelled("calls", prompt).await;
    let history = site.end("calls", 4).await;
    for result in results(&history) {
        assert!(result.contains("cancelled") && !result.contains("not run"), "{result}");
    }
    let stops = || site.effects().iter().filter(|line| !line["cancelled"].is_null()).count();
    site.until(|| stops() == 2).await;

    let danger = json!({ "name": "danger", "input": { "ms": 1 } });
    let prompt = prompting(&site, "approval", json!({ "rounds": [[danger]] }));
    site.until_status("approval", |status| !status["pending"].is_null()).await;
    let approval = cancelled("approval", prompt).await;
    assert!(results(&site.end("approval", 3).await)[0].contains("cancelled"));

    figure(&format!(
        "a cancelled turn ends after {request:.1?} in a request, {calls:.1?} in calls, {approval:.1?} in an approval"
    ));
    for session in ["request", "calls", "approval"] {
        assert_eq!(site.prompt(session, &json!({})).await.status, 200);
    }
    let since = Instant::now();
    while !site.open_invocations().await.is_empty() {
        assert!(since.elapsed() < SOON, "{:?}", site.open_invocations().await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A turn that is killed writes nothing more. Its session is as before it, and takes the next prompt; calls that waited
/// are gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_are_killed() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(2, json!({})).await else { return };
    let site = Arc::new(site);
    assert_eq!(site.prompt("s", &json!({})).await.status, 200);
    let danger = json!({ "name": "danger", "input": { "ms": 1 } });
    let prompt = prompting(&site, "s", json!({ "rounds": [[work(1)], [danger]] }));
    let pending = |status: &Value| !status["pending"].is_null();
    let status = site.until_status("s", pending).await;
    let approve = json!({ "id": status["pending"][0]["id"] });
    site.operate("kill", &site.invocation("s").await).await;
    let answer = prompt.await.unwrap();
    assert_eq!(answer.status, 409, "{answer:?}");
    assert_eq!(site.history("s").await.len(), 2);

    // What it had written for readers is gone with the next turn.
    let prompt = prompting(&site, "s", json!({ "rounds": [[work(60_000)]] }));
    site.until_status("s", |status| status["turn"]["turn"] == 2 && !pending(status)).await;
    assert_eq!(site.call("s", "approve", Some(approve)).await.status, 404);
    let starts = || site.effects().iter().filter(|line| !line["start"].is_null()).count();
    site.until(|| starts() == 2).await;
    site.operate("kill", &site.invocation("s").await).await;
    assert_eq!(prompt.await.unwrap().status, 409);
    // The tool hears of it.
    site.until_effect(|line| !line["cancelled"].is_null()).await;
    assert_eq!(site.call("s", "clear", None).await.status, 200);
    let status = site.call("s", "status", None).await.json;
    assert!(status["turn"].is_null() && status["pending"].is_null(), "{status}");
    assert_eq!(site.prompt("s", &json!({ "rounds": [[work(1)]] })).await.status, 200);
    site.end("s", 4).await;
}

/// A call that hangs is killed or cancelled alone. The model reads that it may have taken effect, and the turn goes on.
#[tokio::test]
async fn calls_are_killed() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    for (number, how) in ["kill", "cancel"].into_iter().enumerate() {
        let session = format!("s{number}");
        let starts = || site.effects().iter().filter(|line| !line["start"].is_null()).count();
        let before = starts();
        site.begin(&session, &json!({ "rounds": [[work(1), work(3_000)]] })).await;
        site.until(|| starts() == before + 2).await;
        let sql = "SELECT id FROM sys_invocation WHERE target_service_name = 'AgentTool' AND status <> 'completed'";
        let since = Instant::now();
        let call = loop {
            let open = site.query(sql).await;
            if let [call] = &open[..] {
                break call["id"].as_str().unwrap().to_owned();
            }
            assert!(since.elapsed() < SOON, "{open:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        site.operate(how, &call).await;
        let results = results(&site.end(&session, 5).await);
        assert!(results[0].contains("run"), "{results:?}");
        assert!(results[1].contains("may have"), "{how}: {results:?}");
    }
}
