//! Tower's limits around the client: between it and its server, and around a whole agent.

use std::time::Duration;

use oa_agents::AgentService;
use oa_client::{Client, ErrorKind};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_types::Message;
use tokio::time::Instant;
use tower::{Service, ServiceBuilder, ServiceExt};

use suite::talk::{manual, talk};

const MINUTE: Duration = Duration::from_secs(60);

fn chatty() -> MemoryServer {
    MemoryServer::new(Script::new().otherwise(Reply::text("Hello.")))
}

#[tokio::test(start_paused = true)]
async fn tower_limits_wrap_the_transport() {
    let server = chatty();
    // A rate limit cannot be cloned, but a buffer around it can.
    let limited = ServiceBuilder::new()
        .buffer(8)
        .rate_limit(2, MINUTE)
        .concurrency_limit(1)
        .timeout(Duration::from_secs(10))
        .service(server.clone());
    let options = manual(&server).build().unwrap();
    let began = Instant::now();
    // Two clients under one limit.
    for seconds in [0, 60, 120] {
        for _ in 0..2 {
            let mut client = Client::with_transport(options.clone(), limited.clone()).unwrap();
            assert_eq!(talk(&mut client, "Hi.").await, ["Hello."]);
            assert_eq!(began.elapsed().as_secs(), seconds);
        }
    }
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn tower_timeout_is_a_connection_error() {
    let silent = MemoryServer::new(Script::new().otherwise(Reply::silence()));
    let hasty = ServiceBuilder::new().timeout(Duration::from_secs(1)).service(silent.clone());
    let mut client = Client::with_transport(manual(&silent).build().unwrap(), hasty).unwrap();
    let error = client.send("Hi.").await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Connect, true), "{error}");
    assert!(error.to_string().contains("timed out"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn tower_rate_limit_wraps_an_agent() {
    let server = chatty();
    let agent = AgentService::new(manual(&server).build().unwrap());
    let mut limited = ServiceBuilder::new()
        .rate_limit(2, MINUTE)
        .concurrency_limit(1)
        .timeout(Duration::from_secs(10))
        .service(agent);
    let began = Instant::now();
    for seconds in [0, 0, 60, 60, 120] {
        let asked = limited.ready().await.unwrap().call(Message::user("Hi."));
        let mut events = asked.await.unwrap();
        while let Some(event) = events.next().await {
            event.unwrap();
        }
        assert_eq!(began.elapsed().as_secs(), seconds);
    }
    assert_eq!(server.requests().len(), 5);
}
