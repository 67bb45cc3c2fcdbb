//! Finished answers: their review, and the remains of rejected ones.

use oa_turn::{
    Action, Answer, CutBy, Options, ReviewAnswerOutcome, ReviewAnswerStep, Step, StepOutcome, Turn,
};
use oa_types::{FinishReason, Message};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::rules::{end, shown};
use crate::{answer, call, perform, text, told};

/// The words that follow a refused answer.
const AGAIN: &str = "user: Your answer was not accepted: unfit\n\nPlease answer again.";

fn options() -> Options {
    let mut options = Options::auto();
    options.review_answers = true;
    options
}

fn begun(options: Options) -> Turn {
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).expect("it is a prompt");
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    turn
}

/// A turn whose first answer was refused, and whose next request is on its way.
fn refused(options: Options) -> Turn {
    let mut turn = begun(options);
    answer(&mut turn, vec![text("Bad.")]);
    assert_eq!(turn.next_action(), Some(Action::ReviewAnswer));
    assert!(turn.retry_answer("unfit"));
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    assert_eq!(told(&turn), ["user: Go.", "assistant: Bad.", AGAIN]);
    turn
}

/// A refused answer and its reason stay in history while the turn runs, and leave when an answer is kept.
#[test]
fn refused_answers_leave_when_the_turn_ends() {
    let mut turn = refused(options());
    answer(&mut turn, vec![call("1", "a")]);
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![text("Good.")]);
    assert_eq!((turn.next_action(), turn.next_action()), (Some(Action::ReviewAnswer), None));
    assert_eq!(turn.pending_action(), Some(Action::ReviewAnswer));
    let ReviewAnswerStep { answer, retries, history, .. } = turn.answer_review();
    assert_eq!((answer.text(), retries, history.len()), ("Good.".to_owned(), 1, 5));
    assert_eq!(turn.checkpoint(), None, "nobody has kept it");
    turn.keep_answer();
    let kept = ["user: Go.", r#"assistant: [1 {"a":1}]"#, r#"tool: 1="ok""#, "assistant: Good."];
    assert_eq!(told(&turn), kept);
    assert_eq!(turn.checkpoint().map(|at| (at.messages, at.steps, at.waits)), Some((4, 3, false)));
    assert_eq!(turn.next_action(), Some(end(FinishReason::Unspecified)));
    assert_eq!(turn.turns(), 1);
}

#[test]
fn without_retries_left_a_retry_blocks() {
    let mut turn = begun(options());
    for number in 0..3 {
        answer(&mut turn, vec![text("Bad.")]);
        assert_eq!(turn.next_action(), Some(Action::ReviewAnswer));
        let retry = ReviewAnswerOutcome::Retry { reason: "unfit".to_owned() };
        let taken = turn.take(StepOutcome::ReviewAnswer(retry));
        if number < 2 {
            taken.unwrap();
            assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
        } else {
            let error = taken.unwrap_err();
            let message = "a hook refused the answer, and no retries are left: unfit";
            assert_eq!((&*error.kind, &*error.message), ("blocked", message));
        }
    }
    assert_eq!((told(&turn), turn.is_busy()), (vec!["user: Go.".to_owned()], false));
    assert!(turn.is_retry(&Message::user("Go.")));
    assert_eq!(turn.turns(), 0, "a failed turn does not count");
    // With fresh budgets, and as many retries as before.
    turn.continue_turn().unwrap();
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    answer(&mut turn, vec![text("Bad.")]);
    assert_eq!(turn.next_action(), Some(Action::ReviewAnswer));
    assert!(turn.retry_answer("unfit"));
}

