//! A connection for statements that a store does not send.

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

pub(crate) struct Sql {
    client: Client,
    runtime: Runtime,
}

impl Sql {
    pub(crate) fn connect(url: &str, schema: &str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (client, connection) =
            runtime.block_on(tokio_postgres::connect(url, NoTls)).expect("the server runs");
        runtime.spawn(connection);
        let sql = Self { client, runtime };
        sql.execute(&format!("SET search_path TO {schema}"));
        sql
    }

    pub(crate) fn execute(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).expect("it is SQL");
    }

    /// Returns the first column of all rows.
    pub(crate) fn column(&self, sql: &str) -> Vec<String> {
        let messages = self.runtime.block_on(self.client.simple_query(sql)).expect("it is SQL");
        let texts = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
            _ => None,
        });
        texts.collect()
    }
}
