//! Measures the CPU time of a request, the user's and the kernel's, on a warm connection.
//!
//! Each request is answered at once with one piece of text. `Client` is a new one for each request. The loop has
//! no timeout; one row shows the cost of a timeout of one minute for each piece.
//!
//! The result depends on where the server runs. On the same processor it works while the client waits. From
//! another one it wakes a sleeping processor with cold caches: there everything takes more time, and larger code
//! loses more, unless something else, such as a model that computes, keeps that processor awake. There is a table
//! for each case. Processes are pinned, since the kernel would move them, and all rows are measured within the
//! same processes, a few milliseconds each at a time.

use std::time::Duration;

use crate::by_hand::Loop;
use crate::instructions::again;
use crate::load::Load;
use crate::process::{cpu_time, measured, on_processor, processors};
use crate::replay::{BURSTS, Server};
use crate::{REQUESTS, ours, runtime};

const PROCESSES: usize = 7;
/// The number of requests that each client makes in one process, and in one turn.
const REQUESTS_EACH: usize = 5_000;
const REQUESTS_A_TURN: usize = 100;

/// The name of a row, and its target relative to the loop's time; for the loop itself, microseconds.
const ROWS: [(&str, &str); 4] =
    [("query", "(1.30x)"), ("Client", "(1.30x)"), ("loop", "(47 us)"), ("loop, a timeout", "")];
const QUERY: usize = 0;
const CLIENT: usize = 1;
const LOOP: usize = 2;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn print() {
    let [here, there, ..] = processors()[..] else {
        return println!("requests: cannot be had without Linux and two processors");
    };
    println!(
        "microseconds on the CPU per request, medians of {PROCESSES} processes, {REQUESTS_EACH} each\n"
    );
    println!("the server on the same processor");
    table(here, here);
    println!("\nthe server on another, and this one sleeps while it waits");
    table(here, there);
    println!("\nthe server on another, and a load keeps this one awake");
    match Load::start() {
        Some(_load) => table(here, there),
        None => println!("  cannot be had here: there is no `chrt`"),
    }
}

fn table(client: usize, server: usize) {
    let server = Server::start_on(server);
    let processes: Vec<Vec<f64>> = (0..PROCESSES)
        .map(|_| {
            let mut child = vec![REQUESTS, server.port(), REQUESTS_EACH];
            child.extend(0..ROWS.len());
            measured(on_processor(client, &again(&child)))
        })
        .collect();
    println!("{:16}{:>10}{:>10}{:>12}", "", "CPU", "to loop", "(at most)");
    for (row, (name, target)) in ROWS.into_iter().enumerate() {
        let time = median(processes.iter().map(|times| times[row]));
        let time = time / 1e3 / REQUESTS_EACH as f64;
        let to_loop = median(processes.iter().map(|times| times[row] / times[LOOP]));
        println!("{name:16}{time:>10.1}{to_loop:>9.2}x{target:>12}");
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs a child, whose arguments are the port, the number of requests of each client, and the rows that take
/// turns. Prints the time of each.
pub(crate) fn child(numbers: &[usize]) {
    let [port, requests, rows @ ..] = numbers else {
        panic!("no child of this table is told {numbers:?}");
    };
    let path = format!("/{BURSTS}/1");
    let options = ours::options(*port, &path);
    let times = runtime().block_on(async {
        let mut by_hand = Loop::connect(*port).await;
        let mut times = vec![Duration::ZERO; rows.len()];
        let mut made = 0;
        while made < *requests {
            let turn = REQUESTS_A_TURN.min(requests - made);
            for (time, row) in times.iter_mut().zip(rows) {
                by_hand.patience = (*row > LOOP).then_some(PATIENCE);
                let (mut pieces, mut start) = (0, cpu_time());
                for request in 0..=turn {
                    // The first of all opens the connection.
                    if request == 1 {
                        start = cpu_time();
                    }
                    let on_pieces = |more| pieces += more;
                    match *row {
                        QUERY => ours::ask(&options, on_pieces).await,
                        CLIENT => ours::ask_client(&options, on_pieces).await,
                        _ => by_hand.ask(&path, on_pieces).await,
                    }
                }
                *time += cpu_time() - start;
                assert_eq!(pieces, turn + 1, "every piece comes");
            }
            made += turn;
        }
        times
    });
    for time in times {
        println!("{}", time.as_nanos());
    }
}
