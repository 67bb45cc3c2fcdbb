//! The tasks that `cargo xtask bench` gives to each program.
//!
//! Each program sends the same requests to the same server, as users of its crate would. Everything runs on one thread.

use std::cell::Cell;
use std::fs;
use std::future::Future;
use std::io::Write as _;
use std::net::TcpStream;
use std::rc::Rc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::sleep;

/// The prompt of all tasks.
pub const PROMPT: &str = "Tell me a story.";
/// A fragment of a call's arguments, as the server writes it.
const WORD: &str = " word";
/// A path that releases held streams, see `replay.rs`.
const RELEASE: usize = 7;

/// A client of a crate, for one address.
pub trait Peer: Sized + 'static {
    fn new(base_url: String) -> Self;

    /// Returns another client for the same address, which shares what a program would share.
    fn another(&self) -> Self;

    /// Sends one request. Reports each piece of text, and the number of words in the arguments of a call.
    fn ask(&mut self, on_pieces: impl FnMut(usize)) -> impl Future<Output = ()>;

    /// Has a conversation with a tool, and returns how many calls were answered.
    fn converse(&mut self) -> impl Future<Output = usize>;
}

/// Returns how many words the text of a call has.
pub fn words(text: &str) -> usize {
    text.len() / WORD.len()
}

/// Returns the result of the tool: 1 KiB of text.
#[allow(dead_code, reason = "not every program has a tool")]
pub fn page() -> String {
    let line = "The quick brown fox said \"hello\" to the lazy dog, who did not answer it.\n";
    line.chars().cycle().take(1 << 10).collect()
}

/// Does the task that the arguments name.
pub fn main<P: Peer>() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (task, numbers) = arguments.split_first().expect("a task");
    let numbers: Vec<usize> =
        numbers.iter().map(|number| number.parse().expect("a number")).collect();
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    LocalSet::new().block_on(&runtime, async {
        match (task.as_str(), &numbers[..]) {
            ("ask", &[port, form, pieces, requests]) => {
                ask::<P>(port, form, pieces, requests).await
            }
            ("rounds", &[port, form, rounds, conversations]) => {
                rounds_of::<P>(port, form, rounds, conversations).await;
            }
            ("streams", &[port, form, streams]) => held::<P>(port, form, streams).await,
            _ => panic!("no task {arguments:?}"),
        }
    });
}

fn address(port: usize, form: usize, number: usize) -> String {
    format!("http://127.0.0.1:{port}/{form}/{number}")
}

/// Asks a number of times, on one connection. Prints the nanoseconds on a CPU, without the first request.
async fn ask<P: Peer>(port: usize, form: usize, pieces: usize, requests: usize) {
    let mut peer = P::new(address(port, form, pieces));
    let mut start = cpu_time();
    for request in 0..=requests {
        if request == 1 {
            start = cpu_time();
        }
        let mut came = 0;
        peer.ask(|more| came += more).await;
        assert_eq!(came, pieces, "every piece comes");
    }
    println!("{}", (cpu_time() - start).as_nanos());
}

async fn rounds_of<P: Peer>(port: usize, form: usize, rounds: usize, conversations: usize) {
    let mut peer = P::new(address(port, form, rounds));
    for _ in 0..=conversations {
        assert_eq!(peer.converse().await, rounds, "every call is answered");
    }
}

/// Opens streams that stay open after one piece, and prints the bytes of memory that each takes.
async fn held<P: Peer>(port: usize, form: usize, streams: usize) {
    // The first request is not counted.
    let mut first = P::new(address(port, 0, 1));
    first.ask(|_| ()).await;

    let peer = P::new(address(port, form, 1));
    let came = Rc::new(Cell::new(0));
    let before = resident();
    let mut tasks = Vec::with_capacity(streams);
    while tasks.len() < streams {
        for _ in 0..50.min(streams - tasks.len()) {
            let (mut peer, came) = (peer.another(), Rc::clone(&came));
            tasks.push(tokio::task::spawn_local(async move {
                peer.ask(|more| came.set(came.get() + more)).await;
            }));
        }
        while came.get() < tasks.len() {
            sleep(Duration::from_millis(5)).await;
        }
    }
    let memory = resident().saturating_sub(before);
    let mut control = TcpStream::connect(("127.0.0.1", port as u16)).expect("the server listens");
    write!(control, "POST /{RELEASE}/0 HTTP/1.1\r\n\r\n").expect("the server reads");
    for task in tasks {
        task.await.expect("every answer is whole");
    }
    println!("{}", memory / streams);
}

fn cpu_time() -> Duration {
    std::thread::yield_now();
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|number| number.parse::<usize>().ok())
        .unwrap_or_default()
        << 10
}
