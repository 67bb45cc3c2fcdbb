//! The path of one request from server to server.

use std::pin::Pin;
use std::sync::Arc;

use oa_chat::{AnswerStream, ChatRequest, Error, Result};
use tower::Service;

use crate::board::{Refusal, Ticket, Wish};
use crate::breaker::Health;
use crate::desk::Lease;
use crate::failures::{Failure, Untried, sum_up};
use crate::judge::{judge, may_go_on};
use crate::set::Set;
use crate::shared::Shared;

pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<AnswerStream>> + Send>>;

pub(crate) struct Journey {
    shared: Arc<Shared>,
    request: ChatRequest,
    tried: Set,
    failures: Vec<Failure>,
    ticket: Option<Ticket>,
}

impl Journey {
    pub(crate) fn new(shared: Arc<Shared>, request: ChatRequest) -> Self {
        Self { shared, request, tried: Set::default(), failures: Vec::new(), ticket: None }
    }

    /// Tries one server after the other until one answers.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the queue or closes the connection, and releases the server.
    pub(crate) fn go_on(mut self) -> Answering {
        Box::pin(async move {
            loop {
                let Self { request, tried, ticket, .. } = &self;
                let wish =
                    Wish { conversation: request.conversation(), tried: *tried, ticket: *ticket };
                let (ticket, place) = self.shared.desk.place(wish).await;
                self.ticket = ticket;
                let lease = match place {
                    Ok(lease) => lease,
                    Err(refusal) => return Err(self.give_up(refusal)),
                };
                let Some(server) = lease.grant().map(|grant| grant.server) else { continue };
                let mut service = self.shared.services[server].clone();
                // The service is always ready.
                match service.call(self.request.clone()).await {
                    Ok(answer) => return Ok(self.watch(answer, lease, server)),
                    Err(error) if may_go_on(lease.end(Some(&error))) => self.note(server, error),
                    Err(error) => return Err(error),
                }
            }
        })
    }

    /// Watches an answer until its end, and tries another server if it breaks before it has started.
    fn watch(mut self, mut answer: AnswerStream, lease: Lease, server: usize) -> AnswerStream {
        let (shared, conversation) = (Arc::clone(&self.shared), self.request.conversation());
        if let Some(grant) = lease.grant() {
            answer.on_begin(move || {
                shared.desk.with(|board, now| board.began(grant, conversation, now));
            });
        }
        answer.on_end(move |outcome| {
            // An answer that was given up says nothing about its server.
            if !outcome.interrupted {
                lease.end(outcome.error);
            }
        });
        answer.on_early_end(move |error| {
            if !may_go_on(judge(&error)) {
                return Err(error);
            }
            self.note(server, error);
            Ok(self.go_on())
        });
        answer
    }

    fn note(&mut self, server: usize, error: Error) {
        self.tried.insert(server);
        self.failures.push(Failure { server, error });
    }

    fn give_up(self, refusal: Refusal) -> Error {
        let Self { shared, tried, failures, .. } = self;
        let (untried, earliest) = shared.desk.with(|board, now| {
            let seats = board.seats().iter().enumerate();
            let untried = seats.filter(|(server, _)| !tried.contains(*server));
            let untried: Vec<_> = untried
                .map(|(server, seat)| match seat.breaker.health(now) {
                    Health::Open { left } => {
                        (server, Untried::LeftAlone(left, seat.last_failure.clone()))
                    }
                    Health::Healthy | Health::Trial => (server, Untried::NoRoom),
                })
                .collect();
            (untried, board.earliest(now))
        });
        sum_up(failures, &untried, refusal, &shared.names, earliest)
    }
}
