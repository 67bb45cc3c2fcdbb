use std::fmt;

use oa_session::rules::{check_messages, check_pending, merge_metadata, open_calls};
use oa_session::{
    Append, Error, Limits, List, NewSession, Pending, Revision, Session, SessionId, SessionInfo,
    SessionPage, SessionStore, StoreFuture, Timestamp,
};
use oa_types::Message;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::database::{self, Stored};
use crate::engine::Engine;
use crate::error::corrupt;
use crate::options::PostgresOptions;
use crate::pool::Access;

/// A session store in a PostgreSQL database.
///
/// Any number of stores, in any number of processes and machines, may use the same schema. Writers of one
/// session wait for each other up to the timeout in [`Limits`]; writers of different sessions do not.
///
/// If the schema is dropped or replaced under an open store, each operation fails with `Io` until the store is opened
/// again.
///
/// A store has a bounded number of connections and its own thread for them, so its futures may be polled anywhere, with
/// or without a runtime. Share it as `Arc<PostgresStore>`.
pub struct PostgresStore {
    options: PostgresOptions,
    engine: Engine,
}

impl PostgresStore {
    /// Connects to a database, and creates or migrates the tables. The connection string is that of
    /// [`PostgresOptions::new`].
    ///
    /// To create the schema, the database user needs the privilege `CREATE` on the database; afterwards, ownership of
    /// the tables is enough.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for invalid options or a database that is not in UTF-8, `NewerVersion` for a schema of a newer
    /// version, `Corrupt` for one of another program, `Busy` if the server accepts no connection for too long, `Io` if
    /// there is no server or it denies access. None of these change the database.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does no harm: tables are created completely or not at all.
    pub async fn connect(connection: &str) -> Result<Self, Error> {
        Self::connect_with(PostgresOptions::new(connection)?).await
    }

    /// Connects with custom options.
    ///
    /// # Errors
    ///
    /// The same as [`connect`](Self::connect).
    ///
    /// # Cancel safety
    ///
    /// The same as [`connect`](Self::connect).
    pub async fn connect_with(options: PostgresOptions) -> Result<Self, Error> {
        options.check()?;
        let engine = Engine::start(options.clone())?;
        engine.prepare().await?;
        Ok(Self { options, engine })
    }

    fn limits(&self) -> &Limits {
        &self.options.limits
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("options", &self.options).finish_non_exhaustive()
    }
}

// JSON is written and parsed where a future is polled, so that one large session does not block other connections.
impl SessionStore for PostgresStore {
    fn create(&self, mut session: NewSession) -> StoreFuture<'_, SessionInfo> {
        Box::pin(async move {
            session.metadata = merge_metadata(Map::new(), session.metadata, self.limits())?;
            self.engine
                .run(Access::Write, move |client| {
                    Box::pin(async move { database::create(client, session).await })
                })
                .await
        })
    }

    fn append<'a>(&'a self, id: &'a SessionId, append: Append) -> StoreFuture<'a, SessionInfo> {
        Box::pin(async move {
            let json = check_messages(&append.messages, self.limits())?;
            let (id, limits) = (id.clone(), self.limits().clone());
            self.engine
                .run(Access::Write, move |client| {
                    Box::pin(
                        async move { database::append(client, &limits, &id, &append, &json).await },
                    )
                })
                .await
        })
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, Session> {
        Box::pin(async move {
            let (wanted, limits) = (id.clone(), self.limits().clone());
            let stored = self
                .engine
                .run(Access::Read, move |client| {
                    Box::pin(async move { database::load(client, &limits, &wanted).await })
                })
                .await?;
            session_of(stored).map_err(|error| error.located(format_args!("session {id}")))
        })
    }

    fn list(&self, list: List) -> StoreFuture<'_, SessionPage> {
        Box::pin(async move {
            list.check(self.limits())?;
            self.engine
                .run(Access::Read, move |client| {
                    Box::pin(async move { database::list(client, &list).await })
                })
                .await
        })
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let id = id.clone();
            self.engine
                .run(Access::Write, move |client| {
                    Box::pin(async move { database::delete(client, &id).await })
                })
                .await
        })
    }

    fn fork<'a>(
        &'a self,
        id: &'a SessionId,
        keep: usize,
        fork: NewSession,
    ) -> StoreFuture<'a, SessionInfo> {
        Box::pin(async move {
            let (id, limits) = (id.clone(), self.limits().clone());
            self.engine
                .run(Access::Write, move |client| {
                    Box::pin(async move { database::fork(client, &limits, &id, keep, fork).await })
                })
                .await
        })
    }

    fn set_metadata<'a>(
        &'a self,
        id: &'a SessionId,
        members: Map<String, Value>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        Box::pin(async move {
            let (id, limits) = (id.clone(), self.limits().clone());
            self.engine
                .run(Access::Write, move |client| {
                    Box::pin(async move {
                        database::set_metadata(client, &limits, &id, members, at).await
                    })
                })
                .await
        })
    }

    fn set_pending<'a>(
        &'a self,
        id: &'a SessionId,
        revision: Revision,
        pending: Option<Pending>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        Box::pin(async move {
            let json = pending
                .as_ref()
                .map(|pending| check_pending(pending, self.limits()))
                .transpose()?;
            let id = id.clone();
            self.engine
                .run(Access::Write, move |client| {
                    Box::pin(async move {
                        database::set_pending(client, &id, revision, json.as_deref(), at).await
                    })
                })
                .await
        })
    }
}

fn session_of(stored: Stored) -> Result<Session, Error> {
    let Stored { info, messages: json, pending } = stored;
    let messages = json.iter().enumerate();
    let messages: Vec<Message> = messages
        .map(|(place, json)| from_json(json, &format!("message {place}")))
        .collect::<Result<_, _>>()?;
    let open = open_calls(&messages).map_err(|error| corrupt(error.to_string()))?;
    if let Some(id) = open.first() {
        let message = format!("the conversation ends without the result of call {id:.64}");
        return Err(corrupt(message));
    }
    let pending = pending.map(|pending| from_json(&pending, "the pending call")).transpose()?;
    Ok(Session::new(info, messages, pending))
}

fn from_json<T: DeserializeOwned>(json: &str, what: &str) -> Result<T, Error> {
    serde_json::from_str(json)
        .map_err(|error| corrupt(format!("{what} is damaged")).with_source(error))
}
