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
    /// Nothing passes while it is open, one request at a time while it is half open, and no pass is leaked.
    #[test]
    fn passes_follow_the_state(
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
    fn passes_of_old_generations_are_ignored(
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
fn open_time_doubles_until_an_answer() {
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

/// However it opened, by failures or by a `Retry-After`.
#[test]
fn one_failure_reopens_until_an_answer() {
    for first in [FAILED, failed_after(Duration::from_secs(1))] {
        let mut breaker = Breaker::new(BreakerConfig::new(3));
        let mut now = Instant::now();
        for _ in 0..3 {
            if let Some(pass) = breaker.permit(now) {
                breaker.done(pass, first, now);
            }
        }
        now = breaker.open_until().expect("it is open");
        let trial = breaker.permit(now).expect("the time is up");
        breaker.began(trial);
        let second = breaker.permit(now).expect("the trial has begun");
        breaker.done(second, FAILED, now);
        assert!(!breaker.permits(now), "{first:?}");

        now = breaker.open_until().expect("it is open");
        let trial = breaker.permit(now).expect("the time is up");
        breaker.done(trial, AttemptOutcome::Answered, now);
        let other = breaker.permit(now).expect("the trial was answered");
        breaker.done(other, FAILED, now);
        assert!(breaker.permits(now), "{first:?}");
    }
}

#[test]
fn earlier_answers_do_not_reset_failures() {
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

/// The `Retry-After` of a request that passed before the circuit opened.
#[test]
fn late_retry_after_only_extends_open_time() {
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

/// After a trial there is room for two, one more for each answer that begins, and then no limit.
#[test]
fn room_grows_by_one_per_answer() {
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
