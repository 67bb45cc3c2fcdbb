//! Conversations that are shortened before a request.

use std::collections::HashMap;

use oa_testkit::Strict;
use oa_turn::{
    Action, Answer, AskOutcome, CutBy, Decision, Options, OverflowSizes, ReportedTokens,
    ShortenOutcome, ShortenStep, Spent, Step, StepOutcome, StepPlan, Turn, TurnSnapshot,
};
use oa_types::wire::{MessageFormat, write_message};
use oa_types::{ContentBlock, Cost, ErrorRecord, FinishReason, Message, MessageRole, Outcome};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use crate::events::{Piece, blocks, piece};
use crate::{answer, call, perform, text, told};

fn options() -> Options {
    let mut options = Options::auto();
    (options.shorten, options.max_rounds) = (true, 100);
    options
}

/// Shortens a conversation in one of several ways. The last ones are not sound.
pub(crate) fn shortened(step: &ShortenStep, choice: u8) -> ShortenOutcome {
    let ShortenStep { history, prompt, keep_from, .. } = step;
    let is_user = |place: usize| history[place].role == MessageRole::User;
    let stays = |place: &usize| {
        *place >= *keep_from
            || history[*place].role == MessageRole::System
            || prompt.is_some_and(|prompt| prompt <= *place && is_user(*place))
    };
    let few = (0..history.len()).filter(stays).map(|place| history[place].clone());
    let few: Vec<Message> = few.collect();
    let system = few.iter().take_while(|message| message.role == MessageRole::System).count();
    ShortenOutcome::replace(match choice {
        0 => few,
        1 => {
            let mut summarized = few;
            let length: usize = history.iter().map(|message| message.text().len()).sum();
            summarized.insert(system, Message::user(format!("A summary of {length} bytes.")));
            summarized
        }
        2 => {
            let mut cleared = history.to_vec();
            for block in cleared[..*keep_from].iter_mut().flat_map(|message| &mut message.content) {
                if let ContentBlock::ToolResult(result) = block {
                    result.content = json!("cleared");
                }
            }
            cleared
        }
        3 => return ShortenOutcome::Keep,
        4 => return ShortenOutcome::Cut { by: CutBy::User, spent: Spent::default() },
        5 => {
            let error = Box::new(ErrorRecord::new("hook", "it failed"));
            return ShortenOutcome::Failed { error, spent: Spent::default() };
        }
        6 => few[..few.len().saturating_sub(1)].to_vec(),
        _ => few.into_iter().filter(|message| message.role != MessageRole::User).collect(),
    })
}

pub(crate) fn shorten(turn: &mut Turn, choice: u8) -> String {
    let outcome = shortened(&turn.shorten_step(), choice);
    format!("{:?}", turn.take(StepOutcome::Shorten(outcome)))
}

/// A turn with two rounds of calls behind an earlier exchange, before its third request.
fn grown() -> Turn {
    let mut turn = Turn::new(options());
    let history = vec![Message::system("Be brief."), Message::user("Hi.")];
    turn.set_history(history).expect("the test is set up");
    turn.continue_turn().expect("the test is set up");
    next_request(&mut turn);
    answer(&mut turn, vec![text("Hello.")]);
    assert_eq!(perform(&mut turn), Action::End { reason: FinishReason::Unspecified });
    turn.submit(Message::user("Go.")).expect("the test is set up");
    next_request(&mut turn);
    answer(&mut turn, vec![call("1", "a"), call("2", "b")]);
    next_request(&mut turn);
    answer(&mut turn, vec![text("On."), call("3", "a")]);
    assert_eq!(perform(&mut turn), Action::Shorten { is_overflow: false });
    turn
}

/// Goes on to the next request, and shortens nothing on the way.
fn next_request(turn: &mut Turn) {
    assert_eq!(perform(turn), Action::Shorten { is_overflow: false });
    turn.take(StepOutcome::Shorten(ShortenOutcome::Keep)).expect("that cannot fail");
    assert_eq!(perform(turn), Action::Request { tools: true });
}

fn replace(turn: &mut Turn, history: Vec<Message>) -> Result<(), Box<ErrorRecord>> {
    turn.take(StepOutcome::Shorten(ShortenOutcome::replace(history)))
}

