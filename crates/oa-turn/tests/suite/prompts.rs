//! Prompts and the decisions about them.

use std::cell::Cell;

use insta::assert_snapshot;
use oa_turn::{
    Answer, AskOutcome, AskStep, CutBy, DriveError, ErrorKind, Options, Perform, PromptOutcome,
    PromptStep, RunOutcome, RunStep, Spent, Turn, drive,
};
use oa_types::{AudioBlock, ErrorRecord, FinishReason, ImageBlock, Message, Outcome};
use serde_json::json;

use crate::{block_on, call, malformed, text, told};

/// The step was not performed.
#[derive(Debug, PartialEq)]
struct Crash;

/// The images and audio of a prompt stay when its text is replaced.
#[test]
fn retried_prompts_are_not_reviewed_again() {
    struct Gate(Cell<u32>);
    impl Perform for Gate {
        type Error = Crash;

        async fn submit_prompt(&self, step: PromptStep) -> Result<PromptOutcome, Crash> {
            assert!(step.history.is_empty());
            self.0.set(self.0.get() + 1);
            Ok(PromptOutcome::Replace { text: "Look.".to_owned() })
        }

        async fn ask(&self, step: AskStep) -> Result<AskOutcome, Crash> {
            let error = Box::new(ErrorRecord::new("stream", "the answer broke off"));
            let (partial, spent) = (vec![text("Hm")], Spent::default());
            let failed = AskOutcome::Failed { error, has_begun: true, partial, spent };
            let answered = AskOutcome::answered(Answer::new(vec![text("A cat.")]));
            Ok(if step.number == 1 { failed } else { answered })
        }

        async fn run(&self, _: RunStep) -> Result<RunOutcome, Crash> {
            Err(Crash)
        }
    }
    let image = ImageBlock::from_url("https://host/a.png").unwrap();
    let audio = AudioBlock::from_base64("aGk=", "audio/wav").unwrap();
    let message = |text: &str| {
        Message::user_with_blocks(vec![text.into(), image.clone().into(), audio.clone().into()])
    };
    let prompt = message("What is it?");
    let (gate, mut turn) = (Gate(Cell::new(0)), Turn::new(Options::auto()));
    turn.prompt(prompt.clone()).unwrap();
    assert!(turn.is_busy() && turn.history().is_empty());
    let error = block_on(drive(&mut turn, &gate)).unwrap_err();
    let DriveError::Failed(error) = error else { panic!("{error:?}") };
    assert_eq!((&*error.kind, &*error.message), ("stream", "the answer broke off"));
    assert_eq!(**turn.history(), [message("Look.")]);
    // The same again is a retry, which the gate has let through before.
    turn.prompt(prompt).unwrap();
    assert_eq!(block_on(drive(&mut turn, &gate)), Ok(FinishReason::Unspecified));
    assert_eq!((turn.history().len(), turn.turns(), gate.0.get()), (2, 1, 1));
    assert_eq!(block_on(drive(&mut turn, &gate)), Err(DriveError::Idle));
}

/// Open calls stay open when a prompt is blocked, cut, replaced by blank text, or its hook fails.
#[test]
fn rejected_prompts_change_nothing() {
    let mut turn = Turn::new(Options::default());
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(crate::perform(&mut turn), oa_turn::Action::Request { tools: true });
    turn.answer(Answer::new(vec![call("1", "a")]));
    crate::perform(&mut turn);
    let before = (told(&turn), turn.calls().to_vec());
    let blocked = PromptOutcome::Block { reason: "too rude".to_owned() };
    let cut = PromptOutcome::Cut { by: CutBy::User };
    let blank = PromptOutcome::Replace { text: " ".to_owned() };
    let failed = PromptOutcome::Failed { error: Box::new(ErrorRecord::new("hook", "it failed")) };
    let mut words = Vec::new();
    for outcome in [blocked, cut, blank, failed] {
        turn.prompt(Message::user("Never mind.")).unwrap();
        assert!(matches!(turn.next_step(), Some(oa_turn::Step::SubmitPrompt(_))));
        let taken = turn.take(oa_turn::StepOutcome::SubmitPrompt(outcome));
        words.push(taken.map_or_else(
            |error| format!("{}: {error}", error.kind),
            |()| format!("{:?}", turn.next_action()),
        ));
        assert_eq!((told(&turn), turn.calls().to_vec()), before);
        assert!(!turn.is_busy());
    }
    assert_snapshot!(words.join("\n"), @r#"
    blocked: a hook blocked the prompt: too rude
    Some(End { reason: Interrupted })
    invalid_input: the prompt is empty
    hook: it failed
    "#);
    turn.add_result("1", json!("still open"), Outcome::Ok).unwrap();
}

/// An answer that left nothing in history does not make the conversation empty.
#[test]
fn errors_say_why_nothing_continues() {
    let error = |turn: &mut Turn| turn.continue_when_answered().unwrap_err().to_string();
    let mut turn = Turn::new(Options::default());
    let mut errors = vec![error(&mut turn)];
    turn.set_history(vec![Message::system("Be brief.")]).unwrap();
    errors.push(error(&mut turn));
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(crate::perform(&mut turn), oa_turn::Action::Request { tools: true });
    turn.answer(Answer::new(vec![malformed("1", None)]));
    errors.push(error(&mut turn));
    turn.abandon(Vec::new());
    turn.set_history(vec![Message::user("Go."), Message::assistant(vec![text("Done.")])]).unwrap();
    errors.push(error(&mut turn));
    turn.submit(Message::user("On.")).unwrap();
    assert_eq!(crate::perform(&mut turn), oa_turn::Action::Request { tools: true });
    turn.abandon(vec![text("Half")]);
    errors.push(error(&mut turn));
    assert_snapshot!(errors.join("\n"), @r#"
    there is nothing to continue: the conversation is empty
    there is nothing to continue: the conversation is empty
    there is nothing to continue yet: the answer is still being read, and has no call that waits for a result
    there is nothing to continue: the last message is an answer; send a prompt instead
    there is nothing to continue: the last answer was interrupted and cannot be resumed; send a prompt instead, such as "Go on."
    "#);
}

/// A second request would get a second answer to the same prompt.
#[test]
fn a_busy_turn_is_not_continued() {
    for options in [Options::auto(), Options::default()] {
        let mut turn = Turn::new(options);
        turn.submit(Message::user("Go.")).unwrap();
        assert_eq!(turn.continue_turn().unwrap_err().kind(), ErrorKind::Busy);
        assert_eq!(crate::perform(&mut turn), oa_turn::Action::Request { tools: true });
        assert_eq!(turn.continue_turn().unwrap_err().kind(), ErrorKind::Busy);
        assert_eq!(turn.next_action(), None);
        turn.answer(Answer::new(vec![text("Done.")]));
        assert_eq!(turn.continue_turn().unwrap_err().kind(), ErrorKind::Busy);
    }
    // Nor while a result is reviewed.
    let mut turn = crate::rules::begun(Options::default());
    turn.answer(Answer::new(vec![call("1", "a")]));
    crate::perform(&mut turn);
    turn.add_result("1", json!("ok"), Outcome::Ok).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(turn.next_action(), Some(oa_turn::Action::Review { call: 0 }));
    assert_eq!(turn.continue_turn().unwrap_err().kind(), ErrorKind::Busy);
    turn.review(0, json!("ok"));
    assert_eq!(crate::perform(&mut turn), oa_turn::Action::Request { tools: true });
}
