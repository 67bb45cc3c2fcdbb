use crate::error::{Error, ErrorKind};
use crate::session::{Session, SessionInfo};
use crate::store::SessionStore;

#[track_caller]
pub(super) fn ok<T>(what: &str, result: Result<T, Error>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error:?}"),
    }
}

#[track_caller]
pub(super) fn kind<T>(what: &str, expected: ErrorKind, result: Result<T, Error>) {
    match result {
        Ok(_) => panic!("{what}: expected an error of kind {expected:?}"),
        Err(error) => assert_eq!(error.kind(), expected, "{what}: {error:?}"),
    }
}

/// Loads a session and checks that it equals the result of its last change.
pub(super) async fn stored(store: &dyn SessionStore, info: &SessionInfo) -> Session {
    let session = ok("load", store.load(&info.id).await);
    assert_eq!(
        session.info, *info,
        "the loaded session differs from what the last change returned"
    );
    assert_eq!(session.messages.len(), info.message_count, "message_count is wrong");
    assert_eq!(session.pending.is_some(), info.is_pending, "is_pending is wrong");
    session
}
