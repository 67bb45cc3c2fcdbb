//! Measures the memory of a process per open stream, of thousands, and the cost of an event on one of them.
//!
//! All streams have a connection and a task of their own, and stay open after a first piece of text: memory is
//! the growth of the process since its first request. Then each stream gets a piece at every beat of the server,
//! so that each event is a chunk that wakes a sleeping task; the time is the user's and the kernel's.
//!
//! The number of streams is limited by the open files that a process may have.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oa_client::AgentOptions;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::by_hand::{self, Loop};
use crate::layers::Layers;
use crate::process::{self, cpu_time, files, measured, resident, with_files};
use crate::replay::{BURSTS, HELD, RELEASE, Server};
use crate::{STREAMS, Who, ours, runtime};

const STREAMS_WANTED: usize = 5_000;
/// The number of files besides the streams.
const OTHER_FILES: usize = 200;
/// The number of streams opened concurrently.
const WAVE: usize = 50;
const EVENTS: usize = 20;
const TURNS: usize = 3;

const ROWS: [Who; 3] = [Who::Query, Who::Client, Who::Loop];

/// The largest size of a stream in KiB, the expected size in the loop, and the largest factor of the loop's time.
const KIBIBYTES: f64 = 25.0;
const EXPECTED: f64 = 21.5;
const TIME: f64 = 1.2;

pub(crate) fn print(server: &Server) {
    if !process::TELLS {
        return println!("streams: this system does not tell memory and time");
    }
    let streams = STREAMS_WANTED.min(files().saturating_sub(OTHER_FILES));
    println!("{streams} streams at once, {EVENTS} events each, best of {TURNS} turns\n");
    if streams < STREAMS_WANTED {
        println!("(fewer than {STREAMS_WANTED}: `ulimit -H -n` is {})\n", files());
    }
    let mut best = [[f64::MAX; 2]; 3];
    for _ in 0..TURNS {
        for (best, who) in best.iter_mut().zip(ROWS) {
            let child = [STREAMS, server.port(), who.place(), streams, EVENTS];
            let turn = measured(with_files(&child));
            for (best, number) in best.iter_mut().zip(turn) {
                *best = best.min(number);
            }
        }
    }
    let [.., [_, by_hand]] = best;
    println!(
        "{:10}{:>12}{:>14}{:>12}{:>10}{:>12}",
        "", "KiB/stream", "(at most)", "us/event", "to loop", "(at most)",
    );
    for ([memory, time], who) in best.into_iter().zip(ROWS) {
        let (most, ratio) = match who {
            Who::Client | Who::Layers | Who::Query => (KIBIBYTES, format!("({TIME:.2}x)")),
            Who::Loop => (EXPECTED, String::new()),
        };
        println!(
            "{who:10}{:>12.1}{:>14}{:>12.2}{:>9.2}x{ratio:>12}",
            memory / 1024.0,
            format!("({most:.1})"),
            time / 1e3,
            time / by_hand,
        );
    }
}

/// Runs a child, whose arguments are the port, the client, the number of streams, and the events of each. Prints
/// bytes per stream, and nanoseconds per event.
pub(crate) fn child(numbers: &[usize]) {
    let &[port, who, streams, events] = numbers else {
        panic!("no child of this table is told {numbers:?}");
    };
    runtime().block_on(async {
        let asker = |form| Asker::new(Who::ALL[who], port, form);
        asker(BURSTS).open(&Arc::default()).await.expect("a task ends");

        let asker = asker(HELD);
        let before = resident();
        let pieces = Arc::default();
        let mut tasks = Vec::with_capacity(streams);
        while tasks.len() < streams {
            let wave = WAVE.min(streams - tasks.len());
            tasks.extend((0..wave).map(|_| asker.open(&pieces)));
            come(&pieces, tasks.len()).await;
        }
        let memory = resident().saturating_sub(before);

        let start = cpu_time();
        let mut control = TcpStream::connect(asker.address()).expect("the server listens");
        write!(control, "POST /{RELEASE}/{events} HTTP/1.1\r\n\r\n").expect("the server reads");
        come(&pieces, streams * (1 + events)).await;
        let time = cpu_time() - start;

        for task in tasks {
            task.await.expect("every answer is whole");
        }
        println!("{}", memory / streams);
        println!("{}", time.as_nanos() / (streams * events) as u128);
    });
}

/// Waits until this many pieces have arrived.
async fn come(pieces: &AtomicUsize, number: usize) {
    while pieces.load(Ordering::Relaxed) < number {
        sleep(Duration::from_millis(5)).await;
    }
}

/// Sends the same request on many connections.
struct Asker {
    who: Who,
    port: usize,
    path: String,
    options: AgentOptions,
}

impl Asker {
    fn new(who: Who, port: usize, form: usize) -> Self {
        let path = format!("/{form}/1");
        Self { who, port, options: ours::options(port, &path), path }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Opens a stream on a task of its own, which counts the pieces.
    fn open(&self, pieces: &Arc<AtomicUsize>) -> JoinHandle<()> {
        let pieces = Arc::clone(pieces);
        let on_pieces = move |more| {
            pieces.fetch_add(more, Ordering::Relaxed);
        };
        let (port, path, options) = (self.port, self.path.clone(), self.options.clone());
        match self.who {
            Who::Query => tokio::spawn(async move { ours::ask(&options, on_pieces).await }),
            Who::Client => tokio::spawn(async move { ours::ask_client(&options, on_pieces).await }),
            Who::Layers => tokio::spawn(async move {
                Layers::new(port, &path, by_hand::BODY).ask(on_pieces).await;
            }),
            Who::Loop => tokio::spawn(async move {
                let mut by_hand = Loop::connect(port).await;
                by_hand.ask(&path, on_pieces).await;
            }),
        }
    }
}
