//! Decides which server a request goes to, which requests wait, and which are rejected. The whole state is
//! here, without a clock.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::affinity::Affinity;
use crate::balancer::Balancer;
use crate::breaker::Health;
use crate::outcome::Outcome;
use crate::policy::Policy;
use crate::server_set::ServerSet;
use crate::slots::{Grant, ServerSlots};

/// A position in the queue; lower numbers came first. A request keeps its ticket when it moves on to another
/// server.
pub(crate) type Ticket = u64;

/// The settings of the scheduler.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
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

/// A request for a slot at some server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotRequest {
    /// 0 if there is none.
    pub(crate) conversation: u64,
    /// The servers that have already failed the request.
    pub(crate) tried: ServerSet,
    /// The ticket from an earlier attempt of the same request.
    pub(crate) ticket: Option<Ticket>,
}

/// The scheduler's response to a request.
#[derive(Debug)]
pub(crate) enum Admission {
    Granted(Grant),
    /// Call [`Scheduler::poll`] again, at this time at the latest.
    Queued(Ticket, Instant),
    Rejected(Rejection),
}

/// The reason for rejecting a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Rejection {
    /// All untried servers have open circuits.
    AllOpen,
    /// No server has room, and this many requests are already waiting.
    QueueFull(usize),
    /// No server had room for this long.
    TimedOut(Duration),
}

#[derive(Debug)]
pub(crate) struct Scheduler {
    settings: Settings,
    servers: Vec<ServerSlots>,
    affinity: Option<Affinity>,
    balancer: Balancer,
    next_ticket: Ticket,
    waiting: BTreeMap<Ticket, QueuedRequest>,
    /// The number of waiting requests without a response.
    queued: usize,
    /// The servers with open circuits when the queue was last served.
    open_circuits: ServerSet,
    wakes: Vec<Waker>,
}

#[derive(Debug)]
struct QueuedRequest {
    request: SlotRequest,
    /// The conversation's own server, and until when to wait for it.
    preferred: Option<(usize, Instant)>,
    deadline: Instant,
    waker: Option<Waker>,
    /// The response not yet collected.
    answer: Option<Result<Grant, Rejection>>,
}

/// The result of looking for a free slot.
enum Selection {
    Granted(Grant),
    /// A server that could be used has no free slot.
    NoRoom,
    /// All untried servers have open circuits.
    AllOpen,
}

impl Scheduler {
    pub(crate) fn new(settings: Settings, servers: Vec<ServerSlots>, seed: u64) -> Self {
        Self {
            affinity: settings.sticky.map(Affinity::new),
            balancer: Balancer::new(servers.len(), seed),
            settings,
            servers,
            next_ticket: 0,
            waiting: BTreeMap::new(),
            queued: 0,
            open_circuits: ServerSet::default(),
            wakes: Vec::new(),
        }
    }

    /// Requests a server.
    pub(crate) fn acquire(&mut self, request: SlotRequest, now: Instant) -> Admission {
        // Requests already waiting go first.
        self.serve(now);
        // A full queue is no reason to reject yet: a server may be free that those in the queue cannot use,
        // because it has failed them.
        let is_full = self.queued >= self.settings.queue;
        // If no request may wait, a conversation does not wait for its own server either.
        let preferred = self.preferred(
            &request,
            if is_full { Duration::ZERO } else { self.settings.patience },
            now,
        );
        match self.find(request.tried, preferred, now) {
            Selection::Granted(grant) => return Admission::Granted(grant),
            Selection::AllOpen => return Admission::Rejected(Rejection::AllOpen),
            Selection::NoRoom if is_full => {
                return Admission::Rejected(Rejection::QueueFull(self.queued));
            }
            Selection::NoRoom => {}
        }
        // `serve` compares with this set, and does not update it while nobody waits.
        self.open_circuits = self.find_open_circuits(now);
        // A request that failed elsewhere keeps its number, and so its place before those that came later.
        let ticket = request.ticket.unwrap_or_else(|| {
            self.next_ticket += 1;
            self.next_ticket
        });
        let deadline = now + self.settings.longest_wait;
        let waiting = QueuedRequest { request, preferred, deadline, waker: None, answer: None };
        let again = self.next_check(&waiting, now);
        self.waiting.insert(ticket, waiting);
        self.queued += 1;
        Admission::Queued(ticket, again)
    }

