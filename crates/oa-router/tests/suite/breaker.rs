//! The circuit breaker alone: laws for any sequence of events.

use std::time::{Duration, Instant};

use oa_router::{AttemptOutcome, Breaker, BreakerConfig, Health, Pass};
use proptest::prelude::*;

const FAILED: AttemptOutcome = AttemptOutcome::Failed { retry_after: None };

fn failed_after(wait: Duration) -> AttemptOutcome {
    AttemptOutcome::Failed { retry_after: Some(wait) }
}

/// An event of a circuit breaker.
#[derive(Clone, Debug)]
enum Step {
    Ask,
    Begin(usize),
    End(usize, AttemptOutcome),
    Pass(Duration),
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        1 => Just(AttemptOutcome::Answered),
        1 => Just(AttemptOutcome::GivenUp),
        4 => Just(FAILED),
        1 => (0..20_000_u64).prop_map(|wait| failed_after(Duration::from_millis(wait))),
    ];
    prop_oneof![
        3 => Just(Step::Ask),
        1 => any::<usize>().prop_map(Step::Begin),
        2 => (any::<usize>(), outcome).prop_map(|(which, outcome)| Step::End(which, outcome)),
        1 => (0..3_000_u64).prop_map(|time| Step::Pass(Duration::from_millis(time))),
    ]
}

proptest! {
    #[test]
    fn nobody_passes_while_it_is_open_one_while_it_is_half_open_and_none_is_leaked(
        steps in prop::collection::vec(step(), 0..200),
        failures in 1..4_u32,
    ) {
        let config = BreakerConfig::new(failures).max_open(Duration::from_secs(8));
        let longest = config.max_open.max(Duration::from_secs(20));
        let mut breaker = Breaker::new(config);
        let mut now = Instant::now();
        // The passes, and whether each is a trial with unknown outcome.
        let mut running: Vec<(Pass, bool)> = Vec::new();
        for step in steps {
            let before = breaker.health(now);
            match step {
                Step::Ask => {
                    let permits = breaker.permits(now);
                    let pass = breaker.permit(now);
                    prop_assert_eq!(permits, pass.is_some());
                    if let Health::Open { .. } = before {
                        prop_assert!(pass.is_none());
                    }
                    if let Some(pass) = pass {
                        let trial = before == Health::Trial;
                        prop_assert!(!trial || running.iter().all(|(_, trial)| !trial));
                        running.push((pass, trial));
                    }
                }
                Step::Begin(which) if !running.is_empty() => {
                    let which = which % running.len();
                    breaker.began(running[which].0);
                    running[which].1 = false;
                }
                Step::End(which, outcome) if !running.is_empty() => {
                    let (pass, _) = running.swap_remove(which % running.len());
                    breaker.done(pass, outcome, now);
                }
                Step::Begin(_) | Step::End(..) => {}
                Step::Pass(time) => now += time,
            }
            if let Health::Open { left } = breaker.health(now) {
                prop_assert!(left <= longest);
                prop_assert_eq!(breaker.open_until(), Some(now + left));
                // A trial from before it opened no longer counts.
                running.iter_mut().for_each(|(_, trial)| *trial = false);
            }
        }
        // When everything is over and some time has passed, a request always passes.
        for (pass, _) in running.drain(..) {
            breaker.done(pass, AttemptOutcome::GivenUp, now);
        }
        now += longest;
        prop_assert!(breaker.permit(now).is_some());
    }

    #[test]
    fn what_passed_before_it_opened_changes_nothing(
        outcomes in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let mut breaker = Breaker::new(BreakerConfig::new(1));
        let now = Instant::now();
        let late: Vec<Pass> = outcomes.iter().map(|_| breaker.permit(now).unwrap()).collect();
        let first = breaker.permit(now).unwrap();
        breaker.done(first, FAILED, now);
        let until = breaker.open_until();
        for (pass, answered) in late.into_iter().zip(outcomes) {
            breaker.began(pass);
            breaker.done(pass, if answered { AttemptOutcome::Answered } else { FAILED }, now);
            prop_assert_eq!(breaker.open_until(), until);
        }
    }
}