#[test]
fn shortening_precedes_planning() {
    let mut options = options();
    options.plan_steps = true;
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Shorten { is_overflow: false }));
    assert_eq!((turn.next_action(), turn.steps()), (None, 0));
    assert_eq!(turn.pending_action(), Some(Action::Shorten { is_overflow: false }));
    turn.plan(StepPlan::default());
    assert_eq!(turn.next_action(), None, "that is not its outcome");
    turn.take(StepOutcome::Shorten(ShortenOutcome::Keep)).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Plan { step: 1 }));
    turn.plan(StepPlan::default());
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
}

#[test]
fn shorten_step_names_what_must_stay() {
    let turn = grown();
    let step = turn.shorten_step();
    assert_eq!((step.prompt, step.keep_from, step.history.len()), (Some(3), 7, 9));
    assert!(step.can_ask && !step.is_overflow);
}

#[test]
fn kept_messages_keep_their_revisions() {
    let mut turn = grown();
    let (old, revisions) = (turn.history().to_vec(), turn.revisions().to_vec());
    let mut messages = vec![old[0].clone(), Message::user("They greeted."), old[3].clone()];
    messages.extend_from_slice(&old[7..]);
    replace(&mut turn, messages).unwrap();
    assert_eq!(
        told(&turn),
        [
            "system: Be brief.",
            "user: They greeted.",
            "user: Go.",
            r#"assistant: On. [3 {"a":1}]"#,
            r#"tool: 3="ok""#,
        ]
    );
    let now = turn.revisions().to_vec();
    assert_eq!(
        (now[0], &now[2..]),
        (revisions[0], &[revisions[3], revisions[7], revisions[8]][..])
    );
    assert!(!revisions.contains(&now[1]));
    assert_eq!(turn.calls().len(), 1);
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    let json = serde_json::to_string(&turn.snapshot()).unwrap();
    let snapshot: TurnSnapshot = serde_json::from_str(&json).unwrap();
    let mut turn = Turn::restore(snapshot).unwrap();
    turn.fail();
    assert!(turn.is_retry(&Message::user("Go.")), "the prompt is known");
}

/// A summary may even read like what follows it.
#[test]
fn kept_messages_are_not_the_summary() {
    let mut turn = Turn::new(options());
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(perform(&mut turn), Action::Shorten { is_overflow: false });
    let prompt = turn.revisions().to_vec();
    replace(&mut turn, vec![Message::user("Go."); 2]).unwrap();
    assert_eq!(turn.revisions()[1..], prompt);
}

/// Models use an id again in a later answer, and history keeps it.
#[test]
fn repeated_call_ids_can_be_shortened() {
    let mut turn = Turn::new(options());
    turn.submit(Message::user("Go.")).expect("the test is set up");
    for _ in 0..2 {
        next_request(&mut turn);
        answer(&mut turn, vec![call("1", "a")]);
    }
    assert_eq!(perform(&mut turn), Action::Shorten { is_overflow: false });
    let ShortenOutcome::Replace { history, .. } = shortened(&turn.shorten_step(), 2) else {
        panic!("results are cleared")
    };
    replace(&mut turn, history.clone()).expect("calls and results match");
    assert_eq!(turn.history()[..], history[..]);
}

#[test]
fn invalid_shortened_history_fails_the_turn() {
    let old = grown().history().to_vec();
    let without = |gone: usize| {
        let mut messages = old.clone();
        messages.remove(gone);
        messages
    };
    for (messages, why) in [
        (without(0), "the system message is missing"),
        (without(3), "a message of the user is missing"),
        (without(5), "calls and results do not match, or a message is empty"),
        (without(7), "it does not end with the last answer and all that follows"),
        (without(8), "it does not end with the last answer and all that follows"),
        (Vec::new(), "it does not end with the last answer and all that follows"),
    ] {
        let mut turn = grown();
        let error = replace(&mut turn, messages).unwrap_err();
        assert_eq!(error.kind, "invalid_input");
        assert_eq!(error.message, format!("the shortened conversation is invalid: {why}"));
        assert!(!turn.is_busy());
        assert_eq!(turn.history().to_vec(), old);
        assert!(turn.continue_turn().is_ok());
    }
}

