//! Any input to a turn, at any time.

use oa_turn::{
    CutBy, Decision, Options, ReviewAnswerOutcome, SteerAfterEnd, StepPlan, StopOutcome,
};
use oa_types::{ContentBlock, Cost, ErrorRecord, FinishReason, Outcome};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use crate::{call, malformed, text};

/// Something that may happen at any time, whether or not it makes sense then.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Abandon(Vec<Piece>),
    AcceptPrompt(Option<&'static str>),
    AddResult(usize, bool),
    Approve(usize, u8),
    Answer(Vec<Piece>),
    BeginAnswer,
    CheckStop(u8),
    Continue,
    ContinueWhenAnswered,
    Correct,
    Decide(usize, u8),
    Fail(Vec<Piece>),
    FinishCall(usize, bool),
    HandOver(usize),
    Interrupt(Vec<Piece>),
    Next,
    Plan(u8),
    Prompt(&'static str),
    RefuseSteered,
    Resume,
    RetryShorter,
    Review(usize, bool),
    ReviewAnswer(u8),
    Shorten(u8),
    Steer(&'static str),
    Stop,
    Submit(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece {
    Call(u8),
    EmptyText,
    Malformed(u8),
    Nameless(u8),
    Text,
}

pub(crate) fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        4 => (0..6_u8).prop_map(Piece::Call),
        1 => Just(Piece::EmptyText),
        1 => (0..6_u8).prop_map(Piece::Malformed),
        1 => (0..6_u8).prop_map(Piece::Nameless),
        2 => Just(Piece::Text),
    ]
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    let place = 0..4_usize;
    prop_oneof![
        2 => (place.clone(), any::<bool>()).prop_map(|(call, error)| Event::AddResult(call, error)),
        1 => vec(piece(), 0..3).prop_map(Event::Abandon),
        5 => vec(piece(), 0..5).prop_map(Event::Answer),
        1 => Just(Event::BeginAnswer),
        4 => (0..6_u8).prop_map(Event::CheckStop),
        1 => Just(Event::Continue),
        1 => Just(Event::ContinueWhenAnswered),
        2 => Just(Event::Correct),
        3 => (place.clone(), 0..4_u8).prop_map(|(call, choice)| Event::Approve(call, choice)),
        5 => (place.clone(), 0..4_u8).prop_map(|(call, choice)| Event::Decide(call, choice)),
        1 => vec(piece(), 0..3).prop_map(Event::Fail),
        4 => (place.clone(), any::<bool>()).prop_map(|(call, error)| Event::FinishCall(call, error)),
        3 => place.clone().prop_map(Event::HandOver),
        1 => vec(piece(), 0..3).prop_map(Event::Interrupt),
        12 => Just(Event::Next),
        4 => (place, any::<bool>()).prop_map(|(call, change)| Event::Review(call, change)),
        4 => (0..6_u8).prop_map(Event::ReviewAnswer),
        2 => (0..4_u8).prop_map(Event::Plan),
        1 => Just(Event::RefuseSteered),
        1 => Just(Event::Resume),
        1 => Just(Event::RetryShorter),
        4 => (0..8_u8).prop_map(Event::Shorten),
        2 => prop::sample::select(vec!["Also.", ""]).prop_map(Event::Steer),
        1 => Just(Event::Stop),
        3 => prop::sample::select(vec!["Go.", "", "On."]).prop_map(Event::Submit),
        1 => prop::sample::select(vec!["Go.", "", "On."]).prop_map(Event::Prompt),
        2 => prop::sample::select(vec![None, Some("Hm."), Some(" ")]).prop_map(Event::AcceptPrompt),
    ]
}

pub(crate) fn options() -> impl Strategy<Value = Options> {
    (
        any::<bool>(),
        1..4_u32,
        proptest::option::of(1..6_u32),
        proptest::option::of(1..4_u32),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        proptest::option::of(1..6_u32),
        (vec(any::<bool>(), 4), proptest::option::of(0..3_u32)),
    )
        .prop_map(
            |(
                auto,
                max_rounds,
                max_calls,
                repeat_guard,
                last,
                final_text,
                inline_results,
                max_cost,
                (opens, reviews),
            )| {
                let mut options = if auto { Options::auto() } else { Options::default() };
                options.max_rounds = max_rounds;
                options.max_calls = max_calls;
                options.repeat_guard = repeat_guard;
                options.last_answer_without_tools = last;
                options.final_text_only = auto && final_text;
                options.inline_results = inline_results;
                (options.plan_steps, options.shorten) = (opens[0], opens[1]);
                options.check_stop = opens[2];
                options.review_answers = reviews.is_some();
                options.max_answer_retries = reviews.unwrap_or(2);
                if opens[3] {
                    options.steer_after_end = SteerAfterEnd::Keep;
                }
                options.max_cost =
                    max_cost.map(|cost| Cost::new(cost.into()).expect("this is an amount"));
                options
            },
        )
}

pub(crate) fn blocks(pieces: &[Piece], number: usize) -> Vec<ContentBlock> {
    let id = |place: &u8| format!("call{number:04}{place}");
    let block = |piece: &Piece| match piece {
        // Laws may make the second one external.
        Piece::Call(place) => call(&id(place), if place % 3 == 2 { "ask" } else { "add" }),
        Piece::EmptyText => text(""),
        Piece::Malformed(place) => malformed(&id(place), Some("add")),
        Piece::Nameless(place) => malformed(&id(place), None),
        Piece::Text => text("word "),
    };
    pieces.iter().map(block).collect()
}

pub(crate) fn decision(choice: u8) -> Decision {
    match choice {
        0 => Decision::Run(json!({})),
        1 => Decision::Refuse(json!("no")),
        2 => Decision::Ask(json!({})),
        _ => Decision::Wait(json!({})),
    }
}

pub(crate) fn plan(choice: u8) -> StepPlan {
    let mut plan = StepPlan::default();
    match choice {
        0 => plan.only_tools = Some(vec!["ask".to_owned()]),
        1 => plan.end = Some(FinishReason::from("enough")),
        2 => plan.instructions = Some("Be brief.".to_owned()),
        _ => {}
    }
    plan
}

pub(crate) fn stopped(choice: u8) -> StopOutcome {
    match choice {
        0 => StopOutcome::Cut { by: CutBy::User },
        1 => {
            let error = ErrorRecord::new("hook", "a condition failed");
            StopOutcome::Failed { error: Box::new(error) }
        }
        2 => StopOutcome::Stop,
        _ => StopOutcome::Continue,
    }
}

/// The outcome of a review.
pub(crate) fn reviewed(choice: u8) -> ReviewAnswerOutcome {
    let reason = "unfit".to_owned();
    match choice {
        0 => ReviewAnswerOutcome::Block { reason },
        1 => ReviewAnswerOutcome::Cut { by: CutBy::User },
        2 => {
            let error = ErrorRecord::new("hook", "a hook failed");
            ReviewAnswerOutcome::Failed { error: Box::new(error) }
        }
        3 => ReviewAnswerOutcome::Keep,
        _ => ReviewAnswerOutcome::Retry { reason },
    }
}

pub(crate) fn outcome(is_error: bool) -> Outcome {
    if is_error { Outcome::Failed } else { Outcome::Ok }
}
