use std::fmt;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use oa_contain::{contain, discard};

use crate::error::{Error, ErrorKind};
use crate::store::StoreFuture;

/// A thread that owns a blocking resource (files, a database); for implementors of stores.
///
/// Jobs run sequentially, in the order in which their futures were first polled, without blocking the caller's
/// runtime. When the worker is dropped, the thread ends after the requested jobs. If a job panics, the state is
/// dropped, because it may be inconsistent, and later jobs fail with `Closed`.
///
/// ```
/// use oa_session::Worker;
///
/// # oa_session::contract::block_on(async {
/// let worker = Worker::spawn("counter", 0)?;
/// let job = worker.run(|count: &mut i32| { *count += 1; Ok(*count) });
/// assert_eq!(job.await?, 1);
/// # Ok::<(), oa_session::Error>(())
/// # }).unwrap();
/// ```
pub struct Worker<S> {
    name: String,
    tasks: Sender<Task<S>>,
}

type Task<S> = Box<dyn FnOnce(&mut Option<S>) + Send>;

impl<S: Send + 'static> Worker<S> {
    /// Starts a thread with this name that owns `state`.
    ///
    /// # Errors
    ///
    /// `Io` if the thread cannot be created.
    pub fn spawn(name: &str, state: S) -> Result<Self, Error> {
        let (tasks, received) = channel();
        let thread = thread::Builder::new().name(name.to_owned());
        let started = thread.spawn(move || work(state, &received));
        started.map_err(|error| {
            Error::failed(format_args!("cannot start the thread {name}"), error)
        })?;
        Ok(Self { name: name.to_owned(), tasks })
    }

    /// Runs a job on the thread.
    ///
    /// # Errors
    ///
    /// The job's error, or `Closed` after a panic.
    ///
    /// # Cancel safety
    ///
    /// A job whose future is dropped before its turn does not run; one that has started continues.
    pub fn run<'a, T, J>(&self, job: J) -> StoreFuture<'a, T>
    where
        T: Send + 'static,
        J: FnOnce(&mut S) -> Result<T, Error> + Send + 'static,
    {
        let slot = Arc::new(Slot { state: Mutex::new(State::Waiting(None)) });
        let (result, tasks) = (Arc::clone(&slot), self.tasks.clone());
        let start = move || {
            let task: Task<S> = Box::new(move |state| result.perform(state, job));
            tasks.send(task).is_ok()
        };
        Box::pin(Job { start: Some(Box::new(start)), slot })
    }
}

impl<S> fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
    }
}

fn work<S>(state: S, tasks: &Receiver<Task<S>>) {
    let mut state = Some(state);
    for task in tasks {
        // The job contains its own panic, but wakers and unclaimed results are foreign code too.
        if contain(|| task(&mut state)).is_err() {
            discard(state.take());
        }
    }
    discard(state);
}

struct Job<T> {
    start: Option<Box<dyn FnOnce() -> bool + Send>>,
    slot: Arc<Slot<T>>,
}

impl<T> Future for Job<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Sent on the first poll and not by `run`, so that a future that is never polled does nothing.
        if let Some(start) = self.start.take()
            && !start()
        {
            return Poll::Ready(Err(closed()));
        }
        // The thread may have finished the job already. It sets the state under this lock, so either the
        // result is seen here, or the waker is seen there.
        let mut state = self.slot.lock();
        match &mut *state {
            State::Waiting(waker) | State::Running(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            State::Done(result) => Poll::Ready(result.take().unwrap_or_else(|| Err(closed()))),
            State::Abandoned => Poll::Ready(Err(closed())),
        }
    }
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        // A running job keeps its state: its changes are made, only its result is dropped with the slot.
        if matches!(*state, State::Waiting(_)) {
            *state = State::Abandoned;
        }
    }
}

/// The slot for a job's result.
struct Slot<T> {
    state: Mutex<State<T>>,
}

enum State<T> {
    Waiting(Option<Waker>),
    Running(Option<Waker>),
    Done(Option<Result<T, Error>>),
    /// The waiter is gone.
    Abandoned,
}

