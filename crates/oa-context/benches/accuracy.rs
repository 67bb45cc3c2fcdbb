//! Measures the error of estimates compared with exact counts, by kind of text, and their cost.
//!
//! `cargo bench -p oa-context` prints two tables. `accuracy` has errors in percent of `o200k_base`, for all texts of a
//! kind and for the worst of them. The column "held out" is the one that counts: the estimator was tuned on the
//! other one. Kinds with a star are promised to be within 15 %, text by text. The last columns are the
//! throughput of the estimator and of the exact counter.
//!
//! `cost` has the instructions that an estimate takes per character of the held-out texts, as `valgrind`
//! counts them, with the target where there is one, and how often an estimate allocates. With
//! `-- cost` only that table is printed.

#![expect(clippy::print_stdout, reason = "a bench shows its table")]

#[path = "../../oa-aggregate/benches/instructions.rs"]
#[expect(dead_code, reason = "other benches need more of it")]
mod instructions;
#[path = "../tests/suite/texts.rs"]
mod texts;

use std::env;
use std::hint::black_box;
use std::time::Instant;

use oa_context::{Estimator, Tiktoken, TokenCounter};

use crate::instructions::{Valgrind, numbers};
use crate::texts::{KINDS, error, texts};

/// At most so many instructions per character of texts that are mostly ASCII.
const TARGET: f64 = 8.0;
const ASCII: [&str; 6] = ["english", "code", "json", "minified_json", "tool_schemas", "markdown"];

fn main() {
    if let [kind, times] = numbers()[..] {
        return estimate(KINDS[kind].held_out, times);
    }
    let is_wanted = |name: &str| {
        let mut names = env::args().skip(1).filter(|name| !name.starts_with('-')).peekable();
        names.peek().is_none() || names.any(|wanted| wanted == name)
    };
    if is_wanted("accuracy") {
        print_accuracy();
    }
    if is_wanted("cost") {
        print_cost();
    }
}

fn print_cost() {
    let Some(valgrind) = Valgrind::find() else {
        return println!("cost: valgrind is not installed");
    };
    println!("\ninstructions of an estimate per character, and allocations per estimate\n");
    println!("{:15} {:>12} {:>10} {:>11}", "", "instructions", "(at most)", "allocations");
    for (place, kind) in KINDS.iter().enumerate() {
        let per_character =
            valgrind.instructions(None, &[place], 20) / kind.held_out.chars().count() as f64;
        let allocations = valgrind.allocations(&[place], 20);
        let target =
            if ASCII.contains(&kind.name) { format!("({TARGET:.1})") } else { String::new() };
        println!("{:15} {per_character:12.1} {target:>10} {allocations:11.0}", kind.name);
    }
}

/// Estimates a text so many times.
fn estimate(text: &str, times: usize) {
    for _ in 0..times {
        black_box(Estimator::new().count_text(black_box(text)));
    }
}

fn print_accuracy() {
    let (estimator, exact) = (Estimator::new(), Tiktoken::o200k_base());
    println!("{:36} {:>19} {:>19}", "", "tuned", "held out");
    println!(
        "{:15} {:>6} {:>6} {:>6}  {:>9} {:>9} {:>9} {:>9} {:>10} {:>10}",
        "kind", "texts", "chars", "tokens", "all", "worst", "all", "worst", "estimate", "exact",
    );
    for kind in KINDS {
        let held_out = kind.held_out;
        let tokens: usize = texts(held_out).map(|text| exact.count_text(text)).sum();
        let (tuned_all, tuned_worst) = errors(kind.tuned, &estimator, &exact);
        let (all, worst) = errors(held_out, &estimator, &exact);
        println!(
            "{:15} {:6} {:6} {tokens:6}  {tuned_all:+7.1} % {tuned_worst:+7.1} % {all:+7.1} % \
             {worst:+7.1} % {:5.0} MB/s {:5.1} MB/s",
            format!("{}{}", kind.name, if kind.promised { " *" } else { "" }),
            texts(held_out).count(),
            held_out.chars().count(),
            speed(&estimator, held_out),
            speed(&exact, held_out),
        );
    }
}

/// The error of all texts together, and the largest of one.
fn errors(file: &str, estimator: &Estimator, exact: &Tiktoken) -> (f64, f64) {
    let (mut estimates, mut counts, mut worst) = (0, 0, 0.0_f64);
    for text in texts(file) {
        let (estimated, exact) = (estimator.count_text(text), exact.count_text(text));
        estimates += estimated;
        counts += exact;
        let error = error(estimated, exact);
        worst = if error.abs() > worst.abs() { error } else { worst };
    }
    (error(estimates, counts), worst)
}

/// Megabytes a second, the best of several runs.
fn speed(counter: &dyn TokenCounter, text: &str) -> f64 {
    let run = || {
        let start = Instant::now();
        for _ in 0..20 {
            black_box(counter.count_text(black_box(text)));
        }
        20.0 * text.len() as f64 / start.elapsed().as_secs_f64() / 1e6
    };
    (0..5).map(|_| run()).fold(0.0, f64::max)
}
