//! The least busy server is used.

use oa_router::{Policy, Router, Server};
use oa_testkit::{Reply, Script};

use crate::{
    ask, ask_meanwhile, counts, down, endpoint, in_use, lasting, occupy, over, pause, saying,
    server, settle, slow,
};

#[tokio::test(start_paused = true)]
async fn equal_servers_share_requests_evenly() {
    let [a, b, c] = ["A", "B", "C"].map(|name| slow(1_000, name));
    let router = over([&a, &b, &c]).policy(Policy::LeastBusy).seed(1).build().unwrap();
    let tasks: Vec<_> = (0..300).map(|_| ask_meanwhile(&router)).collect();
    settle().await;
    let in_use = in_use(&router);
    // Two choices keep the difference near one; a single random choice would give about eight.
    assert!(in_use.iter().all(|count| (97..=103).contains(count)), "{in_use:?}");
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn server_is_busy_until_answers_end() {
    let busy = server(Script::new().otherwise(lasting(60_000, "A")));
    let (b, c) = (saying("B"), saying("C"));
    let router = over([&busy, &b, &c]).policy(Policy::LeastBusy).seed(3).build().unwrap();
    // Give the idle one some work: its answers start immediately.
    let tasks = [occupy(&router).await];
    let before = counts([&busy]);
    for _ in 0..200 {
        ask(&router).await.unwrap();
    }
    assert_eq!(counts([&busy]), before, "never, as long as others have less to do");
    pause(60_000).await;
    settle().await;
    let more: Vec<_> = (0..50).map(|_| ask_meanwhile(&router)).collect();
    settle().await;
    assert!(counts([&busy]) > before);
    for task in tasks.into_iter().chain(more) {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn load_is_relative_to_caps() {
    let (small, large) = (slow(1_000, "S"), slow(1_000, "L"));
    let router = Router::builder()
        .endpoint(Server::new(endpoint(&small)).name("small").cap(4))
        .endpoint(Server::new(endpoint(&large)).name("large").cap(20))
        .policy(Policy::LeastBusy)
        .build()
        .unwrap();
    let tasks: Vec<_> = (0..12).map(|_| ask_meanwhile(&router)).collect();
    settle().await;
    assert_eq!(in_use(&router), [2, 10]);
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn fast_failing_server_attracts_no_load() {
    let (a, b, c) = (down(Reply::error(503, "no")), slow(100, "B"), slow(100, "C"));
    let router = over([&a, &b, &c]).policy(Policy::LeastBusy).build().unwrap();
    for _ in 0..10 {
        let tasks: Vec<_> = (0..50).map(|_| ask_meanwhile(&router)).collect();
        for task in tasks {
            assert_ne!(task.await.unwrap().unwrap(), "A");
        }
    }
    let [failed, b, c] = counts([&a, &b, &c]);
    assert_eq!(b + c, 500);
    assert!(failed <= 4, "{failed} requests to a server that has nothing to do");
}

#[tokio::test(start_paused = true)]
async fn equal_seeds_pick_equal_servers() {
    let draws = async |seed: u64| {
        let servers = ["A", "B", "C", "D"].map(saying);
        let router = over(&servers).policy(Policy::LeastBusy).seed(seed).build().unwrap();
        let mut answers = String::new();
        for _ in 0..40 {
            answers += &ask(&router).await.unwrap();
        }
        answers
    };
    let first = draws(5).await;
    assert_eq!(first, draws(5).await);
    assert_ne!(first, draws(6).await);
    assert!(["A", "B", "C", "D"].iter().all(|name| first.contains(name)), "{first}");
}
