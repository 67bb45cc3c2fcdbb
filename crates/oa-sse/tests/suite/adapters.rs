//! The stream and body adapters: the same events, the source's errors, an orderly end.

#![cfg(all(feature = "body", feature = "stream"))]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Body, Frame};
use oa_sse::{BodyEvents, EventStream, ReadError};

/// Chunks from memory, as a stream and as a body.
struct Source<E>(VecDeque<Result<Bytes, E>>);

impl<E> Source<E> {
    fn new(chunks: impl IntoIterator<Item = Result<&'static str, E>>) -> Self {
        Self::of(chunks.into_iter().map(|chunk| chunk.map(Bytes::from)))
    }

    fn of(chunks: impl IntoIterator<Item = Result<Bytes, E>>) -> Self {
        Self(chunks.into_iter().collect())
    }
}

impl<E> Unpin for Source<E> {}

impl<E> Stream for Source<E> {
    type Item = Result<Bytes, E>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front())
    }
}

impl<E> Body for Source<E> {
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        self.poll_next(cx).map_ok(Frame::data)
    }
}

fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("nothing here waits"),
    }
}

fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    ready(std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)))
}

#[test]
fn stream_delivers_unfinished_last_event() {
    let chunks = ["data: a\n\nda", "ta: b\n\ndata: c"].map(Ok::<_, Infallible>);
    let mut events = EventStream::new(Source::new(chunks));
    let mut seen = Vec::new();
    while let Some(event) = next(&mut events) {
        seen.push(event.unwrap().data().into_owned());
    }
    assert_eq!(seen, ["a", "b", "c"]);
    assert!(next(&mut events).is_none());
}

#[test]
fn adapters_give_their_source_back() {
    let chunks = ["data: a\n\n", "data: b\n\n", "data: c\n\n"].map(Ok::<_, Infallible>);
    let mut events = EventStream::new(Source::new(chunks));
    let event = ready(events.next()).unwrap().unwrap();
    assert_eq!((event.raw_data(), event.data_bytes()), (&b"a"[..], Bytes::from("a")));
    assert_eq!(events.get_ref().0.len(), 2);
    assert!(matches!(events.get_mut().0.pop_front(), Some(Ok(chunk)) if chunk == "data: b\n\n"));

    let mut events = BodyEvents::new(events.into_inner());
    assert_eq!(ready(events.next()).unwrap().unwrap().raw_data(), b"c");
    assert!(events.get_ref().0.is_empty());
    events.get_mut().0.push_back(Ok("data: d".into()));
    assert_eq!(events.into_inner().0.len(), 1);
}

#[test]
fn next_connection_gets_the_parser() {
    let first = "id: 1\nretry: 5\ndata: a\n\nid: 2\ndata: not taken\n\nid: 3\ndata: cut";
    let next = || ["data: b\n\n"].map(Ok::<_, Infallible>);
    let mut events = EventStream::new(Source::new([Ok::<_, Infallible>(first)]));
    assert_eq!(ready(events.next()).unwrap().unwrap().last_event_id(), "1");
    let mut events = EventStream::with_parser(Source::new(next()), events.into_parser());
    let event = ready(events.next()).unwrap().unwrap();
    assert_eq!((&*event.data(), event.last_event_id()), ("b", "1"));
    assert!(ready(events.next()).is_none());

    let mut events = BodyEvents::with_parser(Source::new(next()), events.into_parser());
    let event = ready(events.next()).unwrap().unwrap();
    assert_eq!((&*event.data(), event.last_event_id()), ("b", "1"));
    assert_eq!(events.into_parser().retry(), Some(Duration::from_millis(5)));
}

#[test]
fn source_error_drops_unfinished_event() {
    let chunks =
        [Ok("data: a\n\ndata: half"), Err(io::Error::other("gone")), Ok("data: never\n\n")];
    let mut events = EventStream::new(Source::new(chunks));
    assert_eq!(next(&mut events).unwrap().unwrap().data(), "a");
    assert!(matches!(next(&mut events), Some(Err(ReadError::Source(_)))));
    assert!(next(&mut events).is_none());
}

#[test]
fn body_lends_its_events() {
    let chunks = ["data: a\n\nda", "ta: b\n", "", "\ndata: c"].map(Ok::<_, Infallible>);
    let mut events = BodyEvents::new(Source::new(chunks));
    let mut seen = Vec::new();
    while let Some(event) = ready(events.next()).unwrap() {
        seen.push(event.data().into_owned());
    }
    assert_eq!(seen, ["a", "b", "c"]);
    assert!(ready(events.next()).unwrap().is_none());
}

#[test]
fn body_error_is_reported_once() {
    let chunks = [Ok("data: a\n\n"), Err(io::Error::other("gone"))];
    let mut events = BodyEvents::new(Source::new(chunks));
    assert!(ready(events.next()).unwrap().is_some());
    let error = ready(events.next()).unwrap_err();
    assert_eq!(error.to_string(), "the source of the event stream failed");
    assert!(ready(events.next()).unwrap().is_none());
}

/// Returns how often a future is pending before it is done, checking that it arranged each time to be woken.
fn yields<T>(future: impl Future<Output = T>) -> (T, usize) {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let (mut future, mut yields) = (pin!(future), 0);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return (output, yields),
            Poll::Pending => {
                assert!(woken.0.swap(false, Ordering::Relaxed), "nobody would poll again");
                yields += 1;
            }
        }
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn flood_yields_and_loses_nothing() {
    let large = ": ping\n\n".repeat(64 << 10);
    let floods: [Vec<&str>; 4] =
        [vec![": ping\n\n"; 4_000], vec![""; 4_000], vec!["\n"; 4_000], vec![&large]];
    for flood in floods {
        let flood = || flood.iter().map(|chunk| Bytes::copy_from_slice(chunk.as_bytes()));
        let chunks =
            || flood().chain([Bytes::from_static(b"data: a\n\n")]).map(Ok::<_, Infallible>);
        let mut events = EventStream::new(Source::of(chunks()));
        let (event, pauses) = yields(events.next());
        assert_eq!(event.unwrap().unwrap().data(), "a");
        assert!(pauses >= 3, "{pauses}");
        let mut events = BodyEvents::new(Source::of(chunks()));
        let (event, pauses) =
            yields(async { events.next().await.unwrap().unwrap().data().into_owned() });
        assert_eq!(event, "a");
        assert!(pauses >= 3, "{pauses}");
    }
}