/// Fails as a trial, when the time is up.
fn fail_trial(breaker: &mut Breaker, now: &mut Instant) -> Duration {
    *now = breaker.open_until().expect("it is open");
    let pass = breaker.permit(*now).expect("the time is up");
    breaker.done(pass, FAILED, *now);
    breaker.open_until().expect("it is open again") - *now
}

#[test]
fn the_time_doubles_up_to_its_bound_and_begins_anew_after_a_whole_answer() {
    let mut breaker = Breaker::new(BreakerConfig::new(1).max_open(Duration::from_secs(10)));
    let mut now = Instant::now();
    let pass = breaker.permit(now).unwrap();
    breaker.done(pass, FAILED, now);
    let times: Vec<u64> = (0..5).map(|_| fail_trial(&mut breaker, &mut now).as_secs()).collect();
    assert_eq!(times, [2, 4, 8, 10, 10]);

    now = breaker.open_until().unwrap();
    let pass = breaker.permit(now).unwrap();
    breaker.began(pass);
    assert_eq!(breaker.health(now), Health::Healthy);
    breaker.done(pass, AttemptOutcome::Answered, now);
    let pass = breaker.permit(now).unwrap();
    breaker.done(pass, FAILED, now);
    assert_eq!(breaker.open_until(), Some(now + Duration::from_secs(1)));
}

#[test]
fn an_answer_that_was_under_way_before_a_row_of_failures_does_not_end_it() {
    let mut breaker = Breaker::new(BreakerConfig::new(3));
    let now = Instant::now();
    let fail = |breaker: &mut Breaker| {
        let pass = breaker.permit(now).expect("it is closed");
        breaker.done(pass, FAILED, now);
    };
    let [early, late] = [(); 2].map(|()| breaker.permit(now).unwrap());
    fail(&mut breaker);
    breaker.done(early, AttemptOutcome::Answered, now);
    fail(&mut breaker);
    let during = breaker.permit(now).unwrap();
    breaker.done(during, AttemptOutcome::Answered, now);
    fail(&mut breaker);
    fail(&mut breaker);
    assert!(breaker.permits(now), "the one in between ended the row");
    breaker.done(late, AttemptOutcome::Answered, now);
    fail(&mut breaker);
    assert!(!breaker.permits(now));
}

#[test]
fn a_later_retry_after_of_one_that_passed_before_lengthens_the_time_and_never_shortens_it() {
    let mut breaker = Breaker::new(BreakerConfig::new(1));
    let now = Instant::now();
    let passes = [(); 4].map(|()| breaker.permit(now).unwrap());
    for (pass, wait, left) in
        [(passes[0], 5, 5), (passes[1], 3, 5), (passes[2], 60, 60), (passes[3], 100_000, 600)]
    {
        breaker.done(pass, failed_after(Duration::from_secs(wait)), now);
        assert_eq!(breaker.health(now), Health::Open { left: Duration::from_secs(left) });
    }
}

#[test]
fn after_a_trial_it_lets_in_two_and_one_more_for_each_that_begins_until_there_are_many() {
    let mut breaker = Breaker::new(BreakerConfig::new(1));
    let mut now = Instant::now();
    let pass = breaker.permit(now).unwrap();
    breaker.done(pass, FAILED, now);
    now = breaker.open_until().unwrap();
    let trial = breaker.permit(now).unwrap();
    breaker.began(trial);
    let mut running = vec![trial];
    for most in 2..32 {
        while let Some(pass) = breaker.permit(now) {
            running.push(pass);
        }
        assert_eq!(running.len(), most);
        breaker.began(*running.last().unwrap());
    }
    assert!((0..1_000).all(|_| breaker.permit(now).is_some()), "and then all");
}
