//! Who goes where, who waits, and who is turned away: all of it in one place, without a clock.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::breaker::Health;
use crate::choice::Choice;
use crate::memory::Memory;
use crate::policy::Policy;
use crate::seat::{Grant, Seat, Verdict};
use crate::set::Set;

/// A place in the line; the smaller came first. A request keeps its own when it goes on to another server.
pub(crate) type Ticket = u64;

/// What the board goes by.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) policy: Policy,
    /// How many may wait.
    pub(crate) queue: usize,
    /// How long one may wait.
    pub(crate) longest_wait: Duration,
    /// How many conversations are remembered, if any.
    pub(crate) sticky: Option<usize>,
    /// How long a conversation waits for its own server.
    pub(crate) patience: Duration,
}

/// What somebody wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) conversation: u64,
    /// Servers that have failed it already.
    pub(crate) tried: Set,
    /// From an earlier wish of the same request.
    pub(crate) ticket: Option<Ticket>,
}

/// What comes of a wish.
#[derive(Debug)]
pub(crate) enum Answer {
    Go(Grant),
    /// Ask [`Board::poll`], at the latest then.
    Wait(Ticket, Instant),
    No(Refusal),
}

/// Why somebody is turned away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// Whoever was not tried yet is left alone.
    LeftAlone,
    /// There is no room, and so many wait already.
    QueueFull(usize),
    /// There was no room for so long.
    Waited(Duration),
}

#[derive(Debug)]
pub(crate) struct Board {
    rules: Rules,
    seats: Vec<Seat>,
    memory: Option<Memory>,
    choice: Choice,
    next_ticket: Ticket,
    waiting: BTreeMap<Ticket, Waiting>,
    /// How many of them have no answer yet.
    in_line: usize,
    /// Who was left alone when the line was last gone through.
    left_alone: Set,
    wakes: Vec<Waker>,
}

#[derive(Debug)]
struct Waiting {
    wish: Wish,
    /// The server that it would rather wait for, and until when.
    own: Option<(usize, Instant)>,
    deadline: Instant,
    waker: Option<Waker>,
    /// What it has not been told yet.
    answer: Option<Result<Grant, Refusal>>,
}

/// Where somebody could go.
enum Found {
    Go(Grant),
    Later,
    Never,
}

impl Board {
    pub(crate) fn new(rules: Rules, seats: Vec<Seat>, seed: u64) -> Self {
        Self {
            memory: rules.sticky.map(Memory::new),
            choice: Choice::new(seats.len(), seed),
            rules,
            seats,
            next_ticket: 0,
            waiting: BTreeMap::new(),
            in_line: 0,
            left_alone: Set::default(),
            wakes: Vec::new(),
        }
    }

    /// Takes a wish.
    pub(crate) fn ask(&mut self, wish: Wish, now: Instant) -> Answer {
        // Whoever waits goes first.
        self.serve(now);
        let is_full = self.in_line >= self.rules.queue;
        // Where nobody may wait, a conversation does not wait for its own server either.
        let own = self.own(&wish, if is_full { Duration::ZERO } else { self.rules.patience }, now);
        match self.find(wish.tried, own, now) {
            Found::Go(grant) => return Answer::Go(grant),
            Found::Never => return Answer::No(Refusal::LeftAlone),
            Found::Later if is_full => return Answer::No(Refusal::QueueFull(self.in_line)),
            Found::Later => {}
        }
        self.left_alone = self.alone(now);
        let ticket = wish.ticket.unwrap_or_else(|| {
            self.next_ticket += 1;
            self.next_ticket
        });
        let deadline = now + self.rules.longest_wait;
        let waiting = Waiting { wish, own, deadline, waker: None, answer: None };
        let again = self.look_again(&waiting, now);
        self.waiting.insert(ticket, waiting);
        self.in_line += 1;
        Answer::Wait(ticket, again)
    }

    /// Tells somebody who waits how it stands.
    pub(crate) fn poll(&mut self, ticket: Ticket, waker: &Waker, now: Instant) -> Answer {
        self.serve(now);
        let refused = Answer::No(Refusal::Waited(self.rules.longest_wait));
        let Some(mut waiting) = self.waiting.remove(&ticket) else { return refused };
        match waiting.answer {
            Some(Ok(grant)) => return Answer::Go(grant),
            Some(Err(refusal)) => return Answer::No(refusal),
            None if now >= waiting.deadline => {
                self.in_line -= 1;
                return refused;
            }
            None => {}
        }
        match &mut waiting.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        let again = self.look_again(&waiting, now);
        self.waiting.insert(ticket, waiting);
        Answer::Wait(ticket, again)
    }

    /// Lets somebody go who no longer waits.
    pub(crate) fn leave(&mut self, ticket: Ticket, now: Instant) {
        match self.waiting.remove(&ticket).map(|waiting| waiting.answer) {
            Some(Some(Ok(grant))) => self.done(grant, Verdict::GivenUp, None, now),
            Some(None) => self.in_line -= 1,
            Some(Some(Err(_))) | None => {}
        }
    }

