//! An interrupt immediately ends any wait.

use std::time::Duration;

use oa_client::Client;
use oa_router::{BreakerConfig, Router};
use oa_testkit::{Reply, Script};
use tokio::time::Instant;

use crate::{
    ask, ask_meanwhile, client, counts, down, in_use, over, pause, saying, server, settle, slow,
};

/// Sends a prompt and interrupts it after a second.
async fn interrupted(router: &Router) -> Client {
    let mut client = client(router);
    let handle = client.interrupt_handle();
    tokio::spawn(async move {
        pause(1_000).await;
        handle.interrupt();
    });
    let began = Instant::now();
    client.send("Go.").await.expect("an interrupt is no error");
    assert_eq!(client.receive().await.expect("an interrupt is no error"), None);
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    client
}

#[tokio::test(start_paused = true)]
async fn interrupt_leaves_the_queue() {
    let a = slow(5_000, "A");
    let router = over([&a]).cap(1).build().unwrap();
    let first = ask_meanwhile(&router);
    settle().await;
    let mut client = interrupted(&router).await;
    assert_eq!((router.waiting(), in_use(&router), counts([&a])), (0, vec![1], [1]));
    let next = ask_meanwhile(&router);
    assert_eq!(client.ask("Again.").await.unwrap().text, "A");
    for task in [first, next] {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn interrupt_ends_a_failover() {
    for first in [Reply::hang_up(), Reply::text("Lost.").close_after(0)] {
        let a = server(Script::from(first).otherwise(Reply::text("A")));
        let b = down(Reply::silence());
        let router = over([&a, &b]).build().unwrap();
        let mut client = interrupted(&router).await;
        assert!(b.requests()[0].aborted());
        let status = router.status();
        assert_eq!((status[1].given_up, in_use(&router)), (1, vec![0, 0]));
        assert_eq!(client.ask("Again.").await.unwrap().text, "A");
    }
}

#[tokio::test(start_paused = true)]
async fn interrupt_ends_a_queued_failover() {
    let (a, b) = (down(Reply::hang_up()), slow(60_000, "B"));
    let router = over([&a, &b]).cap(1).build().unwrap();
    let other = ask_meanwhile(&router);
    settle().await;
    let _client = interrupted(&router).await;
    assert_eq!((router.waiting(), in_use(&router)), (0, vec![0, 1]));
    other.abort();
}

#[tokio::test(start_paused = true)]
async fn interrupted_trial_passes_to_the_next() {
    let fails = [Reply::hang_up(), Reply::silence()];
    let (a, b) = (server(Script::from(fails).otherwise(Reply::text("A"))), saying("B"));
    let router = over([&a, &b]).breaker(BreakerConfig::new(1)).build().unwrap();
    ask(&router).await.unwrap();
    pause(1_000).await;
    let mut client = interrupted(&router).await;
    assert!(a.requests()[1].aborted());
    assert_eq!(client.ask("Again.").await.unwrap().text, "A");
}

#[tokio::test(start_paused = true)]
async fn interrupt_ends_the_wait_for_a_trial() {
    let fails = [Reply::hang_up(), Reply::silence()];
    let a = server(Script::from(fails).otherwise(Reply::text("A")));
    let router = over([&a]).breaker(BreakerConfig::new(1)).build().unwrap();
    ask(&router).await.unwrap_err();
    pause(1_000).await;
    let trial = ask_meanwhile(&router);
    settle().await;
    let mut client = interrupted(&router).await;
    assert_eq!(router.waiting(), 0);
    trial.abort();
    assert_eq!(client.ask("Again.").await.unwrap().text, "A");
}
