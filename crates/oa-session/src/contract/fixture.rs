use crate::contract::expect;
use crate::id::SessionId;
use crate::session::{NewSession, SessionInfo};
use crate::store::SessionStore;
use crate::timestamp::Timestamp;

pub(super) fn id(text: &str) -> SessionId {
    SessionId::new(text).expect("it is an id")
}

pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Creates a session without metadata.
pub(super) async fn create(store: &dyn SessionStore, text: &str) -> SessionInfo {
    let session = NewSession::new(id(text), at(1));
    expect::ok("create", store.create(session).await)
}