    /// Notes that an answer has begun: the conversation has a server of its own now.
    pub(crate) fn began(&mut self, grant: Grant, conversation: u64, now: Instant) {
        self.seats[grant.server].breaker.began(grant.pass);
        if let Some(memory) = &mut self.memory {
            memory.note(conversation, grant.server);
        }
        self.serve(now);
    }

    /// Notes that a request is over, in one way or another, and what is to be told of a failure.
    pub(crate) fn done(
        &mut self,
        grant: Grant,
        verdict: Verdict,
        words: Option<String>,
        now: Instant,
    ) {
        self.seats[grant.server].done(grant, verdict, words, now);
        self.serve(now);
    }

    /// How long it is until some server is no longer left alone.
    pub(crate) fn earliest(&self, now: Instant) -> Duration {
        let left = |seat: &Seat| match seat.breaker.health(now) {
            Health::Open { left } => left,
            _ => Duration::ZERO,
        };
        self.seats.iter().map(left).min().unwrap_or_default()
    }

    pub(crate) fn seats(&self) -> &[Seat] {
        &self.seats
    }

    /// How many wait.
    pub(crate) fn in_line(&self) -> usize {
        self.in_line
    }

    /// How many conversations are remembered.
    pub(crate) fn remembered(&self) -> usize {
        self.memory.as_ref().map_or(0, Memory::len)
    }

    /// Who has an answer now. To be woken once the board is let go.
    pub(crate) fn take_wakes(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.wakes)
    }

    /// The server whose prompt cache is warm for somebody.
    fn own(&mut self, wish: &Wish, wait: Duration, now: Instant) -> Option<(usize, Instant)> {
        let server = self.memory.as_mut()?.recall(wish.conversation)?;
        Some((server, now + wait))
    }

    fn find(&mut self, tried: Set, own: Option<(usize, Instant)>, now: Instant) -> Found {
        let places = 0..self.seats.len();
        let asked = places.filter(|server| !tried.contains(*server)).collect::<Set>();
        let asked = asked.without(self.alone(now));
        let free: Set = asked.iter().filter(|server| self.seats[*server].has_room(now)).collect();
        let chosen = match own {
            Some((server, _)) if free.contains(server) => Some(server),
            Some((server, until))
                if asked.contains(server)
                    && now < until
                    && self.seats[server].breaker.health(now) == Health::Healthy =>
            {
                return Found::Later;
            }
            _ => self.choose(free),
        };
        match chosen.and_then(|server| self.enter(server, now)) {
            Some(grant) => Found::Go(grant),
            None if asked.is_empty() => Found::Never,
            None => Found::Later,
        }
    }

    fn choose(&mut self, free: Set) -> Option<usize> {
        match self.rules.policy {
            Policy::Failover => free.iter().next(),
            Policy::LeastBusy => {
                // Beside one without a cap, a share of a cap says nothing.
                let by_share = self.seats.iter().all(|seat| seat.cap.is_some());
                self.choice.pick(free, |server| {
                    let seat = &self.seats[server];
                    seat.in_use as f64 / seat.cap.filter(|_| by_share).unwrap_or(1) as f64
                })
            }
        }
    }

    fn enter(&mut self, server: usize, now: Instant) -> Option<Grant> {
        Some(Grant { server, pass: self.seats[server].enter(now)? })
    }

    /// Goes through the line in order and lets everybody go who can.
    fn serve(&mut self, now: Instant) {
        if self.in_line == 0 {
            return;
        }
        let alone = self.alone(now);
        let before = std::mem::replace(&mut self.left_alone, alone);
        let mut last = Bound::Unbounded;
        loop {
            // With no room, only news of who is left alone can change anything.
            let is_full = !self.seats.iter().any(|seat| seat.has_room(now));
            if is_full && self.left_alone == before {
                return;
            }
            let mut line = self.waiting.range((last, Bound::Unbounded));
            let Some((ticket, waiting)) = line.find(|(_, waiting)| waiting.answer.is_none()) else {
                return;
            };
            let (ticket, tried, own) = (*ticket, waiting.wish.tried, waiting.own);
            last = Bound::Excluded(ticket);
            let answer = match self.find(tried, own, now) {
                Found::Go(grant) => Ok(grant),
                Found::Never => Err(Refusal::LeftAlone),
                Found::Later => continue,
            };
            if let Some(waiting) = self.waiting.get_mut(&ticket) {
                waiting.answer = Some(answer);
                self.wakes.extend(waiting.waker.take());
                self.in_line -= 1;
            }
        }
    }

    /// Who is left alone.
    fn alone(&self, now: Instant) -> Set {
        let alone = |server: &usize| {
            self.seats[*server].breaker.open_until().is_some_and(|until| now < until)
        };
        (0..self.seats.len()).filter(alone).collect()
    }

    /// When something may have changed by time alone.
    fn look_again(&self, waiting: &Waiting, now: Instant) -> Instant {
        let patience = waiting.own.map(|(_, until)| until);
        let open = self.seats.iter().filter_map(|seat| seat.breaker.open_until());
        let times = open.chain(patience).filter(|time| *time > now);
        times.min().map_or(waiting.deadline, |time| time.min(waiting.deadline))
    }
}
