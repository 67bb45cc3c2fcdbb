//! When circuits open and how servers recover, in time.

use std::time::Duration;

use oa_chat::{RetryConfig, TimeoutKind};
use oa_client::{AgentOptions, Client, Error, ErrorKind};
use oa_router::{BreakerConfig, Health, Router};
use oa_testkit::{Reply, Script};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    ask, ask_meanwhile, client_with, counts, down, lasting, over, pause, saying, server, settle,
    slow,
};

fn health(router: &Router) -> Health {
    router.status()[0].health
}

/// The remaining time of the first server's open circuit, in milliseconds.
fn left(router: &Router) -> u128 {
    match health(router) {
        Health::Open { left } => left.as_millis(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn open_time_doubles_up_to_max_open() {
    let (a, b) = (down(Reply::error(503, "down")), saying("B"));
    let config = BreakerConfig::new(2).max_open(Duration::from_secs(5));
    let router = over([&a, &b]).breaker(config).build().unwrap();
    ask(&router).await.unwrap();
    assert_eq!(health(&router), Health::Healthy, "not after one");
    ask(&router).await.unwrap();
    for (trial, open) in [1_000, 2_000, 4_000, 5_000, 5_000].into_iter().enumerate() {
        assert_eq!(left(&router), open);
        pause(open as u64 - 1).await;
        ask(&router).await.unwrap();
        assert_eq!(counts([&a]), [trial + 2], "it is left alone until then");
        pause(1).await;
        assert_eq!(health(&router), Health::Trial);
        assert_eq!(ask(&router).await.unwrap(), "B");
        assert_eq!(counts([&a]), [trial + 3], "one trial");
    }
    let status = &router.status()[0];
    assert_eq!((status.asked, status.failed, status.in_use), (7, 7, 0));
    assert_eq!(
        status.last_failure.as_deref(),
        Some("the server answered 503 Service Unavailable: down")
    );
}

#[tokio::test(start_paused = true)]
async fn answered_or_refused_trial_closes_circuit() {
    for (trial, expected) in [(Reply::text("A"), "A"), (Reply::error(400, "bad"), "bad")] {
        let fails = [Reply::hang_up(), Reply::hang_up(), Reply::hang_up(), trial];
        let (a, b) = (server(Script::from(fails).otherwise(Reply::text("A"))), saying("B"));
        let router = over([&a, &b]).build().unwrap();
        for _ in 0..5 {
            assert_eq!(ask(&router).await.unwrap(), "B");
        }
        assert_eq!(counts([&a]), [3]);
        pause(1_000).await;
        let answer = ask(&router).await.unwrap_or_else(|error| error.to_string());
        assert!(answer.ends_with(expected), "{answer}");
        assert_eq!(health(&router), Health::Healthy);
        assert_eq!(ask(&router).await.unwrap(), "A");
    }
}

#[tokio::test(start_paused = true)]
async fn success_between_failures_keeps_it_closed() {
    let busy = || Reply::error(503, "busy");
    let script = (0..10).flat_map(|_| [busy(), busy(), Reply::text("A")]);
    let script = script.fold(Script::new(), Script::reply);
    let (a, b) = (server(script), saying("B"));
    let router = over([&a, &b]).build().unwrap();
    for _ in 0..30 {
        ask(&router).await.unwrap();
    }
    assert_eq!((counts([&a, &b]), health(&router)), ([30, 20], Health::Healthy));
}

#[tokio::test(start_paused = true)]
async fn breaks_after_begin_count_as_failures() {
    let broken = Reply::text("One two three four").close_after(400);
    let (a, b) = (down(broken), saying("B"));
    let router = over([&a, &b]).build().unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&router).await.unwrap_err().kind(), ErrorKind::Stream);
    }
    assert_eq!((ask(&router).await.unwrap().as_str(), left(&router)), ("B", 1_000));
    pause(1_000).await;
    // The trial starts well, but one more break is enough.
    ask(&router).await.unwrap_err();
    assert_eq!((ask(&router).await.unwrap().as_str(), left(&router)), ("B", 2_000));
}

