//! Invariants after any sequence of events, sensible or not.

use std::collections::HashSet;

use oa_testkit::Strict;
use oa_turn::{Action, Answer, CallState, Decision, Mode, Options, StepOutcome, Turn, repair};
use oa_types::wire::{CallIds, MessageFormat, write_message};
use oa_types::{ContentBlock, Cost, FinishReason, Message, MessageRole, Outcome};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use crate::events::{
    Event, blocks, decision, event, options, outcome, piece, plan, reviewed, stopped,
};
use crate::histories::histories;
use crate::{answer, call, perform, text, told};

/// Checks that every call has exactly one result, directly after its answer and in call order. Calls of the last answer
/// have at most one.
pub(crate) fn check_pairing(turn: &Turn) -> Result<(), TestCaseError> {
    let history = turn.history();
    let mut place = 0;
    while place < history.len() {
        let message = &history[place];
        place += 1;
        prop_assert_ne!(message.role, MessageRole::Tool, "a result behind no call");
        if message.role != MessageRole::Assistant {
            continue;
        }
        let mut calls = message.content.iter().filter_map(|block| match block {
            ContentBlock::ToolUse(call) => Some(&*call.id),
            _ => None,
        });
        let ids: Vec<&str> = calls.clone().collect();
        prop_assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
        prop_assert!(!ids.is_empty() || !message.text().is_empty(), "an empty answer");
        let mut answered = 0;
        while let Some(ContentBlock::ToolResult(result)) =
            history.get(place).and_then(|message| message.content.first())
        {
            prop_assert_eq!(history[place].content.len(), 1);
            prop_assert!(calls.any(|id| id == result.tool_use_id), "out of order, or twice");
            answered += 1;
            place += 1;
        }
        let is_answered = |call: &oa_turn::Call| matches!(call.state, CallState::Answered { .. });
        let open = turn.calls().iter().filter(|call| !is_answered(call)).count();
        if place < history.len() || open == 0 {
            prop_assert_eq!(answered, ids.len(), "calls without a result");
        } else {
            prop_assert_eq!(answered + open, ids.len());
        }
    }
    Ok(())
}

/// Checks that a strict server accepts the history as it is sent.
pub(crate) fn check_request(turn: &Turn) -> Result<(), TestCaseError> {
    let mut out = b"{\"model\":\"any\",\"messages\":[".to_vec();
    let mut form = MessageFormat::default();
    form.call_ids = CallIds::UpTo64;
    for message in turn.history().iter() {
        write_message(message, &form, &mut out);
    }
    out.extend_from_slice(b"]}");
    // Users may say several things in a row; who sends the request merges them.
    let strict = Strict::new()
        .allow_repeated_roles()
        .allow_member("messages[].details")
        .allow_member("messages[].tool_calls[].signature");
    strict.check_bytes(&out).map_err(|violations| {
        TestCaseError::fail(format!("{violations}\n{}", String::from_utf8_lossy(&out)))
    })
}

/// Checks that history ends with the results of the step that is over, all of them reviewed: nothing was steered in or
/// shortened since.
fn check_step_is_over(turn: &Turn) -> Result<(), TestCaseError> {
    let results = turn.history().iter().rev().take_while(|it| it.role == MessageRole::Tool);
    prop_assert_eq!(results.count(), turn.calls().len());
    for call in turn.calls() {
        let is_over = matches!(call.state, CallState::Answered { reviewed: true, .. });
        prop_assert!(is_over, "{call:?}");
    }
    prop_assert_eq!(&turn.stop_check().last_calls[..], turn.calls());
    Ok(())
}

/// Returns the number of calls without a result.
fn open_calls(history: &[Message]) -> usize {
    let blocks = || history.iter().flat_map(|message| &message.content);
    let calls = blocks().filter(|block| matches!(block, ContentBlock::ToolUse(_))).count();
    calls - blocks().filter(|block| matches!(block, ContentBlock::ToolResult(_))).count()
}

