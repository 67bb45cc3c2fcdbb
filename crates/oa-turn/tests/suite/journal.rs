//! Turns that are driven over a journal, and replayed from every part of it.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use insta::assert_snapshot;
use oa_turn::{
    Answer, ApprovalOutcome, ApprovalStep, AskOutcome, AskStep, CallResult, CallState, CutBy,
    DecideOutcome, DecideStep, Decision, DriveError, Fit, Options, Perform, PlanOutcome, PlanStep,
    PromptOutcome, PromptStep, ReviewAnswerOutcome, ReviewAnswerStep, ReviewOutcome, ReviewStep,
    RunOutcome, RunStep, ShortenOutcome, ShortenStep, Spent, StepCall, StopOutcome, Turn,
    TurnSnapshot, drive,
};
use oa_types::{
    ContentBlock, Cost, ErrorRecord, FinishReason, History, Message, Outcome, ToolUseBlock,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::events::{Piece, blocks, options, piece, plan, reviewed, stopped};
use crate::shorten::shortened;
use crate::{block_on, call, text, told};

/// A simulated environment for a turn. Everything that happens in it follows from the names of steps.
#[derive(Clone, Debug)]
struct Script {
    options: Options,
    prompts: Vec<&'static str>,
    /// The outcomes of requests, one after the other, and then again.
    asks: Vec<Ask>,
    /// Choices of everybody else.
    choices: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Ask {
    Answer(Vec<Piece>),
    Correct,
    Cut,
    Fail { has_begun: bool },
    Overflow,
}

fn script() -> impl Strategy<Value = Script> {
    let ask = prop_oneof![
        8 => vec(piece(), 0..4).prop_map(Ask::Answer),
        1 => Just(Ask::Correct),
        1 => Just(Ask::Cut),
        2 => any::<bool>().prop_map(|has_begun| Ask::Fail { has_begun }),
        1 => Just(Ask::Overflow),
    ];
    let prompts =
        prop::sample::select(vec![vec!["Go."], vec!["Go.", "On."], vec!["Go.", "Go.", "Off."]]);
    (options(), prompts, vec(ask, 1..8), vec(0..12_u8, 1..16))
        .prop_map(|(options, prompts, asks, choices)| Script { options, prompts, asks, choices })
}

/// One entry of the journal.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    name: String,
    json: String,
}

/// The process died.
#[derive(Debug, PartialEq)]
struct Crash;

/// Performs steps over a journal in memory.
struct Worker<'a> {
    script: &'a Script,
    journal: RefCell<Vec<Entry>>,
    place: Cell<usize>,
    prompts: Cell<u32>,
    /// The number of steps performed before the process dies.
    lives: Cell<usize>,
    /// The names of what was performed, in this process.
    performed: RefCell<Vec<String>>,
    shown: RefCell<Vec<ContentBlock>>,
}

impl<'a> Worker<'a> {
    fn new(script: &'a Script, journal: Vec<Entry>, lives: usize) -> Self {
        Self {
            script,
            journal: RefCell::new(journal),
            place: Cell::new(0),
            prompts: Cell::new(0),
            lives: Cell::new(lives),
            performed: RefCell::default(),
            shown: RefCell::default(),
        }
    }

    /// Returns what the journal holds, or performs it and records it.
    fn entry<T: DeserializeOwned + Serialize>(
        &self,
        name: String,
        perform: impl FnOnce() -> T,
    ) -> Result<T, Crash> {
        let place = self.place.replace(self.place.get() + 1);
        assert!(place < 10_000, "the turns of a script end");
        if let Some(entry) = self.journal.borrow().get(place) {
            assert_eq!(entry.name, name, "a replay takes the same way");
            return Ok(serde_json::from_str(&entry.json).expect("it is what was written"));
        }
        self.lives.set(self.lives.get().checked_sub(1).ok_or(Crash)?);
        let outcome = perform();
        let json = serde_json::to_string(&outcome).expect("an outcome is JSON");
        self.performed.borrow_mut().push(name.clone());
        self.journal.borrow_mut().push(Entry { name, json });
        Ok(outcome)
    }

    /// A choice that follows from a name alone.
    fn choice(&self, name: &str) -> u8 {
        let sum: usize = name.bytes().map(usize::from).sum();
        self.script.choices[sum % self.script.choices.len()]
    }

    fn error(name: &str) -> Box<ErrorRecord> {
        let mut error = ErrorRecord::new("hook", format!("{name} failed"));
        error.retry_after_ms = Some(1);
        Box::new(error)
    }
}

