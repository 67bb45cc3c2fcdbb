use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

/// The timeouts of an answer; `None` disables one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Timeouts {
    /// Time from sending the request until the answer starts. Loading a model or waiting in a queue may take
    /// minutes. The default is 300 seconds.
    pub first_token: Option<Duration>,
    /// The longest silence after the answer has started. Any byte ends it, including keep-alive comments. The
    /// default is 60 seconds.
    pub idle: Option<Duration>,
    /// The longest time without content after the answer has started. Disabled by default.
    pub content: Option<Duration>,
    /// The time limit for the whole answer. Disabled by default, because a local model may stream for an hour.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_token: Some(Duration::from_secs(300)),
            idle: Some(Duration::from_secs(60)),
            content: None,
            total: None,
        }
    }
}

/// The timeout that expired.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TimeoutKind {
    /// Connecting.
    Connect,
    /// [`Timeouts::content`].
    Content,
    /// The end of the answer, expected since [`Watch::expect_end`].
    End,
    /// [`Timeouts::first_token`].
    FirstToken,
    /// [`Timeouts::idle`].
    Idle,
    /// [`Timeouts::total`].
    Total,
}

impl TimeoutKind {
    /// Returns the name in records, such as `first_token`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Content => "content",
            Self::End => "end",
            Self::FirstToken => "first_token",
            Self::Idle => "idle",
            Self::Total => "total",
        }
    }
}

/// The name for people, such as `first token timeout`.
impl fmt::Display for TimeoutKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} timeout", self.as_str().replace('_', " "))
    }
}

/// Tracks the timeouts of an answer for its reader.
///
/// Create it when the request is sent, report what arrives, and poll it when there is nothing to read:
///
/// ```
/// use std::future::poll_fn;
/// use std::time::Duration;
///
/// use oa_transport::{TimeoutKind, Timeouts, Watch};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let mut watch = Watch::new(Timeouts::default());
/// watch.note_bytes(); // a comment arrived: the answer has not started
/// watch.note_content(); // the first delta arrived
/// let expired = poll_fn(|cx| watch.poll_expired(cx)).await;
/// assert_eq!(expired, TimeoutKind::Idle);
/// assert_eq!(watch.elapsed(), Duration::from_secs(60));
/// # }
/// ```
///
/// Reporting is almost free; the clock is read only when the reader waits. There is one timer, reset only when
/// it fires too early.
#[derive(Debug)]
pub struct Watch {
    timeouts: Timeouts,
    started: Instant,
    /// The start of [`Timeouts::total`].
    total_from: Instant,
    last_bytes: Instant,
    last_content: Instant,
    /// When the end was first expected, and how long it may take.
    end: Option<(Instant, Duration)>,
    begun: bool,
    /// Arrivals since the clock was last read.
    heard_bytes: bool,
    heard_content: bool,
    /// True if the deadline may be earlier than the timer's.
    stale: bool,
    timer: Option<Pin<Box<Sleep>>>,
    waker: Option<Waker>,
}

impl Watch {
    /// Starts tracking now.
    #[must_use]
    pub fn new(timeouts: Timeouts) -> Self {
        let now = Instant::now();
        Self {
            timeouts,
            started: now,
            total_from: now,
            last_bytes: now,
            last_content: now,
            end: None,
            begun: false,
            heard_bytes: false,
            heard_content: false,
            stale: true,
            timer: None,
            waker: None,
        }
    }

    /// Starts [`Timeouts::total`] at an earlier moment, for an answer that is requested again.
    #[must_use]
    pub fn total_since(mut self, moment: Instant) -> Self {
        self.total_from = moment;
        self
    }

    /// Bounds work that belongs to the answer by the rest of [`Timeouts::total`]; `None` if it takes longer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work.
    pub fn within_total<F: Future>(
        &self,
        work: F,
    ) -> impl Future<Output = Option<F::Output>> + use<F> {
        let end = self.timeouts.total.and_then(|total| self.total_from.checked_add(total));
        async move {
            match end {
                Some(end) => timeout_at(end, work).await.ok(),
                None => Some(work.await),
            }
        }
    }