#[tokio::test(start_paused = true)]
async fn request_errors_do_not_affect_health() {
    let reported = |code: u16| {
        let error = json!({ "message": "no", "type": "BadRequestError", "code": code });
        Reply::sse(format!("data: {}\n\n", json!({ "error": error })))
    };
    let overflow = json!({ "message": "too long", "code": "context_length_exceeded" });
    for (what, reply) in [
        ("invalid", Reply::error(400, "no")),
        ("forbidden", Reply::error(403, "no")),
        ("not found", Reply::error(404, "no")),
        ("unprocessable", Reply::error(422, "no")),
        ("a redirect", Reply::body(302, "text/plain", "").header("location", "http://elsewhere/")),
        ("no images", Reply::error(400, "this model does not support image input")),
        ("a template", Reply::error(500, "jinja: roles must alternate")),
        ("an overflow", Reply::error(500, overflow)),
        ("invalid, in a stream", reported(400)),
        ("not found, in a stream", reported(404)),
    ] {
        let (a, b) = (down(reply), saying("B"));
        let router = over([&a, &b]).build().unwrap();
        for _ in 0..10 {
            let _ = ask(&router).await;
        }
        assert_eq!((counts([&a]), health(&router)), ([10], Health::Healthy), "{what}");
    }
    let (a, b) = (down(Reply::error(401, "no key")), saying("B"));
    let router = over([&a, &b]).build().unwrap();
    for _ in 0..10 {
        ask(&router).await.unwrap();
    }
    assert_eq!(counts([&a]), [3], "without a key it answers nobody");
}

#[tokio::test(start_paused = true)]
async fn retry_after_sets_the_open_time() {
    for (header, value, wait) in [
        ("retry-after", "7", 7_000),
        ("retry-after-ms", "1500", 1_500),
        ("retry-after", "7200", 600_000),
    ] {
        for status in [429, 503] {
            let reply = Reply::error(status, "slow").header(header, value);
            let a = server(Script::from(reply).otherwise(Reply::text("A")));
            let b = saying("B");
            let router = over([&a, &b]).build().unwrap();
            assert_eq!(ask(&router).await.unwrap(), "B");
            assert_eq!(left(&router), wait, "the first one opens");
            pause(wait as u64 - 1).await;
            assert_eq!(ask(&router).await.unwrap(), "B");
            pause(1).await;
            assert_eq!(ask(&router).await.unwrap(), "A");
        }
    }
}

/// No server is asked, and the error says for how long.
#[tokio::test(start_paused = true)]
async fn all_circuits_open_is_an_error() {
    let a = down(Reply::error(503, "loading"));
    let b = down(Reply::error(429, "slow").header("retry-after", "20"));
    let router = over([&a, &b]).build().unwrap();
    let config = BreakerConfig::new(3);
    assert_eq!(config, BreakerConfig::default());
    let error = ask(&router).await.unwrap_err();
    assert_eq!((error.status(), error.retry_after()), (Some(429), None), "a may be asked at once");
    ask(&router).await.unwrap_err();
    let error = ask(&router).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)), "a is the first to be back");
    let error: Error = ask(&router).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.is_retryable(), error.retry_after()),
        (ErrorKind::Unavailable, true, Some(Duration::from_secs(1)))
    );
    assert_eq!(counts([&a, &b]), [3, 1]);
}

#[tokio::test(start_paused = true)]
async fn retries_wait_for_the_first_trial() {
    let began = Instant::now();
    let reply = Reply::by(move |_| match began.elapsed().as_millis() {
        0..2_500 => Reply::error(503, "loading"),
        _ => Reply::text("A"),
    });
    let a = down(reply);
    let router = over([&a]).breaker(BreakerConfig::new(1)).build().unwrap();
    let mut client = client_with(&router, RetryConfig::new(5));
    assert_eq!(client.ask("Go.").await.unwrap().text, "A");
    // At 0, 1 and 3 seconds: the circuit's times, whatever shorter delays the retries draw.
    assert_eq!((counts([&a]), began.elapsed().as_secs()), ([3], 3));
}

#[tokio::test(start_paused = true)]
async fn unfit_servers_do_not_hasten_a_retry() {
    let reported = |status: u16| {
        let error =
            json!({ "error": { "message": "no such model", "type": "no", "code": status } });
        Reply::sse(format!("data: {error}\n\n"))
    };
    let refused = |status| Reply::error(status, "no such model");
    for (unfit, reply) in
        [401, 403, 404].into_iter().flat_map(|it| [(it, refused(it)), (it, reported(it))])
    {
        let busy = || Reply::error(503, "busy").header("retry-after", "20");
        let a = server(Script::from([busy(), busy()]).otherwise(Reply::text("A")));
        let b = down(reply);
        let router = over([&a, &b]).build().unwrap();
        let error = ask(&router).await.unwrap_err();
        assert_eq!(
            (error.status(), error.retry_after()),
            (Some(503), Some(Duration::from_secs(20)))
        );
        pause(20_000).await;
        let began = Instant::now();
        let mut client = client_with(&router, RetryConfig::new(1));
        assert_eq!(client.ask("Go.").await.unwrap().text, "A", "{unfit}");
        assert_eq!(began.elapsed(), Duration::from_secs(20), "{unfit}");
    }
}

