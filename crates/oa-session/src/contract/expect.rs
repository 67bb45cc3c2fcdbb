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
        Ok(_) => panic!("{what}: it is no error, and was to be {expected:?}"),
        Err(error) => assert_eq!(error.kind(), expected, "{what}: {error:?}"),
    }
}

/// Loads a session and checks that it equals the result of its last change.
pub(super) async fn stored(store: &dyn SessionStore, info: &SessionInfo) -> Session {
    let session = ok("load", store.load(&info.id).await);
    assert_eq!(session.info, *info, "what is loaded is not what the last change has returned");
    assert_eq!(session.messages.len(), info.message_count, "the count of messages");
    assert_eq!(session.pending.is_some(), info.is_pending, "whether a call waits");
    session
}
