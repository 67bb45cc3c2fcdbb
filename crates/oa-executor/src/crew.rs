use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::task::JoinHandle;

use crate::attempt::{Job, Record};
use crate::ended::Ended;
use crate::mailbox::{Mailbox, Sender};
use crate::options::Placement;

/// The calls that run. Each is polled only when it was woken.
pub(crate) struct Crew {
    mailbox: Arc<Mailbox>,
    placement: Placement,
    running: BTreeMap<usize, Member>,
    /// Woken, but not polled yet because another had ended.
    left: VecDeque<usize>,
}

struct Member {
    future: Pin<Box<dyn Future<Output = Ended> + Send>>,
    waker: Waker,
    record: Arc<Record>,
}

impl Crew {
    pub(crate) fn new(mailbox: Arc<Mailbox>, placement: Placement) -> Self {
        Self { mailbox, placement, running: BTreeMap::new(), left: VecDeque::new() }
    }

    pub(crate) fn add(&mut self, call: usize, job: Job) {
        let record = Arc::clone(&job.record);
        let future: Pin<Box<dyn Future<Output = Ended> + Send>> = match self.placement {
            Placement::Inline => Box::pin(job.run()),
            Placement::Spawned => Box::pin(Spawned(tokio::spawn(job.run()), Arc::clone(&record))),
        };
        let waker = Arc::new(Sender { mailbox: Arc::clone(&self.mailbox), call }).into();
        self.running.insert(call, Member { future, waker, record });
        self.mailbox.ready(call);
    }

    /// Lets those go on that were woken, until one ends.
    pub(crate) fn poll(&mut self) -> Poll<(usize, Ended)> {
        self.left.extend(self.mailbox.take_ready());
        while let Some(call) = self.left.pop_front() {
            let Some(member) = self.running.get_mut(&call) else { continue };
            let mut cx = Context::from_waker(&member.waker);
            if let Poll::Ready(ended) = member.future.as_mut().poll(&mut cx) {
                self.running.remove(&call);
                return Poll::Ready((call, ended));
            }
        }
        Poll::Pending
    }

    /// Drops a call, and says how far it was.
    pub(crate) fn dismiss(&mut self, call: usize) -> Ended {
        match self.running.remove(&call) {
            Some(member) => {
                drop(member.future);
                member.record.cancelled()
            }
            None => Ended::cancelled(),
        }
    }
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew")
            .field("placement", &self.placement)
            .field("running", &self.running.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// A task that ends with whoever waits for it.
struct Spawned(JoinHandle<Ended>, Arc<Record>);

impl Future for Spawned {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        // The job contains the panics of its tool, so only a runtime that shuts down ends it early.
        let ended = Pin::new(&mut self.0).poll(cx);
        ended.map(|ended| ended.unwrap_or_else(|_| self.1.cancelled()))
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        self.0.abort();
    }
}
