//! Images of results: in history, shown, reviewed, and moved to other processes.

use oa_turn::{Action, Options, ReviewOutcome, StepOutcome, Turn};
use oa_types::{ContentBlock, FinishReason, ImageBlock, Outcome, ToolResultBlock};
use serde_json::json;

use crate::rules::{auto, manual};
use crate::{answer, call, image, perform};

/// A turn whose call "1" has a result with an image that awaits review.
fn reviewed(turn: &mut Turn) {
    answer(turn, vec![call("1", "look")]);
    loop {
        match turn.next_action().expect("something is in progress") {
            Action::Decide { call } => turn.allow(call),
            Action::Run { .. } => {
                let images = vec![image()];
                assert!(turn.finish_call_with_images(0, json!("Here."), images, Outcome::Ok));
            }
            Action::Review { call } => {
                assert_eq!((call, turn.calls()[0].images.len()), (0, 1));
                return;
            }
            _ => {}
        }
    }
}

fn result(turn: &Turn) -> &ToolResultBlock {
    match turn.history().last().map(|message| &message.content[..]) {
        Some([ContentBlock::ToolResult(result)]) => result,
        other => panic!("{other:?}"),
    }
}

fn images(turn: &Turn) -> &[ImageBlock] {
    &result(turn).images
}

#[test]
fn results_keep_their_images() {
    let mut turn = auto();
    reviewed(&mut turn);
    let revisions = turn.revisions().to_vec();
    turn.take(StepOutcome::Review(ReviewOutcome::Keep)).unwrap();
    assert_eq!(images(&turn), [image()]);
    assert_eq!(turn.revisions(), revisions, "nothing has changed");
    let mut shown = Vec::new();
    while let Some(action) = turn.next_action() {
        match action {
            Action::Show { block } => shown.push(block),
            action => {
                assert_eq!(action, Action::Request { tools: true });
                break;
            }
        }
    }
    assert!(matches!(&shown[..], [ContentBlock::ToolResult(shown)] if shown.images == [image()]));
}

#[test]
fn replacing_a_result_replaces_its_images() {
    for images_given in [vec![], vec![image(), image()]] {
        let mut turn = auto();
        reviewed(&mut turn);
        let revision = turn.revisions().last().copied();
        // The same words: images alone are a change, too.
        let (content, given) = (json!("Here."), images_given.clone());
        let replaced = ReviewOutcome::Replace { content, images: given };
        turn.take(StepOutcome::Review(replaced)).unwrap();
        assert_eq!(images(&turn), images_given);
        assert_ne!(turn.revisions().last().copied(), revision);
    }
}

#[test]
fn manual_results_may_have_images() {
    let mut turn = manual();
    answer(&mut turn, vec![call("1", "look")]);
    perform(&mut turn);
    turn.add_result_with_images("1", json!("Here."), vec![image()], Outcome::Ok).unwrap();
    assert_eq!(images(&turn), [image()]);
}

#[test]
fn snapshot_and_resume_keep_images() {
    let mut turn = auto();
    reviewed(&mut turn);
    let json = serde_json::to_string(&turn.snapshot()).unwrap();
    let mut carried = Turn::restore(serde_json::from_str(&json).unwrap()).unwrap();
    assert_eq!(carried.calls(), turn.calls());
    carried.take(StepOutcome::Review(ReviewOutcome::Keep)).unwrap();
    assert_eq!(images(&carried), [image()]);
    // And through the history alone, where the result is reviewed again.
    let mut resumed = Turn::new(Options::auto());
    resumed.resume(turn.history().to_vec()).unwrap();
    assert_eq!(resumed.calls()[0].images, [image()]);
    resumed.continue_turn().unwrap();
    assert_eq!(perform(&mut resumed), Action::Request { tools: true });
    assert_eq!(images(&resumed), [image()]);
}

#[test]
fn different_images_are_no_repetition() {
    for differ in [true, false] {
        let mut turn = auto();
        let mut end = None;
        for round in 0..4 {
            answer(&mut turn, vec![call(&round.to_string(), "look")]);
            let last = loop {
                match turn.next_action().expect("something is in progress") {
                    Action::Decide { call } => turn.allow(call),
                    Action::Run { .. } => {
                        let number = if differ { round } else { 0 };
                        let url = format!("https://host/{number}.png");
                        let images = vec![ImageBlock::from_url(url).unwrap()];
                        turn.finish_call_with_images(0, json!("Here."), images, Outcome::Ok);
                    }
                    Action::Review { call } => turn.review(call, json!("Here.")),
                    Action::Show { .. } => {}
                    action => break action,
                }
            };
            if let Action::End { reason } = last {
                end = Some(reason);
                break;
            }
        }
        assert_eq!(end, (!differ).then_some(FinishReason::RepeatedToolCall));
    }
}
