use proptest::prelude::*;

use super::*;

fn rules(concurrency: usize, window: usize, in_order: bool, retry_budget: u32) -> Rules {
    let backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
    Rules { concurrency, window, in_order, retry_budget, max_retries: 3, backoff }
}

/// One thing that the surroundings do next, as far as it is possible.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// An attempt in progress ends, by its place among them.
    End(usize, AttemptOutcome),
    /// The oldest outcome is on disk.
    Settle,
    /// The source has a prompt.
    Prompt,
    Wait(u64),
    Yield,
}

fn event() -> impl Strategy<Value = Event> {
    let asked = prop_oneof![
        3 => Just(AttemptOutcome::Answered),
        1 => Just(AttemptOutcome::Logged),
        3 => Just(AttemptOutcome::MayPass(None)),
        1 => Just(AttemptOutcome::MayPass(Some(Duration::from_secs(4)))),
    ];
    prop_oneof![
        3 => (0_usize..8, asked).prop_map(|(place, asked)| Event::End(place, asked)),
        2 => Just(Event::Settle),
        3 => Just(Event::Prompt),
        1 => (0_u64..20_000).prop_map(Event::Wait),
        2 => Just(Event::Yield),
    ]
}

/// A batch whose surroundings are scripted.
struct World {
    scheduler: Scheduler,
    rules: Rules,
    now: Duration,
    to_come: u64,
    running: Vec<u64>,
    ended: Vec<u64>,
    yielded: Vec<u64>,
    retries: u32,
}

impl World {
    fn new(rules: Rules, prompts: u64) -> Self {
        let scheduler = Scheduler::new(rules);
        Self {
            scheduler,
            rules,
            now: Duration::ZERO,
            to_come: prompts,
            running: Vec::new(),
            ended: Vec::new(),
            yielded: Vec::new(),
            retries: 0,
        }
    }

    fn step(&mut self, event: Event) {
        while let Some(index) = self.scheduler.take_retry(self.now) {
            self.running.push(index);
            self.retries += 1;
        }
        match event {
            Event::End(place, asked) if !self.running.is_empty() => {
                let index = self.running.remove(place % self.running.len());
                if !self.scheduler.end(index, asked, self.now) {
                    self.ended.push(index);
                }
            }
            Event::Settle if !self.ended.is_empty() => {
                self.scheduler.settle(self.ended.remove(0));
            }
            Event::Prompt if self.scheduler.wants_prompt(self.now) => match self.to_come {
                0 => self.scheduler.end_prompts(),
                _ => {
                    self.to_come -= 1;
                    let index = self.scheduler.take_prompt(self.now);
                    assert!(!self.running.contains(&index));
                    self.running.push(index);
                }
            },
            Event::Wait(millis) => self.now += Duration::from_millis(millis),
            Event::Yield => self.yielded.extend(self.scheduler.take_settled()),
            _ => {}
        }
        let Rules { concurrency, window, retry_budget, .. } = self.rules;
        assert!(self.running.len() <= concurrency);
        assert!(self.scheduler.held() <= concurrency + window);
        assert!(self.retries <= retry_budget && self.scheduler.retried() <= retry_budget);
    }

    /// Leads the batch to its end without a script. Fails if it stands still.
    fn finish(&mut self) {
        while !self.scheduler.is_over() {
            let before = (self.running.len(), self.ended.len(), self.yielded.len());
            let (to_come, retries) = (self.to_come, self.retries);
            for event in [
                Event::Prompt,
                Event::End(0, AttemptOutcome::Answered),
                Event::Settle,
                Event::Yield,
            ] {
                self.step(event);
            }
            let after = (self.running.len(), self.ended.len(), self.yielded.len());
            if before == after && (to_come, retries) == (self.to_come, self.retries) {
                if self.scheduler.is_over() {
                    break;
                }
                let due = self.scheduler.wakes_at(self.now).expect("something is due");
                assert!(due > self.now, "due at {due:?}, and it is {:?}", self.now);
                self.now = due;
            }
        }
    }
}

proptest! {
    #[test]
    fn each_prompt_is_yielded_once(
        concurrency in 1_usize..5,
        window in 0_usize..5,
        in_order: bool,
        retries in 0_u32..12,
        prompts in 0_u64..30,
        events in prop::collection::vec(event(), 0..300),
    ) {
        let mut world = World::new(rules(concurrency, window, in_order, retries), prompts);
        for event in events {
            world.step(event);
        }
        world.finish();
        if !in_order {
            world.yielded.sort_unstable();
        }
        prop_assert_eq!(&world.yielded, &(0..prompts).collect::<Vec<_>>());
    }

    #[test]
    fn giving_up_yields_every_taken_prompt(
        in_order: bool,
        events in prop::collection::vec(event(), 0..200),
    ) {
        let mut world = World::new(rules(3, 2, in_order, 10), 100);
        for event in events {
            world.step(event);
        }
        let waited = world.scheduler.give_up();
        world.ended.extend(waited);
        let taken = world.scheduler.taken();
        world.finish();
        world.yielded.sort_unstable();
        prop_assert_eq!(&world.yielded, &(0..taken).collect::<Vec<_>>());
    }
}

#[test]
fn max_retries_are_limited() {
    let mut world = World::new(rules(1, 4, false, 100), 1);
    let mut attempts = 0;
    world.step(Event::Prompt);
    while let Some(index) = world.running.pop() {
        attempts += 1;
        if !world.scheduler.end(index, AttemptOutcome::MayPass(None), world.now) {
            break;
        }
        world.now = world.scheduler.wakes_at(world.now).expect("it waits for another try");
        world.step(Event::Wait(0));
    }
    assert_eq!(attempts, 4);
}

/// Runs a batch whose server is down, and returns the number of attempts until `end`.
fn attempts_while_down(world: &mut World, end: Duration) -> u32 {
    let mut attempts = 0;
    while world.now < end && world.to_come > 0 {
        world.step(Event::Prompt);
        while !world.running.is_empty() {
            attempts += 1;
            world.step(Event::End(0, AttemptOutcome::MayPass(None)));
        }
        for _ in 0..world.ended.len() {
            world.step(Event::Settle);
            world.step(Event::Yield);
        }
        if !world.scheduler.wants_prompt(world.now) {
            world.now = world.scheduler.wakes_at(world.now).expect("something is due");
        }
    }
    attempts
}

#[test]
fn down_server_uses_the_budget_slowly() {
    let mut world = World::new(rules(8, 64, false, 100), 10_000);
    let attempts = attempts_while_down(&mut world, Duration::from_secs(600));
    // 0.5 + 1 + 2 + 4 + 8 + 16 + 30 + 30 + .. seconds.
    assert!((20..=30).contains(&attempts), "{attempts}");
    // It is back: the batch runs at full speed at once.
    world.step(Event::Prompt);
    if world.running.is_empty() {
        world.now = world.scheduler.wakes_at(world.now).expect("something is due");
        world.step(Event::Prompt);
    }
    world.step(Event::End(0, AttemptOutcome::Answered));
    for _ in 0..10 {
        world.step(Event::Prompt);
    }
    assert_eq!(world.running.len(), 8);
}

#[test]
fn without_a_budget_failures_are_fast() {
    let mut world = World::new(rules(8, 64, false, 20), 1_000);
    let attempts = attempts_while_down(&mut world, Duration::from_secs(3_600));
    assert_eq!(world.to_come, 0, "{attempts} attempts by {:?}", world.now);
    assert!(attempts >= 1_000 && world.scheduler.retried() == 20, "{attempts}");
}
