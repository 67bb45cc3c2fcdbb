//! Budgets that an agent and its sub-agents use up together.

use oa_turn::{
    Action, Answer, AskOutcome, BudgetLedger, BudgetLeft, CutBy, Decision, Options, ShortenOutcome,
    Spent, StepOutcome, Turn,
};
use oa_types::{ContentBlock, Cost, ErrorRecord, FinishReason, Message, Outcome};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use crate::rules::end;
use crate::{call, perform, text};

fn cost(amount: u64) -> Cost {
    Cost::new(amount as f64).expect("an amount")
}

fn begun(options: Options) -> Turn {
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).expect("nothing is in progress");
    turn
}

fn answer(tokens: u64, price: u64, calls: u32, number: usize) -> Answer {
    let calls = (0..calls).map(|place| call(&format!("{number}-{place}"), "work"));
    let blocks: Vec<ContentBlock> = [text("I work.")].into_iter().chain(calls).collect();
    let mut answer = Answer::new(blocks);
    (answer.tokens, answer.cost) = (tokens, cost(price));
    answer
}

fn limited(tokens: u64) -> Turn {
    let mut options = Options::auto();
    options.max_tokens = Some(tokens);
    begun(options)
}

#[test]
fn charged_spending_ends_the_turn() {
    let mut turn = limited(100);
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    turn.answer(answer(10, 0, 1, 0));
    turn.charge(Spent::new(3, 90, Cost::ZERO));
    assert_eq!(turn.spent(), Spent::new(3, 100, Cost::ZERO));
    assert_eq!(turn.left().tokens, Some(0));
    assert_eq!(perform(&mut turn), end(FinishReason::MaxRunTokens));
    // The next turn has budgets of its own again.
    turn.submit(Message::user("On.")).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
}

#[test]
fn cut_and_failed_requests_are_charged() {
    let (by, spent) = (CutBy::User, Spent::new(0, 40, cost(2)));
    let error = || Box::new(ErrorRecord::new("stream", "the answer broke off"));
    let partial = || vec![text("Half a")];
    let asked = [
        AskOutcome::Cut { by: by.clone(), partial: partial(), spent },
        AskOutcome::Failed { error: error(), has_begun: true, partial: partial(), spent },
    ];
    for outcome in asked {
        let mut turn = limited(100);
        assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
        let _ = turn.take(StepOutcome::Ask(outcome));
        assert_eq!(turn.spent(), spent);
    }
    let summaries = [
        ShortenOutcome::Cut { by, spent },
        ShortenOutcome::Failed { error: error(), spent },
        ShortenOutcome::Replace { history: vec![Message::user("Go.")], spent },
    ];
    for outcome in summaries {
        let mut options = Options::auto();
        options.shorten = true;
        let mut turn = begun(options);
        assert_eq!(turn.next_action(), Some(Action::Shorten { is_overflow: false }));
        let _ = turn.take(StepOutcome::Shorten(outcome));
        assert_eq!(turn.spent(), spent);
    }
}

#[test]
fn empty_outer_budget_prevents_requests() {
    for (left, reason) in [
        (BudgetLeft::new(None, Some(0), None), FinishReason::MaxRunTokens),
        (BudgetLeft::new(None, None, Some(Cost::ZERO)), FinishReason::MaxRunCost),
    ] {
        let mut turn = begun(Options::auto());
        turn.set_outer_budget(left);
        assert_eq!(turn.next_action(), Some(end(reason)));
        assert_eq!(turn.history().len(), 1);
    }
}

#[test]
fn outer_call_limit_holds() {
    let mut turn = begun(Options::auto());
    turn.set_outer_budget(BudgetLeft::new(Some(2), None, None));
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    turn.answer(answer(1, 0, 2, 0));
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(turn.left().calls, Some(0));
    turn.answer(answer(1, 0, 1, 1));
    assert_eq!(perform(&mut turn), end(FinishReason::MaxToolCalls));
}

#[test]
fn unshared_snapshots_omit_outer_budgets() {
    let turn = limited(5);
    let snapshot = serde_json::to_value(turn.snapshot()).unwrap().to_string();
    assert!(!snapshot.contains("shared"), "{snapshot}");
    let mut turn = limited(5);
    turn.set_outer_budget(BudgetLeft::new(Some(3), None, None));
    let restored = Turn::restore(turn.snapshot()).unwrap();
    assert_eq!(restored.left(), BudgetLeft::new(Some(3), Some(5), None));
}

/// A sub-agent, as a shell drives it.
struct Child {
    turn: Turn,
    reported: Spent,
    script: std::vec::IntoIter<(u64, u64, u32)>,
    answers: usize,
    is_asking: bool,
    /// The cost of its last answer, and the calls that it ran last.
    last: Spent,
    ended: Option<FinishReason>,
}

