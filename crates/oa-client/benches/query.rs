//! What does `query` cost per piece of text, from the socket to the block, against a loop written by
//! hand?
//!
//! The loop is what one would write in an afternoon: a hyper connection on a task of its own, lines
//! split off a `BytesMut`, `serde_json` into the smallest borrowed struct, a `String` for each piece
//! of text. It knows no timeouts, no limits, no calls, no usage and no errors of servers, and keeps no
//! answer. Both read from a server in a process of its own that replays prepared bytes over a
//! loopback socket.
//!
//! - A: each event is an HTTP chunk, and the server is ahead of the client.
//! - A': the same, one chunk a millisecond, so that the client sleeps before each.
//! - B: HTTP chunks of 16 KiB with some 65 events each, cut wherever it falls.
//! - tiny: requests on a warm connection, each answered with one piece of text.
//!
//! Instructions are those of the client outside of the kernel, as `valgrind` counts them, see
//! `instructions`; where it is not installed there are times alone.
//!
//! `cargo bench -p oa-client` prints the tables.
#![expect(clippy::print_stdout, reason = "a bench prints its table, and its server a port")]

mod by_hand;
#[path = "../../oa-aggregate/benches/instructions.rs"]
mod instructions;
mod replay;

use std::hint::black_box;
use std::time::{Duration, Instant};

use oa_client::{AgentOptions, query};
use oa_types::ContentBlock;
use tokio::runtime::{self, Runtime};

use crate::by_hand::Loop;
use crate::instructions::{Valgrind, again, grouped, numbers};
use crate::replay::{BURSTS, LARGE, PACED, Server};

const OURS: usize = 0;
const LOOP: usize = 1;

/// A row of the tables.
struct Case {
    name: &'static str,
    /// How the server sends.
    form: usize,
    unit: Unit,
    /// How many units to count: these, and three times as many.
    units: usize,
    /// Targets for instructions of ours, and what the loop is expected to take.
    targets: Option<[f64; 2]>,
    /// How many units to time; none where the server sets the pace.
    timed: Option<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Delta,
    Request,
}

const CASES: [Case; 4] = [
    Case {
        name: "A: an event per HTTP chunk",
        form: BURSTS,
        unit: Unit::Delta,
        units: 2_000,
        targets: Some([5_000.0, 8_800.0]),
        timed: Some(20_000),
    },
    Case {
        name: "A': the same, paced",
        form: PACED,
        unit: Unit::Delta,
        units: 2_000,
        targets: None,
        timed: None,
    },
    Case {
        name: "B: HTTP chunks of 16 KiB",
        form: LARGE,
        unit: Unit::Delta,
        units: 2_000,
        targets: Some([2_000.0, 5_900.0]),
        timed: Some(20_000),
    },
    Case {
        name: "tiny: a request",
        form: BURSTS,
        unit: Unit::Request,
        units: 200,
        targets: None,
        timed: Some(2_000),
    },
];

const TURNS: usize = 5;

fn main() {
    if std::env::args().any(|argument| argument == replay::ARGUMENT) {
        replay::serve();
    }
    // A child is told the server's port, which case, who asks and how many units there are; and, if
    // it is to take the time, how often.
    match numbers()[..] {
        [port, case, who, units] => return Client::new(port, &CASES[case], who).run(units),
        [port, case, who, units, turns] => {
            println!("{}", Client::new(port, &CASES[case], who).time(units, turns).as_nanos());
            return;
        }
        _ => {}
    }
    let server = Server::start();
    match Valgrind::find() {
        Some(valgrind) => print_counts(valgrind, server.port()),
        None => println!("valgrind is not installed: times alone\n"),
    }
    print_times(server.port());
}

