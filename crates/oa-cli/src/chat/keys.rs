//! The keys of a terminal while the model works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossterm::event::{self, Event};
use tokio::sync::mpsc;

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
    thread: Option<JoinHandle<()>>,
}

impl Keys {
    pub(super) fn read() -> Result<Self> {
        let (tell, events) = mpsc::channel(WAITING);
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = thread::Builder::new().name("oa-keys".to_owned()).spawn(move || {
            while !ends.load(Ordering::Acquire) {
                let event = match event::poll(LOOK) {
                    Ok(true) => event::read(),
                    Ok(false) => continue,
                    Err(error) => Err(error),
                };
                let Ok(event) = event else { return };
                if tell.blocking_send(event).is_err() {
                    return;
                }
            }
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

    /// Stops reading, and returns the events that were read but not handled. Later keys are left for the next reader.
    pub(super) fn stop(mut self) -> Vec<Event> {
        self.end();
        let mut rest = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            rest.push(event);
        }
        rest
    }

    fn end(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // Wakes a thread that waits for room in the queue.
        self.events.close();
        if let Some(thread) = self.thread.take() {
            // The thread does not panic; if it did, there would be nothing to do about it.
            let _ = thread.join();
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.end();
    }
}
