//! Measures whether a round of tools costs the same, however long the conversation.
//!
//! The model calls a tool, which returns 1 KiB of text, for a number of rounds; then it answers with one piece of
//! text. Each round's request carries the whole conversation. `Client` runs the calls itself. The first
//! conversation opens the connection and is not counted; the others start over on it. The call comes in five
//! fragments, and its argument differs from round to round; the tool only copies its text.
//!
//! `Client` checks each answer's `usage` for a cut prompt, and has a row for each way to report it: the correct
//! number, half of it, and 12 or 25 tokens, whatever was sent.
//!
//! The loop copies all messages into each request. To `valgrind` a large copy is one instruction for each byte,
//! since the C library uses `rep movsb`.

use crate::by_hand::Loop;
use crate::instructions::{Valgrind, grouped};
use crate::replay::{self, Server};
use crate::{ROUNDS, Who, ours, runtime};

const LENGTHS: [usize; 3] = [50, 100, 200];

/// The name of a row, its client, and the form of the answers.
const ROWS: [(&str, Who, usize); 5] = [
    ("Client", Who::Client, replay::ROUNDS),
    ("  usage 12", Who::Client, replay::ROUNDS_OF_12),
    ("  usage 25", Who::Client, replay::ROUNDS_OF_25),
    ("  usage half", Who::Client, replay::ROUNDS_OF_HALF),
    ("loop", Who::Loop, replay::ROUNDS),
];

/// The largest number of instructions per round, the largest factor compared with the shortest conversation, and
/// the expected number of the loop.
const TARGET: f64 = 200_000.0;
const GROWTH: f64 = 1.1;
/// The largest number of additional instructions where usage is wrong.
const EXTRA: f64 = 5_000.0;
const EXPECTED: f64 = 150_000.0;

pub(crate) fn print(server: &Server) {
    let Some(valgrind) = Valgrind::find() else {
        return println!("rounds: valgrind is not installed");
    };
    println!("instructions of the client per round, in conversations of several lengths\n");
    print!("{:14}", "");
    for rounds in LENGTHS {
        print!("{:>12}", format!("{rounds} rounds"));
    }
    println!(
        "{:>12}{:>8}{:>12}{:>10}{:>12}",
        "(at most)", "growth", "(at most)", "extra", "(at most)"
    );
    let mut honest = None;
    for (place, (name, who, form)) in ROWS.into_iter().enumerate() {
        let per_round = LENGTHS.map(|rounds| {
            let child = [ROUNDS, server.port(), place, rounds];
            valgrind.instructions(None, &child, 1) / rounds as f64
        });
        print!("{name:14}");
        for count in per_round {
            print!("{:>12}", grouped(count));
        }
        let [shortest, .., longest] = per_round;
        let (most, growth) = match who {
            Who::Client | Who::Layers | Who::Query => (grouped(TARGET), format!("({GROWTH:.2}x)")),
            Who::Loop => (grouped(EXPECTED), String::new()),
        };
        print!("{:>12}{:>7.2}x{growth:>12}", format!("({most})"), longest / shortest);
        if form == replay::ROUNDS {
            honest.get_or_insert(per_round);
        } else if let Some(honest) = honest {
            // The largest of all lengths.
            let extra = per_round.iter().zip(honest).map(|(count, honest)| count - honest);
            let extra = extra.fold(f64::MIN, f64::max);
            print!("{extra:>10.0}{:>12}", format!("({})", grouped(EXTRA)));
        }
        println!();
    }
}

/// Runs a child, whose arguments are the port, the row, the rounds of a conversation and the number of
/// conversations.
pub(crate) fn child(numbers: &[usize]) {
    let &[port, row, rounds, conversations] = numbers else {
        panic!("no child of this table is told {numbers:?}");
    };
    let (_, who, form) = ROWS[row];
    let path = format!("/{form}/{rounds}");
    runtime().block_on(async {
        let options = ours::options_with_tool(port, &path);
        let mut by_hand = Loop::connect(port).await;
        for _ in 0..=conversations {
            let came = match who {
                Who::Loop => by_hand.converse(&path).await,
                Who::Client | Who::Layers | Who::Query => ours::converse(&options).await,
            };
            assert_eq!(came, rounds, "every call is answered");
        }
    });
}
