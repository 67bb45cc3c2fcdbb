//! The instruments of a meter, and the names recorded so far.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opentelemetry::metrics::{Histogram, Meter};

use crate::instrument::Instrument;
use crate::labels::Labels;
use crate::measurement::{Measurement, Value};

/// Records measurements. Clones share the instruments and names.
#[derive(Clone)]
pub(crate) struct Recorder(Arc<Inner>);

struct Inner {
    operation_duration: Histogram<f64>,
    time_to_first_chunk: Histogram<f64>,
    token_usage: Histogram<u64>,
    time_per_output_token: Histogram<f64>,
    agent_duration: Histogram<f64>,
    tool_duration: Histogram<f64>,
    labels: Mutex<Labels>,
}

impl Recorder {
    /// Creates the instruments in a meter.
    pub(crate) fn new(meter: &Meter) -> Self {
        let seconds = |instrument: Instrument| {
            meter
                .f64_histogram(instrument.name())
                .with_unit(instrument.unit())
                .with_description(instrument.description())
                .with_boundaries(instrument.boundaries().to_vec())
                .build()
        };
        let tokens = Instrument::TokenUsage;
        Self(Arc::new(Inner {
            operation_duration: seconds(Instrument::OperationDuration),
            time_to_first_chunk: seconds(Instrument::TimeToFirstChunk),
            token_usage: meter
                .u64_histogram(tokens.name())
                .with_unit(tokens.unit())
                .with_description(tokens.description())
                .with_boundaries(tokens.boundaries().to_vec())
                .build(),
            time_per_output_token: seconds(Instrument::TimePerOutputToken),
            agent_duration: seconds(Instrument::AgentDuration),
            tool_duration: seconds(Instrument::ToolDuration),
            labels: Mutex::default(),
        }))
    }

    pub(crate) fn labels(&self) -> MutexGuard<'_, Labels> {
        self.0.labels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn record(&self, Measurement { instrument, value, attributes }: &Measurement) {
        let seconds = match instrument {
            Instrument::OperationDuration => &self.0.operation_duration,
            Instrument::TimeToFirstChunk => &self.0.time_to_first_chunk,
            Instrument::TimePerOutputToken => &self.0.time_per_output_token,
            Instrument::AgentDuration => &self.0.agent_duration,
            Instrument::ToolDuration => &self.0.tool_duration,
            Instrument::TokenUsage => {
                if let Value::Tokens(tokens) = value {
                    self.0.token_usage.record(*tokens, attributes);
                }
                return;
            }
        };
        if let Value::Seconds(value) = value {
            seconds.record(*value, attributes);
        }
    }
}
