use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use oa_session::{Error, Limits};
use oa_types::Timeout;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::error::invalid;

/// The longest name of a schema in bytes, PostgreSQL's limit for identifiers.
const NAME: usize = 63;

/// The largest number of connections, PostgreSQL's limit for `max_connections`.
const CONNECTIONS: usize = 0x3_ffff;

/// The options of a [`PostgresStore`](crate::PostgresStore): its database and schema, and its connections.
///
/// ```
/// use oa_session_postgres::PostgresOptions;
///
/// let options = PostgresOptions::new("postgresql://ada:secret@db.example.org/chats")?
///     .schema("support")
///     .connections(4);
/// assert!(!format!("{options:?}").contains("secret"));
/// # Ok::<(), oa_session::Error>(())
/// ```
#[derive(Clone)]
pub struct PostgresOptions {
    pub(crate) config: Config,
    pub(crate) schema: String,
    pub(crate) connections: usize,
    pub(crate) connect_timeout: Duration,
    pub(crate) answer_timeout: Duration,
    pub(crate) limits: Limits,
    #[cfg(feature = "tls")]
    pub(crate) roots: oa_tls::Roots,
}

impl PostgresOptions {
    /// Parses a connection string: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, or `host=.. user=..`. The
    /// environment is not read.
    ///
    /// Connections over a network are encrypted, and the server's certificate and name are verified (feature `tls`).
    /// Connections to this machine, by a Unix socket or a loopback address, are not. `sslmode=require` encrypts these
    /// too, `sslmode=disable` none; `verify-ca` and `verify-full` are the same as `require`. Nothing falls back to
    /// plain text.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the text is not a connection string, has an unknown parameter, or names no host. The error
    /// does not quote it, because it may contain a password.
    pub fn new(connection: &str) -> Result<Self, Error> {
        // Certificates are always verified, and the driver knows only `require`.
        let connection = connection
            .replace("sslmode=verify-full", "sslmode=require")
            .replace("sslmode=verify-ca", "sslmode=require");
        // The driver's error may quote part of the password.
        let mut config: Config = connection.parse().map_err(|_| {
            invalid(
                "this is not a connection string: use postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with parameters \
                 that the documentation of tokio-postgres lists",
            )
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(invalid("the connection string names no host"));
        }
        // The driver's default, which would fall back to plain text if a server refuses encryption. An
        // explicit mode stays.
        if config.get_ssl_mode() == SslMode::Prefer {
            config.ssl_mode(match is_local(&config) {
                true => SslMode::Disable,
                false => SslMode::Require,
            });
        }
        if cfg!(not(feature = "tls")) && config.get_ssl_mode() != SslMode::Disable {
            return Err(invalid(
                "an encrypted connection needs the feature `tls`, and connections to other machines are encrypted unless \
                 the connection string says sslmode=disable, which sends everything in plain text",
            ));
        }
        if config.get_application_name().is_none() {
            config.application_name("oa-session-postgres");
        }
        Ok(Self {
            config,
            schema: "oa_session".to_owned(),
            connections: 8,
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(30),
            limits: Limits::default(),
            #[cfg(feature = "tls")]
            roots: oa_tls::Roots::default(),
        })
    }

    /// Sets the schema with the store's tables: a lowercase letter or `_`, then letters, digits and `_`; `oa_session`
    /// by default. Several stores can share a database in separate schemas. A schema that does not exist is created.
    #[must_use]
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// Sets the maximum number of connections, from 1 to 262,143; 8 by default. They are opened when needed. Further
    /// operations wait up to the timeout in [`Limits`]. A larger number is an error when the store is opened.
    #[must_use]
    pub fn connections(mut self, most: usize) -> Self {
        self.connections = most.max(1);
        self
    }

    /// Sets the time for one connection to be established, encrypted and authenticated; 10 seconds by default.
    #[must_use]
    pub fn connect_timeout(mut self, time: impl Into<Timeout>) -> Self {
        self.connect_timeout = time.into().or_max();
        self
    }

    /// Sets the time within which the server must answer, beyond what it waits for other writers; 30 seconds by
    /// default.
    ///
    /// The server also ends a transaction whose client is silent for this long, so that a writer that disappears does
    /// not keep others waiting.
    #[must_use]
    pub fn answer_timeout(mut self, time: impl Into<Timeout>) -> Self {
        self.answer_timeout = time.into().or_max();
        self
    }

    /// Sets the limits of sessions.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Trusts these PEM certificates in addition to the system's, for a server with a private certificate authority.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if there is no certificate, or one cannot be parsed.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Result<Self, Error> {
        self.roots.extend(oa_tls::Roots::from_pem(pem.as_ref()).map_err(|error| {
            invalid("the root certificates are not PEM certificates").with_source(error)
        })?);
        Ok(self)
    }

