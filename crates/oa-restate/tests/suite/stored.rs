//! Conversations in PostgreSQL: each turn is saved once, whichever process crashes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oa_session::{Append, SessionId, SessionStore, Timestamp};
use oa_session_postgres::PostgresStore;
use oa_types::{Message, MessageRole};
use serde_json::json;
use services::Postgres;
use tokio::time::sleep;

use crate::support::{MACHINE, Site, check_history, count, figure, results, work};

/// Starts both servers, and workers; `None` where one of them is missing.
async fn start(workers: usize, dies: bool) -> Option<(Site, Postgres, PostgresStore)> {
    let postgres = services::or_skip(Postgres::start())?;
    let config = json!({ "postgres": postgres.url(), "dies_at_save": dies });
    let store = PostgresStore::connect(&postgres.url()).await.expect("it has just started");
    Some((Site::start(workers, config).await?, postgres, store))
}

fn id(session: &str) -> SessionId {
    SessionId::new(session).expect("it is short")
}

/// A worker that dies after it has saved a turn, and before the engine knows: the turn is in the store once.
#[tokio::test]
async fn a_turn_is_saved_once() {
    let _shared = MACHINE.read().await;
    let Some((site, _postgres, store)) = start(1, true).await else { return };
    site.begin("s", &json!({ "rounds": [[work(1), work(2)]] })).await;
    site.until_dead(0).await;
    let saved = store.load(&id("s")).await.unwrap();
    assert_eq!(saved.messages.len(), 5);
    let status = site.query("SELECT key FROM state WHERE service_key = 's' AND key = 'head'").await;
    assert!(status.is_empty(), "the engine does not know of it: {status:?}");
    site.add_worker();
    let history = site.end("s", 5).await;
    let session = store.load(&id("s")).await.unwrap();
    assert_eq!(session.info.revision, saved.info.revision, "nothing was written again");
    assert_eq!(json!(session.messages), json!(history));
    assert_eq!(results(&history).len(), 2);
    assert_eq!(site.prompt("s", &json!({})).await.json["turn"], 2);
    assert_eq!(site.history("s").await.len(), 7);
    // The engine's state has no messages.
    let keys = site.query("SELECT key FROM state WHERE service_key = 's'").await;
    assert!(keys.iter().all(|row| row["key"] == "head"), "{keys:?}");

    // Cleared, forked, refused, and used by another program between two turns.
    assert_eq!(
        site.call("copy", "fork", Some(json!({ "from": "s", "keep": 5 }))).await.status,
        200
    );
    assert_eq!(store.load(&id("copy")).await.unwrap().messages, session.messages);
    assert_eq!(site.call("copy", "fork", Some(json!({ "from": "s" }))).await.status, 409);
    assert_eq!(site.call("s", "clear", None).await.status, 200);
    assert_eq!(store.load(&id("s")).await.unwrap().messages, []);
    assert_eq!(site.history("s").await.len(), 0);
    assert_eq!(site.call("s", "status", None).await.json["messages"], 0);
    let info = store.load(&id("copy")).await.unwrap().info;
    let added = vec![Message::user("By another program."), Message::assistant(Vec::new())];
    let append = Append::new(info.revision, added, Timestamp::now());
    store.append(&id("copy"), append).await.unwrap();
    assert_eq!(site.prompt("copy", &json!({})).await.status, 200);
    site.end("copy", 9).await;
    let long = "x".repeat(65);
    assert_eq!(site.prompt(&long, &json!({})).await.status, 400);
}

/// Somebody else who writes during a turn is not overwritten: the turn is refused.
#[tokio::test]
async fn other_writers_cause_a_conflict() {
    let _shared = MACHINE.read().await;
    let Some((site, _postgres, store)) = start(1, false).await else { return };
    let site = Arc::new(site);
    assert_eq!(site.prompt("s", &json!({})).await.status, 200);
    let prompt = crate::support::prompting(&site, "s", json!({ "rounds": [[work(400)]] }));
    site.until_effect(|line| !line["start"].is_null()).await;
    let info = store.load(&id("s")).await.unwrap().info;
    let added = vec![Message::user("Meanwhile."), Message::assistant(Vec::new())];
    store.append(&id("s"), Append::new(info.revision, added, Timestamp::now())).await.unwrap();
    let answer = prompt.await.unwrap();
    assert_eq!(answer.status, 409, "{answer:?}");
    assert_eq!(store.load(&id("s")).await.unwrap().messages.len(), 4);
    assert_eq!(site.prompt("s", &json!({})).await.status, 200);
    site.end("s", 6).await;
    // A sub-agent's session is none of the store's.
    let helper = json!({ "name": "helper", "input": { "prompt": "{}" } });
    assert_eq!(site.prompt("s", &json!({ "rounds": [[helper]] })).await.status, 200);
    let sessions = store.list(oa_session::List::new(10)).await.unwrap().sessions;
    assert_eq!(sessions.len(), 1, "{sessions:?}");
}

