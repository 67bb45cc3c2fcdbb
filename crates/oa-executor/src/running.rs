use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use oa_types::Exclusive;
use tokio::task::JoinHandle;

use crate::attempt::{Job, Record};
use crate::ended::Ended;
use crate::options::Placement;
use crate::queue::{EventQueue, Sender};

/// The running calls. Each is polled only after it was woken.
pub(crate) struct RunningTasks {
    queue: Arc<EventQueue>,
    placement: Placement,
    /// By the number of the call; `None` before it runs and once it has ended.
    running: Vec<Option<Task>>,
    /// Woken calls not polled yet because another call ended first.
    left: VecDeque<usize>,
}

struct Task {
    future: Exclusive<Pin<Box<dyn Future<Output = Ended> + Send>>>,
    waker: Waker,
    record: Arc<Record>,
}

impl RunningTasks {
    pub(crate) fn new(queue: Arc<EventQueue>, placement: Placement) -> Self {
        Self { queue, placement, running: Vec::new(), left: VecDeque::new() }
    }

    pub(crate) fn add(&mut self, call: usize, job: Job) {
        let record = Arc::clone(&job.record);
        let future: Pin<Box<dyn Future<Output = Ended> + Send>> = match self.placement {
            Placement::Inline => Box::pin(job.run()),
            Placement::Spawned => Box::pin(Spawned(tokio::spawn(job.run()), Arc::clone(&record))),
        };
        let waker = Arc::new(Sender { queue: Arc::clone(&self.queue), call }).into();
        if self.running.len() <= call {
            self.running.resize_with(call + 1, || None);
        }
        self.running[call] = Some(Task { future: Exclusive::new(future), waker, record });
        // The first poll is requested like any other; `poll` never looks at calls that nobody woke.
        self.queue.ready(call);
    }

    /// Polls the woken calls until one ends.
    pub(crate) fn poll(&mut self) -> Poll<(usize, Ended)> {
        // Taken once for each pass: a tool that wakes itself in its poll comes again in the next pass, behind
        // the calls that are left, and cannot keep this loop busy.
        self.left.extend(self.queue.take_ready());
        while let Some(call) = self.left.pop_front() {
            // A late wakeup of a call that has ended.
            let Some(Some(task)) = self.running.get_mut(call) else { continue };
            let mut cx = Context::from_waker(&task.waker);
            if let Poll::Ready(ended) = task.future.get_mut().as_mut().poll(&mut cx) {
                self.running[call] = None;
                return Poll::Ready((call, ended));
            }
        }
        Poll::Pending
    }

    /// Drops a call and returns its state as a canceled call.
    pub(crate) fn cancel(&mut self, call: usize) -> Ended {
        match self.running.get_mut(call).and_then(Option::take) {
            Some(task) => {
                // First, because destructors of the tool may run for a while, and count as part of the call.
                drop(task.future);
                task.record.cancelled()
            }
            None => Ended::cancelled(0),
        }
    }
}

impl fmt::Debug for RunningTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningTasks")
            .field("placement", &self.placement)
            .field("running", &self.running.iter().flatten().count())
            .finish_non_exhaustive()
    }
}

/// A spawned task that is aborted when dropped.
struct Spawned(JoinHandle<Ended>, Arc<Record>);

impl Future for Spawned {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        // The job contains its tool's panics, so only a runtime shutdown ends it early.
        let ended = Pin::new(&mut self.0).poll(cx);
        ended.map(|ended| ended.unwrap_or_else(|_| self.1.cancelled()))
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        self.0.abort();
    }
}