fn print_counts(valgrind: Valgrind, port: usize) {
    println!("instructions of the client, and allocations, per piece of text or request\n");
    println!(
        "{:30}{:>10}{:>10}{:>10}{:>12}{:>8}{:>12}{:>12}",
        "", "ours", "(target)", "loop", "(expected)", "ratio", "ours alloc", "loop alloc",
    );
    for (number, case) in CASES.iter().enumerate() {
        let count = |who| valgrind.instructions(&[port, number, who], case.units);
        let allocations = |who| match case.form {
            // The same as in bursts.
            PACED => "-".to_owned(),
            _ => format!("{:.2}", valgrind.allocations(&[port, number, who], case.units)),
        };
        let target = |who: usize| {
            case.targets.map_or_else(String::new, |targets| format!("({})", grouped(targets[who])))
        };
        let (ours, by_hand) = (count(OURS), count(LOOP));
        println!(
            "{:30}{:>10}{:>10}{:>10}{:>12}{:>7.2}x{:>12}{:>12}",
            case.name,
            grouped(ours),
            target(OURS),
            grouped(by_hand),
            target(LOOP),
            by_hand / ours,
            allocations(OURS),
            allocations(LOOP),
        );
    }
    println!();
}

fn print_times(port: usize) {
    println!("nanoseconds per piece of text or request, best of {TURNS} turns of {TURNS} each\n");
    println!("{:30}{:>10}{:>10}{:>8}", "", "ours", "loop", "ratio");
    for (number, case) in CASES.iter().enumerate() {
        let Some(units) = case.timed else { continue };
        let mut best = [f64::MAX; 2];
        for _ in 0..TURNS {
            for (who, best) in best.iter_mut().enumerate() {
                *best = best.min(child(&[port, number, who, units, TURNS]) / units as f64);
            }
        }
        let [ours, by_hand] = best;
        println!("{:30}{ours:>10.0}{by_hand:>10.0}{:>7.2}x", case.name, by_hand / ours);
    }
}

/// The time in nanoseconds that a child measured.
fn child(arguments: &[usize]) -> f64 {
    let output = again(arguments).output().expect("a bench can start itself");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("a child prints one number")
}

/// Who asks the server, on one connection.
struct Client<'a> {
    runtime: Runtime,
    port: usize,
    case: &'a Case,
    who: usize,
}

impl<'a> Client<'a> {
    fn new(port: usize, case: &'a Case, who: usize) -> Self {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        Self { runtime: runtime.expect("a runtime starts"), port, case, who }
    }

    /// Runs so many units once.
    fn run(&self, units: usize) {
        self.time(units, 1);
    }

    /// The best time of several for so many units.
    fn time(&self, units: usize, turns: usize) -> Duration {
        let (deltas, requests) = match self.case.unit {
            Unit::Delta => (units, 1),
            Unit::Request => (1, units),
        };
        let path = format!("/{}/{deltas}", self.case.form);
        self.runtime.block_on(async {
            let mut best = Duration::MAX;
            if self.who == OURS {
                let url = format!("http://127.0.0.1:{}{path}", self.port);
                let options = AgentOptions::builder().model("tiny").base_url(url).build();
                let options = options.expect("the options are valid");
                for _ in 0..turns {
                    let start = Instant::now();
                    for _ in 0..requests {
                        assert_eq!(ask(&options).await, deltas);
                    }
                    best = best.min(start.elapsed());
                }
            } else {
                let mut by_hand = Loop::connect(self.port).await;
                for _ in 0..turns {
                    let start = Instant::now();
                    for _ in 0..requests {
                        assert_eq!(by_hand.ask(&path).await, deltas);
                    }
                    best = best.min(start.elapsed());
                }
            }
            best
        })
    }
}

/// Asks, and returns how many pieces of text came.
async fn ask(options: &AgentOptions) -> usize {
    let mut answer = query("Tell me a story.", options).await.expect("the server answers");
    let mut pieces = 0;
    while let Some(block) = answer.next().await {
        if let ContentBlock::Text(block) = block.expect("the answer is whole") {
            black_box(block.text);
            pieces += 1;
        }
    }
    pieces
}
