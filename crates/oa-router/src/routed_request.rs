//! One request, sent to one server after the other until one answers.

use std::pin::Pin;
use std::sync::Arc;

use oa_chat::{AnswerStream, ChatRequest, Error, Result};
use tower::Service;

use crate::breaker::Health;
use crate::dispatcher::Lease;
use crate::failures::{Failure, Unused, summarize};
use crate::outcome::{classify, may_fail_over};
use crate::scheduler::{Rejection, SlotRequest, Ticket};
use crate::server_set::ServerSet;
use crate::shared::Shared;

pub(crate) type AnswerFuture = Pin<Box<dyn Future<Output = Result<AnswerStream>> + Send>>;

pub(crate) struct RoutedRequest {
    shared: Arc<Shared>,
    request: ChatRequest,
    tried: ServerSet,
    failures: Vec<Failure>,
    ticket: Option<Ticket>,
}

impl RoutedRequest {
    pub(crate) fn new(shared: Arc<Shared>, request: ChatRequest) -> Self {
        Self { shared, request, tried: ServerSet::default(), failures: Vec::new(), ticket: None }
    }

    /// Tries one server after the other until one answers.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the queue or closes the connection, and releases the server.
    pub(crate) fn run(mut self) -> AnswerFuture {
        Box::pin(async move {
            loop {
                let Self { request, tried, ticket, .. } = &self;
                let slot = SlotRequest {
                    conversation: request.conversation(),
                    tried: *tried,
                    ticket: *ticket,
                };
                // Dropped here, the request leaves the queue. Dropped in the call below, `lease` releases the
                // server.
                let (ticket, lease) = self.shared.dispatcher.acquire(slot).await;
                self.ticket = ticket;
                let lease = match lease {
                    Ok(lease) => lease,
                    Err(rejection) => return Err(self.give_up(rejection)),
                };
                let Some(server) = lease.grant().map(|grant| grant.server) else { continue };
                let mut service = self.shared.services[server].clone();
                // The service is always ready.
                match service.call(self.request.clone()).await {
                    Ok(answer) => return Ok(self.watch(answer, lease, server)),
                    Err(error) if may_fail_over(lease.end(Some(&error))) => {
                        self.note(server, error);
                    }
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
                shared.dispatcher.with(|scheduler, now| scheduler.began(grant, conversation, now));
            });
        }
        // Runs before `on_early_end`, so the slot is free and the failure is counted before another server is
        // tried.
        answer.on_end(move |outcome| {
            // An answer that was given up says nothing about its server.
            if !outcome.interrupted {
                lease.end(outcome.error);
            }
        });
        answer.on_early_end(move |error| {
            if !may_fail_over(classify(&error)) {
                return Err(error);
            }
            self.note(server, error);
            Ok(self.run())
        });
        answer
    }

    fn note(&mut self, server: usize, error: Error) {
        self.tried.insert(server);
        self.failures.push(Failure { server, error });
    }

    fn give_up(self, rejection: Rejection) -> Error {
        let Self { shared, tried, failures, .. } = self;
        // A server without the model fails the request each time: it is no reason to retry before the others
        // are back.
        // An error in a stream without a known code may pass, although it is not retryable.
        let is_hopeless = |error: &Error| {
            let is_known = matches!(error.reported_status(), Some(401..=404));
            !error.is_retryable() && (error.status().is_some() || is_known)
        };
        let hopeless = failures.iter().filter(|failure| is_hopeless(&failure.error));
        let hopeless = hopeless.map(|failure| failure.server).collect();
        let (untried, earliest) = shared.dispatcher.with(|scheduler, now| {
            let servers = scheduler.servers().iter().enumerate();
            let untried = servers.filter(|(server, _)| !tried.contains(*server));
            let untried: Vec<_> = untried
                .map(|(server, slots)| match slots.breaker.health(now) {
                    Health::Open { left } => {
                        (server, Unused::CircuitOpen(left, slots.last_failure.clone()))
                    }
                    Health::Healthy | Health::Trial => (server, Unused::Busy),
                })
                .collect();
            (untried, scheduler.earliest(hopeless, now))
        });
        summarize(failures, &untried, rejection, &shared.names, earliest)
    }
}