impl Perform for Worker<'_> {
    type Error = Crash;

    async fn submit_prompt(&self, step: PromptStep) -> Result<PromptOutcome, Crash> {
        let number = self.prompts.replace(self.prompts.get() + 1);
        let name = format!("prompt {number} {}", step.prompt.text());
        self.entry(name.clone(), || match self.choice(&name) {
            0 => PromptOutcome::Block { reason: "no".to_owned() },
            1 => PromptOutcome::Failed { error: Self::error(&name) },
            2 => PromptOutcome::Replace { text: "Please.".to_owned() },
            3 => PromptOutcome::Replace { text: " ".to_owned() },
            4 => PromptOutcome::Cut { by: CutBy::User },
            _ => PromptOutcome::Allow,
        })
    }

    async fn check_stop(&self, step: PlanStep) -> Result<StopOutcome, Crash> {
        let number = self.prompts.replace(self.prompts.get() + 1);
        let name = format!("check {number} {}", step.step);
        self.entry(name.clone(), || stopped(self.choice(&name)))
    }

    async fn plan(&self, step: PlanStep) -> Result<PlanOutcome, Crash> {
        let number = self.prompts.replace(self.prompts.get() + 1);
        let name = format!("plan {number} {}", step.step);
        self.entry(name.clone(), || match self.choice(&name) {
            0 => PlanOutcome::Failed { error: Self::error(&name) },
            1 => PlanOutcome::Cut { by: CutBy::User },
            choice => PlanOutcome::Planned { plan: Box::new(plan(choice % 4)) },
        })
    }

    async fn shorten(&self, step: ShortenStep) -> Result<ShortenOutcome, Crash> {
        let number = self.prompts.replace(self.prompts.get() + 1);
        let name = format!("shorten {number} {}", step.is_overflow);
        self.entry(name.clone(), || shortened(&step, self.choice(&name) % 8))
    }

    async fn ask(&self, step: AskStep) -> Result<AskOutcome, Crash> {
        assert_eq!(step.history.len(), step.revisions.len());
        let number = step.number as usize;
        self.entry(format!("ask {number} {}", step.tools), || {
            match &self.script.asks[number % self.script.asks.len()] {
                Ask::Answer(pieces) => AskOutcome::answered(Answer::new(blocks(pieces, number))),
                // Whoever corrects answers stops at some point, also if there are overflows in between.
                Ask::Correct => AskOutcome::Answered {
                    answer: Answer::new(vec![text("Five.")]),
                    correction: (number < 20 && !number.is_multiple_of(3))
                        .then(|| "No.".to_owned()),
                },
                Ask::Overflow => AskOutcome::Failed {
                    error: Box::new(ErrorRecord::new("context_overflow", "too long")),
                    has_begun: false,
                    partial: Vec::new(),
                    spent: Spent::default(),
                },
                Ask::Cut => AskOutcome::Cut {
                    by: CutBy::User,
                    partial: vec![text("Half a")],
                    spent: Spent::new(0, 7, Cost::ZERO),
                },
                Ask::Fail { has_begun } => AskOutcome::Failed {
                    error: Box::new(ErrorRecord::new("api", "the server answered 500")),
                    has_begun: *has_begun,
                    partial: if *has_begun { vec![text("Half a")] } else { Vec::new() },
                    spent: Spent::new(0, 7, Cost::ZERO),
                },
            }
        })
    }

    async fn decide(&self, step: DecideStep) -> Result<DecideOutcome, Crash> {
        let name = format!("decide {}", step.call.key);
        let input = step.call.call.input;
        let choice = self.choice(&name);
        self.entry(name.clone(), || match choice {
            0 => DecideOutcome::decided(Decision::Refuse(json!("no"))),
            1 | 2 => DecideOutcome::decided(Decision::Ask(input)),
            3 => DecideOutcome::decided(Decision::Wait(input)),
            4 => DecideOutcome::Failed { error: Self::error(&name) },
            5 => DecideOutcome::Cut { by: CutBy::User },
            _ => DecideOutcome::Decided {
                decision: Decision::Run(json!({ "a": 2 })),
                refused_input: None,
                fit: Fit::Fits,
            },
        })
    }

    async fn approve(&self, step: ApprovalStep) -> Result<ApprovalOutcome, Crash> {
        // Whoever is asked last answers first.
        let asked = step.calls.last().expect("somebody is asked");
        let name = format!("approve {}", asked.key);
        let (id, input) = (asked.call.block.id.clone(), asked.call.input.clone());
        let choice = self.choice(&name);
        self.entry(name.clone(), || {
            let decision = match choice {
                0 | 1 => Decision::Refuse(json!("no")),
                2 => Decision::Wait(input),
                3 => return ApprovalOutcome::Failed { error: Self::error(&name) },
                4 => return ApprovalOutcome::Cut { by: CutBy::User },
                _ => Decision::Run(input),
            };
            ApprovalOutcome::Decided { id, decision }
        })
    }

    async fn run(&self, step: RunStep) -> Result<RunOutcome, Crash> {
        let mut outcome = RunOutcome::default();
        // They complete in another order than they began.
        for call in step.calls.iter().rev() {
            assert!(!call.may_have_run, "a journal knows what came of a call");
            let name = format!("run {}", call.key);
            let choice = self.choice(&name);
            let result = self.entry(name, || match choice {
                0 => None,
                1 => Some(CallResult::new(call.place, json!({ "error": "x" }), Outcome::Failed)),
                2 => Some(CallResult::lost(call)),
                3 => {
                    let result = CallResult::new(call.place, json!("ok"), Outcome::Ok);
                    Some(result.with_images(vec![crate::image()]))
                }
                _ => Some(CallResult::new(call.place, json!("ok"), Outcome::Ok)),
            })?;
            outcome.results.extend(result);
        }
        let is_cut = self.choice(&format!("cut {}", step.calls[0].key)) == 11;
        outcome.cut = is_cut.then_some(CutBy::Budget { reason: FinishReason::MaxRunTime });
        Ok(outcome)
    }

    async fn review(&self, step: ReviewStep) -> Result<ReviewOutcome, Crash> {
        let name = format!("review {}", step.call.key);
        let choice = self.choice(&name);
        self.entry(name.clone(), || match choice {
            0 => ReviewOutcome::Failed { error: Self::error(&name) },
            1 => ReviewOutcome::Cut { by: CutBy::User },
            2 => ReviewOutcome::Replace { content: json!("****"), images: Vec::new() },
            _ => ReviewOutcome::Keep,
        })
    }

    async fn review_answer(&self, step: ReviewAnswerStep) -> Result<ReviewAnswerOutcome, Crash> {
        let number = self.prompts.replace(self.prompts.get() + 1);
        let name = format!("answer {number} {} {}", step.retries, step.answer.text());
        self.entry(name.clone(), || reviewed(self.choice(&name)))
    }

    fn prepare(&self, call: &ToolUseBlock) -> (Value, Fit) {
        let mut input = call.input.clone();
        input["b"] = json!("by default");
        (input, Fit::Fits)
    }

    fn show(&self, block: ContentBlock) {
        self.shown.borrow_mut().push(block);
    }
}

