//! The stream of notifications that belong to no request.

use std::time::Duration;

use http::Method;
use oa_transport::{RequestBody, ResponseBody};
use tokio::time::Instant;

use super::{About, Carrier, LONGEST_RETRY, RESUMPTIONS, RETRY, is_stream};
use crate::error::{Error, ErrorKind};
use crate::link::Outgoing;

const BROKEN: &str = "the server's notification stream broke off: until the next call, changes to its tools will be missed";

/// The waits before a broken stream is opened again.
#[derive(Default)]
struct Reopening {
    /// The number of breaks in a row.
    breaks: u32,
}

#[derive(Debug, Eq, PartialEq)]
enum Wait {
    Pause(Duration),
    /// After the pause, until the server has answered a request: it may be away for long.
    PauseAndAnswer(Duration),
}

impl Reopening {
    /// Returns the wait after a break of a stream that was open for this long.
    fn wait(&mut self, open: Duration) -> Wait {
        // Many proxies cut a stream that is silent for a minute, again and again.
        if open >= LONGEST_RETRY {
            self.breaks = 0;
        }
        self.breaks = self.breaks.saturating_add(1);
        let Some(later) = self.breaks.checked_sub(RESUMPTIONS) else { return Wait::Pause(RETRY) };
        let factor = 2_u32.checked_shl(later).unwrap_or(u32::MAX);
        Wait::PauseAndAnswer(RETRY.saturating_mul(factor).min(LONGEST_RETRY))
    }
}

impl Carrier {
    /// Reads notifications for as long as the server offers them: on a `GET` stream, or in the stateless version on the response
    /// to the request that subscribes to them. A stream that breaks off is opened again.
    pub(super) async fn listen(&self, subscription: Option<&Outgoing>) {
        let mut reopening = Reopening::default();
        let (mut is_first, mut was_open) = (true, false);
        loop {
            let asked = match subscription {
                Some(request) => self.send(request).await,
                None => self.ask(Method::GET, RequestBody::empty(), &About::Nothing).await,
            };
            let since = Instant::now();
            match asked {
                Ok(response) if response.status().is_success() && is_stream(&response) => {
                    was_open = true;
                    if !is_first && subscription.is_none() {
                        // Changes in between were not announced. A subscription is acknowledged instead.
                        self.link.changes.send_modify(|count| *count += 1);
                    }
                    if let Err(error) = self.read_news(response.into_body()).await {
                        return self.link.end(error);
                    }
                }
                // The server has no such stream.
                Ok(response) if !was_open && !response.status().is_server_error() => {
                    if subscription.is_some() {
                        let (error, _) = self.refused(response).await;
                        self.missed(&error);
                    }
                    return;
                }
                Ok(_) if !was_open && subscription.is_none() => return,
                // Nobody is asked for a key again.
                Err(error) if error.kind() == ErrorKind::Rejected => return self.missed(&error),
                Ok(_) | Err(_) => {}
            }
            is_first = false;
            let mut answered = self.answered.subscribe();
            match reopening.wait(since.elapsed()) {
                Wait::Pause(time) => tokio::time::sleep(time).await,
                Wait::PauseAndAnswer(time) => {
                    self.link.warn(BROKEN.to_owned());
                    tokio::time::sleep(time).await;
                    // Never an error: the sender is part of `self`.
                    let _ = answered.changed().await;
                }
            }
        }
    }

    /// Reads a stream to its end. Only an exceeded limit is an error.
    async fn read_news(&self, body: ResponseBody) -> Result<(), Error> {
        match self.stream(None, body).await {
            Err(error) if error.kind() == ErrorKind::Limit => Err(error),
            _ => Ok(()),
        }
    }

    fn missed(&self, error: &Error) {
        self.link.warn(format!("changes to the server's tools will be missed: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_a_stream_lasts() {
        let mut reopening = Reopening::default();
        let mut wait = |open: u64| reopening.wait(Duration::from_secs(open));
        let pause = Wait::Pause(RETRY);
        let later = |millis: u64| Wait::PauseAndAnswer(Duration::from_millis(millis));
        assert_eq!([wait(0), wait(29)], [Wait::Pause(RETRY), Wait::Pause(RETRY)]);
        for millis in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            assert_eq!(wait(5), later(millis));
        }
        for _ in 0..40 {
            assert_eq!(wait(5), later(30_000));
        }
        for _ in 0..10 {
            assert_eq!(wait(30), pause, "a stream that lasts may break as often as it likes");
        }
        assert_eq!(wait(0), pause);
        assert_eq!(wait(0), later(1_000));
    }
}
