//! A store in PostgreSQL for the tests' workers. One may die right after it has saved a turn.

use std::fs::File;
use std::io;
use std::process::abort;
use std::sync::Arc;

use oa_session::{FaultPoint, FaultStore, Operation, SessionStore};
use oa_session_postgres::PostgresStore;

pub(crate) async fn connect(
    url: &str,
    dies_at: Option<String>,
) -> io::Result<Arc<dyn SessionStore>> {
    let store = PostgresStore::connect(url).await.map_err(io::Error::other)?;
    let Some(file) = dies_at else { return Ok(Arc::new(store)) };
    Ok(Arc::new(FaultStore::new(store, move |point| {
        let is_saved = point == FaultPoint::After(Operation::AppendOnce);
        if is_saved && File::create_new(&file).is_ok() {
            // As by `kill -9`: the engine has not heard of it.
            abort();
        }
        async { Ok(()) }
    })))
}
