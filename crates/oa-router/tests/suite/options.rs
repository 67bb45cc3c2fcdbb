//! What cannot work or cannot act is refused.

use std::time::Duration;

use oa_client::ErrorKind;
use oa_router::{BreakerConfig, Policy, Router, RouterBuilder, Server};

use crate::{endpoint, over, saying};

#[tokio::test]
async fn what_cannot_work_or_act_is_an_error_at_build() {
    type Set = fn(RouterBuilder) -> RouterBuilder;
    let server = saying("A");
    let own_cap = Router::builder().endpoint(Server::new(endpoint(&server)).cap(2));
    let second = Duration::from_secs(1);
    let refused: [(&str, Set); 15] = [
        ("a cap of 0", |router| router.cap(0)),
        ("sticky to 0", |router| router.sticky(0)),
        ("patience has no effect: nothing", |router| router.patience(Duration::ZERO)),
        ("patience has no effect: nothing", |router| {
            router.policy(Policy::LeastBusy).not_sticky().patience(Duration::ZERO)
        }),
        ("patience has no effect without", |router| {
            router.policy(Policy::LeastBusy).queue(0).patience(Duration::ZERO)
        }),
        ("longest_wait has no effect", |router| router.queue(0).longest_wait(1)),
        ("seed has no effect", |router| router.seed(1)),
        ("a breaker that opens after 0", |router| router.breaker(BreakerConfig::new(0))),
        ("a breaker that opens for no time", |router| {
            router.breaker(BreakerConfig::new(1).open_for(Duration::ZERO))
        }),
        ("the breaker's max_open", |router| {
            router.breaker(BreakerConfig::new(1).max_open(Duration::from_millis(1)))
        }),
        ("a router has at most 64", |router| {
            router.endpoints((0..64).map(|_| endpoint(&saying("A"))))
        }),
        ("two servers are named twin", |router| {
            let twin = || Server::new(endpoint(&saying("A"))).name("twin");
            router.endpoint(twin()).endpoint(twin())
        }),
        ("a cap of 0", |router| router.endpoint(Server::new(endpoint(&saying("A"))).cap(0))),
        ("two servers are named a", |router| {
            router.endpoint(Server::service("a", endpoint(&saying("A"))))
        }),
        ("a cap of 0", |router| router.cap(0).queue(5)),
    ];
    for (expected, set) in refused {
        let error = set(over([&server])).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().starts_with(expected), "{error}");
    }
    let error = Router::builder().build().unwrap_err();
    assert!(error.to_string().starts_with("a router needs a server"), "{error}");
    let error = own_cap.clone().cap(3).build().unwrap_err();
    assert!(error.to_string().starts_with("cap has no effect"), "{error}");
    own_cap.breaker(BreakerConfig::new(1).open_for(second)).build().unwrap();
}

#[tokio::test]
async fn servers_without_names_are_told_apart() {
    let server = saying("A");
    let router = Router::builder().endpoints([endpoint(&server), endpoint(&server)]);
    let names: Vec<_> = router.build().unwrap().status().into_iter().map(|s| s.name).collect();
    assert_eq!(names, ["http://gpu:8000/v1", "http://gpu:8000/v1 #2"]);
}

#[tokio::test]
async fn times_without_end_are_taken() {
    let forever = BreakerConfig::new(1).open_for(Duration::MAX).max_open(Duration::MAX);
    let server = saying("A");
    let router = over([&server]).breaker(forever).longest_wait(None).policy(Policy::LeastBusy);
    let router = router.patience(Duration::MAX).build().unwrap();
    assert_eq!(crate::ask(&router).await.unwrap(), "A");
}
