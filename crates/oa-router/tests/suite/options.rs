//! Invalid options are rejected.

use std::time::Duration;

use oa_client::ErrorKind;
use oa_router::{BreakerConfig, Policy, Router, RouterBuilder, Server};
use oa_testkit::Reply;
use tokio::time::Instant;

use crate::{
    ask, ask_meanwhile, client, down, endpoint, first_piece, lasting, occupy, over, pause, saying,
    settle,
};

#[tokio::test]
async fn build_rejects_useless_settings() {
    type Set = fn(RouterBuilder) -> RouterBuilder;
    let server = saying("A");
    let own_cap = Router::builder().endpoint(Server::new(endpoint(&server)).cap(2));
    let second = Duration::from_secs(1);
    let refused: [(&str, Set); 16] = [
        ("cap must be at least 1", |router| router.cap(0)),
        ("sticky must be at least 1", |router| router.sticky(0)),
        ("patience has no effect without sticky", |router| router.patience(Duration::ZERO)),
        ("patience has no effect without sticky", |router| {
            router.policy(Policy::LeastBusy).not_sticky().patience(Duration::ZERO)
        }),
        ("patience has no effect without a queue", |router| {
            router.policy(Policy::LeastBusy).queue(0).patience(Duration::ZERO)
        }),
        ("longest_wait has no effect", |router| router.queue(0).longest_wait(1)),
        ("longest_wait must be longer than 0", |router| router.longest_wait(0)),
        ("seed has no effect", |router| router.seed(1)),
        ("the breaker's failures must be", |router| router.breaker(BreakerConfig::new(0))),
        ("the breaker's open_for must be", |router| {
            router.breaker(BreakerConfig::new(1).open_for(Duration::ZERO))
        }),
        ("the breaker's max_open must", |router| {
            router.breaker(BreakerConfig::new(1).max_open(Duration::from_millis(1)))
        }),
        ("a router can have at most 64", |router| {
            router.endpoints((0..64).map(|_| endpoint(&saying("A"))))
        }),
        ("two servers are named twin", |router| {
            let twin = || Server::new(endpoint(&saying("A"))).name("twin");
            router.endpoint(twin()).endpoint(twin())
        }),
        ("cap must be at least 1", |router| {
            router.endpoint(Server::new(endpoint(&saying("A"))).cap(0))
        }),
        ("two servers are named a", |router| {
            router.endpoint(Server::service("a", endpoint(&saying("A"))))
        }),
        ("cap must be at least 1", |router| router.cap(0).queue(5)),
    ];
    for (expected, set) in refused {
        let error = set(over([&server])).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().starts_with(expected), "{error}");
    }
    let error = Router::builder().build().unwrap_err();
    assert!(error.to_string().starts_with("a router needs at least one server"), "{error}");
    let error = own_cap.clone().cap(3).build().unwrap_err();
    assert!(error.to_string().starts_with("cap has no effect"), "{error}");
    own_cap.breaker(BreakerConfig::new(1).open_for(second)).build().unwrap();
}

#[tokio::test]
async fn unnamed_servers_are_numbered() {
    let server = saying("A");
    let router = Router::builder().endpoints([endpoint(&server), endpoint(&server)]);
    let names: Vec<_> = router.build().unwrap().status().into_iter().map(|s| s.name).collect();
    assert_eq!(names, ["http://gpu:8000/v1", "http://gpu:8000/v1 #2"]);
}

/// Returns the first number in the default column of the crate's table.
fn documented(what: &str) -> u64 {
    let docs = include_str!("../../src/lib.rs");
    let mut rows = docs.lines().filter_map(|line| line.strip_prefix("//! | "));
    let row = rows.find(|row| row.starts_with(what)).expect("there is a row of it");
    let default = row.split('|').nth(1).expect("it has a column of defaults");
    let digits: String =
        default.trim().chars().take_while(|c| *c != ' ').filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number stands first")
}

#[tokio::test(start_paused = true)]
async fn documented_defaults_match_the_code() {
    let breaker = BreakerConfig::default();
    assert_eq!(documented("failures in a row"), u64::from(breaker.failures));
    assert_eq!(documented("the time that a circuit is open"), breaker.open_for.as_secs());
    assert_eq!(documented("a `Retry-After`"), breaker.max_retry_after.as_secs());
    assert_eq!(breaker.max_open, Duration::from_secs(30));

    let silent = down(Reply::silence());
    let router = over([&silent]).cap(1).build().unwrap();
    let queue = documented("requests that wait");
    let tasks: Vec<_> = (0..=queue).map(|_| ask_meanwhile(&router)).collect();
    settle().await;
    assert_eq!(router.waiting() as u64, queue);
    let began = Instant::now();
    let last = ask(&router).await.unwrap_err();
    assert_eq!((last.kind(), began.elapsed()), (ErrorKind::Unavailable, Duration::ZERO));
    let wait = documented("the time that a request waits");
    pause(wait * 1_000 + 1).await;
    settle().await;
    assert_eq!(router.waiting(), 0, "the wait has an end");
    tasks.iter().for_each(|task| task.abort());

    let router = over(&[saying("A"), saying("B")]).policy(Policy::LeastBusy).build().unwrap();
    let remembered = documented("conversations remembered");
    for _ in 0..remembered + 3 {
        ask(&router).await.unwrap();
    }
    assert_eq!(router.remembered() as u64, remembered);
    let router = over([&saying("A")]).build().unwrap();
    ask(&router).await.unwrap();
    assert_eq!(router.remembered(), 0, "none in order");

    let (a, b) = (down(lasting(60_000, "A")), saying("B"));
    let router = over([&a, &b]).policy(Policy::LeastBusy).cap(1).build().unwrap();
    let mut own = client(&router);
    for _ in 0..100 {
        own = client(&router);
        own.send("Go.").await.unwrap();
        if first_piece(&mut own).await == "A" {
            break;
        }
    }
    own.interrupt();
    own.receive().await.unwrap();
    let other = occupy(&router).await;
    let began = Instant::now();
    assert_eq!(own.ask("And?").await.unwrap().text, "B");
    assert_eq!(began.elapsed().as_secs(), documented("the time that a conversation waits"));
    other.abort();
}

#[tokio::test]
async fn unlimited_times_are_accepted() {
    let forever = BreakerConfig::new(1).open_for(Duration::MAX).max_open(Duration::MAX);
    let server = saying("A");
    let router = over([&server]).breaker(forever).longest_wait(None).policy(Policy::LeastBusy);
    let router = router.patience(Duration::MAX).build().unwrap();
    assert_eq!(ask(&router).await.unwrap(), "A");
}