    /// Reports the arrival of any bytes.
    #[inline]
    pub fn note_bytes(&mut self) {
        self.heard_bytes = true;
    }

    /// Reports the arrival of content, which starts the answer.
    #[inline]
    pub fn note_content(&mut self) {
        self.heard_bytes = true;
        self.heard_content = true;
    }

    /// Expects the end of the answer: [`TimeoutKind::End`] expires after this much time without content,
    /// counted from now at the earliest. Bytes without content do not reset it, nor do repeated calls.
    pub fn expect_end(&mut self, within: Duration) {
        // Readers repeat the call for every piece; only the first one, or another limit, starts the time.
        if self.end.is_none_or(|(_, known)| known != within) {
            self.end = Some((Instant::now(), within));
            self.stale = true;
        }
    }

    /// Reads the clock for reported arrivals. Silence starts when the reader waits again, so a slow reader is
    /// not mistaken for a silent server.
    fn settle(&mut self) {
        if !mem::take(&mut self.heard_bytes) {
            return;
        }
        let now = Instant::now();
        self.last_bytes = now;
        if mem::take(&mut self.heard_content) {
            self.last_content = now;
            // From here on `idle` counts instead of `first_token`, and may end before the timer that is set.
            if !self.begun {
                self.begun = true;
                self.stale = true;
            }
        }
    }

    /// Returns an expired timeout without waiting, for readers that always have more to read.
    #[must_use]
    pub fn expired(&mut self) -> Option<TimeoutKind> {
        self.settle();
        let (deadline, kind) = self.next()?;
        (deadline <= Instant::now()).then_some(kind)
    }

    /// Waits until a timeout expires and returns it; pending forever if none is set.
    ///
    /// May be polled again afterwards.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time enabled.
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<TimeoutKind> {
        self.settle();
        // The usual case, once for each read: the timer runs and knows this task. Arrivals only move
        // deadlines later, so the timer stays as it is; it fires too early, and the loop below sets it again.
        if !self.stale
            && let Some(timer) = &self.timer
            && !timer.is_elapsed()
            && let Some(waker) = &self.waker
            && waker.will_wake(cx.waker())
        {
            return Poll::Pending;
        }
        loop {
            let Some((deadline, kind)) = self.next() else {
                return Poll::Pending;
            };
            match &mut self.timer {
                None => self.timer = Some(Box::pin(sleep_until(deadline))),
                Some(timer) if self.stale || timer.is_elapsed() => timer.as_mut().reset(deadline),
                Some(_) => (),
            }
            self.stale = false;
            // Polled outside the task's budget: a timer that is refused its turn does not register the waker.
            if let Some(timer) = &mut self.timer
                && pin!(unconstrained(timer.as_mut())).poll(cx).is_pending()
            {
                self.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            // Otherwise the timer fired for a deadline that has moved since; the next round resets it.
            if deadline <= Instant::now() {
                return Poll::Ready(kind);
            }
        }
    }

    /// Returns the configured timeouts.
    #[must_use]
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Returns the time since tracking started.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns true if content has arrived.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.begun || self.heard_content
    }

    /// Returns the timeout that expires first if nothing arrives.
    fn next(&self) -> Option<(Instant, TimeoutKind)> {
        let Timeouts { first_token, idle, content, total } = self.timeouts;
        let mut next: Option<(Instant, TimeoutKind)> = None;
        let mut add = |wait: Option<Duration>, since: Instant, kind| {
            // A deadline beyond the end of the clock never comes.
            if let Some(deadline) = wait.and_then(|wait| since.checked_add(wait))
                && next.is_none_or(|(earlier, _)| deadline < earlier)
            {
                next = Some((deadline, kind));
            }
        };
        // Of equal deadlines the one added first is reported.
        add(total, self.total_from, TimeoutKind::Total);
        if let Some((since, within)) = self.end {
            add(Some(within), since.max(self.last_content), TimeoutKind::End);
        }
        if self.begun {
            add(idle, self.last_bytes, TimeoutKind::Idle);
            add(content, self.last_content, TimeoutKind::Content);
        } else {
            add(first_token, self.started, TimeoutKind::FirstToken);
        }
        next
    }
}
