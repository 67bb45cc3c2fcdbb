//! How far are estimates from exact counts, by kind of text, and what do they cost?
//!
//! `cargo bench -p oa-context` prints errors in percent of `o200k_base`, of all texts of a kind and of the worst
//! of them. The column "held out" is the one that counts: the estimator was made with the other one. Kinds with
//! a star are promised to be within 15 %, text by text. The last columns say how many bytes a second are read, by
//! the estimator and by the exact counter.

#![expect(clippy::print_stdout, reason = "a bench shows its table")]

#[path = "../tests/suite/texts.rs"]
mod texts;

use std::hint::black_box;
use std::time::Instant;

use oa_context::{Estimator, Tiktoken, TokenCounter};

use crate::texts::{KINDS, error, texts};

fn main() {
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
