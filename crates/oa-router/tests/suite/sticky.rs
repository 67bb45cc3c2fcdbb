//! A conversation stays where its prompt is cached.

use std::time::Duration;

use oa_chat::ChatRequest;
use oa_client::Client;
use oa_router::{BreakerConfig, Policy, Router, RouterBuilder};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_types::Message;
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::{
    ask, ask_meanwhile, client, counts, first_piece, in_use, lasting, occupy, over, pause, saying,
    server, settle, slow,
};

fn balanced<'a>(servers: impl IntoIterator<Item = &'a MemoryServer>) -> RouterBuilder {
    over(servers).policy(Policy::LeastBusy).seed(1)
}

async fn talk(client: &mut Client) -> String {
    client.ask("And?").await.expect("somebody answers").text
}

/// A conversation whose last answer came from the server that says this.
async fn conversation_with(router: &Router, server: &str) -> Client {
    for _ in 0..100 {
        let mut client = client(router);
        if talk(&mut client).await == server {
            return client;
        }
    }
    panic!("{server} is never asked: {router:?}");
}

#[tokio::test(start_paused = true)]
async fn conversation_stays_with_its_server() {
    let servers = ["A", "B", "C"].map(saying);
    let router = balanced(&servers).build().unwrap();
    let mut clients: Vec<_> = (0..30).map(|_| client(&router)).collect();
    let mut first = Vec::new();
    for client in &mut clients {
        first.push(talk(client).await);
    }
    assert!(["A", "B", "C"].iter().all(|name| first.iter().any(|answer| answer == name)));
    for _ in 0..5 {
        for (client, first) in clients.iter_mut().zip(&first) {
            assert_eq!(&talk(client).await, first);
        }
    }
    assert_eq!(router.remembered(), 30);
    let loose = balanced(&servers).not_sticky().build().unwrap();
    let mut client = client(&loose);
    let mut answers = String::new();
    for _ in 0..20 {
        answers += &talk(&mut client).await;
    }
    assert!(["A", "B", "C"].iter().all(|name| answers.contains(name)), "{answers}");
}

#[tokio::test(start_paused = true)]
async fn conversation_moves_if_its_server_fails() {
    let a = server(Script::from([Reply::text("A"), Reply::hang_up()]).otherwise(Reply::text("A")));
    let b = saying("B");
    let router = balanced([&a, &b]).breaker(BreakerConfig::new(1)).build().unwrap();
    let mut client = conversation_with(&router, "A").await;
    assert_eq!(talk(&mut client).await, "B");
    pause(5_000).await;
    assert_eq!(counts([&a]), [2]);
    for _ in 0..10 {
        assert_eq!(talk(&mut client).await, "B", "its prompt is there now");
    }
}

#[tokio::test(start_paused = true)]
async fn patience_limits_the_wait_for_its_server() {
    let (a, b) = (slow(10_000, "A"), saying("B"));
    let router = balanced([&a, &b]).cap(1).patience(3).build().unwrap();
    let mut client = conversation_with(&router, "A").await;
    // Another request has the only place.
    let other = occupy(&router).await;
    let began = Instant::now();
    assert_eq!(talk(&mut client).await, "B");
    assert_eq!(began.elapsed(), Duration::from_secs(3));
    let began = Instant::now();
    assert_eq!(talk(&mut client).await, "B");
    assert_eq!(began.elapsed(), Duration::ZERO, "it has moved");
    other.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn slot_freed_within_patience_is_used() {
    let (a, b) = (slow(1_000, "A"), saying("B"));
    let router = balanced([&a, &b]).cap(1).build().unwrap();
    let mut client = conversation_with(&router, "A").await;
    let other = occupy(&router).await;
    client.send("And?").await.unwrap();
    assert_eq!(first_piece(&mut client).await, "A");
    other.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn full_queue_moves_it_at_once() {
    let (a, b) = (slow(10_000, "A"), saying("B"));
    let router = balanced([&a, &b]).cap(1).queue(0).build().unwrap();
    let mut client = conversation_with(&router, "A").await;
    let other = occupy(&router).await;
    let began = Instant::now();
    assert_eq!((talk(&mut client).await.as_str(), began.elapsed()), ("B", Duration::ZERO));
    other.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn least_recently_used_is_forgotten() {
    let servers = ["A", "B", "C", "D"].map(saying);
    let router = balanced(&servers).sticky(3).build().unwrap();
    let mut kept = client(&router);
    let first = talk(&mut kept).await;
    for _ in 0..50 {
        ask(&router).await.unwrap();
        assert_eq!(talk(&mut kept).await, first, "it was used just now");
        assert!(router.remembered() <= 3);
    }
    assert_eq!(router.remembered(), 3);
}

#[tokio::test(start_paused = true)]
async fn failover_policy_returns_unless_sticky() {
    let a = || server(Script::from(Reply::hang_up()).otherwise(Reply::text("A")));
    let b = saying("B");
    for (sticky, expected) in [(false, ["B", "A", "A"]), (true, ["B", "B", "B"])] {
        let a = a();
        let router = over([&a, &b]);
        let router = if sticky { router.sticky(10) } else { router }.build().unwrap();
        let mut client = client(&router);
        for expected in expected {
            assert_eq!(talk(&mut client).await, expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_servers_that_began_are_remembered() {
    let a = server(
        Script::from(lasting(5, "A").delay_first(Duration::from_secs(60)))
            .otherwise(Reply::text("A")),
    );
    let router = over([&a]).sticky(10).build().unwrap();
    let task = ask_meanwhile(&router);
    settle().await;
    assert_eq!((in_use(&router), router.remembered()), (vec![1], 0));
    task.abort();
    ask(&router).await.unwrap();
    assert_eq!(router.remembered(), 1);
}

/// They are not one conversation, and none of them has a prompt in a cache.
#[tokio::test(start_paused = true)]
async fn requests_of_no_conversation_are_spread() {
    let (a, b) = (slow(10_000, "A"), slow(10_000, "B"));
    let router = balanced([&a, &b]).cap(1).build().unwrap();
    let ask = async || {
        let request = ChatRequest::new("any", vec![Message::user("Go.")]);
        router.clone().oneshot(request).await.unwrap().message().await.unwrap().text()
    };
    for _ in 0..5 {
        let began = Instant::now();
        let (one, other) = tokio::join!(ask(), ask());
        assert_ne!(one, other);
        assert_eq!(began.elapsed(), Duration::from_secs(10), "neither waits for a place");
    }
    assert_eq!(router.remembered(), 0);
}
