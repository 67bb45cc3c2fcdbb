//! Does a round of tools cost the same, however long the conversation has become?
//!
//! The model calls a tool, which returns 1 KiB of text, so many rounds long; then it answers with one
//! piece of text. Each round's request carries all that was said before. `Client` runs the calls
//! itself. The first conversation opens the connection and is not counted, the others begin anew on it.
//! The call comes in five fragments, and its argument differs from round to round; the tool does nothing
//! but copy its text.
//!
//! `Client` checks by each answer's `usage` whether the prompt was cut, and has a row for each way to report it:
//! as it was, as half of that, and as 12 or 25 tokens, whatever was sent.
//!
//! The loop copies all messages into each request. To `valgrind` a large copy is one instruction for
//! each byte, since that is how the C library makes it (`rep movsb`).

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

/// At most so many instructions per round, at most so many times what it is in the shortest
/// conversation; and what the loop is expected to take.
const TARGET: f64 = 200_000.0;
const GROWTH: f64 = 1.1;
/// And at most so many more than where usage is honest.
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

/// A child is told the port, which row, how many rounds there are to a conversation and how many
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
