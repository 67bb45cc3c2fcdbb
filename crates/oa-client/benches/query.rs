//! Compares `query` and `Client` with a loop written by hand, from the socket to the block.
//!
//! The loop, see `by_hand`, is what one would write in an afternoon. Both read from a server in a separate
//! process that replays prepared bytes over a loopback socket, see `replay`. Each question has a table:
//!
//! - `pieces`: how much does each piece of an answer cost: text, fragments of a call?
//! - `requests`: how long is a request on the CPU, on a warm connection?
//! - `rounds`: does a round of tools cost the same, however long the conversation?
//! - `streams`: how much memory do thousands of streams take, and how much does an event cost among them?
//!
//! Instructions are those of the client outside of the kernel, as `valgrind` counts them, see `instructions`;
//! where it is not installed, only times are measured. CPU time is the user's and the kernel's, as Linux counts
//! it for the thread that does everything.
//!
//! `cargo bench -p oa-client` prints all tables; with `-- rounds`, only those named.
#![expect(clippy::print_stdout, reason = "a bench prints its tables, and its children numbers")]

mod pieces;
mod requests;
mod rounds;
mod streams;

mod by_hand;
mod layers;
mod ours;

mod answers;
mod load;
mod process;
mod replay;

#[path = "../../oa-aggregate/benches/instructions.rs"]
mod instructions;

use std::fmt;

use tokio::runtime::{self, Runtime};

use crate::instructions::numbers;
use crate::replay::Server;

/// A question: its table, and the work of its child, which takes numbers as arguments.
struct Table {
    name: &'static str,
    print: fn(&Server),
    child: fn(&[usize]),
}

/// The tables. The first argument of a child is the index of its table.
const TABLES: [Table; 4] = [
    Table { name: "pieces", print: pieces::print, child: pieces::child },
    Table { name: "requests", print: |_| requests::print(), child: requests::child },
    Table { name: "rounds", print: rounds::print, child: rounds::child },
    Table { name: "streams", print: streams::print, child: streams::child },
];

const PIECES: usize = 0;
const REQUESTS: usize = 1;
const ROUNDS: usize = 2;
const STREAMS: usize = 3;

/// The client that asks the server.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Query,
    Client,
    Layers,
    Loop,
}

impl Who {
    const ALL: [Self; 4] = [Self::Query, Self::Client, Self::Layers, Self::Loop];

    /// Returns its index, for the arguments of a child.
    fn place(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Query => "query",
            Self::Client => "Client",
            Self::Layers => "layers",
            Self::Loop => "loop",
        })
    }
}

fn main() {
    if std::env::args().any(|argument| argument == replay::ARGUMENT) {
        replay::serve();
    }
    if std::env::args().any(|argument| argument == load::ARGUMENT) {
        load::turn();
    }
    if let [table, rest @ ..] = &numbers()[..] {
        return (TABLES[*table].child)(rest);
    }
    let server = Server::start();
    let names: Vec<String> =
        std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    for table in TABLES {
        if names.is_empty() || names.iter().any(|name| name == table.name) {
            (table.print)(&server);
            println!();
        }
    }
}

/// Builds the runtime of a child: one thread.
fn runtime() -> Runtime {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts")
}
