//! Recording of an agent's turns.

use std::borrow::Cow;
use std::fmt;

use oa_chat::ErrorKind;
use tokio::time::Instant;

use crate::chat::{named, type_of};
use crate::labels::Agent;
use crate::measurement::agent_turn;
use crate::recorder::Recorder;

/// A recorder for the turns of an agent, returned by [`Metrics::agent`](crate::Metrics::agent).
#[derive(Clone)]
pub struct MeteredAgent {
    recorder: Recorder,
    agent: Agent,
}

impl MeteredAgent {
    pub(crate) fn new(recorder: Recorder) -> Self {
        Self { recorder, agent: Agent::default() }
    }

    /// Sets `gen_ai.agent.name`, a human-readable name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.agent.name = Some(name.into());
        self
    }

    /// Sets `gen_ai.request.model`, for an agent that has one model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.agent.model = Some(model.into());
        self
    }

    /// Runs a turn and records its duration.
    ///
    /// `error.type` is the same as for requests.
    ///
    /// # Errors
    ///
    /// Those of the turn.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, so is the turn, which is recorded as interrupted.
    pub async fn turn<T, E: 'static>(
        &self,
        turn: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        // Assumed until the turn says otherwise: recorded if this future is dropped at the `.await` below.
        let mut open = Open {
            agent: self.clone(),
            started: Instant::now(),
            error: Some(named(ErrorKind::Interrupted)),
        };
        let result = turn.await;
        open.error = result.as_ref().err().map(type_of);
        result
    }
}

impl fmt::Debug for MeteredAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Agent { name, model } = &self.agent;
        f.debug_struct("MeteredAgent")
            .field("name", name)
            .field("model", model)
            .finish_non_exhaustive()
    }
}

/// A turn in progress, which is recorded on drop.
struct Open {
    agent: MeteredAgent,
    started: Instant,
    error: Option<Cow<'static, str>>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let duration = self.started.elapsed();
        let MeteredAgent { recorder, agent } = &self.agent;
        let agent = recorder.labels().agent(agent.clone());
        recorder.record(&agent_turn(agent, duration, self.error.take()));
    }
}
