//! Decides which server a request goes to, which requests wait, and which are rejected. The whole state is
//! here, without a clock.

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

/// A position in the queue; lower numbers came first. A request keeps its ticket when it moves on to another
/// server.
pub(crate) type Ticket = u64;

/// The settings of the board.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) policy: Policy,
    /// The largest number of waiting requests.
    pub(crate) queue: usize,
    /// The longest wait.
    pub(crate) longest_wait: Duration,
    /// The number of remembered conversations, if any.
    pub(crate) sticky: Option<usize>,
    /// The time that a conversation waits for its own server.
    pub(crate) patience: Duration,
}

/// A request for a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) conversation: u64,
    /// The servers that have already failed the request.
    pub(crate) tried: Set,
    /// The ticket from an earlier attempt of the same request.
    pub(crate) ticket: Option<Ticket>,
}

/// The board's response to a wish.
#[derive(Debug)]
pub(crate) enum Answer {
    Go(Grant),
    /// Call [`Board::poll`] again, at this time at the latest.
    Wait(Ticket, Instant),
    No(Refusal),
}

/// The reason for rejecting a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// All untried servers have open circuits.
    LeftAlone,
    /// No server has room, and this many requests are already waiting.
    QueueFull(usize),
    /// No server had room for this long.
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
    /// The number of waiting requests without a response.
    in_line: usize,
    /// The servers with open circuits when the queue was last served.
    left_alone: Set,
    wakes: Vec<Waker>,
}

#[derive(Debug)]
struct Waiting {
    wish: Wish,
    /// The conversation's own server, and until when to wait for it.
    own: Option<(usize, Instant)>,
    deadline: Instant,
    waker: Option<Waker>,
    /// The response not yet collected.
    answer: Option<Result<Grant, Refusal>>,
}

/// The possible servers for a request.
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

    /// Requests a server.
    pub(crate) fn ask(&mut self, wish: Wish, now: Instant) -> Answer {
        // Requests already waiting go first.
        self.serve(now);
        let is_full = self.in_line >= self.rules.queue;
        // If no request may wait, a conversation does not wait for its own server either.
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

    /// Returns the state of a waiting request.
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

    /// Removes a request that no longer waits.
    pub(crate) fn leave(&mut self, ticket: Ticket, now: Instant) {
        match self.waiting.remove(&ticket).map(|waiting| waiting.answer) {
            Some(Some(Ok(grant))) => self.done(grant, Verdict::GivenUp, None, now),
            Some(None) => self.in_line -= 1,
            Some(Some(Err(_))) | None => {}
        }
    }

    /// Records that an answer has started: the conversation now belongs to that server.
    pub(crate) fn began(&mut self, grant: Grant, conversation: u64, now: Instant) {
        self.seats[grant.server].breaker.began(grant.pass);
        if let Some(memory) = &mut self.memory {
            memory.note(conversation, grant.server);
        }
        self.serve(now);
    }

    /// Records the end of a request, and the message of a failure.
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

    /// Returns the time until the first open circuit allows a trial.
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

    /// Returns the number of waiting requests.
    pub(crate) fn in_line(&self) -> usize {
        self.in_line
    }

    /// Returns the number of remembered conversations.
    pub(crate) fn remembered(&self) -> usize {
        self.memory.as_ref().map_or(0, Memory::len)
    }

    /// Takes the wakers of requests that now have a response. Wake them after releasing the board's lock.
    pub(crate) fn take_wakes(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.wakes)
    }

    /// Returns the server that has the conversation's prompt in its cache, if any.
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
                // Shares are comparable only if every server has a cap.
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

    /// Serves the queue in order, granting a server to every request that can have one.
    fn serve(&mut self, now: Instant) {
        if self.in_line == 0 {
            return;
        }
        let alone = self.alone(now);
        let before = std::mem::replace(&mut self.left_alone, alone);
        let mut last = Bound::Unbounded;
        loop {
            // Without room, only a change in open circuits can matter.
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

    /// Returns the servers with open circuits.
    fn alone(&self, now: Instant) -> Set {
        let alone = |server: &usize| {
            self.seats[*server].breaker.open_until().is_some_and(|until| now < until)
        };
        (0..self.seats.len()).filter(alone).collect()
    }

    /// Returns the time at which the state may change without an event.
    fn look_again(&self, waiting: &Waiting, now: Instant) -> Instant {
        let patience = waiting.own.map(|(_, until)| until);
        let open = self.seats.iter().filter_map(|seat| seat.breaker.open_until());
        let times = open.chain(patience).filter(|time| *time > now);
        times.min().map_or(waiting.deadline, |time| time.min(waiting.deadline))
    }
}
