//! The same over sockets, in real time.

use std::time::Duration;

use oa_chat::{Endpoint, RetryConfig};
use oa_client::{AgentOptions, Client, ErrorKind};
use oa_router::{Policy, Router};
use oa_testkit::{Reply, Script, SocketServer};

const LIMIT: Duration = Duration::from_secs(10);

async fn start(script: impl Into<Script>) -> SocketServer {
    SocketServer::start(script).await.expect("loopback can be bound")
}

fn endpoint(server: &SocketServer) -> Endpoint {
    Endpoint::builder().base_url(server.base_url()).build().expect("it can work")
}

fn client(router: &Router) -> Client {
    let options = AgentOptions::builder().model("any").retry(RetryConfig::none());
    Client::new(options.chat_service(router.clone()).build().expect("these can work"))
        .expect("there is a model")
}

#[tokio::test]
async fn gone_or_broken_servers_are_skipped() {
    let gone = start(Script::new()).await;
    let gone_endpoint = endpoint(&gone);
    gone.stop().await;
    for broken in [
        Reply::reset(),
        Reply::hang_up(),
        Reply::raw("SSH-2.0-OpenSSH\r\n"),
        Reply::error(503, "loading"),
        Reply::text("Lost.").close_after(0),
        Reply::text("Lost.").reset_after(0),
    ] {
        let (a, b) = (start(broken).await, start(Reply::text("Done.")).await);
        let router = Router::builder()
            .endpoints([gone_endpoint.clone(), endpoint(&a), endpoint(&b)])
            .build()
            .unwrap();
        assert_eq!(client(&router).ask("Go.").await.unwrap().text, "Done.");
        assert_eq!((a.requests().len(), b.requests().len()), (1, 1));
        let failed: Vec<_> = router.status().iter().map(|status| status.failed).collect();
        assert_eq!(failed, [1, 1, 0]);
    }
    let router = Router::builder().endpoints([gone_endpoint.clone(), gone_endpoint]).build();
    let error = client(&router.unwrap()).ask("Go.").await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Connect, true));
}

#[tokio::test]
async fn dropped_answer_closes_and_frees_the_slot() {
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"A\"}}]}\n\n";
    let stalled = Reply::sse(format!("{piece}{piece}")).stall_after(piece.len());
    let server = start(Script::from([stalled, Reply::text("Done.")])).await;
    let router = Router::builder()
        .endpoint(endpoint(&server))
        .policy(Policy::LeastBusy)
        .cap(1)
        .build()
        .unwrap();
    let mut first = client(&router);
    first.send("Go.").await.unwrap();
    first.receive().await.unwrap();
    let mut second = client(&router);
    let next = tokio::spawn(async move { second.ask("Go.").await });
    while router.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    first.interrupt();
    assert_eq!(first.receive().await.unwrap(), None);
    assert_eq!(next.await.unwrap().unwrap().text, "Done.");
    server.wait_for_abort(LIMIT).await;
}
