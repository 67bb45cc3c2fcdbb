//! A handwritten loop on hyper and serde, as the lower bound. It has no timeouts, no limits and no error handling.
#![allow(dead_code, reason = "the files serve a bench, too")]

#[path = "../../../../crates/oa-client/benches/answers.rs"]
mod answers;
#[path = "../../../../crates/oa-client/benches/by_hand.rs"]
mod by_hand;
#[path = "../../shared/harness.rs"]
mod harness;

use by_hand::Loop;

struct ByHand {
    port: usize,
    path: String,
    connection: Option<Loop>,
}

impl harness::Peer for ByHand {
    fn new(base_url: String) -> Self {
        let rest = base_url.trim_start_matches("http://127.0.0.1:");
        let (port, path) = rest.split_once('/').expect("a path");
        let port = port.parse().expect("a port is a number");
        Self { port, path: format!("/{path}"), connection: None }
    }

    fn another(&self) -> Self {
        Self { port: self.port, path: self.path.clone(), connection: None }
    }

    async fn ask(&mut self, on_pieces: impl FnMut(usize)) {
        if self.connection.is_none() {
            self.connection = Some(Loop::connect(self.port).await);
        }
        let connection = self.connection.as_mut().expect("it is connected");
        connection.ask(&self.path, on_pieces).await;
    }

    async fn converse(&mut self) -> usize {
        if self.connection.is_none() {
            self.connection = Some(Loop::connect(self.port).await);
        }
        let connection = self.connection.as_mut().expect("it is connected");
        connection.converse(&self.path).await
    }
}

fn main() {
    harness::main::<ByHand>();
}
