//! Sessions in PostgreSQL.
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
