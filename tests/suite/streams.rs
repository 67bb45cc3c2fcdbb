//! Every stream, however it is cut, gives the expected blocks, errors, finish reason and usage.

use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use oa_aggregate::TemplateCache;
use oa_chat::PipelineOptions;
use suite::{Fixture, Outcome, all, recorded};

/// The distance between two cuts of one run, in bytes: longer than most events, so that each cut is met as if it were
/// the only one, and all cuts of a stream together take linear time.
const APART: usize = 1024;

fn options(fixture: &Fixture) -> PipelineOptions {
    let mut options = PipelineOptions::default();
    options.aggregator.quirks = fixture.quirks();
    options
}

fn in_pieces(body: &Bytes, size: usize) -> impl Iterator<Item = Bytes> {
    (0..body.len()).step_by(size).map(move |at| body.slice(at..(at + size).min(body.len())))
}

/// Cuts a body at `first` and after every [`APART`] bytes.
fn cut_from(body: &Bytes, first: usize) -> impl Iterator<Item = Bytes> {
    let (head, rest) = (body.slice(..first), body.slice(first..));
    let pieces = (0..rest.len()).step_by(APART);
    iter::once(head).chain(pieces.map(move |at| rest.slice(at..(at + APART).min(rest.len()))))
}

/// Checks that a stream gives the same wherever it is cut. Each of its offsets is a cut of one run.
#[track_caller]
fn check_cuts(fixture: &Fixture, options: PipelineOptions, whole: &Outcome) {
    let body = &fixture.body;
    for first in 0..=body.len().min(APART - 1) {
        let cut = Outcome::of(options, cut_from(body, first));
        assert_eq!(cut, *whole, "{} cut at {first} + n * {APART}", fixture.name);
    }
}

/// Runs a check on every fixture and reports all failures.
fn check_all(check: impl Fn(&Fixture)) {
    let mut wrong = Vec::new();
    let fixtures = all();
    assert!(fixtures.len() >= 160, "the project's own fixtures are missing");
    for fixture in fixtures {
        if catch_unwind(AssertUnwindSafe(|| check(&fixture))).is_err() {
            wrong.push(fixture.name);
        }
    }
    assert!(wrong.is_empty(), "{} differ: {wrong:#?}", wrong.len());
}

#[test]
fn external_recordings_are_all_or_none() {
    match recorded().len() {
        0 => println!("skipped: the 61 recordings of other projects are not at hand"),
        count => {
            assert_eq!(count, 61);
            println!("{count} recordings of other projects are read in place");
        }
    }
}

#[test]
fn whole_streams_give_the_expected_answer() {
    check_all(|fixture| {
        let outcome = Outcome::of(options(fixture), [fixture.body.clone()]);
        outcome.assert_expected(fixture, false);
        let Outcome { answer, .. } = outcome;
        let nothing = answer.is_empty() && answer.problems.is_empty() && !answer.is_finished();
        assert_eq!(fixture.fails(), nothing);
    });
}

#[test]
fn split_streams_give_the_expected_answer() {
    check_all(|fixture| {
        for size in [1, 2, 3, 7, 64, 1460] {
            let outcome = Outcome::of(options(fixture), in_pieces(&fixture.body, size));
            outcome.assert_expected(fixture, false);
        }
    });
}

#[test]
fn streams_cut_anywhere_give_the_same() {
    check_all(|fixture| {
        let whole = Outcome::of(options(fixture), [fixture.body.clone()]);
        check_cuts(fixture, options(fixture), &whole);
    });
}

/// Runs fixtures in sequence as answers of one server.
#[track_caller]
fn check_chain<'a>(fixtures: impl IntoIterator<Item = &'a Fixture>) {
    let mut templates = TemplateCache::default();
    for fixture in fixtures {
        let chunks = in_pieces(&fixture.body, 1460);
        let outcome = Outcome::with_templates(options(fixture), &mut templates, chunks);
        outcome.assert_expected(fixture, false);
        assert_eq!(
            outcome,
            Outcome::of(options(fixture), [fixture.body.clone()]),
            "{}",
            fixture.name
        );
    }
}

#[test]
fn earlier_streams_do_not_change_later_ones() {
    let fixtures = all();
    for fixture in &fixtures {
        check_chain([fixture, fixture, fixture]);
    }
    check_chain(&fixtures);
    check_chain(fixtures.iter().rev());
    check_chain(fixtures.iter().flat_map(|fixture| [fixture, fixture]));
    // Each follows many others.
    for step in [7, 31] {
        check_chain((0..fixtures.len()).map(|place| &fixtures[place * step % fixtures.len()]));
    }
}

#[test]
fn think_tags_split_the_same_at_any_cut() {
    let mut count = 0;
    for fixture in all() {
        let Some(tags) = fixture.think_tags() else {
            continue;
        };
        count += 1;
        let mut options = options(&fixture);
        options.aggregator.quirks.think_tags = tags;
        let whole = Outcome::of(options, [fixture.body.clone()]);
        whole.assert_expected(&fixture, true);
        check_cuts(&fixture, options, &whole);
    }
    assert!(count >= 3, "{count} streams have think tags");
}
