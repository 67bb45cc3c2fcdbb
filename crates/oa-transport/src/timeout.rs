use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// How long to wait for an answer. `None` is "for ever".
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Timeouts {
    /// From sending the request until the answer begins. A cold model load or a queue takes minutes
    /// and is not a dead server. Without a change 300 seconds.
    pub first_token: Option<Duration>,
    /// The longest silence once the answer has begun; any byte ends it, those of a comment which
    /// keeps the connection alive too. Without a change 60 seconds.
    pub idle: Option<Duration>,
    /// The longest time without content once the answer has begun. Without a change none.
    pub content: Option<Duration>,
    /// For the whole answer. Without a change none, because a local model may stream for an hour.
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

/// Which time was up.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TimeoutKind {
    /// No connection came about.
    Connect,
    /// [`Timeouts::content`].
    Content,
    /// The end of the answer, which [`Watch::expect_end`] was told to expect.
    End,
    /// [`Timeouts::first_token`].
    FirstToken,
    /// [`Timeouts::idle`].
    Idle,
    /// [`Timeouts::total`].
    Total,
}

impl fmt::Display for TimeoutKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect timeout",
            Self::Content => "content timeout",
            Self::End => "end timeout",
            Self::FirstToken => "first token timeout",
            Self::Idle => "idle timeout",
            Self::Total => "total timeout",
        })
    }
}

/// Watches the clock for whoever reads an answer.
///
/// Made when the request is sent, told of what comes, and asked when there is nothing to read:
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
/// watch.note_bytes(); // a comment came: the answer has not begun
/// watch.note_content(); // the first delta came
/// let expired = poll_fn(|cx| watch.poll_expired(cx)).await;
/// assert_eq!(expired, TimeoutKind::Idle);
/// assert_eq!(watch.elapsed(), Duration::from_secs(60));
/// # }
/// ```
///
/// Noting costs nothing; the clock is read when there is something to wait for. There is one timer, set
/// anew only when it fires too early.
#[derive(Debug)]
pub struct Watch {
    timeouts: Timeouts,
    started: Instant,
    /// What [`Timeouts::total`] counts from.
    total_from: Instant,
    last_bytes: Instant,
    last_content: Instant,
    /// Since when the end is expected, and how long it may take.
    end: Option<(Instant, Duration)>,
    begun: bool,
    /// What was noted since the clock was read.
    heard_bytes: bool,
    heard_content: bool,
    /// The deadline may lie before the one that the timer is set to.
    stale: bool,
    timer: Option<Pin<Box<Sleep>>>,
    waker: Option<Waker>,
}

impl Watch {
    /// Starts to watch, now.
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

    /// Has [`Timeouts::total`] count from an earlier moment: for an answer that was asked for before, and
    /// is asked for again.
    #[must_use]
    pub fn total_since(mut self, moment: Instant) -> Self {
        self.total_from = moment;
        self
    }

    /// Notes that bytes came, whatever they are.
    #[inline]
    pub fn note_bytes(&mut self) {
        self.heard_bytes = true;
    }

    /// Notes that content came, which is bytes as well: the answer has begun.
    #[inline]
    pub fn note_content(&mut self) {
        self.heard_bytes = true;
        self.heard_content = true;
    }

    /// Expects the end of the answer: [`TimeoutKind::End`] is up once this much time passes without content,
    /// counted from now at the earliest. Bytes that are no content do not count, and neither does saying the
    /// same again.
    pub fn expect_end(&mut self, within: Duration) {
        if self.end.is_none_or(|(_, known)| known != within) {
            self.end = Some((Instant::now(), within));
            self.stale = true;
        }
    }

    /// Reads the clock for what was noted: silence begins when somebody waits again, so that a
    /// reader who takes a long time over what came is not taken for a server that says nothing.
    fn settle(&mut self) {
        if !mem::take(&mut self.heard_bytes) {
            return;
        }
        let now = Instant::now();
        self.last_bytes = now;
        if mem::take(&mut self.heard_content) {
            self.last_content = now;
            if !self.begun {
                self.begun = true;
                self.stale = true;
            }
        }
    }

    /// Returns which of the timeouts is up, without waiting: for readers that are always handed more.
    #[must_use]
    pub fn expired(&mut self) -> Option<TimeoutKind> {
        self.settle();
        let (deadline, kind) = self.next()?;
        (deadline <= Instant::now()).then_some(kind)
    }

    /// Waits until one of the timeouts is up, and tells which; for ever if none counts.
    ///
    /// It may be asked again afterwards.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time.
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<TimeoutKind> {
        self.settle();
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
            // Outside of the task's budget: a timer that is refused a turn does not keep the waker.
            if let Some(timer) = &mut self.timer
                && pin!(unconstrained(timer.as_mut())).poll(cx).is_pending()
            {
                self.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            if deadline <= Instant::now() {
                return Poll::Ready(kind);
            }
        }
    }

    /// Returns what it was made with.
    #[must_use]
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Returns for how long the answer has been watched.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns whether content has come.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.begun || self.heard_content
    }

    /// The timeout that is up first, if nothing comes.
    fn next(&self) -> Option<(Instant, TimeoutKind)> {
        let Timeouts { first_token, idle, content, total } = self.timeouts;
        let mut next: Option<(Instant, TimeoutKind)> = None;
        let mut add = |wait: Option<Duration>, since: Instant, kind| {
            // A sum beyond the end of the clock is "for ever".
            if let Some(deadline) = wait.and_then(|wait| since.checked_add(wait))
                && next.is_none_or(|(earlier, _)| deadline < earlier)
            {
                next = Some((deadline, kind));
            }
        };
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