impl<T> Slot<T> {
    fn perform<S>(&self, owned: &mut Option<S>, job: impl FnOnce(&mut S) -> Result<T, Error>) {
        {
            let mut state = self.lock();
            let State::Waiting(waker) = &mut *state else {
                return;
            };
            // From here on, dropping the future no longer prevents the job.
            *state = State::Running(waker.take());
        }
        let result = match owned {
            None => Err(closed()),
            Some(inner) => contain(|| job(inner)).unwrap_or_else(|_| {
                discard(owned.take());
                Err(closed())
            }),
        };
        // The lock is released before the waker runs: it is foreign code, and may poll this very future at
        // once.
        let before = std::mem::replace(&mut *self.lock(), State::Done(Some(result)));
        if let State::Running(Some(waker)) = before {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store's thread has failed: open the store again")
}

#[cfg(test)]
mod tests {
    use oa_session::contract::block_on;

    use super::*;

    fn poll<T>(future: &mut StoreFuture<'_, T>) -> Poll<Result<T, Error>> {
        future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn jobs_run_in_order_of_first_poll() {
        let worker = Worker::spawn("test", Vec::new()).unwrap();
        let push = |number: i32| {
            worker.run(move |seen: &mut Vec<i32>| {
                seen.push(number);
                Ok(())
            })
        };
        let (mut first, mut second) = (push(1), push(2));
        let _ = poll(&mut second);
        let _ = poll(&mut first);
        let seen = block_on(worker.run(|seen: &mut Vec<i32>| Ok(seen.clone())));
        assert_eq!(seen.unwrap(), [2, 1]);
    }

    #[test]
    fn job_dropped_while_queued_does_not_run() {
        let worker = Worker::spawn("test", 0).unwrap();
        let (release, held) = channel::<()>();
        let mut holds = worker.run(move |_: &mut i32| {
            let _ = held.recv();
            Ok(())
        });
        assert!(poll(&mut holds).is_pending());
        let mut dropped = worker.run(|count| {
            *count += 1;
            Ok(())
        });
        assert!(poll(&mut dropped).is_pending());
        drop(dropped);
        drop(release);
        assert_eq!(block_on(worker.run(|count| Ok(*count))).unwrap(), 0);
    }

    #[test]
    fn job_dropped_while_running_completes() {
        let worker = Worker::spawn("test", 0).unwrap();
        let (begun, begins) = channel();
        let (release, held) = channel::<()>();
        let mut dropped = worker.run(move |count| {
            let _ = begun.send(());
            let _ = held.recv();
            *count += 1;
            Ok(())
        });
        assert!(poll(&mut dropped).is_pending());
        begins.recv().unwrap();
        drop(dropped);
        drop(release);
        assert_eq!(block_on(worker.run(|count| Ok(*count))).unwrap(), 1);
    }

    /// Panics with another of its kind when it is dropped.
    struct Hostile;

    impl Drop for Hostile {
        fn drop(&mut self) {
            std::panic::panic_any(Self);
        }
    }

    #[test]
    fn panic_payload_may_panic_on_drop() {
        let worker = Worker::spawn("test", Hostile).unwrap();
        let panics: StoreFuture<'_, ()> = worker.run(|_| std::panic::panic_any(Hostile));
        assert_eq!(block_on(panics).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(block_on(worker.run(|_| Ok(()))).unwrap_err().kind(), ErrorKind::Closed);
    }

    #[test]
    fn unclaimed_result_may_panic_on_drop() {
        let worker = Worker::spawn("test", ()).unwrap();
        let (begun, begins) = channel();
        let (release, held) = channel::<()>();
        let mut unwanted = worker.run(move |()| {
            let _ = begun.send(());
            let _ = held.recv();
            Ok(Hostile)
        });
        assert!(poll(&mut unwanted).is_pending());
        begins.recv().unwrap();
        drop(unwanted);
        let mut waits = worker.run(|()| Ok(()));
        assert!(poll(&mut waits).is_pending());
        drop(release);
        assert_eq!(block_on(waits).unwrap_err().kind(), ErrorKind::Closed);
    }

    #[test]
    fn state_is_dropped_after_a_panic() {
        let worker = Worker::spawn("test", Arc::new(())).unwrap();
        let watch = block_on(worker.run(|state: &mut Arc<()>| Ok(Arc::downgrade(state)))).unwrap();
        let panics: StoreFuture<'_, ()> =
            worker.run(|_| std::panic::resume_unwind(Box::new("expected")));
        assert_eq!(block_on(panics).unwrap_err().kind(), ErrorKind::Closed);
        assert!(watch.upgrade().is_none());
        assert_eq!(block_on(worker.run(|_| Ok(()))).unwrap_err().kind(), ErrorKind::Closed);
    }
}
