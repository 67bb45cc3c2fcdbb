//! A pool of connections, and transactions on them.

use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use oa_session::{Error, ErrorKind};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tokio_postgres::Client;

use crate::connect::Connector;
use crate::error::{Failure, Stage};
use crate::options::PostgresOptions;
use crate::schema;

/// The statements of a transaction.
pub(crate) type Job<T> = Box<dyn for<'c> FnOnce(&'c Client) -> Running<'c, T> + Send>;

pub(crate) type Running<'c, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'c>>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Access {
    Read,
    Write,
}

impl Access {
    /// Writers lock the session that they change, and then see all committed changes. All statements of a reader see
    /// the same state.
    fn begin(self) -> &'static str {
        match self {
            Self::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            // After waiting for a lock, a statement at this level reads the row anew. With `REPEATABLE READ`,
            // it would fail instead of finding the other writer's revision.
            Self::Write => "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE",
        }
    }

    fn stage(self) -> Stage {
        match self {
            Self::Read => Stage::Read,
            Self::Write => Stage::Change,
        }
    }

    fn last_stage(self) -> Stage {
        match self {
            Self::Read => Stage::Read,
            Self::Write => Stage::Commit,
        }
    }
}

pub(crate) struct Pool {
    connector: Connector,
    /// One permit for each connection that may be open.
    permits: Semaphore,
    /// The idle connections, most recently used last.
    idle: Mutex<Vec<Client>>,
    /// The number of the table of sessions, once the tables are prepared.
    table: OnceLock<String>,
}

impl Pool {
    pub(crate) fn new(options: PostgresOptions) -> Self {
        Self {
            permits: Semaphore::new(options.connections),
            idle: Mutex::new(Vec::new()),
            table: OnceLock::new(),
            connector: Connector::new(options),
        }
    }

    fn options(&self) -> &PostgresOptions {
        &self.connector.options
    }

    /// Creates or migrates the tables, and keeps the connection.
    pub(crate) async fn prepare(&self) -> Result<(), Error> {
        let client = self.connector.connect().await?;
        let schema = &self.options().schema;
        let place = |error: Error| error.located(format_args!("schema {schema}"));
        let prepared = self.bounded(async {
            schema::prepare(&client, schema).await?;
            schema::table_after(&client, "").await
        });
        let table = prepared.await.map_err(|failure| place(failure.into_error(Stage::Change)))?;
        self.table.get_or_init(|| table.unwrap_or_default());
        // Without a permit, because nobody else knows the pool yet. A later connection is opened only when
        // none is idle, so idle and leased ones together never exceed the permits.
        self.idle().push(client);
        Ok(())
    }

    /// Runs a job in its own transaction, unless `is_wanted` returns false when its turn comes. Makes all of its
    /// changes or none.
    pub(crate) async fn transact<T>(
        &self,
        access: Access,
        is_wanted: impl Fn() -> bool,
        job: Job<T>,
    ) -> Result<T, Error> {
        let time = self.options().limits.timeout;
        let permit = timeout(time, self.permits.acquire()).await;
        let Ok(Ok(permit)) = permit else {
            let message = "all connections of the store are in use";
            return Err(Error::new(ErrorKind::Busy, message));
        };
        // Asked only here: from now on the operation is completed, even if its caller leaves.
        if !is_wanted() {
            return Err(Error::new(ErrorKind::Closed, "the caller has dropped the operation"));
        }
        let client = self.begin(access).await?;
        let lease = Lease { pool: self, client, _permit: permit };
        let stage = access.stage();
        match self.bounded(job(&lease.client)).await {
            Ok(value) => {
                // The stage changes with this statement: before it, a lost connection means that nothing was
                // changed, from here on the outcome may be unknown.
                let committed = self.run(&lease.client, "COMMIT").await;
                committed.map_err(|failure| failure.into_error(access.last_stage()))?;
                lease.give_back();
                Ok(value)
            }
            Err(failure) => {
                // A lost connection is closed with its lease, and the server rolls back when it notices.
                if !failure.is_lost() && self.run(&lease.client, "ROLLBACK").await.is_ok() {
                    lease.give_back();
                }
                Err(failure.into_error(stage))
            }
        }
    }

    /// Begins a transaction. An idle connection may have been closed, for example by a restart of the server. Nothing
    /// has happened on it yet, so another one is taken.
    async fn begin(&self, access: Access) -> Result<Client, Error> {
        loop {
            let idle = self.idle().pop();
            let Some(client) = idle else {
                let client = self.connector.connect().await?;
                let mut began = self.begin_on(&client, access).await;
                if began.is_ok() {
                    // Only for a new connection, not for each operation: a store that keeps its connections does not
                    // notice a migration.
                    began = self.bounded(schema::check_version(&client)).await;
                }
                began.map_err(|failure| failure.into_error(access.stage()))?;
                return Ok(client);
            };
            if client.is_closed() {
                continue;
            }
            match self.begin_on(&client, access).await {
                Ok(()) => return Ok(client),
                // A network that has forgotten this connection has forgotten those that were idle for longer. One after
                // the other, they would keep the operation waiting for minutes.
                Err(Failure::Silent(_)) => self.idle().clear(),
                Err(failure) if failure.is_lost() => {}
                Err(failure) => return Err(failure.into_error(access.stage())),
            }
        }
    }

    /// Begins a transaction in the schema that was opened. Another one with its name has other sessions, whose revisions
    /// may be those that a writer knows.
    async fn begin_on(&self, client: &Client, access: Access) -> Result<(), Failure> {
        let table = self.bounded(schema::table_after(client, access.begin())).await?;
        if table.is_some() && table.as_ref() == self.table.get() {
            return Ok(());
        }
        let schema = &self.options().schema;
        let message = format!("schema {schema} was dropped or replaced: open the store again");
        Err(Error::new(ErrorKind::Io, message).into())
    }

    async fn run(&self, client: &Client, sql: &str) -> Result<(), Failure> {
        self.bounded(async { Ok(client.batch_execute(sql).await?) }).await
    }

    /// Waits for the server, which may wait for other writers.
    async fn bounded<T>(
        &self,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let time = self.options().limits.timeout.saturating_add(self.options().answer_timeout);
        timeout(time, answer).await.unwrap_or(Err(Failure::Silent(time)))
    }

    /// Closes all connections, after the store was dropped.
    pub(crate) async fn close(&self) {
        /// The time for the last messages to be sent.
        const GOODBYE: Duration = Duration::from_secs(1);

        let all = u32::try_from(self.options().connections).unwrap_or(u32::MAX);
        // Operations whose futures were dropped are finished first.
        let time = self.options().limits.timeout;
        let _ = timeout(time, self.permits.acquire_many(all)).await;
        self.idle().clear();
        self.connector.finished(GOODBYE).await;
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Client>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection in use. It is closed unless it is returned to the pool, because its state is then unknown.
struct Lease<'p> {
    pool: &'p Pool,
    client: Client,
    // Fields are dropped in this order, and `give_back` moves only the client: in both cases the connection
    // is idle or closed before another operation gets the permit.
    _permit: SemaphorePermit<'p>,
}

impl Lease<'_> {
    fn give_back(self) {
        self.pool.idle().push(self.client);
    }
}
