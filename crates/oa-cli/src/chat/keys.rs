//! The keys of a terminal while the model works.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossterm::event::{self, Event};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendError;

use crate::failure::Result;

/// The poll interval, and so the longest time to stop reading.
const LOOK: Duration = Duration::from_millis(20);
/// The number of events that may wait to be handled. The terminal buffers later ones.
const WAITING: usize = 256;

/// Reads keys on its own thread until it is dropped.
///
/// `crossterm::event::EventStream` cannot be used: if its thread starts to wait while the stream is dropped, it keeps
/// the input, and the line editor cannot read.
#[derive(Debug)]
pub(super) struct Keys {
    events: mpsc::Receiver<Event>,
    is_over: Arc<AtomicBool>,
    /// Returns an event that found the queue closed.
    thread: Option<JoinHandle<Option<Event>>>,
}

impl Keys {
    pub(super) fn read() -> Result<Self> {
        Self::start(|| if event::poll(LOOK)? { event::read().map(Some) } else { Ok(None) })
    }

    /// Reads from a source, which returns `None` if no event arrives for a while.
    fn start(
        mut source: impl FnMut() -> io::Result<Option<Event>> + Send + 'static,
    ) -> Result<Self> {
        let (tell, events) = mpsc::channel(WAITING);
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = thread::Builder::new().name("oa-keys".to_owned()).spawn(move || {
            while !ends.load(Ordering::Acquire) {
                let event = match source() {
                    Ok(Some(event)) => event,
                    Ok(None) => continue,
                    Err(_) => return None,
                };
                if let Err(SendError(event)) = tell.blocking_send(event) {
                    return Some(event);
                }
            }
            None
        })?;
        Ok(Self { events, is_over, thread: Some(thread) })
    }

    /// Waits for the next event; forever if the terminal is gone.
    pub(super) async fn next(&mut self) -> Event {
        match self.events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    /// Returns the next event if it has already arrived.
    pub(super) fn next_now(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// Stops reading, and returns the events that were read but not handled. Later keys are left for the next reader.
    pub(super) fn stop(mut self) -> Vec<Event> {
        // Read by the thread after all events in the queue.
        let last = self.end();
        let mut rest = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            rest.push(event);
        }
        rest.extend(last);
        rest
    }

    fn end(&mut self) -> Option<Event> {
        self.is_over.store(true, Ordering::Release);
        // Wakes a thread that waits for room in the queue.
        self.events.close();
        // The thread does not panic; if it did, there would be nothing to do about it.
        self.thread.take()?.join().ok()?
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use crossterm::event::{KeyCode, KeyEvent};

    use super::*;

    #[test]
    fn stop_returns_every_key_that_was_read() {
        let count = Arc::new(AtomicUsize::new(0));
        let read = Arc::clone(&count);
        let key = Event::Key(KeyEvent::from(KeyCode::Enter));
        let source = move || {
            // One more than the queue holds, so that the thread waits with the last one.
            let is_key = read.load(Ordering::Acquire) <= WAITING;
            read.fetch_add(usize::from(is_key), Ordering::AcqRel);
            Ok(is_key.then(|| key.clone()))
        };
        let keys = Keys::start(source).unwrap();
        while count.load(Ordering::Acquire) <= WAITING {
            thread::yield_now();
        }
        assert_eq!(keys.stop().len(), WAITING + 1);
    }
}