#[test]
fn a_blocked_answer_leaves_its_results() {
    let mut turn = begun(options());
    answer(&mut turn, vec![call("1", "a")]);
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![text("Bad.")]);
    assert_eq!(turn.next_action(), Some(Action::ReviewAnswer));
    turn.block_answer();
    assert_eq!(told(&turn)[2..], [r#"tool: 1="ok""#]);
    assert_eq!(turn.next_action(), None);
    // Another prompt does not bring it back, as it does with a broken answer.
    turn.submit(Message::user("Then not.")).unwrap();
    assert_eq!(told(&turn)[2..], [r#"tool: 1="ok""#, "user: Then not."]);
}

/// An answer under review counts as a partial one: it stays only if its text was shown as it arrived.
#[test]
fn interrupted_review_keeps_shown_text() {
    for final_text_only in [false, true] {
        let mut options = options();
        options.final_text_only = final_text_only;
        let mut turn = refused(options);
        answer(&mut turn, vec![text("Perhaps.")]);
        assert_eq!(turn.next_action(), Some(Action::ReviewAnswer));
        let cut = ReviewAnswerOutcome::Cut { by: CutBy::User };
        turn.take(StepOutcome::ReviewAnswer(cut)).unwrap();
        let mut left = vec!["user: Go."];
        if !final_text_only {
            left.push("assistant: Perhaps. (interrupted)");
        }
        assert_eq!(told(&turn), left);
        assert_eq!(turn.next_action(), Some(end(FinishReason::Interrupted)));
    }
}

#[test]
fn every_ending_removes_refused_answers() {
    type End = fn(&mut Turn);
    let ends: [(End, &[&str]); 5] = [
        (Turn::fail, &["user: Go."]),
        (|turn| turn.abandon(vec![text("Half")]), &["user: Go.", "assistant: Half (interrupted)"]),
        (|turn| turn.interrupt(Vec::new()), &["user: Go."]),
        (|turn| turn.stop(FinishReason::MaxRunTime, Vec::new()), &["user: Go."]),
        (
            |turn| {
                turn.set_external_tools(["a".to_owned()]);
                answer(turn, vec![call("1", "a")]);
                assert_eq!(perform(turn), end(FinishReason::WaitsForResults));
                let at = turn.add_result("1", "late".into(), oa_types::Outcome::Ok);
                at.expect("it waits");
            },
            &["user: Go.", r#"assistant: [1 {"a":1}]"#, r#"tool: 1="late""#],
        ),
    ];
    for (end, left) in ends {
        let mut turn = refused(options());
        end(&mut turn);
        assert_eq!(told(&turn), left);
    }
}

/// With `final_text_only`, a refused answer is never shown.
#[test]
fn refused_text_is_not_the_final_text() {
    let mut options = options();
    options.final_text_only = true;
    let mut turn = refused(options);
    answer(&mut turn, vec![text("Good.")]);
    assert_eq!(shown(&mut turn), (Vec::new(), Some(Action::ReviewAnswer)));
    turn.keep_answer();
    let (lines, last) = shown(&mut turn);
    assert_eq!((lines, last), (vec!["Good.".to_owned()], Some(end(FinishReason::Unspecified))));
}

/// Without tokens there is no retry; after the last round, the retry is sent without tools.
#[test]
fn answer_retries_respect_limits() {
    let mut spent = options();
    spent.max_tokens = Some(1);
    let mut turn = begun(spent);
    let mut last = Answer::new(vec![text("Bad.")]);
    last.tokens = 1;
    turn.answer(last);
    assert_eq!(turn.next_action(), Some(Action::ReviewAnswer));
    assert!(!turn.retry_answer("unfit"));
    assert_eq!(turn.pending_action(), Some(Action::ReviewAnswer), "it has to be blocked");

    let mut limited = options();
    (limited.max_rounds, limited.last_answer_without_tools) = (1, true);
    let mut turn = begun(limited);
    answer(&mut turn, vec![call("1", "a")]);
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![call("2", "a")]);
    assert_eq!(perform(&mut turn), Action::Request { tools: false });
    answer(&mut turn, vec![text("Bad.")]);
    assert_eq!(perform(&mut turn), Action::ReviewAnswer);
    assert!(turn.retry_answer("unfit"));
    assert_eq!(perform(&mut turn), Action::Request { tools: false });
    answer(&mut turn, vec![text("Good.")]);
    assert_eq!(perform(&mut turn), Action::ReviewAnswer);
    turn.keep_answer();
    assert_eq!(perform(&mut turn), end(FinishReason::MaxToolIterations));
}

/// The driver has already rejected an answer that it corrects. An empty answer is reviewed.
#[test]
fn corrected_answers_skip_the_review() {
    let mut turn = begun(options());
    answer(&mut turn, vec![text("Bad.")]);
    assert!(turn.correct(Message::user("No.")));
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    answer(&mut turn, Vec::new());
    assert_eq!(turn.next_action(), Some(Action::ReviewAnswer));
    assert!(!turn.correct(Message::user("No.")), "it is being reviewed");
    let step = turn.next_step();
    let Some(Step::ReviewAnswer(step)) = step else { panic!("{step:?}") };
    assert_eq!((step.answer.content.len(), step.history.len()), (0, 3));
    assert!(turn.retry_answer("unfit"));
    assert_eq!(told(&turn), ["user: Go.", "assistant: Bad.", "user: No.", AGAIN]);
}

#[test]
fn a_steered_message_waits_for_the_review() {
    let mut turn = begun(options());
    answer(&mut turn, vec![text("Done.")]);
    turn.steer(Message::user("And then?")).unwrap();
    assert_eq!(turn.next_action(), Some(Action::ReviewAnswer));
    turn.keep_answer();
    let steered = Action::Submit { prompt: Message::user("And then?"), steered: true };
    assert_eq!(turn.next_action(), Some(steered));
}

#[test]
fn checkpoints_follow_reviews_and_the_end() {
    let mut turn = begun(Options::auto());
    assert_eq!(turn.checkpoint(), None);
    answer(&mut turn, vec![call("1", "a"), call("2", "a")]);
    let mut at = Vec::new();
    loop {
        let before = turn.checkpoint();
        if before.is_some() && at.last() != before.as_ref() {
            at.extend(before);
        }
        match turn.next_action().unwrap() {
            Action::Decide { call } => turn.allow(call),
            Action::Run { calls } => {
                for call in calls {
                    turn.finish_call(call, "ok".into(), oa_types::Outcome::Ok);
                    assert_eq!(turn.checkpoint(), None, "nobody has reviewed it");
                }
            }
            Action::Review { call } => turn.review(call, "****".into()),
            Action::Show { .. } => {}
            Action::Request { .. } => answer(&mut turn, vec![text("Done.")]),
            _ => break,
        }
    }
    let at: Vec<_> = at.into_iter().map(|at| (at.messages, at.steps, at.waits)).collect();
    assert_eq!(at, [(4, 1, false), (5, 2, false)]);
    assert_eq!(turn.checkpoint().map(|at| at.messages), Some(5), "it stays so");
    turn.submit(Message::user("On.")).unwrap();
    assert_eq!(turn.checkpoint(), None);
}

proptest! {
    /// Whatever is reviewed, cut, carried to another process and steered: nothing refused stays, retries are bounded,
    /// and each whole answer at the end of the turn was kept.
    #[test]
    fn refused_answers_never_stay(
        retries in 0..4_u32,
        script in vec((0..8_u8, 0..8_u8), 1..12),
        carries in any::<bool>(),
    ) {
        let mut options = options();
        (options.max_answer_retries, options.max_rounds) = (retries, 100);
        let mut turn = Turn::new(options);
        turn.submit(Message::user("Go.")).unwrap();
        let (mut script, mut asked, mut kept, mut number) = (script.into_iter(), 0, Vec::new(), 0);
        while let Some(action) = turn.next_action() {
            if carries {
                let json = serde_json::to_string(&turn.snapshot()).unwrap();
                turn = Turn::restore(serde_json::from_str(&json).unwrap()).unwrap();
            }
            let (choice, verdict) = script.next().unwrap_or((7, 0));
            match action {
                Action::Request { .. } => {
                    number += 1;
                    match choice {
                        0 => turn.fail(),
                        1 => turn.interrupt(vec![text("Half.")]),
                        2 | 3 => answer(&mut turn, vec![call(&number.to_string(), "a")]),
                        _ => answer(&mut turn, vec![text(&format!("answer {number};"))]),
                    }
                    if choice == 4 {
                        turn.steer(Message::user("Also.")).unwrap();
                    }
                }
                Action::ReviewAnswer => {
                    let before = turn.history().len();
                    match verdict {
                        0 => {
                            kept.push(turn.answer_review().answer.text());
                            turn.keep_answer();
                        }
                        1 => turn.block_answer(),
                        _ => {
                            let is_asked = turn.retry_answer("unfit");
                            prop_assert_eq!(is_asked, asked < retries);
                            asked += u32::from(is_asked);
                            prop_assert_eq!(turn.history().len(), before + usize::from(is_asked));
                            if !is_asked {
                                turn.block_answer();
                            }
                        }
                    }
                }
                Action::Decide { call } => turn.allow(call),
                Action::Run { calls } => {
                    for call in calls {
                        turn.finish_call(call, "ok".into(), oa_types::Outcome::Ok);
                    }
                }
                Action::Review { call } => turn.review(call, number.into()),
                Action::Submit { .. } => turn.accept_prompt(None).unwrap(),
                _ => {}
            }
        }
        prop_assert!(!turn.is_busy());
        let whole = turn.history().iter().filter(|message| message.text().contains("answer ") && !message.interrupted);
        let whole: Vec<String> = whole.map(Message::text).collect();
        prop_assert_eq!(whole, kept);
        prop_assert!(!told(&turn).iter().any(|line| line.contains("unfit")));
        prop_assert!(turn.submit(Message::user("On.")).is_ok());
    }
}
