//! Opening connections.

use std::sync::Arc;
use std::time::Duration;

use oa_session::{Error, ErrorKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
#[cfg(feature = "tls")]
use tokio_postgres::config::SslMode;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls};

use crate::error::{Failure, Stage, invalid, words};
use crate::options::PostgresOptions;
use crate::row::get;

/// The pause before another attempt to connect to a server that accepts no connections.
const PAUSE: Duration = Duration::from_millis(50);

/// Sets the parameters that the guarantees of a store require, whatever the defaults of the server, database or user. A
/// `synchronous_commit` weaker than `local` would acknowledge writes that are not on disk.
const SETTINGS: &str = "SELECT current_setting('server_encoding'), \
     set_config('search_path', quote_ident($1), false), \
     set_config('lock_timeout', $2, false), \
     set_config('idle_in_transaction_session_timeout', $3, false), \
     CASE WHEN current_setting('synchronous_commit') = 'off' \
         THEN set_config('synchronous_commit', 'on', false) END";

/// Opens connections.
pub(crate) struct Connector {
    pub(crate) options: PostgresOptions,
    #[cfg(feature = "tls")]
    trust: oa_tls::Trust,
    /// One permit for each task that serves a connection.
    tasks: Arc<Semaphore>,
}

impl Connector {
    pub(crate) fn new(options: PostgresOptions) -> Self {
        Self {
            #[cfg(feature = "tls")]
            // Required by servers with direct TLS negotiation (`sslnegotiation=direct`), ignored by others.
            trust: oa_tls::Trust::new(options.roots.clone(), b"postgresql"),
            options,
            tasks: Arc::new(Semaphore::new(TASKS)),
        }
    }

    /// Opens a connection. Retries until the timeout in the limits while the server is starting or has no free
    /// connection.
    pub(crate) async fn connect(&self) -> Result<Client, Error> {
        // Never, if it is out of range.
        let give_up = Instant::now().checked_add(self.options.limits.timeout);
        loop {
            let time = self.options.connect_timeout;
            // A dropped attempt leaves nothing behind: without its client, the task of the connection ends.
            let failure = match timeout(time, self.establish()).await {
                Ok(Ok(client)) => return Ok(client),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::Silent(time),
            };
            let is_soon_over = give_up.is_some_and(|end| Instant::now() + PAUSE >= end);
            if failure.is_temporary() && !is_soon_over {
                sleep(PAUSE).await;
                continue;
            }
            return Err(self.refused(failure));
        }
    }

    async fn establish(&self) -> Result<Client, Failure> {
        let client = match self.options.config.get_ssl_mode() {
            #[cfg(feature = "tls")]
            SslMode::Require | SslMode::Prefer => {
                let encryption =
                    crate::tls::Encryption::trusting(&self.trust).await.map_err(|error| {
                        let message = "no root certificates could be loaded";
                        Error::new(ErrorKind::Io, message).with_source(error)
                    })?;
                let (client, connection) = self.options.config.connect(encryption).await?;
                self.serve(connection).await?;
                client
            }
            // Without the feature, no other mode gets here.
            _ => {
                let (client, connection) = self.options.config.connect(NoTls).await?;
                self.serve(connection).await?;
                client
            }
        };
        let millis = |time: Duration| time.as_millis().clamp(1, i32::MAX as u128).to_string();
        let (schema, answer) = (&self.options.schema, millis(self.options.answer_timeout));
        let lock = millis(self.options.limits.timeout);
        // One round trip for all settings and the encoding.
        let row = client
            .query_typed_one(
                SETTINGS,
                &[(schema, Type::TEXT), (&lock, Type::TEXT), (&answer, Type::TEXT)],
            )
            .await?;
        match get::<&str>(&row, 0)? {
            "UTF8" => Ok(client),
            other => Err(invalid(format!(
                "the database has the encoding {other}, but sessions need UTF8"
            ))
            .into()),
        }
    }

    /// Serves a connection in its own task, which ends with the connection.
    async fn serve(
        &self,
        connection: impl Future<Output = Result<(), tokio_postgres::Error>> + Send + 'static,
    ) -> Result<(), Error> {
        let permit = Arc::clone(&self.tasks).acquire_owned().await;
        let permit: OwnedSemaphorePermit =
            permit.map_err(|_| Error::new(ErrorKind::Closed, "the store is closed"))?;
        tokio::spawn(async move {
            // The user of the connection gets its error.
            let _ = connection.await;
            drop(permit);
        });
        Ok(())
    }

    /// Waits until all connections are closed.
    pub(crate) async fn finished(&self, time: Duration) {
        let _ = timeout(time, self.tasks.acquire_many(TASKS as u32)).await;
    }

    fn refused(&self, failure: Failure) -> Error {
        let servers = format!("cannot connect to PostgreSQL at {}", self.options.servers());
        let kind = if failure.is_temporary() { ErrorKind::Busy } else { ErrorKind::Io };
        match failure {
            Failure::Server(error) => {
                Error::new(kind, format!("{servers}: {}", words(&error))).with_source(error)
            }
            // `Stage::Read`, because nothing was to be changed yet.
            other => other.into_error(Stage::Read).located(servers),
        }
    }
}

/// More than any pool has connections.
const TASKS: usize = 1 << 20;
