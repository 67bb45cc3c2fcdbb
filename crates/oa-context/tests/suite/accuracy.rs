//! Estimates compared with `o200k_base`, on texts not used for the fit.

use std::collections::HashSet;

use oa_context::{Tiktoken, TokenCounter, estimate_text};

use crate::texts::{KINDS, error, texts};

fn errors(file: &str, exact: &Tiktoken) -> (f64, Vec<f64>) {
    let counts: Vec<(usize, usize)> =
        texts(file).map(|text| (estimate_text(text), exact.count_text(text))).collect();
    let sum = |of: fn(&(usize, usize)) -> usize| counts.iter().map(of).sum();
    let each = counts.iter().map(|(estimated, exact)| error(*estimated, *exact)).collect();
    (error(sum(|count| count.0), sum(|count| count.1)), each)
}

#[test]
fn held_out_texts_are_within_15_percent() {
    let exact = Tiktoken::o200k_base();
    for kind in KINDS {
        let (all, each) = errors(kind.held_out, &exact);
        println!("{:14} {all:+6.1} %, each {each:.0?}", kind.name);
        assert!(all.abs() <= 15.0, "{}: {all:+.1} %", kind.name);
        // For the promised kinds, every single text is checked.
        let worst = each.iter().fold(0.0_f64, |worst, error| worst.max(error.abs()));
        let bound = if kind.promised { 15.0 } else { 25.0 };
        assert!(worst <= bound, "{}: {each:.1?}", kind.name);
    }
}

#[test]
fn tuned_and_held_out_texts_are_disjoint() {
    for kind in KINDS {
        let tuned: Vec<&str> = texts(kind.tuned).collect();
        let held_out: Vec<&str> = texts(kind.held_out).collect();
        let least = if kind.promised { 6 } else { 3 };
        assert!(tuned.len() >= least && held_out.len() >= least, "{}", kind.name);
        for text in tuned.iter().chain(&held_out) {
            let length = text.chars().count();
            assert!((500..=5_000).contains(&length), "{}: {length} characters", kind.name);
        }
        if kind.name != "emoji" {
            // Lines of prose are whole paragraphs; short lines of code repeat.
            let long = |texts: &[&'static str]| -> HashSet<&'static str> {
                texts.iter().flat_map(|text| text.lines()).filter(|line| line.len() > 60).collect()
            };
            let (tuned, held_out) = (long(&tuned), long(&held_out));
            assert_eq!(tuned.intersection(&held_out).count(), 0, "{}", kind.name);
        }
    }
}
