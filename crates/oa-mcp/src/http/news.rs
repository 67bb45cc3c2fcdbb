//! The stream of notifications that belong to no request.

use http::Method;
use oa_mcp_data::Reopening;
use oa_transport::{RequestBody, ResponseBody};
use tokio::time::Instant;

use super::{About, Carrier, EVENTS, is_of};
use crate::error::{Error, ErrorKind};
use crate::link::Outgoing;

const BROKEN: &str = "the server's notification stream broke off: until the next call, changes to its tools will be missed";

impl Carrier {
    /// Reads notifications for as long as the server offers them: on a `GET` stream, or in the stateless version on the
    /// response to the request that subscribes to them. A stream that breaks off is opened again.
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
                Ok(response) if response.status().is_success() && is_of(&response, EVENTS) => {
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
            let pause = reopening.pause(since.elapsed());
            if reopening.needs_answer() {
                self.link.warn(BROKEN.to_owned());
            }
            tokio::time::sleep(pause).await;
            if reopening.needs_answer() {
                // Never an error: the sender is part of `self`.
                let _ = answered.changed().await;
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
