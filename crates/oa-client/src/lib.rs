//! Composes parser, aggregator and transport.
mod pipeline;
pub use crate::pipeline::{Pipeline, PipelineError, PipelineOptions};
