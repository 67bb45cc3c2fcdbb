//! Features of the in-memory server alone: time that can be paused, and errors in place of socket errors.

use std::io::ErrorKind;
use std::time::Duration;

use http_body::Body;
use http_body_util::BodyExt;
use oa_testkit::{Cut, Framing, MemoryServer, Reply, Script};
use tokio::time::{self, Instant};

use crate::client::{LIMIT, ask_memory, call, streamed};

/// Requests the only reply, and checks its frames and end.
async fn check(reply: Reply, frames: &[&str], end: Option<ErrorKind>) {
    let server = MemoryServer::new(reply);
    let mut body = call(&server, &streamed()).await.expect("a head").into_body();
    let mut seen = Vec::new();
    let error = loop {
        match body.frame().await {
            None => break None,
            Some(Err(error)) => break Some(error.kind()),
            Some(Ok(frame)) => seen.push(frame.into_data().expect("data")),
        }
    };
    assert_eq!(seen, frames);
    assert_eq!(error, end);
    assert!(body.frame().await.is_none(), "it has ended");
    assert!(server.requests()[0].is_over() && !server.requests()[0].aborted());
}

#[tokio::test]
async fn each_piece_of_a_body_is_a_frame() {
    check(Reply::sse("one two").cut(Cut::At(vec![3])), &["one", " two"], None).await;
    check(Reply::sse(""), &[], None).await;
}

#[tokio::test]
async fn broken_connections_are_errors() {
    let reply = || Reply::sse("one two");
    let eof = Some(ErrorKind::UnexpectedEof);
    check(reply().close_after(3), &["one"], eof).await;
    check(reply().close_after(usize::MAX), &["one two"], eof).await;
    check(reply().close_after(0), &[], eof).await;
    check(reply().close_after(3).framing(Framing::Close), &["one"], None).await;
    check(reply().reset_after(3), &["one"], Some(ErrorKind::ConnectionReset)).await;

    for (reply, kind) in [
        (Reply::hang_up(), ErrorKind::UnexpectedEof),
        (Reply::raw("220"), ErrorKind::InvalidData),
        (Reply::reset(), ErrorKind::ConnectionReset),
    ] {
        let server = MemoryServer::new(reply);
        assert_eq!(call(&server, &streamed()).await.expect_err("no answer").kind(), kind);
    }
}

#[tokio::test]
async fn a_length_is_exact() {
    let server = MemoryServer::new(Reply::body(200, "text/plain", "one"));
    let response = call(&server, &streamed()).await.expect("a head");
    assert_eq!(response.headers()["content-length"], "3");
    assert_eq!(response.body().size_hint().exact(), Some(3));
}

#[tokio::test(start_paused = true)]
async fn delays_are_played_in_paused_time() {
    let seconds = Duration::from_secs;
    let reply = Reply::sse("one two").cut(Cut::Every(3));
    let reply = reply.delay_head(seconds(100)).delay_first(seconds(20)).delay(seconds(3));
    let server = MemoryServer::new(reply);

    let start = Instant::now();
    let mut body = call(&server, &streamed()).await.expect("a head").into_body();
    let mut times = vec![start.elapsed().as_secs()];
    while let Some(frame) = body.frame().await {
        frame.expect("a frame");
        times.push(start.elapsed().as_secs());
    }
    assert_eq!(times, [100, 120, 123, 126]);
}

#[tokio::test(start_paused = true)]
async fn stalls_and_silence_last_for_ever() {
    let script = Script::new().reply(Reply::text("Hello").stall_after(10)).reply(Reply::silence());
    let server = MemoryServer::new(script);
    let year = Duration::from_secs(365 * 24 * 3600);

    let body = call(&server, &streamed()).await.expect("a head").into_body();
    time::timeout(year, body.collect()).await.expect_err("a stall");
    assert!(server.wait_for_abort(LIMIT).await.aborted());

    time::timeout(year, call(&server, &streamed())).await.expect_err("silence");
    assert!(server.requests()[1].aborted());
}

#[tokio::test]
async fn body_dropped_before_its_end_is_an_abort() {
    let server =
        MemoryServer::new(Script::new().otherwise(Reply::sse("one two").cut(Cut::Every(4))));
    for frames in 0..=2 {
        let mut body = call(&server, &streamed()).await.expect("a head").into_body();
        for _ in 0..frames {
            body.frame().await.expect("a frame").expect("no error");
        }
        assert_eq!(body.is_end_stream(), frames == 2);
    }
    let aborted: Vec<_> = server.requests().iter().map(|request| request.aborted()).collect();
    assert_eq!(aborted, [true, true, false]);
}

#[test]
fn answers_without_delays_need_no_runtime() {
    let server = MemoryServer::new(Reply::text("Hello"));
    let request = streamed();
    let mut answer = std::pin::pin!(ask_memory(&server, &request));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(answer.as_mut().poll(&mut cx).is_ready());
}