    /// Returns the state of a waiting request.
    pub(crate) fn poll(&mut self, ticket: Ticket, waker: &Waker, now: Instant) -> Admission {
        self.serve(now);
        let timed_out = Admission::Rejected(Rejection::TimedOut(self.settings.longest_wait));
        // Taken out and put back below only if it goes on waiting. `queued` counts those without an answer:
        // `serve` has already subtracted the answered ones.
        let Some(mut waiting) = self.waiting.remove(&ticket) else { return timed_out };
        match waiting.answer {
            Some(Ok(grant)) => return Admission::Granted(grant),
            Some(Err(rejection)) => return Admission::Rejected(rejection),
            None if now >= waiting.deadline => {
                self.queued -= 1;
                return timed_out;
            }
            None => {}
        }
        match &mut waiting.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        let again = self.next_check(&waiting, now);
        self.waiting.insert(ticket, waiting);
        Admission::Queued(ticket, again)
    }

    /// Removes a request that no longer waits.
    pub(crate) fn leave(&mut self, ticket: Ticket, now: Instant) {
        match self.waiting.remove(&ticket).map(|waiting| waiting.answer) {
            // Granted, but dropped before it was polled: the slot goes to the next in the queue.
            Some(Some(Ok(grant))) => self.done(grant, Outcome::GivenUp, None, now),
            Some(None) => self.queued -= 1,
            Some(Some(Err(_))) | None => {}
        }
    }

    /// Records that an answer has started: the conversation now belongs to that server.
    pub(crate) fn began(&mut self, grant: Grant, conversation: u64, now: Instant) {
        self.servers[grant.server].breaker.began(grant.pass);
        if let Some(affinity) = self.affinity_of(conversation) {
            affinity.record(conversation, grant.server);
        }
        self.serve(now);
    }

    /// Records the end of a request, and the message of a failure.
    pub(crate) fn done(
        &mut self,
        grant: Grant,
        outcome: Outcome,
        message: Option<String>,
        now: Instant,
    ) {
        self.servers[grant.server].done(grant, outcome, message, now);
        self.serve(now);
    }

    /// Returns the time until a server other than `hopeless` may be used: zero unless all their circuits are open.
    pub(crate) fn earliest(&self, hopeless: ServerSet, now: Instant) -> Duration {
        let left = |slots: &ServerSlots| match slots.breaker.health(now) {
            Health::Open { left } => left,
            _ => Duration::ZERO,
        };
        let servers = self.servers.iter().enumerate();
        let servers = servers.filter(|(server, _)| !hopeless.contains(*server));
        servers.map(|(_, slots)| left(slots)).min().unwrap_or_default()
    }

    pub(crate) fn servers(&self) -> &[ServerSlots] {
        &self.servers
    }

    /// Returns the number of waiting requests.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    /// Returns the number of remembered conversations.
    pub(crate) fn remembered(&self) -> usize {
        self.affinity.as_ref().map_or(0, Affinity::len)
    }