/// True if the message tells the model that its answer was refused.
fn is_refusal(message: &Message) -> bool {
    message.role == MessageRole::User && message.text().contains("unfit")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn history_is_valid_after_any_events(
        options in options(),
        events in vec(event(), 0..80),
    ) {
        let mut turn = Turn::new(options);
        turn.set_external_tools(["ask".to_owned()]);
        let (mut begun, mut ended) = (0_u32, 0_u32);
        let mut rounds = 0;
        let (mut started, mut checked) = (HashSet::new(), HashSet::new());
        for (number, event) in events.into_iter().enumerate() {
            let was_busy = turn.is_busy();
            let queued = turn.steered().len();
            let at_gate = matches!(turn.pending_action(), Some(Action::Submit { steered: true, .. }));
            let mut expected = queued;
            match event {
                Event::AddResult(place, is_error) => {
                    let id = turn.calls().get(place).map_or_else(|| "none".to_owned(), |call| call.block.id.clone());
                    let before = turn.history().len();
                    let result = turn.add_result(&id, json!(number), outcome(is_error));
                    // It may have been what refused calls waited for.
                    prop_assert_eq!(turn.history().len() > before, result.is_ok());
                }
                Event::Answer(pieces) => {
                    let mut answer = Answer::new(blocks(&pieces, number));
                    answer.cost = Cost::new(1.0).expect("this is an amount");
                    turn.answer(answer);
                }
                Event::Abandon(pieces) => turn.abandon(blocks(&pieces, number)),
                Event::BeginAnswer => turn.begin_answer(),
                Event::CheckStop(choice) => {
                    let waits = matches!(turn.pending_action(), Some(Action::CheckStop { .. }));
                    let before = turn.history().to_vec();
                    drop(turn.take(StepOutcome::CheckStop(stopped(choice))));
                    prop_assert_eq!(turn.history().to_vec(), before);
                    if waits && choice >= 2 {
                        // Each step is checked once.
                        prop_assert!(checked.insert(turn.calls()[0].block.id.clone()));
                    }
                }
                Event::Continue => drop(turn.continue_turn()),
                Event::ContinueWhenAnswered => drop(turn.continue_when_answered()),
                Event::Correct => {
                    let (turns, messages) = (turn.turns(), turn.history().len());
                    let goes_on = turn.correct(Message::user("No."));
                    prop_assert!(was_busy || !goes_on);
                    prop_assert_eq!(turn.history().len(), messages + usize::from(goes_on));
                    prop_assert_eq!(turn.turns(), turns, "it is no prompt");
                }
                Event::Approve(place, choice) => {
                    let call = turn.calls().get(place);
                    let waits = call.is_some_and(oa_turn::Call::is_waiting);
                    let id = call.map_or_else(|| "none".to_owned(), |call| call.block.id.clone());
                    prop_assert_eq!(turn.approve(&id, decision(choice)).is_ok(), waits);
                }
                Event::Decide(call, choice) => turn.decide(call, decision(choice)),
                Event::Plan(choice) => turn.plan(plan(choice)),
                Event::Steer(words) => {
                    let is_taken = turn.steer(Message::user(words)).is_ok();
                    prop_assert_eq!(is_taken, !words.is_empty());
                    expected += usize::from(is_taken);
                }
                Event::RefuseSteered => {
                    turn.refuse_steered();
                    expected -= usize::from(at_gate);
                }
                Event::AcceptPrompt(words) if at_gate => {
                    let before = turn.history().len();
                    let is_taken = turn.accept_prompt(words.map(str::to_owned)).is_ok();
                    prop_assert_eq!(is_taken, words != Some(" "));
                    prop_assert!(turn.is_busy(), "a turn goes on without a message that was not taken");
                    prop_assert_eq!(turn.history().len(), before + usize::from(is_taken));
                    let last = turn.history().last();
                    prop_assert!(!is_taken || last.is_some_and(|last| last.role == MessageRole::User));
                    expected -= 1;
                }
                Event::AcceptPrompt(words) => {
                    let is_taken = turn.accept_prompt(words.map(str::to_owned)).is_ok();
                    prop_assert!(is_taken || words == Some(" ") && !turn.is_busy());
                }
                Event::Prompt(prompt) => {
                    let before = turn.history().to_vec();
                    let result = turn.prompt(Message::user(prompt));
                    prop_assert_eq!(result.is_ok(), !was_busy && !prompt.is_empty());
                    prop_assert_eq!(turn.history().to_vec(), before, "it is at its gate");
                }
                Event::Resume => {
                    let messages = turn.history().to_vec();
                    prop_assert_eq!(turn.resume(messages).is_ok(), !was_busy);
                    if number % 2 == 0 {
                        turn.decide_resumed(|_| true);
                    }
                }
                Event::RetryShorter => drop(turn.retry_shorter(oa_turn::OverflowSizes::default())),
                Event::Shorten(choice) => {
                    crate::shorten::shorten(&mut turn, choice);
                }
                Event::Fail(pieces) => turn.fail_with(blocks(&pieces, number)),
                Event::FinishCall(call, is_error) => drop(turn.finish_call(call, json!("same"), outcome(is_error))),
                Event::HandOver(call) => {
                    let runs = matches!(turn.pending_action(), Some(Action::Run { calls }) if calls.contains(&call));
                    let is_external = turn.calls().get(call).is_some_and(|call| call.is_external);
                    prop_assert_eq!(turn.await_result(call), runs && is_external);
                }
                Event::Interrupt(pieces) => turn.interrupt(blocks(&pieces, number)),
                Event::Review(call, change) => {
                    if let Some(CallState::Answered { content, .. }) =
                        turn.calls().get(call).map(|call| call.state.clone())
                    {
                        turn.review(call, if change { json!(number) } else { content });
                    }
                }
                Event::ReviewAnswer(choice) => {
                    let waits = turn.pending_action() == Some(Action::ReviewAnswer);
                    let before = turn.history().to_vec();
                    drop(turn.take(StepOutcome::ReviewAnswer(reviewed(choice))));
                    prop_assert!(waits || turn.history().to_vec() == before);
                }
                Event::Stop => turn.stop(FinishReason::MaxRunTime, Vec::new()),
                Event::Submit(prompt) => {
                    let result = turn.submit(Message::user(prompt));
                    prop_assert_eq!(result.is_ok(), !was_busy && !prompt.is_empty());
                }
                Event::Next => match turn.next_action() {
                    Some(Action::Request { .. }) => check_request(&turn)?,
                    Some(Action::Run { calls }) => {
                        prop_assert!(options.mode == Mode::Auto && !calls.is_empty());
                        let runs = calls.iter().filter(|call| !turn.calls()[**call].is_external);
                        started.extend(runs.map(|call| turn.calls()[*call].block.id.clone()));
                        rounds += 1;
                    }
                    Some(Action::End { .. }) => ended += 1,
                    Some(Action::CheckStop { .. }) => {
                        prop_assert!(options.check_stop);
                        check_step_is_over(&turn)?;
                    }
                    _ => {}
                },
            }
            prop_assert_eq!(turn.steered().len(), expected, "a message that was steered got lost");
            if !was_busy && turn.is_busy() {
                (begun, rounds) = (begun + 1, 0);
            }
            prop_assert!(ended <= begun, "an end that nothing began");
            prop_assert!(rounds <= options.max_rounds, "a round beyond the limit");
            check_pairing(&turn)?;
            let open = turn.calls().iter().any(|call| call.is_open() && !call.waits_for_result());
            let may_be_open = options.mode == Mode::Manual || turn.is_busy();
            prop_assert!(may_be_open || turn.waits_for_approval() || !open, "left open");
            // A result may come while another call waits, before the turn continues.
            let waits = turn.calls().iter().any(|call| call.is_external || !matches!(call.state, CallState::Answered { .. }));
            prop_assert!(!turn.waits_for_approval() || waits, "nothing waits");
            if let Some(checkpoint) = turn.checkpoint() {
                prop_assert_eq!(checkpoint.waits, open_calls(turn.history()) > 0);
                prop_assert_eq!(checkpoint.messages, turn.history().len());
            }
            prop_assert!(turn.is_busy() || !turn.history().iter().any(is_refusal), "a refusal stays");
            for call in turn.calls().iter().filter(|call| started.contains(&call.block.id)) {
                let CallState::Answered { content, outcome, .. } = &call.state else { continue };
                prop_assert_ne!(*outcome, Outcome::NotRun, "it has started");
                prop_assert!(!content.to_string().contains("not run"), "{content}");
            }
        }
        // Whatever happened, it can be interrupted and used again.
        turn.interrupt(Vec::new());
        while turn.next_action().is_some() {}
        prop_assert!(turn.submit(Message::user("Again.")).is_ok());
        check_pairing(&turn)?;
    }

    #[test]
    fn every_driven_turn_ends(
        options in options(),
        answers in vec(vec(piece(), 0..5), 1..30),
        choices in vec((any::<bool>(), any::<bool>(), any::<bool>()), 1..40),
    ) {
        let mut turn = Turn::new(options);
        let mut answers = answers.into_iter().enumerate().cycle();
        let mut choices = choices.into_iter().cycle();
        turn.submit(Message::user("Go.")).unwrap();
        let (mut requests, mut reviews, mut retries) = (0, 0, 0);
        let (mut called, mut checks, mut stops) = (0, 0, false);
        // Ids of calls and of results, as the caller sees them.
        let (mut calls_shown, mut results_shown) = (Vec::new(), Vec::new());
        let reason = loop {
            let (yes, error, change) = choices.next().unwrap();
            match turn.next_action() {
                None => panic!("the driver did everything, and there is no end"),
                Some(Action::Plan { step }) => {
                    prop_assert!(options.plan_steps);
                    prop_assert_eq!(step, requests + 1);
                    turn.plan(plan(if change { 2 } else { 3 }));
                }
                Some(Action::CheckStop { step }) => {
                    prop_assert!(options.check_stop);
                    prop_assert_eq!(step, requests);
                    check_step_is_over(&turn)?;
                    checks += 1;
                    stops = change;
                    let outcome = stopped(if stops { 2 } else { 3 });
                    prop_assert_eq!(turn.take(StepOutcome::CheckStop(outcome)), Ok(()));
                }
                Some(Action::Shorten { is_overflow }) => {
                    prop_assert!(options.shorten && !is_overflow);
                    crate::shorten::shorten(&mut turn, if change { 2 } else { 3 });
                }
                Some(Action::Request { .. }) => {
                    check_request(&turn)?;
                    requests += 1;
                    prop_assert!(!stops);
                    // Results that were put into the text end the turn, unless its review refuses it.
                    prop_assert!(checks == called || options.inline_results, "once a step");
                    let most = options.max_rounds + 2 + retries;
                    prop_assert!(requests <= most, "{requests} requests");
                    let (number, pieces) = answers.next().unwrap();
                    turn.answer(Answer::new(blocks(&pieces, number + 100 * requests as usize)));
                    called += u32::from(options.check_stop && !turn.calls().is_empty());
                }
                Some(Action::Decide { call }) if yes => turn.decide(call, Decision::Run(json!({}))),
                Some(Action::Decide { call }) => turn.decide(call, Decision::Refuse(json!("no"))),
                Some(Action::Show { block: ContentBlock::ToolUse(call) }) => calls_shown.push(call.id),
                Some(Action::Show { block: ContentBlock::ToolUseError(error) }) => {
                    let id = error.id.expect("these have one");
                    if !calls_shown.contains(&id) {
                        calls_shown.push(id);
                    }
                }
                Some(Action::Show { block: ContentBlock::ToolResult(result) }) => {
                    results_shown.push(result.tool_use_id);
                }
                Some(Action::Show { block }) => {
                    let in_the_end = options.final_text_only || turn.inlines_results();
                    prop_assert!(in_the_end && block.as_text().is_some());
                }
                Some(Action::Run { calls }) => {
                    let shown = |call: &usize| calls_shown.contains(&turn.calls()[*call].block.id);
                    prop_assert!(options.final_text_only || calls.iter().all(shown), "run unseen");
                    for call in if change { calls.into_iter().rev().collect() } else { calls } {
                        prop_assert!(turn.finish_call(call, json!("result"), outcome(error)));
                    }
                }
                Some(Action::Review { call }) => {
                    reviews += 1;
                    let CallState::Answered { content, .. } = turn.calls()[call].state.clone() else {
                        panic!("a review of nothing");
                    };
                    turn.review(call, if change { json!("changed") } else { content });
                }
                Some(Action::ReviewAnswer) => {
                    prop_assert!(options.review_answers);
                    let is_retried = yes && turn.retry_answer("unfit");
                    retries += u32::from(is_retried);
                    prop_assert!(retries <= options.max_answer_retries);
                    if !is_retried {
                        turn.keep_answer();
                    }
                }
                Some(Action::End { reason }) => break reason,
                Some(other) => panic!("{other:?}"),
            }
            check_pairing(&turn)?;
        };
        prop_assert!(!stops || reason == FinishReason::Stopped);
        prop_assert!(!turn.is_busy());
        prop_assert_eq!(turn.next_action(), None);
        if options.mode == Mode::Auto {
            let results = turn.history().iter().flat_map(|message| &message.content);
            let results: Vec<_> = results
                .filter_map(|block| match block {
                    ContentBlock::ToolResult(result) => Some(&result.tool_use_id),
                    _ => None,
                })
                .collect();
            prop_assert_eq!(reviews, results.len(), "every result is looked at once; {:?}", reason);
            if options.final_text_only {
                prop_assert!(results_shown.is_empty() && calls_shown.is_empty());
            } else {
                prop_assert_eq!(results, results_shown.iter().collect::<Vec<_>>(), "shown in order");
            }
        }
    }

    /// A model that repeats an answer gets one note for each call, and the turn ends one round later.
    #[test]
    fn repeated_answers_warn_once_then_end(
        calls in 1..6_usize,
        limit in 1..5_u32,
    ) {
        let mut options = Options::auto();
        (options.max_rounds, options.repeat_guard) = (100, Some(limit));
        let mut turn = Turn::new(options);
        turn.submit(Message::user("Go.")).unwrap();
        let mut rounds = 0;
        let end = loop {
            match perform(&mut turn) {
                Action::Request { .. } => rounds += 1,
                end => break end,
            }
            let named = |place| call(&format!("{rounds}-{place}"), &format!("tool{place}"));
            answer(&mut turn, (0..calls).map(named).collect());
        };
        prop_assert_eq!(end, Action::End { reason: FinishReason::RepeatedToolCall });
        prop_assert_eq!(rounds, limit + 1);
        let lines = told(&turn);
        let notes = lines.iter().filter(|line| line.contains("will not change it"));
        prop_assert_eq!(notes.count(), calls);
    }

    /// Repair keeps all text, and a valid list stays as it is.
    #[test]
    fn repair_is_valid_and_idempotent(
        messages in histories(),
        auto in any::<bool>(),
        resumes in any::<bool>(),
    ) {
        let repaired = repair(messages.clone());
        prop_assert_eq!(repair(repaired.clone()), repaired.clone());
        let mut turn = Turn::new(if auto { Options::auto() } else { Options::default() });
        if resumes {
            turn.resume(messages.clone()).unwrap();
        } else {
            turn.set_history(messages.clone()).unwrap();
            prop_assert_eq!(turn.history().to_vec(), repaired);
        }
        check_pairing(&turn)?;
        let system = |message: &&Message| message.role == MessageRole::System;
        prop_assert!(turn.history().iter().skip(1).find(system).is_none(), "one, and first");
        // Nothing that was said is lost.
        let words = |messages: &[Message], role: MessageRole| -> String {
            let said = messages.iter().filter(|message| message.role == role);
            said.map(Message::text).collect::<String>().split_whitespace().collect()
        };
        for role in [MessageRole::Assistant, MessageRole::System, MessageRole::User] {
            prop_assert_eq!(words(turn.history(), role), words(&messages, role));
        }
        turn.submit(Message::user("Go.")).unwrap();
        check_request(&turn)?;
    }

    #[test]
    fn retries_never_duplicate_the_prompt(
        options in options(),
        sends in vec((0..3_usize, vec(piece(), 0..3), 0..4_u8), 1..12),
    ) {
        let prompts = ["One.", "Two.", "Three."];
        let mut options = options;
        (options.plan_steps, options.shorten, options.check_stop) = (false, false, false);
        let mut turn = Turn::new(options);
        for (place, pieces, end) in sends {
            let prompt = Message::user(prompts[place]);
            let before = turn.history().to_vec();
            let is_retry = turn.is_retry(&prompt);
            if is_retry {
                turn.retry(&prompt).unwrap();
                prop_assert_eq!(turn.history().to_vec(), before.clone(), "nothing is added");
            } else {
                turn.submit(prompt.clone()).unwrap();
            }
            while let Some(action) = turn.next_action() {
                if matches!(action, Action::Request { .. }) {
                    break;
                }
            }
            check_request(&turn)?;
            let partial = blocks(&pieces, 1);
            match end {
                0 => {
                    turn.fail();
                    prop_assert_eq!(turn.history().to_vec(), before.clone(), "as it was");
                }
                1 | 2 => {
                    turn.begin_answer();
                    turn.fail_with(partial);
                    prop_assert!(turn.is_retry(&prompt));
                    prop_assert_eq!(turn.history().last(), Some(&prompt));
                    prop_assert!(turn.continue_turn().is_ok());
                    turn.fail();
                }
                _ => turn.answer(Answer::new(vec![text("Done.")])),
            }
            while let Some(action) = turn.next_action() {
                if action == Action::ReviewAnswer {
                    turn.keep_answer();
                }
            }
            prop_assert!(!turn.is_busy());
            let users = turn.history().windows(2).filter(|pair| {
                pair[0].role == MessageRole::User && pair[0] == pair[1]
            });
            prop_assert_eq!(users.count(), 0);
        }
    }
}
