//! Answers that are corrected within their turn, and turns that fail while they are.

use oa_turn::{
    Action, Answer, AskOutcome, ErrorKind, Options, PromptOutcome, ReviewOutcome, Step,
    StepOutcome, Turn,
};
use oa_types::{Cost, FinishReason, Message};

use crate::rules::{auto, begun, end, lines, manual, shown};
use crate::{answer, call, malformed, perform, text, told};

/// A correction uses the rounds of its turn and does not count as another turn.
#[test]
fn corrections_stay_within_the_turn() {
    let mut options = Options::auto();
    (options.max_turns, options.max_rounds, options.final_text_only) = (Some(1), 1, true);
    let mut turn = begun(options);
    assert!(!turn.correct(Message::user("No.")), "there is no answer yet");
    answer(&mut turn, vec![call("1", "a")]);
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![text("Five.")]);
    assert!(turn.correct(Message::user("No.")));
    assert!(!turn.correct(Message::user("No.")), "it goes on already");
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    answer(&mut turn, vec![text("Six.")]);
    // Of final texts only the last is shown.
    assert_eq!(shown(&mut turn), (lines(["Six."]), Some(end(FinishReason::Unspecified))));
    assert_eq!(told(&turn)[3..], ["assistant: Five.", "user: No.", "assistant: Six."]);
    assert_eq!((turn.turns(), turn.rounds()), (1, 1));
    assert!(!turn.correct(Message::user("No.")), "the turn is over");

    // The rounds of the turn are used up all the same.
    let mut turn = begun(options);
    answer(&mut turn, vec![call("1", "a")]);
    perform(&mut turn);
    answer(&mut turn, vec![text("Five.")]);
    assert!(turn.correct(Message::user("No.")));
    turn.next_action();
    answer(&mut turn, vec![call("2", "a")]);
    assert_eq!(perform(&mut turn), end(FinishReason::MaxToolIterations));
}

#[test]
fn failed_corrections_can_be_retried() {
    for has_begun in [false, true] {
        let mut turn = manual();
        answer(&mut turn, vec![text("Five.")]);
        assert!(turn.correct(Message::user("No.")));
        assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
        if has_begun {
            turn.begin_answer();
        }
        turn.fail();
        let left = ["user: Go.", "assistant: Five.", "user: No."];
        assert_eq!((told(&turn), turn.turns()), (lines(left), 0));
        let mut continued = Turn::restore(turn.snapshot()).unwrap();
        continued.continue_turn().unwrap();
        assert_eq!(continued.next_action(), Some(Action::Request { tools: true }));
        turn.prompt(Message::user("Go.")).unwrap();
        assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
        answer(&mut turn, vec![text("Six.")]);
        assert_eq!(told(&turn)[..3], left);
        assert_eq!((told(&turn).len(), turn.turns()), (4, 1));
    }
}

/// An outcome that is reported twice, as by a journal that repeats its last entry.
#[test]
fn late_answers_correct_nothing() {
    let outcome = |words: &str| {
        let answer = Answer::new(vec![text(words)]);
        let correction = Some("No.".to_owned());
        StepOutcome::Ask(AskOutcome::Answered { answer, correction })
    };
    for reviews in [false, true] {
        let mut options = Options::auto();
        options.review_answers = reviews;
        let mut turn = begun(options);
        turn.begin_output(None);
        answer(&mut turn, vec![text("Five.")]);
        turn.take(outcome("Six.")).unwrap();
        assert_eq!(told(&turn), ["user: Go.", "assistant: Five."]);
        let next = if reviews { Action::ReviewAnswer } else { end(FinishReason::Unspecified) };
        assert_eq!(perform(&mut turn), next);
    }
}

#[test]
fn retry_after_lost_call_adds_no_prompt() {
    let mut turn = auto();
    let mut lost = Answer::new(vec![malformed("1", None)]);
    lost.finish_reason = FinishReason::ToolCalls;
    turn.answer(lost);
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    turn.fail();
    turn.prompt(Message::user("Go.")).unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    let told = told(&turn);
    assert_eq!((told.len(), &*told[0]), (2, "user: Go."), "{told:?}");
}

