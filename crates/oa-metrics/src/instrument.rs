//! The instruments, as defined by the conventions.

/// An instrument. All instruments are histograms.
///
/// Names, units and bucket boundaries are those of OpenTelemetry's conventions for generative AI, except for the name
/// of [`TimePerOutputToken`](Self::TimePerOutputToken).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Instrument {
    /// `gen_ai.client.operation.duration`, in seconds: from a request to the end of its answer.
    OperationDuration,
    /// `gen_ai.client.operation.time_to_first_chunk`, in seconds: from a request to the first part of its answer.
    TimeToFirstChunk,
    /// `gen_ai.client.token.usage`, in tokens: as reported by the server, input and output separately.
    TokenUsage,
    /// `open_agent.client.operation.time_per_output_token`, in seconds: the mean over a complete answer, without its
    /// first token.
    ///
    /// The conventions define this metric only for servers.
    TimePerOutputToken,
    /// `gen_ai.invoke_agent.duration`, in seconds: one turn of an agent, with all its requests and tools.
    AgentDuration,
    /// `gen_ai.execute_tool.duration`, in seconds: one run of a tool.
    ToolDuration,
}

const SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

const SECONDS_OF_AGENTS: &[f64] =
    &[0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];

const SECONDS_PER_TOKEN: &[f64] =
    &[0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];

const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

impl Instrument {
    /// All instruments.
    pub const ALL: &'static [Self] = &[
        Self::OperationDuration,
        Self::TimeToFirstChunk,
        Self::TokenUsage,
        Self::TimePerOutputToken,
        Self::AgentDuration,
        Self::ToolDuration,
    ];

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OperationDuration => "gen_ai.client.operation.duration",
            Self::TimeToFirstChunk => "gen_ai.client.operation.time_to_first_chunk",
            Self::TokenUsage => "gen_ai.client.token.usage",
            Self::TimePerOutputToken => "open_agent.client.operation.time_per_output_token",
            Self::AgentDuration => "gen_ai.invoke_agent.duration",
            Self::ToolDuration => "gen_ai.execute_tool.duration",
        }
    }

    /// Returns its unit: `s` or `{token}`.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::TokenUsage => "{token}",
            Self::OperationDuration
            | Self::TimeToFirstChunk
            | Self::TimePerOutputToken
            | Self::AgentDuration
            | Self::ToolDuration => "s",
        }
    }

    /// Returns the upper boundaries of its buckets, in its unit.
    #[must_use]
    pub fn boundaries(self) -> &'static [f64] {
        match self {
            Self::TokenUsage => TOKENS,
            Self::TimePerOutputToken => SECONDS_PER_TOKEN,
            Self::AgentDuration => SECONDS_OF_AGENTS,
            Self::OperationDuration | Self::TimeToFirstChunk | Self::ToolDuration => SECONDS,
        }
    }

    /// Returns its description.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::OperationDuration => "GenAI operation duration.",
            Self::TimeToFirstChunk => {
                "Time to receive the first chunk, measured from when the client issues the generation request to when \
                 the first chunk is received in the response stream."
            }
            Self::TokenUsage => "Number of input and output tokens used.",
            Self::TimePerOutputToken => {
                "Mean time for each output token after the first one, of complete answers."
            }
            Self::AgentDuration => {
                "The end-to-end duration of a single agent invocation, from its start to the last chunk of its final \
                 response or to an error."
            }
            Self::ToolDuration => "The duration of a single tool execution.",
        }
    }
}
