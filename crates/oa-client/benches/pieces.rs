//! Measures the cost of each piece of an answer: text, and fragments of a call's arguments.
//!
//! - A: each event is an HTTP chunk, and the server is ahead of the client.
//! - A': the same, one chunk a millisecond, so that the client sleeps before each.
//! - B: HTTP chunks of 16 KiB with some 65 events each, cut wherever it falls.
//! - C: the arguments of one call, a fragment to an event; framed as A. `query` hands the call out
//!   when it is whole, `Client::next_event` each fragment too.
//! - C': the same, paced as A'.
//! - tiny: requests on a warm connection, each answered with one piece of text; by `query`, and by the layers
//!   alone, which must not take more.

use std::time::{Duration, Instant};

use crate::by_hand::{self, Loop};
use crate::instructions::{Valgrind, grouped};
use crate::layers::Layers;
use crate::process::measured;
use crate::replay::{BURSTS, CALL, LARGE, PACED, PACED_CALL, Server};
use crate::{PIECES, Who, instructions, ours, runtime};

/// A row of the tables.
struct Case {
    name: &'static str,
    /// The client that is compared with the loop.
    ours: Who,
    /// The form of the answer.
    form: usize,
    unit: Unit,
    /// The number of units to count: this many, and three times as many.
    units: usize,
    /// The target for our instructions, and the expected count of the loop.
    targets: [Option<f64>; 2],
    /// The number of units to time; `None` where the server sets the pace.
    timed: Option<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Piece,
    Request,
}

impl Case {
    const fn pieces(name: &'static str, ours: Who, form: usize) -> Self {
        let (unit, timed) = (Unit::Piece, Some(20_000));
        Self { name, ours, form, unit, units: 2_000, targets: [None; 2], timed }
    }

    const fn targets(self, targets: [Option<f64>; 2]) -> Self {
        Self { targets, ..self }
    }

    const fn paced(self) -> Self {
        Self { timed: None, ..self }
    }
}

const CASES: [Case; 9] = [
    Case::pieces("A: an event per HTTP chunk", Who::Query, BURSTS)
        .targets([Some(5_000.0), Some(8_800.0)]),
    Case::pieces("A': the same, paced", Who::Query, PACED).paced(),
    Case::pieces("B: HTTP chunks of 16 KiB", Who::Query, LARGE)
        .targets([Some(2_000.0), Some(5_900.0)]),
    Case::pieces("C: a fragment per HTTP chunk", Who::Query, CALL).targets([Some(11_000.0), None]),
    Case::pieces("C: the same", Who::Client, CALL).targets([Some(11_000.0), None]),
    Case::pieces("C': the same, paced", Who::Query, PACED_CALL).paced(),
    Case::pieces("C': the same", Who::Client, PACED_CALL).paced(),
    Case {
        name: "tiny: a request",
        ours: Who::Query,
        form: BURSTS,
        unit: Unit::Request,
        units: 200,
        targets: [None; 2],
        timed: Some(2_000),
    },
    Case {
        name: "tiny: the same",
        ours: Who::Layers,
        form: BURSTS,
        unit: Unit::Request,
        units: 200,
        targets: [None; 2],
        timed: Some(2_000),
    },
];

const TURNS: usize = 5;

pub(crate) fn print(server: &Server) {
    match Valgrind::find() {
        Some(valgrind) => print_counts(valgrind, server.port()),
        None => println!("valgrind is not installed: times alone\n"),
    }
    print_times(server.port());
}

fn print_counts(valgrind: Valgrind, port: usize) {
    println!("instructions of the client, and allocations, per piece of an answer or request\n");
    println!(
        "{:30}{:>8}{:>10}{:>10}{:>10}{:>12}{:>8}{:>12}{:>12}",
        "", "", "ours", "(target)", "loop", "(expected)", "ratio", "ours alloc", "loop alloc",
    );
    for (place, case) in CASES.iter().enumerate() {
        let child = |who: Who| [PIECES, port, place, who.place()];
        let count = |who| valgrind.instructions(None, &child(who), case.units);
        let allocations = |who| match case.form {
            // The same as in bursts.
            PACED | PACED_CALL => "-".to_owned(),
            _ => format!("{:.2}", valgrind.allocations(&child(who), case.units)),
        };
        let [target, expected] =
            case.targets.map(|target| target.map(|number| format!("({})", grouped(number))));
        let (ours, by_hand) = (count(case.ours), count(Who::Loop));
        println!(
            "{:30}{:>8}{:>10}{:>10}{:>10}{:>12}{:>7.2}x{:>12}{:>12}",
            case.name,
            case.ours,
            grouped(ours),
            target.unwrap_or_default(),
            grouped(by_hand),
            expected.unwrap_or_default(),
            by_hand / ours,
            allocations(case.ours),
            allocations(Who::Loop),
        );
    }
    println!();
}

fn print_times(port: usize) {
    println!("nanoseconds per piece or request, best of {TURNS} turns of {TURNS} each\n");
    println!("{:30}{:>8}{:>10}{:>10}{:>8}", "", "", "ours", "loop", "ratio");
    for (place, case) in CASES.iter().enumerate() {
        let Some(units) = case.timed else { continue };
        let mut best = [f64::MAX; 2];
        for _ in 0..TURNS {
            for (best, who) in best.iter_mut().zip([case.ours, Who::Loop]) {
                let child = [PIECES, port, place, who.place(), units, TURNS];
                *best = best.min(measured(instructions::again(&child))[0] / units as f64);
            }
        }
        let [ours, by_hand] = best;
        let ratio = by_hand / ours;
        println!("{:30}{:>8}{ours:>10.0}{by_hand:>10.0}{ratio:>7.2}x", case.name, case.ours);
    }
}

/// Runs a child, whose arguments are the port, the case, the client and the number of units; for times, also the
/// number of repetitions.
pub(crate) fn child(numbers: &[usize]) {
    match *numbers {
        [port, case, who, units] => {
            time(port, &CASES[case], Who::ALL[who], units, 1);
        }
        [port, case, who, units, turns] => {
            println!("{}", time(port, &CASES[case], Who::ALL[who], units, turns).as_nanos());
        }
        _ => panic!("no child of this table is told {numbers:?}"),
    }
}

/// Returns the best time of several turns.
fn time(port: usize, case: &Case, who: Who, units: usize, turns: usize) -> Duration {
    let (pieces, requests) = match case.unit {
        Unit::Piece => (units, 1),
        Unit::Request => (1, units),
    };
    let path = format!("/{}/{pieces}", case.form);
    let options = ours::options(port, &path);
    runtime().block_on(async {
        let mut by_hand = match who {
            Who::Loop => Some(Loop::connect(port).await),
            Who::Client | Who::Layers | Who::Query => None,
        };
        let mut layers = Layers::new(port, &path, by_hand::BODY);
        let mut best = Duration::MAX;
        for _ in 0..turns {
            let start = Instant::now();
            for _ in 0..requests {
                let mut came = 0;
                let on_pieces = |pieces| came += pieces;
                match (who, &mut by_hand) {
                    (_, Some(by_hand)) => by_hand.ask(&path, on_pieces).await,
                    (Who::Layers, None) => layers.ask(on_pieces).await,
                    (Who::Client, None) => ours::ask_client(&options, on_pieces).await,
                    (_, None) => ours::ask(&options, on_pieces).await,
                }
                assert_eq!(came, pieces, "every piece comes");
            }
            best = best.min(start.elapsed());
        }
        best
    })
}
