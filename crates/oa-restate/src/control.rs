//! Interrupts that reach a step in progress.
//!
//! The engine cannot interrupt a closure. So each turn calls [`AgentInterrupt`], which ends on an interrupt, and each
//! step waits for that over the engine's ingress. An operator's cancellation of a turn arrives on the turn's own
//! connection; see `tap`.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::time::Duration;

use oa_tools::Cancel;
use restate_sdk::prelude::*;
use tokio::time::sleep;

use crate::engine::Engine;
use crate::place::CANCELLED;

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

/// The ingress of the engine, over which steps learn of interrupts.
#[derive(Clone, Debug)]
pub(crate) struct Control(Engine);

impl Control {
    /// The pause after a connection to the engine broke.
    const PAUSE: Duration = Duration::from_millis(250);

    pub(crate) fn new(ingress: &str) -> Self {
        Self(Engine::new(ingress))
    }

    /// Waits until the turn is interrupted. It never returns if the turn ends otherwise.
    async fn interrupted(&self, watch: &str) {
        loop {
            match self.attach(watch).await {
                Some(true) => return,
                Some(false) => pending().await,
                // The engine may be down for a while; the step goes on without it.
                None => sleep(Self::PAUSE).await,
            }
        }
    }

    /// Waits for the end of the invocation; `None` if the engine does not answer. An operator who cancels or kills the
    /// turn ends it too, with an error.
    async fn attach(&self, watch: &str) -> Option<bool> {
        let path = format!("/restate/invocation/{watch}/attach");
        let (status, said) = self.0.send(http::Method::GET, &path, None).await.ok()?;
        match status {
            200 => serde_json::from_slice(&said).ok(),
            CANCELLED => Some(true),
            _ => None,
        }
    }
}

/// Performs a step, and triggers `cancel` if its turn is interrupted or canceled by an operator.
pub(crate) async fn watched<T>(
    control: Option<Control>,
    watch: &str,
    cancel: &Cancel,
    cancelled: Option<Cancel>,
    step: impl Future<Output = T>,
) -> T {
    let interrupted = async {
        match control {
            Some(control) => control.interrupted(watch).await,
            None => pending().await,
        }
    };
    let cancelled = async {
        match cancelled {
            Some(cancelled) => cancelled.cancelled().await,
            None => pending().await,
        }
    };
    let (mut step, mut interrupted, mut cancelled) =
        (pin!(step), pin!(interrupted), pin!(cancelled));
    // The step is polled to its end: it notices `cancel` and returns what has arrived. After one of the other
    // two has completed, neither may be polled again.
    let mut is_over = false;
    poll_fn(|cx| {
        if !is_over
            && (interrupted.as_mut().poll(cx).is_ready() || cancelled.as_mut().poll(cx).is_ready())
        {
            is_over = true;
            cancel.cancel();
        }
        step.as_mut().poll(cx)
    })
    .await
}