impl Child {
    fn share(&mut self, ledger: &mut BudgetLedger) {
        let now = self.turn.spent();
        ledger.charge(now.since(self.reported));
        self.reported = now;
        self.turn.set_outer_budget(ledger.left());
    }

    /// Does one thing, with whatever the others have spent by now.
    fn step(&mut self, ledger: &mut BudgetLedger) {
        self.share(ledger);
        if self.is_asking {
            self.is_asking = false;
            let (tokens, price, calls) = self.script.next().unwrap_or((1, 1, 0));
            self.turn.answer(answer(tokens, price, calls, self.answers));
            self.answers += 1;
            (self.last.tokens, self.last.cost) = (tokens, cost(price));
            self.share(ledger);
            return;
        }
        match self.turn.next_action() {
            Some(Action::Request { .. }) => {
                let left = ledger.left();
                assert!(left.tokens != Some(0) && left.cost != Some(Cost::ZERO));
                self.is_asking = true;
            }
            Some(Action::Decide { call }) => {
                let input = self.turn.calls()[call].input.clone();
                self.turn.decide(call, Decision::Run(input));
            }
            Some(Action::Run { calls }) => {
                self.last.calls = calls.len() as u32;
                for call in calls {
                    self.turn.finish_call(call, json!("ok"), Outcome::Ok);
                }
            }
            Some(Action::Review { call }) => {
                let content = crate::content(&self.turn, call);
                self.turn.review(call, content);
            }
            Some(Action::End { reason }) => self.ended = Some(reason),
            _ => {}
        }
        self.share(ledger);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Whatever the sub-agents do and in whatever order, no budget is passed by more than one answer of each, and the
    /// turn that runs them ends by the limit that was reached.
    #[test]
    fn overspend_is_at_most_one_answer_each(
        limits in (prop::option::of(1..60_u64), prop::option::of(1..60_u64), prop::option::of(3..12_u32)),
        scripts in vec(vec((0..20_u64, 0..20_u64, 0..3_u32), 0..5), 1..4),
        order in vec(any::<prop::sample::Index>(), 0..200),
    ) {
        let (tokens, price, calls) = limits;
        let mut options = Options::auto();
        (options.max_tokens, options.max_calls) = (tokens, calls);
        options.max_cost = price.map(cost);
        let mut parent = begun(options);
        prop_assert_eq!(parent.next_action(), Some(Action::Request { tools: true }));
        parent.answer(answer(0, 0, scripts.len() as u32, 0));
        let run = loop {
            match parent.next_action() {
                Some(Action::Decide { call }) => parent.decide(call, Decision::Run(json!({}))),
                Some(Action::Run { calls }) => break calls,
                Some(_) => {}
                None => return Err(TestCaseError::fail("nothing runs")),
            }
        };
        let mut ledger = BudgetLedger::new(parent.left());
        let mut unlimited = Options::auto();
        unlimited.repeat_guard = None;
        let mut children: Vec<Child> = scripts.into_iter().map(|script| Child {
            turn: begun(unlimited),
            reported: Spent::default(),
            script: script.into_iter(),
            answers: 0,
            is_asking: false,
            last: Spent::default(),
            ended: None,
        }).collect();
        let mut order = order.into_iter();
        while children.iter().any(|child| child.ended.is_none()) {
            let running: Vec<usize> =
                (0..children.len()).filter(|&place| children[place].ended.is_none()).collect();
            let next = order.next().map_or(0, |place| place.index(running.len()));
            children[running[next]].step(&mut ledger);
            parent.charge(ledger.take());
        }
        let all = parent.spent();
        let last = children.iter().fold(Spent::default(), |sum, child| sum.plus(child.last));
        let before = all.since(last);
        let told = children.iter().fold(Spent::new(run.len() as u32, 0, Cost::ZERO), |sum, child| {
            sum.plus(child.turn.spent())
        });
        prop_assert_eq!(all, told, "each is charged once");
        prop_assert!(tokens.is_none_or(|limit| before.tokens < limit));
        prop_assert!(price.is_none_or(|limit| before.cost < cost(limit)));
        prop_assert!(calls.is_none_or(|limit| before.calls <= limit));
        for call in run {
            parent.finish_call(call, json!("ok"), Outcome::Ok);
        }
        let next = perform(&mut parent);
        if tokens.is_some_and(|limit| all.tokens >= limit) {
            prop_assert_eq!(next, end(FinishReason::MaxRunTokens));
        } else if price.is_some_and(|limit| all.cost >= cost(limit)) {
            prop_assert_eq!(next, end(FinishReason::MaxRunCost));
        } else {
            prop_assert_eq!(next, Action::Request { tools: true });
        }
    }
}