#[test]
fn shortening_must_keep_steered_messages() {
    let mut turn = Turn::new(options());
    turn.submit(Message::user("Go.")).unwrap();
    for number in 0..3 {
        next_request(&mut turn);
        turn.steer(Message::user("Go.")).unwrap();
        answer(&mut turn, vec![call(&number.to_string(), "a")]);
        assert!(matches!(perform(&mut turn), Action::Submit { steered: true, .. }));
        turn.accept_prompt(None).unwrap();
    }
    assert_eq!(turn.next_action(), Some(Action::Shorten { is_overflow: false }));
    let few = |users: usize| {
        let step = turn.shorten_step();
        let mut messages = vec![Message::user("Go."); users];
        messages.extend_from_slice(&step.history[step.keep_from..]);
        messages
    };
    let (few, all) = (few(2), few(3));
    let mut other = turn.clone_by_snapshot();
    assert!(replace(&mut other, few).is_err());
    replace(&mut turn, all).unwrap();
    assert_eq!(turn.shorten_step().prompt, Some(0));
}

trait CloneBySnapshot {
    fn clone_by_snapshot(&self) -> Self;
}

impl CloneBySnapshot for Turn {
    fn clone_by_snapshot(&self) -> Self {
        Self::restore(self.snapshot()).expect("a snapshot is a turn")
    }
}

#[test]
fn overflow_is_shortened_and_retried_once() {
    let overflow = || {
        let mut error = Box::new(ErrorRecord::new("context_overflow", "too long"));
        (error.prompt_tokens, error.context_tokens) = (Some(900), Some(800));
        let spent = Spent::default();
        StepOutcome::Ask(AskOutcome::Failed { error, has_begun: false, partial: Vec::new(), spent })
    };
    let mut turn = grown();
    turn.take(StepOutcome::Shorten(ShortenOutcome::Keep)).unwrap();
    for _ in 0..2 {
        let Some(Step::Ask(first)) = turn.next_step() else { panic!("{turn:?}") };
        assert_eq!(turn.steps(), 3);
        turn.take(overflow()).unwrap();
        assert_eq!(turn.steps(), 2, "it is the same step");
        let Some(Step::Shorten(step)) = turn.next_step() else { panic!("{turn:?}") };
        assert!(step.is_overflow);
        assert_eq!((step.sizes.prompt, step.sizes.context), (Some(900), Some(800)));
        assert_eq!(
            turn.next_step(),
            Some(Step::Shorten(step.clone())),
            "until its outcome is there"
        );
        turn.take(StepOutcome::Shorten(shortened(&step, 0))).unwrap();
        let Some(Step::Ask(second)) = turn.next_step() else { panic!("{turn:?}") };
        assert_eq!((second.number, second.history.len()), (first.number + 1, 4));
        let error = turn.take(overflow()).unwrap_err();
        assert_eq!(error.kind, "context_overflow", "the second one is the error");
        // A later request may overflow again.
        turn.continue_turn().unwrap();
        assert_eq!(turn.next_action(), Some(Action::Shorten { is_overflow: false }));
        assert!(turn.shorten_step().sizes.is_unknown(), "they were of another request");
        turn.take(StepOutcome::Shorten(ShortenOutcome::Keep)).unwrap();
        turn = grown();
        turn.take(StepOutcome::Shorten(ShortenOutcome::Keep)).unwrap();
    }
}