/// The limit that led to the last answer is the reason of the end, whatever that answer contains.
#[test]
fn lost_last_call_keeps_the_end_reason() {
    let mut options = Options::auto();
    (options.max_rounds, options.repeat_guard) = (4, Some(3));
    options.last_answer_without_tools = true;
    let mut turn = begun(options);
    let mut rounds = 0;
    loop {
        answer(&mut turn, vec![call(&rounds.to_string(), "a")]);
        rounds += 1;
        if perform(&mut turn) == (Action::Request { tools: false }) {
            break;
        }
    }
    let mut lost = Answer::new(vec![malformed("x", None)]);
    lost.finish_reason = FinishReason::ToolCalls;
    turn.answer(lost);
    assert_eq!((rounds, perform(&mut turn)), (4, end(FinishReason::RepeatedToolCall)));
}

#[test]
fn lost_call_over_budget_ends_with_that_limit() {
    let mut options = Options::auto();
    options.max_cost = Some(Cost::new(0.3).unwrap());
    let mut turn = begun(options);
    let mut lost = Answer::new(vec![malformed("1", None)]);
    (lost.finish_reason, lost.cost) = (FinishReason::ToolCalls, Cost::new(0.3).unwrap());
    turn.answer(lost);
    assert_eq!(perform(&mut turn), end(FinishReason::MaxRunCost));
}

#[test]
fn no_correction_follows_calls_or_a_limit() {
    let mut turn = manual();
    answer(&mut turn, vec![call("1", "a")]);
    while turn.calls()[0].state == oa_turn::CallState::Undecided {
        perform(&mut turn);
    }
    assert!(!turn.correct(Message::user("No.")), "a call is open");

    let mut options = Options::auto();
    options.max_tokens = Some(10);
    let mut turn = begun(options);
    let mut costly = Answer::new(vec![text("Five.")]);
    costly.tokens = 10;
    turn.answer(costly);
    assert!(!turn.correct(Message::user("No.")), "the tokens are used up");
    assert_eq!(turn.next_action(), Some(end(FinishReason::Unspecified)));
}

/// Without its budget the turn would have gone on, so the budget is the reason for its end.
#[test]
fn missing_corrections_name_the_budget() {
    let mut options = Options::auto();
    options.max_tokens = Some(10);
    for (tokens, correction, reason) in [
        (10, Some("No."), FinishReason::MaxRunTokens),
        (10, None, FinishReason::Stop),
        (9, Some(" "), FinishReason::Stop),
    ] {
        for reviewed in [false, true] {
            options.review_answers = reviewed;
            let mut turn = begun(options);
            let mut costly = Answer::new(vec![text("Five.")]);
            (costly.tokens, costly.finish_reason) = (tokens, FinishReason::Stop);
            let correction = correction.map(str::to_owned);
            let answered = AskOutcome::Answered { answer: costly, correction };
            turn.take(StepOutcome::Ask(answered)).unwrap();
            if reviewed {
                assert_eq!(turn.next_action(), Some(Action::ReviewAnswer));
                turn.keep_answer();
            }
            assert_eq!(turn.next_action(), Some(end(reason.clone())), "{tokens}");
            assert_eq!(told(&turn), ["user: Go.", "assistant: Five."]);
        }
    }
}

