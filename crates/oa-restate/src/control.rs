//! Interrupts that reach a step in progress.
//!
//! The engine cannot interrupt a closure. So each turn calls [`AgentInterrupt`], which ends when somebody interrupts, and
//! whoever performs a step waits for that over the engine's ingress.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use oa_tools::Cancel;
use oa_transport::{RequestBody, Transport};
use restate_sdk::prelude::*;
use tokio::time::sleep;
use tower::Service;

/// The name of the signal that ends [`AgentInterrupt::wait`].
pub(crate) const SIGNAL: &str = "interrupt";

/// Waits for the end of a turn, or for an interrupt.
pub(crate) struct AgentInterrupt;

#[restate_sdk::service(client_visibility = "pub(crate)")]
impl AgentInterrupt {
    /// Returns true when the turn is interrupted, false when it is over.
    #[handler]
    async fn wait(&self, ctx: Context<'_>) -> Result<bool, TerminalError> {
        ctx.signal::<bool>(SIGNAL).await
    }
}

/// The ingress of the engine, over which steps hear about interrupts.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    ingress: String,
    transport: Transport,
}

impl Control {
    /// The pause after a connection to the engine broke.
    const PAUSE: Duration = Duration::from_millis(250);

    pub(crate) fn new(ingress: &str) -> Self {
        let transport = Transport::builder().connect_timeout(Duration::from_secs(5)).build();
        Self { ingress: ingress.trim_end_matches('/').to_owned(), transport }
    }

    /// Waits until the turn is interrupted. It never returns if the turn ends otherwise.
    async fn interrupted(&self, watch: &str) {
        loop {
            match self.attach(watch).await {
                Some(true) => return,
                Some(false) => std::future::pending().await,
                None => sleep(Self::PAUSE).await,
            }
        }
    }

    /// Waits for the end of the invocation; `None` if the engine does not tell.
    async fn attach(&self, watch: &str) -> Option<bool> {
        let uri = format!("{}/restate/invocation/{watch}/attach", self.ingress);
        let request = http::Request::get(uri).body(RequestBody::empty()).ok()?;
        let mut transport = self.transport.clone();
        let response = transport.call(request).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let mut body = response.into_body();
        let mut said = Vec::new();
        while let Some(chunk) = body.chunk().await.ok()? {
            said.extend_from_slice(&chunk);
            if said.len() > 16 {
                return None;
            }
        }
        serde_json::from_slice(&said).ok()
    }
}

/// Performs a step, and triggers `cancel` if its turn is interrupted meanwhile.
pub(crate) async fn watched<T>(
    control: Option<Control>,
    watch: &str,
    cancel: &Cancel,
    step: impl Future<Output = T>,
) -> T {
    let Some(control) = control else { return step.await };
    let (mut step, mut interrupted) = (pin!(step), pin!(control.interrupted(watch)));
    let mut is_over = false;
    poll_fn(|cx| {
        if !is_over && interrupted.as_mut().poll(cx).is_ready() {
            is_over = true;
            cancel.cancel();
        }
        match step.as_mut().poll(cx) {
            Poll::Ready(value) => Poll::Ready(value),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
