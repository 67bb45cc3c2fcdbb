use serde_json::Map;

use crate::contract::expect;
use crate::contract::fixture::{at, id};
use crate::contract::turns::{append, turn};
use crate::error::ErrorKind;
use crate::list::List;
use crate::session::{NewSession, SessionInfo};
use crate::store::SessionStore;

/// Runs first, while the store is empty.
pub(super) async fn check(store: &dyn SessionStore) {
    let empty = expect::ok("list", store.list(List::new(10)).await);
    assert!(empty.sessions.is_empty() && empty.next.is_none(), "a new store is empty: {empty:?}");
    expect::kind("a page of nothing", ErrorKind::InvalidInput, store.list(List::new(0)).await);
    let endless = store.list(List::new(usize::MAX)).await;
    expect::kind("a page without end", ErrorKind::Limit, endless);

    let mut expected = Vec::new();
    for number in 0..23_i64 {
        // Some have the same time.
        let session = NewSession::new(id(&format!("lists/{number:02}")), at(number / 3));
        let session = session.with_title(format!("Number {number}"));
        expected.push(expect::ok("create", store.create(session).await));
    }
    expected[4] = append(store, &expected[4], turn(1)).await;
    let change = store.set_metadata(&expected[6].id, Map::new(), at(-5)).await;
    expected[6] = expect::ok("set_metadata", change);
    expected.sort_by_key(|session| (-session.updated_at.as_millis(), session.id.clone()));
    for size in [1, 5, 22, 23, 24] {
        assert_eq!(all(store, size).await, expected, "in pages of {size}");
    }

    // Sessions already listed do not reappear, whatever changes behind the cursor.
    let first = expect::ok("list", store.list(List::new(5)).await);
    let cursor = first.next.expect("there are more");
    expect::ok("delete", store.delete(cursor.id()).await);
    let moved = expected.pop().expect("there are sessions");
    let change = store.set_metadata(&moved.id, Map::new(), at(99)).await;
    let moved = expect::ok("set_metadata", change);
    let rest = expect::ok("list", store.list(List::new(30).after(cursor)).await);
    assert_eq!(rest.sessions, expected[5..], "behind a session that was deleted");
    expected.remove(4);
    expected.insert(0, moved);
    assert_eq!(all(store, 7).await, expected);
}

async fn all(store: &dyn SessionStore, size: usize) -> Vec<SessionInfo> {
    let mut sessions = Vec::new();
    let mut list = List::new(size);
    loop {
        let page = expect::ok("list", store.list(list).await);
        assert!(page.unreadable.is_empty(), "everything can be read: {:?}", page.unreadable);
        assert!(page.sessions.len() <= size, "the page is longer than {size}");
        sessions.extend(page.sessions);
        let Some(next) = page.next else {
            return sessions;
        };
        list = List::new(size).after(next);
    }
}