/// Typed answers remove what was rejected when the turn is over, also when it has failed.
#[test]
fn retry_after_rejected_answers_are_removed() {
    let mut turn = manual();
    answer(&mut turn, vec![text("Five.")]);
    assert!(turn.correct(Message::user("No.")));
    turn.next_action();
    turn.begin_answer();
    turn.fail_with(vec![text("Si")]);
    let rejected = turn.revisions()[1..].to_vec();
    let mut other = Turn::restore(turn.snapshot()).unwrap();
    turn.remove_messages(&rejected).unwrap();
    assert_eq!(told(&turn), ["user: Go."]);
    turn.prompt(Message::user("Go.")).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    assert_eq!(told(&turn), ["user: Go."]);
    // A different prompt follows the broken answer, as after any failure.
    other.remove_messages(&rejected).unwrap();
    other.submit(Message::user("Then not.")).unwrap();
    assert_eq!(told(&other), ["user: Go.", "assistant: Si (interrupted)", "user: Then not."]);
    // Without the prompt there is nothing to retry.
    let mut turn = manual();
    turn.begin_answer();
    turn.fail();
    let prompt = turn.revisions().to_vec();
    turn.remove_messages(&prompt).unwrap();
    assert!(turn.history().is_empty() && !turn.is_retry(&Message::user("Go.")));
}

/// Invalid answers of structured output are noted by the turn, also over a restart, and leave history at its end. The
/// last one stays if nothing followed it.
#[test]
fn invalid_output_leaves_history() {
    let answered = |turn: &mut Turn, answer: Answer, correction: Option<&str>| {
        loop {
            match turn.next_step().expect("the turn goes on") {
                Step::Ask(_) => break,
                Step::Review(_) => {
                    turn.take(StepOutcome::Review(ReviewOutcome::Keep)).unwrap();
                }
                step => assert!(matches!(step, Step::Show { .. }), "{step:?}"),
            }
        }
        let correction = correction.map(str::to_owned);
        turn.take(StepOutcome::Ask(AskOutcome::Answered { answer, correction })).unwrap();
    };
    let mut turn = Turn::new(Options::auto());
    turn.prompt(Message::user("Go.")).unwrap();
    assert!(matches!(turn.next_step(), Some(Step::SubmitPrompt(_))));
    turn.take(StepOutcome::SubmitPrompt(PromptOutcome::Allow)).unwrap();
    turn.begin_output(Some("give".to_owned()));
    answered(&mut turn, Answer::new(vec![text("Five.")]), Some("That is no object."));
    answered(&mut turn, Answer::new(vec![malformed("1", Some("give"))]), None);
    let mut turn = Turn::restore(turn.snapshot()).unwrap();
    answered(&mut turn, Answer::new(vec![text("{}")]), None);
    let all = told(&turn);
    assert_eq!(all.len(), 6, "{all:?}");
    assert_eq!(turn.end_output().unwrap_err().kind(), ErrorKind::Busy);
    let mut turn = Turn::restore(turn.snapshot()).unwrap();
    turn.begin_output(None);
    while turn.next_action().is_some() {}
    turn.end_output().unwrap();
    assert_eq!(told(&turn), all, "nothing was invalid since it began");

    let mut turn = Turn::new(Options::auto());
    turn.submit(Message::user("Go.")).unwrap();
    turn.begin_output(Some("give".to_owned()));
    answered(&mut turn, Answer::new(vec![text("Five.")]), Some("That is no object."));
    let other = vec![malformed("1", Some("give")), malformed("2", Some("other"))];
    answered(&mut turn, Answer::new(other), None);
    answered(&mut turn, Answer::new(vec![text("{}")]), None);
    while turn.next_action().is_some() {}
    let all = told(&turn);
    turn.end_output().unwrap();
    // A call beside it makes an answer with calls of it, which stays.
    assert_eq!(told(&turn)[0], all[0]);
    assert_eq!(told(&turn)[1..], all[3..]);
    turn.end_output().unwrap();
}

/// A lost call has a correction of its own, which leaves history with the others.
#[test]
fn lost_calls_leave_output_history() {
    let answered = |answer: Answer, correction: Option<&str>| {
        let correction = correction.map(str::to_owned);
        StepOutcome::Ask(AskOutcome::Answered { answer, correction })
    };
    // Without a correction, the validator has no attempt left.
    for correction in [Some("There is no object."), None] {
        let mut turn = auto();
        turn.begin_output(Some("give".to_owned()));
        let mut lost = Answer::new(vec![text("It is"), malformed("1", None)]);
        lost.finish_reason = FinishReason::ToolCalls;
        turn.take(answered(lost, correction)).unwrap();
        assert_eq!((perform(&mut turn), turn.rounds()), (Action::Request { tools: true }, 1));
        assert!(told(&turn)[2].starts_with("user: Your tool call could not be used"));
        turn.take(answered(Answer::new(vec![text("{}")]), None)).unwrap();
        assert_eq!(perform(&mut turn), end(FinishReason::Unspecified));
        turn.end_output().unwrap();
        assert_eq!(told(&turn), ["user: Go.", "assistant: {}"]);
    }
}

