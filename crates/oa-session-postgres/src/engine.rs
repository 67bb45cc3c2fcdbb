use std::fmt;
use std::sync::Arc;
use std::thread;

use oa_session::{Error, ErrorKind};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_postgres::Client;

use crate::options::PostgresOptions;
use crate::pool::{Access, Pool, Running};

const NAME: &str = "oa-session-postgres";

/// A thread with a runtime for the connections of a store, so that futures of the store can be polled anywhere, and
/// operations that have started are completed even if their futures are dropped.
///
/// Dropping it closes the connections after the started operations are done.
pub(crate) struct Engine {
    handle: Handle,
    pool: Arc<Pool>,
    /// Dropped with the engine, which ends the thread.
    _alive: oneshot::Sender<()>,
}

impl Engine {
    pub(crate) fn start(options: PostgresOptions) -> Result<Self, Error> {
        let started = |error| {
            Error::new(ErrorKind::Io, format!("cannot start the thread {NAME}")).with_source(error)
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(started)?;
        let pool = Arc::new(Pool::new(options));
        let (alive, ended) = oneshot::channel();
        let (handle, closing) = (runtime.handle().clone(), Arc::clone(&pool));
        let thread = thread::Builder::new().name(NAME.to_owned());
        let run = move || {
            runtime.block_on(async {
                // Ends with an error when the sender is dropped. Until then, this thread drives all spawned
                // tasks: the runtime has no other.
                let _ = ended.await;
                closing.close().await;
            });
        };
        thread.spawn(run).map_err(started)?;
        Ok(Self { handle, pool, _alive: alive })
    }

    /// Creates or migrates the tables.
    pub(crate) async fn prepare(&self) -> Result<(), Error> {
        let (sender, receiver) = oneshot::channel();
        let pool = Arc::clone(&self.pool);
        self.handle.spawn(async move {
            let _ = sender.send(pool.prepare().await);
        });
        receiver.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Runs a job in a transaction.
    ///
    /// # Cancel safety
    ///
    /// A job whose future is dropped while all connections are in use does not run; one that has started continues.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        access: Access,
        job: impl for<'c> FnOnce(&'c Client) -> Running<'c, T> + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        let pool = Arc::clone(&self.pool);
        self.handle.spawn(async move {
            let result = pool.transact(access, || !sender.is_closed(), Box::new(job)).await;
            let _ = sender.send(result);
        });
        receiver.await.unwrap_or_else(|_| Err(closed()))
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store's thread has failed: open the store again")
}
