use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use oa_client::{AgentOptions, Error};
use oa_events::AgentEvent;
use oa_session::SessionStore;

use crate::control::Control;
use crate::event::{EventSink, Numbered};
use crate::limits::Limits;
use crate::warning::{WarningSink, WorkerWarning};

/// The agents and settings that the handlers of a worker share.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) main: AgentOptions,
    pub(crate) named: BTreeMap<String, AgentOptions>,
    pub(crate) limits: Limits,
    pub(crate) sink: Option<Arc<dyn EventSink>>,
    pub(crate) control: Option<Control>,
    /// The store of conversations; without one, the engine's state holds them.
    pub(crate) store: Option<Arc<dyn SessionStore>>,
    /// The digest of the agents.
    pub(crate) digest: String,
    pub(crate) warnings: Option<Arc<WarningSink>>,
    pub(crate) known: Mutex<Known>,
}

/// The caches of a worker.
#[derive(Default)]
pub(crate) struct Known {
    /// Agents within others, by the path of names.
    within: BTreeMap<Vec<String>, AgentOptions>,
    /// The invocations for which a warning was sent.
    warned: BTreeSet<String>,
}

impl Known {
    /// The capacity of each cache.
    const MOST: usize = 1_024;
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

    /// Returns an agent within others, whose permissions also apply to it; `None` if this worker lacks one of them.
    ///
    /// It is cached, so that the limits of its executor hold for all of its turns.
    pub(crate) fn agent_within(
        &self,
        name: Option<&str>,
        within: &[String],
    ) -> Option<Result<AgentOptions, Error>> {
        let Some((outermost, inner)) = within.split_first() else {
            return self.agent(name).cloned().map(Ok);
        };
        let name = name.unwrap_or_default();
        let path: Vec<String> = within.iter().cloned().chain([name.to_owned()]).collect();
        let known = |known: &mut Known| known.within.get(&path).cloned();
        if let Some(agent) = self.with_known(known) {
            return Some(Ok(agent));
        }
        // Made without the lock: if two turns make it at once, the later one stays in the cache.
        let mut agent = self.agent(Some(&**outermost).filter(|name| !name.is_empty()))?.clone();
        for name in inner.iter().map(String::as_str).chain([name]) {
            agent = match self.agent(Some(name))?.within(&agent, name) {
                Ok(agent) => agent,
                Err(error) => return Some(Err(error)),
            };
        }
        self.with_known(|known| {
            if known.within.len() >= Known::MOST {
                known.within.clear();
            }
            known.within.insert(path.clone(), agent.clone());
        });
        Some(Ok(agent))
    }

    /// Warns about an invocation, once.
    pub(crate) fn warn(&self, invocation: &str, warning: &WorkerWarning) {
        let is_new = self.with_known(|known| {
            if known.warned.len() >= Known::MOST {
                known.warned.clear();
            }
            known.warned.insert(invocation.to_owned())
        });
        if is_new {
            tracing::warn!(target: "oa_restate", invocation, "{warning}");
            if let Some(warnings) = &self.warnings {
                contained("on_warning", || warnings(warning));
            }
        }
    }

    fn with_known<T>(&self, use_it: impl FnOnce(&mut Known) -> T) -> T {
        use_it(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
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
            publish(sink.as_deref(), &numbered, event);
        }
    }
}

/// Publishes an event, if there is a sink. Its panic ends here: the engine would repeat the step without end.
pub(crate) fn publish(sink: Option<&dyn EventSink>, numbered: &Numbered, event: AgentEvent) {
    if let Some(sink) = sink {
        contained("the event sink", || sink.publish(numbered.number(event)));
    }
}

/// Runs code of the program, and logs its panic.
fn contained(name: &str, run: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        tracing::error!(target: "oa_restate", "{name} panicked");
    }
}

/// Returns the microseconds since 1970, which order the attempts at a step.
pub(crate) fn now_in_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panicking_sink_loses_the_event() {
        let sink = |_| panic!("the receiver is gone");
        let numbered = Numbered::new("s", 1, "ask 1", 1);
        publish(Some(&sink), &numbered, AgentEvent::AnswerStart);
    }
}