/// Another writer removes messages during a turn whose worker then dies: the turn is refused, and the session goes on.
#[tokio::test]
async fn removed_messages_refuse_the_turn() {
    let _shared = MACHINE.read().await;
    let Some((site, _postgres, store)) = start(1, false).await else { return };
    let site = Arc::new(site);
    for (session, is_deleted) in [("rewound", false), ("deleted", true)] {
        assert_eq!(site.prompt(session, &json!({})).await.status, 200);
        let begun = site.effects().len();
        let prompt =
            crate::support::prompting(&site, session, json!({ "rounds": [[work(3_000)]] }));
        site.until(|| site.effects()[begun..].iter().any(|line| !line["start"].is_null())).await;
        let id = id(session);
        if is_deleted {
            store.delete(&id).await.unwrap();
        } else {
            let revision = store.load(&id).await.unwrap().info.revision;
            store.rewind(&id, revision, 1, Timestamp::now()).await.unwrap();
        }
        site.kill_workers();
        site.add_worker();
        let answer = prompt.await.unwrap();
        assert_eq!(answer.status, 409, "{answer:?}");
        assert!(site.call(session, "status", None).await.json["turn"].is_null());
        assert_eq!(site.prompt(session, &json!({})).await.status, 200);
    }
}

/// A worker dies after it has saved a turn that shortened the conversation: the turn is in the store once.
#[tokio::test]
async fn a_shortened_turn_is_saved_once() {
    let _shared = MACHINE.read().await;
    let Some(postgres) = services::or_skip(Postgres::start()) else { return };
    let config = json!({ "postgres": postgres.url(), "context": 3_000 });
    let Some(mut site) = Site::start(1, config).await else { return };
    let store = PostgresStore::connect(&postgres.url()).await.expect("it has just started");
    let big = json!({ "name": "big", "input": { "bytes": 3_000 } });
    let before = site.prompt("s", &json!({ "rounds": [[big], [big], [big]] })).await;
    assert_eq!(before.status, 200, "{before:?}");
    let before = store.load(&id("s")).await.unwrap().messages.len();
    site.kill_workers();
    site.config["dies_at_save"] = json!(true);
    site.add_worker();
    site.begin("s", &json!({ "rounds": [[big]] })).await;
    site.until_dead(0).await;
    let saved = store.load(&id("s")).await.unwrap();
    assert!(saved.messages.len() < before + 4, "it is shortened");
    site.add_worker();
    let history = site.end("s", saved.messages.len()).await;
    let session = store.load(&id("s")).await.unwrap();
    assert_eq!(session.info.revision, saved.info.revision, "nothing was written again");
    assert_eq!(json!(session.messages), json!(history));
    assert_eq!(site.prompt("s", &json!({})).await.json["turn"], 3);
}

/// While the database is down, turns wait for it; nothing fails and nothing is paused.
#[tokio::test]
async fn turns_wait_for_the_database() {
    let _shared = MACHINE.read().await;
    let Some((site, mut postgres, store)) = start(1, false).await else { return };
    site.begin("s", &json!({ "rounds": [[work(300)]] })).await;
    site.until_effect(|line| !line["start"].is_null()).await;
    postgres.kill().unwrap();
    site.until_effect(|line| line["asked"] == 3).await;
    sleep(Duration::from_millis(500)).await;
    postgres.start_again().unwrap();
    let history = site.end("s", 4).await;
    assert_eq!(json!(store.load(&id("s")).await.unwrap().messages), json!(history));
}

/// Random workers are killed under load: the store has each prompt that was answered, once and in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_with_a_store_are_killed() {
    let _alone = MACHINE.write().await;
    let kills = count("OPEN_AGENT_RESTATE_KILLS", 10);
    let Some((site, _postgres, store)) = start(4, false).await else { return };
    let (site, is_over) = (Arc::new(site), Arc::new(AtomicBool::new(false)));
    let talks: Vec<_> = (0..6)
        .map(|number| {
            let (site, is_over) = (Arc::clone(&site), Arc::clone(&is_over));
            tokio::spawn(async move {
                let (mut prompts, mut is_last) = (Vec::new(), false);
                while !is_last {
                    is_last = is_over.load(Ordering::Relaxed);
                    let wish = json!({ "rounds": [[work(20)]], "say": prompts.len().to_string() });
                    let answer = site.prompt(&format!("s{number}"), &wish).await;
                    assert_eq!(answer.status, 200, "{answer:?}\n{}", site.server.log());
                    prompts.push(wish.to_string());
                }
                prompts
            })
        })
        .collect();
    for number in 0..kills {
        sleep(Duration::from_millis(300)).await;
        site.kill_worker(number * 7 + 3);
        site.add_worker();
    }
    is_over.store(true, Ordering::Relaxed);
    let mut turns = 0;
    for (number, talk) in talks.into_iter().enumerate() {
        let prompts = talk.await.unwrap();
        let session = store.load(&id(&format!("s{number}"))).await.unwrap();
        let asked = session.messages.iter().filter(|message| message.role == MessageRole::User);
        let asked: Vec<String> = asked.map(Message::text).collect();
        assert_eq!(asked, prompts);
        let messages: Vec<_> = session.messages.iter().map(|message| json!(message)).collect();
        check_history(&messages);
        turns += prompts.len();
    }
    figure(&format!(
        "{kills} kills with conversations in PostgreSQL: {turns} turns, each saved once"
    ));
}
