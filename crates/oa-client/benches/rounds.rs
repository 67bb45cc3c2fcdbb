//! Does a round of tools cost the same, however long the conversation has become?
//!
//! The model calls a tool, which returns 1 KiB of text, so many rounds long; then it answers with one
//! piece of text. Each round's request carries all that was said before. `Client` runs the calls
//! itself. The first conversation opens the connection and is not counted, the others begin anew on it.
//! The call comes in five fragments, and its argument differs from round to round; the tool does nothing
//! but copy its text. Each answer reports 25 tokens of prompt, so that all of them look cut.
//!
//! The loop copies all messages into each request. To `valgrind` a large copy is one instruction for
//! each byte, since that is how the C library makes it (`rep movsb`).

use crate::by_hand::Loop;
use crate::instructions::{Valgrind, grouped};
use crate::replay::{self, Server};
use crate::{ROUNDS, Who, ours, runtime};

const LENGTHS: [usize; 3] = [50, 100, 200];

/// At most so many instructions per round, at most so many times what it is in the shortest
/// conversation; and what the loop is expected to take.
const TARGET: f64 = 200_000.0;
const GROWTH: f64 = 1.1;
const EXPECTED: f64 = 150_000.0;

pub(crate) fn print(server: &Server) {
    let Some(valgrind) = Valgrind::find() else {
        return println!("rounds: valgrind is not installed");
    };
    println!("instructions of the client per round, in conversations of several lengths\n");
    print!("{:10}", "");
    for rounds in LENGTHS {
        print!("{:>12}", format!("{rounds} rounds"));
    }
    println!("{:>12}{:>8}{:>12}", "(at most)", "growth", "(at most)");
    for who in [Who::Client, Who::Loop] {
        let per_round = LENGTHS.map(|rounds| {
            let child = [ROUNDS, server.port(), who.place(), rounds];
            valgrind.instructions(None, &child, 1) / rounds as f64
        });
        print!("{who:10}");
        for count in per_round {
            print!("{:>12}", grouped(count));
        }
        let [shortest, .., longest] = per_round;
        let (most, growth) = match who {
            Who::Client | Who::Query => (grouped(TARGET), format!("({GROWTH:.2}x)")),
            Who::Loop => (grouped(EXPECTED), String::new()),
        };
        println!("{:>12}{:>7.2}x{growth:>12}", format!("({most})"), longest / shortest);
    }
}

/// A child is told the port, who asks, how many rounds there are to a conversation and how many
/// conversations.
pub(crate) fn child(numbers: &[usize]) {
    let &[port, who, rounds, conversations] = numbers else {
        panic!("no child of this table is told {numbers:?}");
    };
    let path = format!("/{}/{rounds}", replay::ROUNDS);
    runtime().block_on(async {
        let options = ours::options_with_tool(port, &path);
        let mut by_hand = Loop::connect(port).await;
        for _ in 0..=conversations {
            let came = match Who::ALL[who] {
                Who::Loop => by_hand.converse(&path).await,
                Who::Client | Who::Query => ours::converse(&options).await,
            };
            assert_eq!(came, rounds, "every call is answered");
        }
    });
}