/// The caller limits the attempts, and "continue without it" would be no advice.
#[test]
fn repeat_guard_ignores_the_output_tool() {
    let mut options = Options::auto();
    (options.max_rounds, options.repeat_guard) = (9, Some(2));
    let mut turn = begun(options);
    turn.begin_output(Some("give".to_owned()));
    for id in ["1", "2", "3", "4"] {
        answer(&mut turn, vec![malformed(id, Some("give"))]);
        assert_eq!(perform(&mut turn), Action::Request { tools: true });
    }
    let told = told(&turn);
    assert!(told.iter().all(|text| !text.contains("continue without it")), "{told:?}");
}

/// Without the output tool, the model would not know the format of its last answer.
#[test]
fn last_requests_offer_the_output_tool() {
    let mut options = Options::auto();
    (options.max_rounds, options.last_answer_without_tools) = (1, true);
    let mut turn = begun(options);
    turn.begin_output(Some("give".to_owned()));
    answer(&mut turn, vec![call("1", "a")]);
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(turn.step_plan(), None);
    answer(&mut turn, vec![call("2", "a")]);
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(turn.pending_action(), Some(Action::Request { tools: true }));
    let offered = turn.step_plan().and_then(|plan| plan.only_tools.as_deref());
    assert_eq!(offered, Some(&["give".to_owned()][..]));
    answer(&mut turn, vec![call("3", "a")]);
    assert_eq!(perform(&mut turn), end(FinishReason::MaxToolIterations));
    let told = told(&turn);
    assert!(told.last().unwrap().contains("not run: this was the last answer"), "{told:?}");
    assert_eq!(turn.step_plan(), None);
}

/// The limit on rounds is named first, but a used-up budget forbids the request as well.
#[test]
fn used_up_budgets_allow_no_last_answer() {
    for is_cost in [false, true] {
        let mut options = Options::auto();
        (options.max_rounds, options.last_answer_without_tools) = (1, true);
        if is_cost {
            options.max_cost = Some(Cost::new(1.0).unwrap());
        } else {
            options.max_tokens = Some(100);
        }
        let mut turn = Turn::new(options);
        turn.submit(Message::user("Go.")).unwrap();
        for round in ["1", "2"] {
            assert_eq!(perform(&mut turn), Action::Request { tools: true });
            let mut spent = Answer::new(vec![call(round, "a")]);
            (spent.tokens, spent.cost) = (60, Cost::new(0.6).unwrap());
            turn.answer(spent);
        }
        let end = Action::End { reason: FinishReason::MaxToolIterations };
        assert_eq!(perform(&mut turn), end);
    }
}

/// Attempts at the output have a limit of their own; the calls of other tools count as ever.
#[test]
fn malformed_output_calls_are_no_rounds() {
    let mut options = Options::auto();
    options.max_rounds = 1;
    let mut turn = begun(options);
    turn.begin_output(Some("final_answer".to_owned()));
    for attempt in ["1", "2", "3"] {
        answer(&mut turn, vec![malformed(attempt, Some("final_answer"))]);
        assert_eq!(perform(&mut turn), Action::Request { tools: true });
        assert_eq!(turn.rounds(), 0);
    }
    answer(&mut turn, vec![malformed("4", Some("final_answer")), call("5", "a")]);
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(turn.rounds(), 1);
    answer(&mut turn, vec![call("6", "a")]);
    assert_eq!(perform(&mut turn), Action::End { reason: FinishReason::MaxToolIterations });
}