#[test]
fn failed_prompt_restores_the_history() {
    let begin = || {
        let mut turn = grown();
        turn.take(StepOutcome::Shorten(ShortenOutcome::Keep)).unwrap();
        perform(&mut turn);
        answer(&mut turn, vec![text("Done.")]);
        perform(&mut turn);
        let before: Vec<_> = turn.history().to_vec();
        turn.submit(Message::user("A long text.")).unwrap();
        assert_eq!(perform(&mut turn), Action::Shorten { is_overflow: false });
        let outcome = shortened(&turn.shorten_step(), 1);
        turn.take(StepOutcome::Shorten(outcome)).unwrap();
        assert_eq!(perform(&mut turn), Action::Request { tools: true });
        assert!(turn.retry_shorter(OverflowSizes::default()));
        assert_eq!(perform(&mut turn), Action::Shorten { is_overflow: true });
        let outcome = shortened(&turn.shorten_step(), 0);
        turn.take(StepOutcome::Shorten(outcome)).unwrap();
        assert_eq!(perform(&mut turn), Action::Request { tools: true });
        assert!(turn.history().len() < before.len() && !turn.is_shortened_in_vain());
        (turn.clone_by_snapshot(), before)
    };
    let (mut turn, before) = begin();
    assert!(!turn.retry_shorter(OverflowSizes::default()) && turn.is_shortened_in_vain());
    turn = turn.clone_by_snapshot();
    turn.fail();
    assert_eq!(turn.history().to_vec(), before);
    assert!(!turn.is_shortened_in_vain());
    let overflow = Box::new(ErrorRecord::new("context_overflow", "too long"));
    let spent = Spent::default();
    let overflow =
        AskOutcome::Failed { error: overflow, has_begun: false, partial: Vec::new(), spent };
    let (mut turn, before) = begin();
    turn.take(StepOutcome::Ask(overflow)).unwrap_err();
    assert_eq!(turn.history().to_vec(), before);

    // It was not too long, or the answer has begun, or the caller has stopped it: it stays short.
    let ends: [fn(&mut Turn); 3] =
        [Turn::begin_answer, Turn::fail, |turn| turn.interrupt(Vec::new())];
    for end in ends {
        let (mut turn, before) = begin();
        end(&mut turn);
        turn.retry_shorter(OverflowSizes::default());
        turn.fail();
        assert!(turn.history().len() < before.len());
    }
}

#[test]
fn overflow_fails_without_shortening() {
    let mut turn = Turn::new(Options::auto());
    turn.submit(Message::user("Go.")).unwrap();
    assert!(!turn.retry_shorter(OverflowSizes::default()), "the request was not handed out");
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    assert!(!turn.retry_shorter(OverflowSizes::default()));
    assert!(turn.is_busy());
}

#[test]
fn shortening_clears_the_reported_size() {
    let mut turn = Turn::new(options());
    turn.submit(Message::user("Go.")).unwrap();
    next_request(&mut turn);
    let mut first = Answer::new(vec![call("1", "a")]);
    first.context_tokens = 700;
    turn.answer(first);
    assert_eq!(perform(&mut turn), Action::Shorten { is_overflow: false });
    let reported = turn.shorten_step().reported;
    let Some(ReportedTokens { tokens: 700, messages: 2, .. }) = reported else {
        panic!("{reported:?}");
    };
    let step = turn.shorten_step();
    turn.take(StepOutcome::Shorten(shortened(&step, 1))).unwrap();
    assert_eq!(turn.shorten_step().reported, None);
}

#[test]
fn summary_tokens_count_toward_the_limit() {
    let mut options = options();
    options.max_tokens = Some(1_000);
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).unwrap();
    next_request(&mut turn);
    answer(&mut turn, vec![call("1", "a")]);
    assert_eq!(perform(&mut turn), Action::Shorten { is_overflow: false });
    let step = turn.shorten_step();
    assert!(step.can_ask);
    let ShortenOutcome::Replace { history, .. } = shortened(&step, 1) else { panic!() };
    let outcome = ShortenOutcome::Replace { history, spent: Spent::new(0, 1_000, Cost::ZERO) };
    turn.take(StepOutcome::Shorten(outcome)).unwrap();
    assert_eq!(perform(&mut turn), Action::End { reason: FinishReason::MaxRunTokens });
}

/// The outcome of a step of the law below.
#[derive(Clone, Debug)]
struct Chance {
    shorten: u8,
    pieces: Vec<Piece>,
    end: u8,
}