/// The way of one process: what it came to, or that it died.
#[derive(Clone, Debug, PartialEq)]
struct Way {
    history: History,
    revisions: Vec<u64>,
    ends: Vec<String>,
    shown: Vec<ContentBlock>,
}

/// Drives all prompts of a script over a journal. `keep` is given the turn before each drive, and may put another
/// in its place.
fn converse(worker: &Worker<'_>) -> Result<Way, Crash> {
    let mut turn = Turn::new(worker.script.options).with_key_seed("session");
    turn.set_external_tools(["ask".to_owned()]);
    let mut ends = Vec::new();
    for prompt in &worker.script.prompts {
        if worker.choice(&format!("steer {prompt}")) < 4 {
            turn.steer(Message::user("Also.")).expect("few messages wait");
        }
        if turn.prompt(Message::user(*prompt)).is_err() {
            continue;
        }
        // A turn may be continued a few times: after failures, results of the caller and approvals.
        for _ in 0..4 {
            let end = match block_on(drive(&mut turn, worker)) {
                Ok(reason) => reason.to_string(),
                Err(DriveError::Failed(error)) => error.to_string(),
                Err(DriveError::Perform(crash)) => return Err(crash),
                Err(error) => unreachable!("{error:?}"),
            };
            assert!(!turn.is_busy());
            ends.push(end);
            let open: Vec<_> = turn.calls().iter().filter(|call| call.is_open()).cloned().collect();
            for call in open {
                if call.is_waiting() {
                    let _ = turn.approve(&call.block.id, Decision::Run(call.input));
                } else {
                    let _ = turn.add_result(&call.block.id, json!("by hand"), Outcome::Ok);
                }
            }
            if turn.continue_turn().is_err() {
                break;
            }
        }
        // The rest of a turn that was continued too often.
        turn.abandon(Vec::new());
    }
    let (history, revisions) = (turn.history().clone(), turn.revisions().to_vec());
    Ok(Way { history, revisions, ends, shown: worker.shown.take() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// A process that dies at any point is followed by another one, which takes the same way over what is recorded,
    /// and performs only what is not.
    #[test]
    fn replay_from_any_journal_prefix_is_equal(script in script()) {
        let worker = Worker::new(&script, Vec::new(), usize::MAX);
        let way = converse(&worker).expect("it does not die");
        let journal = worker.journal.take();
        // A look at a result that was cut is taken again later; all else happens once.
        let effects = journal.iter().map(|entry| &entry.name);
        let effects: Vec<_> = effects.filter(|name| !name.starts_with("review")).collect();
        let names: HashSet<_> = effects.iter().collect();
        prop_assert_eq!(names.len(), effects.len(), "a name for each step: {:#?}", effects);
        for crash in 0..=journal.len() {
            let first = Worker::new(&script, Vec::new(), crash);
            prop_assert_eq!(converse(&first).err(), (crash < journal.len()).then_some(Crash));
            let recorded = first.journal.take();
            prop_assert_eq!(&recorded[..], &journal[..crash]);
            let second = Worker::new(&script, recorded, usize::MAX);
            prop_assert_eq!(&converse(&second).expect("it does not die"), &way);
            prop_assert_eq!(second.journal.take(), journal.clone());
            let twice = second.performed.take();
            let rest: Vec<_> = journal[crash..].iter().map(|entry| entry.name.clone()).collect();
            prop_assert_eq!(twice, rest, "what is recorded is not performed again");
        }
    }
}

/// A worker without a journal: each step is performed at once, and dies with the process before its outcome is kept.
struct Mortal {
    /// The index of the step that is performed and then lost.
    dies_at: Cell<Option<usize>>,
    /// The number of starts of each call.
    runs: RefCell<HashMap<String, u32>>,
    /// True if calls that may have run are run again.
    repeats: bool,
    steps: RefCell<Vec<String>>,
}

impl Mortal {
    fn new(dies_at: usize, repeats: bool) -> Self {
        let dies_at = Cell::new(Some(dies_at));
        Self { dies_at, runs: RefCell::default(), repeats, steps: RefCell::default() }
    }

    fn perform<T>(&self, name: String, outcome: T) -> Result<T, Crash> {
        self.steps.borrow_mut().push(name);
        match self.dies_at.get() {
            Some(0) => {
                self.dies_at.set(None);
                Err(Crash)
            }
            left => {
                self.dies_at.set(left.map(|left| left - 1));
                Ok(outcome)
            }
        }
    }
}

impl Perform for Mortal {
    type Error = Crash;

    async fn submit_prompt(&self, _: PromptStep) -> Result<PromptOutcome, Crash> {
        self.perform("prompt".to_owned(), PromptOutcome::Allow)
    }

    async fn ask(&self, step: AskStep) -> Result<AskOutcome, Crash> {
        let blocks = match step.number {
            1 => vec![call("1", "a"), call("2", "b")],
            _ => vec![text("Done.")],
        };
        self.perform(format!("ask {}", step.number), AskOutcome::answered(Answer::new(blocks)))
    }

    async fn decide(&self, step: DecideStep) -> Result<DecideOutcome, Crash> {
        let asks = Decision::Ask(step.call.call.input);
        self.perform(format!("decide {}", step.call.place), DecideOutcome::decided(asks))
    }

    async fn approve(&self, step: ApprovalStep) -> Result<ApprovalOutcome, Crash> {
        let StepCall { call, .. } = step.calls[0].clone();
        let name = format!("approve {}", call.block.id);
        let decision = Decision::Run(call.input);
        self.perform(name, ApprovalOutcome::Decided { id: call.block.id.clone(), decision })
    }

    async fn run(&self, step: RunStep) -> Result<RunOutcome, Crash> {
        let mut outcome = RunOutcome::default();
        for call in &step.calls {
            outcome.results.push(if call.may_have_run && !self.repeats {
                CallResult::lost(call)
            } else {
                *self.runs.borrow_mut().entry(call.key.clone()).or_default() += 1;
                CallResult::new(call.place, json!("ok"), Outcome::Ok)
            });
        }
        self.perform("run".to_owned(), outcome)
    }

    async fn review(&self, step: ReviewStep) -> Result<ReviewOutcome, Crash> {
        self.perform(format!("review {}", step.call.place), ReviewOutcome::Keep)
    }
}

/// Drives a turn that is kept as a snapshot before each step alone: the process dies once, in a step.
fn die_once(mortal: &Mortal) -> (Turn, bool) {
    let mut turn = Turn::new(Options::auto()).with_key_seed("session");
    turn.prompt(Message::user("Go.")).expect("it is a prompt");
    let mut has_died = false;
    loop {
        match block_on(drive(&mut turn, mortal)) {
            Ok(reason) => {
                assert_eq!(reason, FinishReason::Unspecified);
                return (turn, has_died);
            }
            Err(DriveError::Perform(Crash)) => {
                has_died = true;
                let json = serde_json::to_string(&turn.snapshot()).expect("a snapshot is JSON");
                let snapshot: TurnSnapshot = serde_json::from_str(&json).expect("it is read");
                turn = Turn::restore(snapshot).expect("it is a turn");
            }
            Err(error) => unreachable!("{error:?}"),
        }
    }
}

#[test]
fn only_the_lost_step_is_performed_again() {
    let whole = Mortal::new(usize::MAX, true);
    let (turn, _) = die_once(&whole);
    let steps = whole.steps.take();
    assert_snapshot!(steps.join(", "), @r#"prompt, ask 1, decide 0, decide 1, approve 1, approve 2, run, review 0, review 1, ask 2"#);
    for dies_at in 0..steps.len() {
        let mortal = Mortal::new(dies_at, true);
        let (other, has_died) = die_once(&mortal);
        assert!(has_died);
        assert_eq!(told(&other), told(&turn));
        assert_eq!(other.revisions(), turn.revisions());
        let mut expected = steps.clone();
        expected.insert(dies_at, steps[dies_at].clone());
        assert_eq!(mortal.steps.take(), expected, "that step twice, and no other");
    }
}

/// The driver may run them again under the same keys, or tell the model that the result was lost.
#[test]
fn calls_that_may_have_run_are_marked() {
    let steps = {
        let whole = Mortal::new(usize::MAX, true);
        die_once(&whole);
        whole.steps.take()
    };
    let run = steps.iter().position(|step| step == "run").unwrap();
    let mortal = Mortal::new(run, false);
    let (turn, _) = die_once(&mortal);
    assert!(mortal.runs.take().values().all(|runs| *runs == 1), "none ran again");
    assert!(told(&turn)[2].contains("it may have taken effect"), "{:?}", told(&turn));
    let mortal = Mortal::new(run, true);
    let (turn, _) = die_once(&mortal);
    assert_eq!(told(&turn)[2], r#"tool: 1="ok""#);
    let runs = mortal.runs.take();
    assert_eq!((runs.len(), runs.values().max()), (2, Some(&2)), "under the same keys");
}

#[test]
fn asking_for_approval_keeps_the_budgets() {
    let mut options = Options::auto();
    options.max_rounds = 1;
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).unwrap();
    assert!(matches!(turn.next_step(), Some(oa_turn::Step::Ask(_))));
    turn.answer(Answer::new(vec![call("1", "a"), call("2", "b")]));
    for _ in 0..2 {
        while let Some(action) = turn.next_action() {
            if let oa_turn::Action::Decide { call } = action {
                turn.decide(call, Decision::Ask(json!({})));
            }
        }
    }
    assert!(turn.is_busy() && !turn.waits_for_approval());
    assert_eq!(turn.calls()[0].state, CallState::Asked);
    let Some(oa_turn::Step::Approve(step)) = turn.next_step() else { panic!("somebody is asked") };
    assert_eq!(step.calls.len(), 2);
    turn.approve("2", Decision::Run(json!({}))).unwrap();
    let Some(oa_turn::Step::Approve(step)) = turn.next_step() else { panic!("somebody is asked") };
    assert_eq!(step.calls.len(), 1);
    turn.approve("1", Decision::Refuse(json!("no"))).unwrap();
    assert_eq!(turn.next_action(), Some(oa_turn::Action::Run { calls: vec![1] }));
    turn.finish_call(1, json!("ok"), Outcome::Ok);
    assert_eq!(crate::perform(&mut turn), oa_turn::Action::Request { tools: true });
    turn.answer(Answer::new(vec![call("3", "a")]));
    let end = oa_turn::Action::End { reason: FinishReason::MaxToolIterations };
    assert_eq!(crate::perform(&mut turn), end, "the round counts");
}
