//! A store whose operations fail when a test says so.

use std::sync::{Arc, Mutex};

use oa_session::contract::block_on;
use oa_session::{
    Append, Error, ErrorKind, FaultPoint, FaultStore, List, MemoryStore, NewSession, Operation,
    SessionStore, StoreFuture,
};
use serde_json::Map;

use crate::{at, id, turn};

const OPERATIONS: [Operation; 10] = [
    Operation::Append,
    Operation::AppendOnce,
    Operation::Create,
    Operation::Delete,
    Operation::Fork,
    Operation::List,
    Operation::Load,
    Operation::Rewind,
    Operation::SetMetadata,
    Operation::SetPending,
];

/// Performs an operation on a store with the session `a` of one turn.
fn perform(operation: Operation, store: &dyn SessionStore) -> Result<(), Error> {
    fn done<T>(work: StoreFuture<'_, T>) -> Result<(), Error> {
        block_on(work).map(drop)
    }
    let a = id("a");
    let revision = block_on(store.load(&a)).map(|session| session.info.revision);
    let append = |revision| Append::new(revision, turn(1), at(2));
    match operation {
        Operation::Append => done(store.append(&a, append(revision?))),
        Operation::AppendOnce => done(store.append_once(&a, 2, append(revision?))),
        Operation::Create => done(store.create(NewSession::new(id("b"), at(2)))),
        Operation::Delete => done(store.delete(&a)),
        Operation::Fork => done(store.fork(&a, 2, NewSession::new(id("c"), at(2)))),
        Operation::List => done(store.list(List::new(10))),
        Operation::Rewind => done(store.rewind(&a, revision?, 0, at(2))),
        Operation::SetMetadata => {
            let members = Map::from_iter([("n".to_owned(), 1.into())]);
            done(store.set_metadata(&a, members, at(2)))
        }
        Operation::SetPending => done(store.set_pending(&a, revision?, None, at(2))),
        _ => revision.map(drop),
    }
}

/// The sessions with all that they contain.
fn contents(store: &MemoryStore) -> String {
    let page = block_on(store.list(List::new(10))).expect("it lists");
    let load =
        |info: &oa_session::SessionInfo| block_on(store.load(&info.id)).expect("it is there");
    format!("{:#?}", page.sessions.iter().map(load).collect::<Vec<_>>())
}

fn with_a_session() -> MemoryStore {
    let store = MemoryStore::new();
    let created = block_on(store.create(NewSession::new(id("a"), at(0)))).expect("it is new");
    let append = Append::new(created.revision, turn(0), at(1));
    block_on(store.append(&id("a"), append)).expect("it is valid");
    store
}

#[test]
fn each_operation_fails_where_it_is_told_to() {
    for operation in OPERATIONS {
        for point in [FaultPoint::Before(operation), FaultPoint::After(operation)] {
            let store = FaultStore::new(with_a_session(), move |reached| {
                let fails = reached == point;
                async move { if fails { Err(Error::new(ErrorKind::Io, "broken")) } else { Ok(()) } }
            });
            let error = perform(operation, &store).expect_err("it is told to");
            assert_eq!(error.kind(), ErrorKind::Io, "{point:?}");
            let expected = with_a_session();
            if point == FaultPoint::After(operation) {
                perform(operation, &expected).unwrap_or_else(|error| panic!("{point:?}: {error}"));
            }
            assert_eq!(contents(store.inner()), contents(&expected), "{point:?}");
        }
    }
}

#[test]
fn without_faults_nothing_changes() {
    for operation in OPERATIONS {
        let points = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&points);
        let store = FaultStore::new(with_a_session(), move |point| {
            seen.lock().expect("no test panics in it").push(point);
            async { Ok(()) }
        });
        perform(operation, &store).unwrap_or_else(|error| panic!("{operation:?}: {error}"));
        let expected = with_a_session();
        perform(operation, &expected).unwrap_or_else(|error| panic!("{operation:?}: {error}"));
        assert_eq!(contents(store.inner()), contents(&expected), "{operation:?}");
        let seen = points.lock().expect("no test panics in it");
        assert!(seen.ends_with(&[FaultPoint::Before(operation), FaultPoint::After(operation)]));
    }
}

#[test]
fn failed_operations_are_not_told_twice() {
    let store = FaultStore::new(MemoryStore::new(), async |point| match point {
        FaultPoint::After(_) => panic!("it failed"),
        _ => Ok(()),
    });
    let error = block_on(store.load(&id("a"))).expect_err("it is not there");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
