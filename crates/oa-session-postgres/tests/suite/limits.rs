//! Limits that require asking the database.

use std::time::Duration;

use oa_session::contract::block_on;
use oa_session::{Append, ErrorKind, Limits, List, SessionStore};

use crate::{Place, append, at, create, id, kind, turn};

#[test]
fn every_limit_is_reached_and_loses_nothing() {
    let Some(place) = Place::new() else { return };
    let mut limits = Limits::default();
    (limits.messages, limits.session_bytes, limits.page) = (5, 1_000, 3);
    let store = place.open_with(limits);
    let info = create(&store, "a");
    let info = append(&store, &info, turn(0)).unwrap();
    let info = append(&store, &info, turn(1)).unwrap();
    assert_eq!(kind(append(&store, &info, turn(2))), ErrorKind::Limit);
    let long = vec![oa_types::Message::user("-".repeat(990))];
    assert_eq!(kind(append(&store, &info, long.clone())), ErrorKind::Limit);
    // Replacing others, there is room.
    let instead = Append::new(info.revision, long, at(2)).keeping(0);
    assert_eq!(kind(block_on(store.append(&info.id, instead))), ErrorKind::Limit);
    let instead = Append::new(info.revision, turn(3), at(2)).keeping(2);
    let info = block_on(store.append(&info.id, instead)).unwrap();
    assert_eq!(block_on(store.load(&info.id)).unwrap().info, info);
    assert_eq!(kind(block_on(store.list(List::new(4)))), ErrorKind::Limit);

    let mut narrow = Limits::default();
    narrow.messages = 3;
    assert_eq!(kind(block_on(place.open_with(narrow).load(&id("a")))), ErrorKind::Limit);
    let mut narrow = Limits::default();
    narrow.session_bytes = 100;
    let narrow = place.open_with(narrow);
    assert_eq!(kind(block_on(narrow.load(&id("a")))), ErrorKind::Limit);
    // What the table says about itself is not believed.
    place.execute("UPDATE sessions SET bytes = 1");
    assert_eq!(kind(block_on(narrow.load(&id("a")))), ErrorKind::Limit);
    assert_eq!(block_on(store.load(&info.id)).unwrap().info, info);
}

#[test]
fn maximal_limits_do_not_overflow() {
    let Some(place) = Place::new() else { return };
    let mut limits = Limits::default();
    (limits.messages, limits.session_bytes, limits.page) = (usize::MAX, u64::MAX, usize::MAX);
    (limits.record_bytes, limits.metadata_bytes) = (usize::MAX, usize::MAX);
    limits.timeout = Duration::MAX;
    let store = place.open_with(limits);
    let info = create(&store, "a");
    let info = append(&store, &info, turn(0)).unwrap();
    let page = block_on(store.list(List::new(usize::MAX))).unwrap();
    assert_eq!((page.sessions, page.next), (vec![info], None));
}
