use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use oa_types::Message;

use crate::append::Append;
use crate::contract::expect;
use crate::contract::fixture::{at, create, id};
use crate::contract::turns::turn;
use crate::error::ErrorKind;
use crate::store::SessionStore;

const WRITERS: usize = 8;
const TURNS: usize = 6;

pub(super) async fn check(open: &mut dyn FnMut() -> Arc<dyn SessionStore>) {
    let shared = open();
    create(&*shared, "writers/shared").await;
    join((0..WRITERS).map(|writer| alone(open(), writer))).await;
    join((0..WRITERS).map(|writer| together(open(), writer))).await;
    join((0..WRITERS).map(|writer| together(Arc::clone(&shared), writer + WRITERS))).await;

    for writer in 0..WRITERS {
        let session = shared.load(&id(&format!("writers/{writer}"))).await;
        let expected: Vec<Message> =
            (0..TURNS).flat_map(|number| turn(of(writer, number))).collect();
        assert_eq!(expect::ok("load", session).messages, expected);
    }
    // Whole turns of all writers, in each writer's order.
    let messages = expect::ok("load", shared.load(&id("writers/shared")).await).messages;
    let mut next = [0; 2 * WRITERS];
    for written in messages.chunks(turn(0).len()) {
        let writer = (0..next.len()).find(|writer| *written == turn(of(*writer, next[*writer])));
        let writer = writer.expect("turns of several writers are mixed, lost or doubled");
        next[writer] += 1;
    }
    assert_eq!(next, [TURNS; 2 * WRITERS]);
}

fn of(writer: usize, number: usize) -> usize {
    writer * 1_000 + number
}

/// Writes a session that no one else writes: there are no conflicts.
async fn alone(store: Arc<dyn SessionStore>, writer: usize) {
    let mut info = create(&*store, &format!("writers/{writer}")).await;
    for number in 0..TURNS {
        let append = Append::new(info.revision, turn(of(writer, number)), at(1));
        info = expect::ok("append", store.append(&info.id, append).await);
    }
}

/// Writes a shared session: on a conflict, it loads the session again.
async fn together(store: Arc<dyn SessionStore>, writer: usize) {
    let shared = id("writers/shared");
    for number in 0..TURNS {
        loop {
            let known = expect::ok("load", store.load(&shared).await).info;
            let append = Append::new(known.revision, turn(of(writer, number)), at(1));
            match store.append(&shared, append).await {
                Ok(_) => break,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
            }
        }
    }
}

/// Polls all futures concurrently.
pub(super) async fn join(futures: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut futures: Vec<Pin<Box<_>>> = futures.map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        futures.retain_mut(|future| future.as_mut().poll(cx).is_pending());
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