    /// Takes the wakers of requests that now have a response. Wake them after releasing the scheduler's lock.
    pub(crate) fn take_wakes(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.wakes)
    }

    /// Returns the server that has the conversation's prompt in its cache, if any.
    fn preferred(
        &mut self,
        request: &SlotRequest,
        wait: Duration,
        now: Instant,
    ) -> Option<(usize, Instant)> {
        let server = self.affinity_of(request.conversation)?.lookup(request.conversation)?;
        Some((server, now + wait))
    }

    /// Returns the memory of conversations if this is one: requests without a conversation have nothing in common.
    fn affinity_of(&mut self, conversation: u64) -> Option<&mut Affinity> {
        self.affinity.as_mut().filter(|_| conversation != 0)
    }

    fn find(
        &mut self,
        tried: ServerSet,
        preferred: Option<(usize, Instant)>,
        now: Instant,
    ) -> Selection {
        let untried = (0..self.servers.len()).filter(|server| !tried.contains(*server));
        let usable = untried.collect::<ServerSet>().without(self.find_open_circuits(now));
        let free: ServerSet =
            usable.iter().filter(|server| self.servers[*server].has_room(now)).collect();
        // The conversation's own server if it is free. If it is only busy, and not for too long, wait for it
        // even while others are free. A server on trial is not waited for.
        let chosen = match preferred {
            Some((server, _)) if free.contains(server) => Some(server),
            Some((server, until))
                if usable.contains(server)
                    && now < until
                    && self.servers[server].breaker.health(now) == Health::Healthy =>
            {
                return Selection::NoRoom;
            }
            _ => self.choose(free),
        };
        match chosen.and_then(|server| self.enter(server, now)) {
            Some(grant) => Selection::Granted(grant),
            // Also if all servers were tried: the request has nowhere to go, so it must not wait.
            None if usable.is_empty() => Selection::AllOpen,
            None => Selection::NoRoom,
        }
    }

    fn choose(&mut self, free: ServerSet) -> Option<usize> {
        match self.settings.policy {
            Policy::Failover => free.iter().next(),
            Policy::LeastBusy => {
                // Shares are comparable only if every server has a cap.
                let by_share = self.servers.iter().all(|slots| slots.cap.is_some());
                self.balancer.pick(free, |server| {
                    let slots = &self.servers[server];
                    slots.in_use as f64 / slots.cap.filter(|_| by_share).unwrap_or(1) as f64
                })
            }
        }
    }

    fn enter(&mut self, server: usize, now: Instant) -> Option<Grant> {
        Some(Grant { server, pass: self.servers[server].enter(now)? })
    }

    /// Serves the queue in order, granting a server to every request that can have one.
    fn serve(&mut self, now: Instant) {
        if self.queued == 0 {
            return;
        }
        let open = self.find_open_circuits(now);
        let before = std::mem::replace(&mut self.open_circuits, open);
        // One pass in order of tickets. A request that finds no room does not block those behind it: they may
        // be able to use servers that it has tried.
        let mut last = Bound::Unbounded;
        loop {
            // Checked again in each round, because a grant may have taken the last slot.
            // Without room, only a change in open circuits can matter.
            let is_full = !self.servers.iter().any(|slots| slots.has_room(now));
            if is_full && self.open_circuits == before {
                return;
            }
            let mut queue = self.waiting.range((last, Bound::Unbounded));
            let Some((ticket, waiting)) = queue.find(|(_, waiting)| waiting.answer.is_none())
            else {
                return;
            };
            let (ticket, tried, preferred) = (*ticket, waiting.request.tried, waiting.preferred);
            last = Bound::Excluded(ticket);
            let answer = match self.find(tried, preferred, now) {
                Selection::Granted(grant) => Ok(grant),
                Selection::AllOpen => Err(Rejection::AllOpen),
                Selection::NoRoom => continue,
            };
            // The grant is kept here until the request polls or leaves; meanwhile its slot is occupied.
            if let Some(waiting) = self.waiting.get_mut(&ticket) {
                waiting.answer = Some(answer);
                self.wakes.extend(waiting.waker.take());
                self.queued -= 1;
            }
        }
    }

    /// Returns the servers with open circuits.
    fn find_open_circuits(&self, now: Instant) -> ServerSet {
        let is_open = |server: &usize| {
            self.servers[*server].breaker.open_until().is_some_and(|until| now < until)
        };
        (0..self.servers.len()).filter(is_open).collect()
    }

    /// Returns the time at which the state may change without an event.
    fn next_check(&self, waiting: &QueuedRequest, now: Instant) -> Instant {
        // Without events, time alone changes three things: patience ends, a circuit allows its trial, the
        // wait is over. Everything else calls `serve`.
        let patience = waiting.preferred.map(|(_, until)| until);
        let open = self.servers.iter().filter_map(|slots| slots.breaker.open_until());
        let times = open.chain(patience).filter(|time| *time > now);
        times.min().map_or(waiting.deadline, |time| time.min(waiting.deadline))
    }
}
