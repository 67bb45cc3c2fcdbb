//! Caps on answers in progress, and the queue.

use std::time::Duration;

use oa_chat::RetryConfig;
use oa_client::{Client, ErrorKind};
use oa_router::{Policy, Router, Server};
use oa_testkit::{Reply, Script};
use tokio::time::Instant;

use crate::{
    ask, ask_meanwhile, client, client_with, counts, endpoint, first_piece, in_use, lasting, over,
    pause, saying, server, settle, slow,
};

#[tokio::test(start_paused = true)]
async fn slots_are_held_until_answers_end() {
    let a = slow(1_000, "A");
    let router = over([&a]).cap(2).build().unwrap();
    let began = Instant::now();
    let tasks: Vec<_> = (0..10).map(|_| ask_meanwhile(&router)).collect();
    settle().await;
    assert_eq!((in_use(&router), router.waiting(), counts([&a])), (vec![2], 8, [2]));
    pause(999).await;
    settle().await;
    assert_eq!(counts([&a]), [2], "they have their heads, and are not over");
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap(), "A");
    }
    assert_eq!(began.elapsed(), Duration::from_secs(5), "two by two, and no time between");
    assert_eq!((in_use(&router), router.waiting()), (vec![0], 0));
}

#[tokio::test(start_paused = true)]
async fn unfinished_answers_release_slots() {
    let stalled = || lasting(1_000_000, "A");
    let broken = Reply::sse("data: {\"choices\":[{\"delta\":{\"content\":\"A\"}}]}\n\ndata: x");
    let broken = broken.close_after(50);
    let a = server(Script::from([stalled(), stalled(), broken]).otherwise(Reply::text("A")));
    let router = over([&a]).cap(1).build().unwrap();

    let mut dropped = client(&router);
    dropped.send("Go.").await.unwrap();
    assert_eq!(first_piece(&mut dropped).await, "A");
    let next = ask_meanwhile(&router);
    settle().await;
    assert_eq!((in_use(&router), router.waiting()), (vec![1], 1));
    drop(dropped);
    settle().await;
    assert_eq!((counts([&a]), in_use(&router)), ([2], vec![1]));
    next.abort();

    let mut broken: Client = client(&router);
    broken.send("Go.").await.unwrap();
    assert_eq!(first_piece(&mut broken).await, "A");
    assert_eq!(in_use(&router), [1]);
    broken.receive().await.unwrap_err();
    assert_eq!(in_use(&router), [0]);
    assert_eq!(ask(&router).await.unwrap(), "A");
    let status = &router.status()[0];
    assert_eq!(
        (status.asked, status.answered, status.failed, status.given_up),
        (4, 1, 1, 2),
        "{status:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn queue_is_first_in_first_out() {
    let a = slow(10, "A");
    let router = over([&a]).cap(1).build().unwrap();
    let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..20 {
        let (router, order) = (router.clone(), std::sync::Arc::clone(&order));
        tasks.push(tokio::spawn(async move {
            ask(&router).await.unwrap();
            order.lock().unwrap().push(number);
        }));
        settle().await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn failover_keeps_the_queue_position() {
    let a = server(Script::from([lasting(100, "A"), Reply::hang_up(), lasting(9_000, "A")]));
    let b = slow(1_000, "B");
    let router = over([&a, &b]).cap(1).build().unwrap();
    let begin = [ask_meanwhile(&router), ask_meanwhile(&router)];
    settle().await;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        waiting.push(ask_meanwhile(&router));
        settle().await;
    }
    // At 100 ms, a fails the first in the queue, which then waits for b; the second has a.
    pause(100).await;
    settle().await;
    assert_eq!((counts([&a, &b]), router.waiting()), ([3, 1], 2));
    // After a second b is free, and it is still the first one's turn.
    pause(1_900).await;
    settle().await;
    let done: Vec<_> = waiting.iter().map(|task| task.is_finished()).collect();
    assert_eq!((done, counts([&b])), (vec![true, false, false], [3]));
    for task in begin.into_iter().chain(waiting) {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn full_queue_is_a_retryable_error() {
    let a = slow(1_000, "A");
    let router = over([&a]).cap(1).queue(2).build().unwrap();
    let tasks = [(); 3].map(|()| ask_meanwhile(&router));
    settle().await;
    let error = ask(&router).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unavailable, true));
    assert_eq!(
        error.to_string(),
        "no server answered (0 of 1 tried): a is busy; the queue is full (2 waiting)"
    );
    let answer = client_with(&router, RetryConfig::new(20)).ask("Go.").await.unwrap();
    assert_eq!(answer.text, "A");
    for task in tasks {
        task.await.unwrap().unwrap();
    }

    let nobody_waits = over([&a]).cap(1).queue(0).build().unwrap();
    let task = ask_meanwhile(&nobody_waits);
    settle().await;
    assert_eq!(ask(&nobody_waits).await.unwrap_err().kind(), ErrorKind::Unavailable);
    task.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn longest_wait_ends_the_wait() {
    let a = slow(10_000, "A");
    let router = over([&a]).cap(1).longest_wait(3).build().unwrap();
    let task = ask_meanwhile(&router);
    settle().await;
    let began = Instant::now();
    let error = ask(&router).await.unwrap_err();
    assert_eq!((error.kind(), began.elapsed().as_secs()), (ErrorKind::Unavailable, 3));
    assert!(
        error.to_string().ends_with("a is busy; timed out after waiting 3s for a free server"),
        "{error}"
    );
    assert_eq!((router.waiting(), in_use(&router)), (0, vec![1]));
    task.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn failover_policy_picks_first_with_room() {
    let (a, b) = (slow(1_000, "A"), slow(1_000, "B"));
    let router = over([&a, &b]).cap(2).build().unwrap();
    let tasks: Vec<_> = (0..5).map(|_| ask_meanwhile(&router)).collect();
    settle().await;
    assert_eq!((in_use(&router), router.waiting()), (vec![2, 2], 1));
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(counts([&a, &b]), [3, 2]);
}

#[tokio::test(start_paused = true)]
async fn server_cap_overrides_the_default() {
    let (a, b, c) = (slow(1_000, "A"), slow(1_000, "B"), saying("C"));
    let router = Router::builder()
        .endpoint(Server::new(endpoint(&a)).name("a").cap(1))
        .endpoint(Server::new(endpoint(&b)).name("b"))
        .endpoint(Server::new(endpoint(&c)).name("c").cap(7))
        .cap(3)
        .policy(Policy::Failover)
        .build()
        .unwrap();
    let caps: Vec<_> = router.status().into_iter().map(|status| status.cap).collect();
    assert_eq!(caps, [Some(1), Some(3), Some(7)]);
    let tasks: Vec<_> = (0..5).map(|_| ask_meanwhile(&router)).collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(counts([&a, &b, &c]), [1, 3, 1]);
}

#[tokio::test(start_paused = true)]
async fn last_circuit_opening_rejects_the_queue() {
    let trouble = Reply::error(503, "down").header("retry-after", "30");
    let a = server(Script::from(trouble.delay_head(Duration::from_secs(1))));
    let router = over([&a]).cap(1).build().unwrap();
    let began = Instant::now();
    let tasks = [(); 5].map(|()| ask_meanwhile(&router));
    for task in tasks {
        let error = task.await.unwrap().unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_secs(30)), "{error}");
    }
    assert_eq!((began.elapsed(), counts([&a])), (Duration::from_secs(1), [1]));
}