/// After it they are let in gradually.
#[tokio::test(start_paused = true)]
async fn requests_wait_for_a_running_trial() {
    let fails = [Reply::hang_up(), Reply::hang_up(), Reply::hang_up()];
    let trial = lasting(100, "A").delay_first(Duration::from_secs(10));
    let others = lasting(1_000, "A").delay_first(Duration::from_millis(100));
    let a = server(Script::from(fails).reply(trial).otherwise(others));
    let router = over([&a]).build().unwrap();
    for _ in 0..3 {
        ask(&router).await.unwrap_err();
    }
    pause(1_000).await;
    let tasks: Vec<_> = (0..40).map(|_| ask_meanwhile(&router)).collect();
    settle().await;
    assert_eq!((router.waiting(), counts([&a])), (39, [4]), "one trial");
    assert_eq!(health(&router), Health::Trial);
    pause(9_999).await;
    assert_eq!(counts([&a]), [4]);
    pause(1).await;
    settle().await;
    // The trial runs with one more beside it; each that starts lets another in.
    assert_eq!(health(&router), Health::Healthy);
    let mut seen = vec![router.status()[0].in_use];
    while tasks.iter().any(|task| !task.is_finished()) {
        pause(100).await;
        settle().await;
        seen.push(router.status()[0].in_use);
    }
    println!("in progress, each tenth of a second after the trial: {seen:?}");
    assert_eq!(seen[0], 2);
    assert!(seen.windows(2).all(|pair| pair[1] <= 2 * pair[0]), "{seen:?}");
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap(), "A");
    }
    assert_eq!((counts([&a]), router.waiting()), ([43], 0));
}

#[tokio::test(start_paused = true)]
async fn dropped_trial_passes_to_the_next_request() {
    let fails = [Reply::hang_up(), Reply::silence()];
    let a = server(Script::from(fails).otherwise(Reply::text("A")));
    let router = over([&a]).breaker(BreakerConfig::new(1)).build().unwrap();
    ask(&router).await.unwrap_err();
    pause(1_000).await;
    let trial = ask_meanwhile(&router);
    settle().await;
    let next = ask_meanwhile(&router);
    settle().await;
    assert_eq!((router.waiting(), counts([&a])), (1, [2]));
    trial.abort();
    assert_eq!(next.await.unwrap().unwrap(), "A");
    assert_eq!((router.status()[0].given_up, health(&router)), (1, Health::Healthy));
}

/// The server said nothing in that time, so it is not known to be back.
#[tokio::test(start_paused = true)]
async fn timed_out_trial_does_not_close_circuit() {
    let fails = [Reply::hang_up(), Reply::silence()];
    let a = server(Script::from(fails).otherwise(Reply::text("A")));
    let router = over([&a]).breaker(BreakerConfig::new(1)).build().unwrap();
    ask(&router).await.unwrap_err();
    pause(1_000).await;
    let options = AgentOptions::builder().model("any").retry(RetryConfig::none());
    let options = options.total_timeout(10).chat_service(router.clone()).build().unwrap();
    let error = Client::new(options).unwrap().ask("Go.").await.unwrap_err();
    assert_eq!(error.timeout(), Some(TimeoutKind::Total));
    let status = &router.status()[0];
    assert_eq!((status.refused, status.in_use, health(&router)), (1, 0, Health::Trial));
    assert_eq!(ask(&router).await.unwrap(), "A");
    assert_eq!(health(&router), Health::Healthy);
}

#[tokio::test(start_paused = true)]
async fn timeouts_between_failures_reset_nothing() {
    let replies = [Reply::hang_up(), Reply::silence(), Reply::hang_up()];
    let a = server(Script::from(replies).otherwise(Reply::text("A")));
    let router = over([&a]).breaker(BreakerConfig::new(2)).build().unwrap();
    let options = AgentOptions::builder().model("any").retry(RetryConfig::none());
    let options = options.total_timeout(10).chat_service(router.clone()).build().unwrap();
    for _ in 0..3 {
        Client::new(options.clone()).unwrap().ask("Go.").await.unwrap_err();
    }
    assert_eq!(left(&router), 1_000);
}

#[tokio::test(start_paused = true)]
async fn queued_requests_wake_for_a_due_trial() {
    let fails = [Reply::hang_up(), Reply::hang_up(), Reply::hang_up()];
    let a = server(Script::from(fails).otherwise(Reply::text("A")));
    let b = slow(60_000, "B");
    let router = over([&a, &b]).cap(1).build().unwrap();
    let first = ask_meanwhile(&router);
    settle().await;
    // These two fail at a, find b busy, and wait. The third failure of a opens its circuit.
    let two = [ask_meanwhile(&router), ask_meanwhile(&router)];
    settle().await;
    assert_eq!((router.waiting(), left(&router)), (2, 1_000));
    let began = Instant::now();
    assert_eq!(ask(&router).await.unwrap(), "A", "the newcomer may try a, which failed the others");
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    for task in [first].into_iter().chain(two) {
        assert_eq!(task.await.unwrap().unwrap(), "B");
    }
}
