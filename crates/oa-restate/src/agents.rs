use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use oa_client::AgentOptions;
use oa_events::AgentEvent;

use crate::control::Control;
use crate::event::{EventSink, Numbered};
use crate::limits::Limits;

/// The agents and settings that the handlers of a worker share.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) main: AgentOptions,
    pub(crate) named: BTreeMap<String, AgentOptions>,
    pub(crate) limits: Limits,
    pub(crate) sink: Option<Arc<dyn EventSink>>,
    pub(crate) control: Option<Control>,
}

impl std::ops::Deref for Shared {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Shared {
    pub(crate) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }
}

impl Inner {
    /// Returns the agent of a session.
    pub(crate) fn agent(&self, name: Option<&str>) -> Option<&AgentOptions> {
        match name {
            None => Some(&self.main),
            Some(name) => self.named.get(name),
        }
    }

    /// Returns a function that publishes the events of a new attempt at a step.
    pub(crate) fn publisher(
        &self,
        session: &str,
        turn: u64,
        step: &str,
    ) -> impl Fn(AgentEvent) + Send + Sync + 'static {
        let numbered = Numbered::new(session, turn, step, now_in_micros());
        let sink = self.sink.clone();
        move |event| {
            if let Some(sink) = &sink {
                sink.publish(numbered.number(event));
            }
        }
    }
}

/// Returns the time since 1970. Attempts at a step are ordered by it.
pub(crate) fn now_in_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
