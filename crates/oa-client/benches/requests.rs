//! How long is a request on the CPU, the user's and the kernel's, on a warm connection?
//!
//! Each is answered at once with one piece of text. `Client` is a new one for each request.
//!
//! On a machine that has nothing else to do the processor sleeps before each answer and wakes with cold
//! caches: then all times are higher, and what is larger loses more. Beside a model that computes it stays
//! awake. So there is a table for each; all take turns, and the ratio is the median of those within a turn.

use crate::by_hand::Loop;
use crate::load::Load;
use crate::process::{self, cpu_time, measured};
use crate::replay::{BURSTS, Server};
use crate::{REQUESTS, Who, instructions, ours, runtime};

const REQUESTS_EACH: usize = 4_000;
const TURNS: usize = 15;
/// How many times what the loop takes.
const TARGET: f64 = 1.3;
/// What the loop is expected to take, in microseconds.
const EXPECTED: f64 = 47.0;

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
    let turns: Vec<[f64; 3]> = (0..TURNS)
        .map(|_| {
            Who::ALL.map(|who| {
                let child = [REQUESTS, server.port(), who.place(), REQUESTS_EACH];
                measured(instructions::again(&child))[0] / 1e3 / REQUESTS_EACH as f64
            })
        })
        .collect();
    println!("{:10}{:>10}{:>10}{:>12}", "", "CPU", "to loop", "(at most)");
    for who in Who::ALL {
        let time = median(turns.iter().map(|turn| turn[who.place()]));
        let to_loop = median(turns.iter().map(|turn| turn[who.place()] / turn[Who::Loop.place()]));
        let target = match who {
            Who::Loop => format!("({EXPECTED:.0} us)"),
            Who::Client | Who::Query => format!("({TARGET:.2}x)"),
        };
        println!("{who:10}{time:>10.1}{to_loop:>9.2}x{target:>12}");
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A child is told the port, who asks, and how many requests there are. It prints the time.
pub(crate) fn child(numbers: &[usize]) {
    let &[port, who, requests] = numbers else {
        panic!("no child of this table is told {numbers:?}");
    };
    let path = format!("/{BURSTS}/1");
    let options = ours::options(port, &path);
    let time = runtime().block_on(async {
        let mut by_hand = Loop::connect(port).await;
        let mut pieces = 0;
        let mut start = cpu_time();
        for request in 0..=requests {
            // The first opens the connection.
            if request == 1 {
                start = cpu_time();
            }
            let on_pieces = |more| pieces += more;
            match Who::ALL[who] {
                Who::Query => ours::ask(&options, on_pieces).await,
                Who::Client => ours::ask_client(&options, on_pieces).await,
                Who::Loop => by_hand.ask(&path, on_pieces).await,
            }
        }
        assert_eq!(pieces, requests + 1, "every piece comes");
        cpu_time() - start
    });
    println!("{}", time.as_nanos());
}
