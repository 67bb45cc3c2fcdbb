use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use oa_transport::{TimeoutKind, Timeouts, Watch};
use tokio::time::{Instant, sleep};

fn seconds(first: u64, idle: u64, content: u64, total: u64) -> Timeouts {
    let seconds = |seconds| (seconds > 0).then(|| Duration::from_secs(seconds));
    let mut timeouts = Timeouts::default();
    timeouts.first_token = seconds(first);
    timeouts.idle = seconds(idle);
    timeouts.content = seconds(content);
    timeouts.total = seconds(total);
    timeouts
}

#[derive(Clone, Copy)]
enum What {
    Bytes,
    Content,
}

use What::{Bytes, Content};

/// Reports arrivals at the given seconds; returns the first timeout that expires, and when.
async fn check(timeouts: Timeouts, coming: &[(u64, What)]) -> Option<(TimeoutKind, u64)> {
    let begun = Instant::now();
    let mut watch = Watch::new(timeouts);
    let mut coming = coming.iter();
    let mut next = coming.next();
    loop {
        let due = next.map_or(100_000, |(at, _)| *at);
        let mut due = Box::pin(tokio::time::sleep_until(begun + Duration::from_secs(due)));
        let expired = poll_fn(|cx| {
            if let Poll::Ready(kind) = watch.poll_expired(cx) {
                return Poll::Ready(Some(kind));
            }
            due.as_mut().poll(cx).map(|()| None)
        })
        .await;
        if let Some(kind) = expired {
            return Some((kind, begun.elapsed().as_secs()));
        }
        match next? {
            (_, Bytes) => watch.note_bytes(),
            (_, Content) => watch.note_content(),
        }
        next = coming.next();
    }
}

#[tokio::test(start_paused = true)]
async fn only_first_token_counts_before_content() {
    let timeouts = seconds(300, 60, 0, 0);
    assert_eq!(check(timeouts, &[]).await, Some((TimeoutKind::FirstToken, 300)));
    let comments: Vec<_> = (1..100).map(|at| (at * 10, Bytes)).collect();
    assert_eq!(check(timeouts, &comments).await, Some((TimeoutKind::FirstToken, 300)));
    assert_eq!(check(timeouts, &[(299, Content)]).await, Some((TimeoutKind::Idle, 359)));
}

#[tokio::test(start_paused = true)]
async fn any_byte_resets_idle_timeout() {
    let coming = [(1, Content), (50, Bytes), (100, Bytes), (150, Content)];
    let idle = check(seconds(300, 60, 0, 0), &coming).await;
    assert_eq!(idle, Some((TimeoutKind::Idle, 210)));
    let content = check(seconds(300, 60, 80, 0), &coming).await;
    assert_eq!(content, Some((TimeoutKind::Content, 81)));
    let short = check(seconds(300, 30, 80, 0), &coming).await;
    assert_eq!(short, Some((TimeoutKind::Idle, 31)));
}

#[tokio::test(start_paused = true)]
async fn total_timeout_limits_the_answer() {
    let coming: Vec<_> = (1..100).map(|at| (at * 5, Content)).collect();
    let total = check(seconds(300, 60, 0, 123), &coming).await;
    assert_eq!(total, Some((TimeoutKind::Total, 123)));
    assert_eq!(check(seconds(300, 60, 0, 7), &[]).await, Some((TimeoutKind::Total, 7)));
}

#[tokio::test(start_paused = true)]
async fn disabled_timeouts_never_expire() {
    assert_eq!(check(seconds(0, 0, 0, 0), &[]).await, None);
    let mut timeouts = seconds(0, 0, 0, 0);
    timeouts.first_token = Some(Duration::MAX);
    assert_eq!(check(timeouts, &[]).await, None);
    assert_eq!(check(seconds(5, 0, 0, 0), &[(4, Content)]).await, None);
}

#[tokio::test(start_paused = true)]
async fn only_content_defers_the_expected_end() {
    let expired = async |watch: &mut Watch| poll_fn(|cx| watch.poll_expired(cx)).await;
    let mut watch = Watch::new(seconds(300, 60, 0, 0));
    watch.note_content();
    let pending = poll_fn(|cx| Poll::Ready(watch.poll_expired(cx).is_pending()));
    assert!(pending.await);
    for at in 1..=20 {
        sleep(Duration::from_secs(1)).await;
        watch.note_bytes();
        if at == 10 {
            watch.note_content();
        }
        watch.expect_end(Duration::from_secs(5));
        let is_up = poll_fn(|cx| Poll::Ready(watch.poll_expired(cx).is_ready())).await;
        assert_eq!(watch.expired().is_some(), is_up, "after {at} s");
        assert_eq!(is_up, (6..10).contains(&at) || at >= 15, "after {at} s");
    }
    assert_eq!(expired(&mut watch).await, TimeoutKind::End);
    // A shorter limit counts from the time of the call.
    watch.expect_end(Duration::from_secs(1));
    let began = Instant::now();
    assert_eq!(expired(&mut watch).await, TimeoutKind::End);
    assert_eq!(began.elapsed(), Duration::from_secs(1));
}

/// Polled repeatedly by different tasks, with and without a reason.
#[tokio::test(start_paused = true)]
async fn last_task_that_polled_is_woken() {
    let mut watch = Watch::new(seconds(10, 3, 0, 0));
    for _ in 0..300 {
        let pending = poll_fn(|cx| Poll::Ready(watch.poll_expired(cx).is_pending())).await;
        assert!(pending);
    }
    let mut watch = tokio::spawn(async move {
        sleep(Duration::from_secs(9)).await;
        watch.note_content();
        assert!(poll_fn(|cx| Poll::Ready(watch.poll_expired(cx))).await.is_pending());
        watch
    })
    .await
    .unwrap();
    let kind = poll_fn(|cx| watch.poll_expired(cx)).await;
    assert_eq!((kind, watch.elapsed().as_secs()), (TimeoutKind::Idle, 12));
    assert_eq!(poll_fn(|cx| watch.poll_expired(cx)).await, TimeoutKind::Idle);
    assert!(watch.has_begun());
}
