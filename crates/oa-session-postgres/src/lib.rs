//! Sessions in PostgreSQL: [`PostgresStore`] is an [`oa_session::SessionStore`].
//!
//! For agents on several machines that share their sessions. For one machine, use `oa_session::JsonlStore` or
//! `oa-session-sqlite`, which need no server.
//!
//! ```
//! # let Some(server) = services::or_skip(services::Postgres::start()) else { return };
//! # let url = server.url();
//! # oa_session::contract::block_on(async {
//! use oa_session::{Append, NewSession, SessionId, SessionStore, Timestamp};
//! use oa_session_postgres::PostgresStore;
//! use oa_types::Message;
//!
//! // let url = "postgresql://ada:secret@localhost/chats";
//! let (id, now) = (SessionId::new("chat-1")?, Timestamp::from_millis(0));
//! let store = PostgresStore::connect(&url).await?; // creates the tables
//! let session = store.create(NewSession::new(id.clone(), now)).await?;
//! let turn = vec![Message::user("Hi"), Message::assistant(vec![])];
//! store.append(&id, Append::new(session.revision, turn.clone(), now)).await?;
//! drop(store);
//!
//! let store = PostgresStore::connect(&url).await?; // another day, another machine
//! assert_eq!(store.load(&id).await?.messages, turn);
//! # Ok::<(), oa_session::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Guarantees
//!
//! Each write is one transaction, and acknowledged writes are on the server's disk: if the server, database or user has
//! `synchronous_commit = off`, the store turns it on for its own connections. What survives a failover depends on your
//! replication.
//!
//! An older schema is migrated when a store is opened, by one process at a time. A schema of a newer version or another
//! program is an error and left unchanged; a store that was open during a migration refuses new connections.
//!
//! # Failures
//!
//! | failure | effect on the program | stored |
//! | --- | --- | --- |
//! | a writer is killed | none: it has ended | whole turns: all acknowledged ones, and at most the one that was being written |
//! | a writer disappears in the middle of a change without closing its connection | others wait up to [`answer_timeout`](PostgresOptions::answer_timeout), and get `Busy` if their own timeout is shorter | nothing of that change |
//! | an idle connection breaks | none: the next operation takes another one | everything |
//! | the connection breaks in the middle of a change | `Io`: "nothing was changed" | nothing of that change |
//! | the connection breaks while a change is committed | `Io`: "load the session to see whether it was made" | all of the change or nothing; [`append_once`](oa_session::SessionStore::append_once) can be repeated without loading |
//! | the network or the server goes silent | the same errors, after the timeout of other writers and `answer_timeout` | the same |
//! | the server is stopped or killed, and restarted | `Io` for operations in progress and until it is back; `Busy` if it accepts no connection for too long. Idle stores are not affected | everything acknowledged |
//! | the process ends, or the future is dropped, after a change was sent | none | all of the change or nothing |
//!
//! The store itself repeats only `BEGIN`. After `Io` or `Busy`, retry with `append_once`.
//!
//! # Privacy and security
//!
//! Connections that leave the machine are encrypted, and certificates and names verified, unless the connection string
//! says `sslmode=disable`. Ids, metadata and messages are passed as parameters of statements, never as part of their
//! text. Errors and debug output never contain passwords. The server decides who may read the tables.
//!
//! # Connection poolers
//!
//! The store has its own pool and sets parameters of its connections, so a pooler such as PgBouncer must dedicate a
//! connection to each client (`pool_mode = session`).
//!
//! # Features
//!
//! Off by default: `tls` adds encryption, by rustls with ring. Without it, a connection string for another machine is
//! an error unless it says `sslmode=disable`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod store;

mod database;
mod engine;
mod pool;
mod row;
mod schema;

mod connect;
mod options;
#[cfg(feature = "tls")]
mod tls;

mod error;

pub use crate::options::PostgresOptions;
pub use crate::store::PostgresStore;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