    /// Validates values that the setters do not check.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let name = &self.schema;
        let starts = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
        let goes_on = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !starts || !goes_on || name.len() > NAME || name.starts_with("pg_") {
            let excerpt: String = name.chars().take(NAME).collect();
            return Err(invalid(format!(
                "the name of a schema has 1 to {NAME} lowercase letters, digits and _, starts with no digit or pg_: \
                 {excerpt:?}"
            )));
        }
        if self.connections > CONNECTIONS {
            let most = self.connections;
            return Err(invalid(format!(
                "a store has at most {CONNECTIONS} connections, not {most}"
            )));
        }
        Ok(())
    }

    /// Returns the server addresses, for errors.
    pub(crate) fn servers(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(host) => host.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<String> = match self.config.get_hosts() {
            [] => self.config.get_hostaddrs().iter().map(IpAddr::to_string).collect(),
            _ => hosts.collect(),
        };
        let ports: Vec<String> = self.config.get_ports().iter().map(u16::to_string).collect();
        match (hosts.as_slice(), ports.as_slice()) {
            ([host], [port]) => format!("{host}:{port}"),
            _ => hosts.join(", "),
        }
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("servers", &self.servers())
            .field("user", &self.config.get_user())
            .field("database", &self.config.get_dbname())
            .field("schema", &self.schema)
            .field("connections", &self.connections)
            .field("is_encrypted", &(self.config.get_ssl_mode() != SslMode::Disable))
            .finish_non_exhaustive()
    }
}

/// Returns true if no connection leaves this machine.
fn is_local(config: &Config) -> bool {
    // If both are given, the connection goes to the address, and the certificate is for the name.
    if !config.get_hostaddrs().is_empty() {
        return config.get_hostaddrs().iter().all(IpAddr::is_loopback);
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(host) => {
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(connection: &str, expected: SslMode) {
        let options = PostgresOptions::new(connection).expect("it is a connection string");
        assert_eq!(options.config.get_ssl_mode(), expected, "{connection}");
    }

    #[test]
    fn remote_connections_are_encrypted() {
        for local in [
            "postgresql://a@localhost/b",
            "postgresql://a@127.0.0.1:5433/b",
            "postgresql://a@[::1]/b?sslmode=prefer",
            "host=db.example.org hostaddr=127.0.0.1 user=a",
        ] {
            check(local, SslMode::Disable);
        }
        check("postgresql://a@db.example.org/b?sslmode=disable", SslMode::Disable);
        for remote in [
            "postgresql://a@db.example.org/b",
            "postgresql://a@localhost,db.example.org/b",
            "postgresql://a@localhost.example.org/b?sslmode=prefer",
            "postgresql://a@localhost/b?sslmode=verify-full",
            "host=localhost hostaddr=10.0.0.1 user=a",
            "host=localhost user=a sslmode=verify-ca",
        ] {
            if cfg!(feature = "tls") {
                check(remote, SslMode::Require);
            } else {
                let error = PostgresOptions::new(remote).unwrap_err();
                assert!(error.to_string().contains("needs the feature `tls`"), "{error}");
            }
        }
        #[cfg(unix)]
        check("host=/run/postgresql user=a", SslMode::Disable);
    }

    #[test]
    fn passwords_are_never_printed() {
        for wrong in ["postgresql://a:secret@b:port/c", "hunter2secret", "a=hunter2secret"] {
            let error = PostgresOptions::new(wrong).unwrap_err();
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        }
        let options = PostgresOptions::new("postgresql://a:secret@localhost:1/c").unwrap();
        assert!(!format!("{options:?}").contains("secret"), "{options:?}");
        assert_eq!(options.servers(), "localhost:1");
    }

    #[test]
    fn numbers_of_connections_are_validated() {
        let options = || PostgresOptions::new("host=localhost").unwrap();
        for right in [0, 1, CONNECTIONS] {
            options().connections(right).check().unwrap();
        }
        for wrong in [CONNECTIONS + 1, usize::MAX] {
            let error = options().connections(wrong).check().unwrap_err();
            assert_eq!(error.kind(), oa_session::ErrorKind::InvalidInput, "{wrong}");
            assert!(error.to_string().contains("at most 262143 connections"), "{error}");
        }
    }

    #[test]
    fn schema_names_are_validated() {
        let long = "a".repeat(64);
        for wrong in ["", "1a", "A", "a-b", "a\"b", "ä", "a b", "pg_a", &long] {
            let options = PostgresOptions::new("host=localhost").unwrap().schema(wrong);
            let error = options.check().unwrap_err();
            assert_eq!(error.kind(), oa_session::ErrorKind::InvalidInput, "{wrong}");
        }
        for right in ["a", "_a1", &long[1..]] {
            PostgresOptions::new("host=localhost").unwrap().schema(right).check().unwrap();
        }
    }
}
