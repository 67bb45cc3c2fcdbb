//! A store in PostgreSQL for the tests' workers. One may die right after it has saved a turn.

use std::fs::File;
use std::io;
use std::process::abort;
use std::sync::Arc;

use oa_session::{
    Append, List, NewSession, Pending, Revision, Session, SessionId, SessionInfo, SessionPage,
    SessionStore, StoreFuture, Timestamp,
};
use oa_session_postgres::PostgresStore;
use serde_json::{Map, Value};

pub(crate) async fn connect(
    url: &str,
    dies_at: Option<String>,
) -> io::Result<Arc<dyn SessionStore>> {
    let inner = PostgresStore::connect(url).await.map_err(io::Error::other)?;
    Ok(Arc::new(Store { inner, dies_at }))
}

#[derive(Debug)]
struct Store {
    inner: PostgresStore,
    dies_at: Option<String>,
}

impl SessionStore for Store {
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionInfo> {
        self.inner.create(session)
    }

    fn append<'a>(&'a self, id: &'a SessionId, append: Append) -> StoreFuture<'a, SessionInfo> {
        self.inner.append(id, append)
    }

    fn append_once<'a>(
        &'a self,
        id: &'a SessionId,
        message_count: usize,
        append: Append,
    ) -> StoreFuture<'a, SessionInfo> {
        Box::pin(async move {
            let saved = self.inner.append_once(id, message_count, append).await;
            if let (Ok(_), Some(file)) = (&saved, &self.dies_at)
                && File::create_new(file).is_ok()
            {
                // As by `kill -9`: the engine has not heard of it.
                abort();
            }
            saved
        })
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, Session> {
        self.inner.load(id)
    }

    fn list(&self, list: List) -> StoreFuture<'_, SessionPage> {
        self.inner.list(list)
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, ()> {
        self.inner.delete(id)
    }

    fn fork<'a>(
        &'a self,
        id: &'a SessionId,
        keep: usize,
        fork: NewSession,
    ) -> StoreFuture<'a, SessionInfo> {
        self.inner.fork(id, keep, fork)
    }

    fn set_metadata<'a>(
        &'a self,
        id: &'a SessionId,
        members: Map<String, Value>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        self.inner.set_metadata(id, members, at)
    }

    fn set_pending<'a>(
        &'a self,
        id: &'a SessionId,
        revision: Revision,
        pending: Option<Pending>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        self.inner.set_pending(id, revision, pending, at)
    }
}