fn chance() -> impl Strategy<Value = Chance> {
    (0..4_u8, vec(piece(), 0..4), 0..30_u8).prop_map(|(shorten, pieces, end)| Chance {
        shorten,
        pieces,
        end,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// Shortening at any step, with overflows, failures, interrupts, steering, and another process for each action.
    /// A revision never stands for two messages, and a prompt that is too long leaves what was there before it.
    #[test]
    fn shortened_requests_are_valid(
        chances in vec(chance(), 1..40),
        auto in any::<bool>(),
    ) {
        let mut options = options();
        if !auto {
            options = Options::default();
            options.shorten = true;
        }
        let mut turn = Turn::new(options);
        turn.set_history(vec![Message::system("Be brief.")]).unwrap();
        let mut chances = chances.into_iter().cycle();
        let mut entered = Vec::new();
        let (mut known, mut before_prompt) = (HashMap::new(), None);
        for number in 0..60_usize {
            let Chance { shorten, pieces, end } = chances.next().unwrap();
            turn = Turn::restore(turn.snapshot()).unwrap();
            for (revision, message) in turn.revisions().iter().zip(turn.history()) {
                let first = known.entry(*revision).or_insert_with(|| message.clone());
                prop_assert_eq!(&*first, message);
            }
            match turn.next_action() {
                None if turn.is_busy() => prop_assert!(false, "nobody has anything to do"),
                None => {
                    let open: Vec<_> = turn.calls().iter().filter(|call| call.is_open()).collect();
                    let open: Vec<_> = open.iter().map(|call| call.block.id.clone()).collect();
                    for id in open {
                        turn.add_result(&id, json!("by hand"), Outcome::Ok).unwrap();
                    }
                    if end % 3 == 0 || turn.continue_turn().is_err() {
                        before_prompt = Some(turn.history().to_vec());
                        turn.submit(Message::user(format!("Prompt {number}."))).unwrap();
                    }
                    // A turn that is continued is another one.
                    entered.clear();
                }
                Some(Action::Shorten { .. }) => {
                    let step = turn.shorten_step();
                    prop_assert_eq!(step.history.len(), turn.revisions().len());
                    let before: Vec<_> = turn.revisions().iter().copied().zip(step.history.to_vec()).collect();
                    let kept = &before[step.keep_from..];
                    turn.take(StepOutcome::Shorten(shortened(&step, shorten))).unwrap();
                    let after: Vec<_> = turn.revisions().iter().copied().zip(turn.history().to_vec()).collect();
                    prop_assert_eq!(&after[after.len() - kept.len()..], kept);
                    for (revision, message) in &after {
                        match before.iter().find(|(old, _)| old == revision) {
                            Some((_, old)) => prop_assert_eq!(old, message),
                            None => {
                                // Two summaries may read the same.
                                let is_new = message.text().starts_with("A summary of ")
                                    || !before.iter().any(|(_, old)| old == message);
                                prop_assert!(is_new, "{:?} has a new revision", message);
                            }
                        }
                    }
                }
                Some(Action::Request { .. }) => {
                    check_sent(&turn)?;
                    let mut said = turn.history().iter().map(Message::text);
                    prop_assert!(entered.iter().all(|words| said.any(|said| said == *words)));
                    let before = before_prompt.take();
                    match end {
                        0 => turn.fail(),
                        1 => turn.interrupt(blocks(&pieces, number)),
                        2 | 3 => {
                            if turn.retry_shorter(OverflowSizes::default()) {
                                before_prompt = before;
                            } else {
                                turn.fail();
                                if let Some(before) = before {
                                    prop_assert_eq!(turn.history().to_vec(), before);
                                }
                            }
                        }
                        4 => {
                            let words = format!("Steered {number}.");
                            turn.steer(Message::user(&*words)).unwrap();
                            turn.answer(Answer::new(blocks(&pieces, number)));
                        }
                        _ => {
                            let mut answer = Answer::new(blocks(&pieces, number));
                            answer.context_tokens = u64::from(end);
                            turn.answer(answer);
                            if end == 5 {
                                turn.correct(Message::user(format!("No, not {number}.")));
                            }
                        }
                    }
                }
                Some(Action::Submit { prompt, steered }) => {
                    if steered {
                        before_prompt = None;
                    }
                    entered.push(prompt.text());
                    turn.accept_prompt(None).unwrap();
                }
                Some(Action::Decide { call }) => turn.decide(call, Decision::Run(json!({}))),
                Some(Action::Run { calls }) => {
                    for call in calls {
                        prop_assert!(turn.finish_call(call, json!("a long result"), Outcome::Ok));
                    }
                }
                Some(Action::Review { call }) => {
                    before_prompt = None;
                    turn.review(call, json!("reviewed"));
                }
                Some(_) => {}
            }
        }
    }
}

/// Checks that a strict server accepts the conversation.
fn check_sent(turn: &Turn) -> Result<(), TestCaseError> {
    let mut out = b"{\"model\":\"any\",\"messages\":[".to_vec();
    for message in turn.history() {
        write_message(message, &MessageFormat::default(), &mut out);
    }
    out.extend_from_slice(b"]}");
    Strict::new().allow_repeated_roles().check_bytes(&out).map_err(|violations| {
        TestCaseError::fail(format!("{violations}\n{}", String::from_utf8_lossy(&out)))
    })
}
