//! How long is a request on the CPU, the user's and the kernel's, on a warm connection?
//!
//! Each is answered at once with one piece of text. `Client` is a new one for each request. The loop
//! waits for ever; one row tells what it costs that waits no longer than a minute for each piece.
//!
//! On a machine that has nothing else to do the processor sleeps before each answer and wakes with cold
//! caches: then all times are higher, and what is larger loses more. Beside a model that computes it stays
//! awake. So there is a table for each; all take turns, and the ratio is the median of those within a turn.

use std::time::Duration;

use crate::by_hand::Loop;
use crate::load::Load;
use crate::process::{self, cpu_time, measured};
use crate::replay::{BURSTS, Server};
use crate::{REQUESTS, instructions, ours, runtime};

const REQUESTS_EACH: usize = 4_000;
const TURNS: usize = 15;

/// Who asks, and how many times what the loop takes that may take; the loop itself in microseconds.
const ROWS: [(&str, &str); 4] =
    [("query", "(1.30x)"), ("Client", "(1.30x)"), ("loop", "(47 us)"), ("loop, a timeout", "")];
const QUERY: usize = 0;
const CLIENT: usize = 1;
const LOOP: usize = 2;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn print(server: &Server) {
    if !process::TELLS {
        return println!("requests: this system does not tell the time on the CPU");
    }
    println!("microseconds on the CPU per request, medians of {TURNS} turns of {REQUESTS_EACH}\n");
    println!("beside a load that keeps the processors awake");
    match Load::start() {
        Some(_load) => table(server),
        None => println!("  cannot be had here: there is no `chrt`"),
    }
    println!("\nbeside nothing");
    table(server);
}

fn table(server: &Server) {
    let turns: Vec<[f64; ROWS.len()]> = (0..TURNS)
        .map(|_| {
            std::array::from_fn(|row| {
                let child = [REQUESTS, server.port(), row, REQUESTS_EACH];
                measured(instructions::again(&child))[0] / 1e3 / REQUESTS_EACH as f64
            })
        })
        .collect();
    println!("{:16}{:>10}{:>10}{:>12}", "", "CPU", "to loop", "(at most)");
    for (row, (name, target)) in ROWS.into_iter().enumerate() {
        let time = median(turns.iter().map(|turn| turn[row]));
        let to_loop = median(turns.iter().map(|turn| turn[row] / turn[LOOP]));
        println!("{name:16}{time:>10.1}{to_loop:>9.2}x{target:>12}");
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A child is told the port, the row of who asks, and how many requests there are. It prints the time.
pub(crate) fn child(numbers: &[usize]) {
    let &[port, row, requests] = numbers else {
        panic!("no child of this table is told {numbers:?}");
    };
    let path = format!("/{BURSTS}/1");
    let options = ours::options(port, &path);
    let time = runtime().block_on(async {
        let mut by_hand = Loop::connect(port).await;
        by_hand.patience = (row > LOOP).then_some(PATIENCE);
        let mut pieces = 0;
        let mut start = cpu_time();
        for request in 0..=requests {
            // The first opens the connection.
            if request == 1 {
                start = cpu_time();
            }
            let on_pieces = |more| pieces += more;
            match row {
                QUERY => ours::ask(&options, on_pieces).await,
                CLIENT => ours::ask_client(&options, on_pieces).await,
                _ => by_hand.ask(&path, on_pieces).await,
            }
        }
        assert_eq!(pieces, requests + 1, "every piece comes");
        cpu_time() - start
    });
    println!("{}", time.as_nanos());
}
