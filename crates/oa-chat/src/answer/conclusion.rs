//! The end of an answer: its message, and its callbacks.

use std::sync::PoisonError;

use oa_aggregate::AggregatedAnswer;
use oa_types::{AssistantMessage, ContentBlock, FinishReason, Usage, micros};

use super::beginning::Callback;
use super::{AnswerStream, Arriving, Concluded};
use crate::answer_outcome::AnswerOutcome;
use crate::closing::Closing;
use crate::destination::secrets_of;
use crate::error::{Error, ErrorKind};
use crate::pipeline::{Pipeline, PipelineOptions, reported};
use crate::quotation;
use crate::scan::Scan;

impl Arriving {
    pub(super) fn conclude(&mut self) -> Concluded {
        self.is_concluded = true;
        self.forget_replaced();
        let secrets = secrets_of(self.destination.as_ref());
        // `take_answer` leaves the pipeline empty, so all else is read before it.
        let failure = self.failure.take().or_else(|| self.reported());
        // What nobody has read is no error of the server.
        let missing = || self.missing().filter(|_| !self.reading);
        let failure = failure.or_else(missing).map(|error| error.masked(secrets));
        let templates = self.pipeline.take_templates();
        let is_whole = failure.is_none() && !self.reading;
        if is_whole {
            if let Some(destination) = &self.destination {
                destination.learned.keep_templates(templates);
            }
            self.beginning.give_back();
        }
        // Otherwise the rest is useless; closing tells the server to stop.
        let body = self.body.take().filter(|_| is_whole).map(|body| body.into_body());
        let answer = scanned(self.pipeline.take_answer(), self.scan.take());
        let mut message = AssistantMessage::from(answer);
        if let Some(given) = self.ending.take()
            && let Some(given) = given.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            // With its own times: those of a recording are not those of its replay.
            message = *given;
        } else if let Some(first_token) = self.beginning.first_token {
            let whole = self.whole.unwrap_or_else(|| self.watch.elapsed());
            let usage = message.usage.get_or_insert_default();
            usage.time_to_first_token = Some(first_token);
            usage.generation_time = Some(micros::whole(whole.saturating_sub(first_token)));
        }
        quotation::broken_calls(&mut message.content, secrets);
        self.tell_end(Some(&message), failure.as_ref(), self.reading && failure.is_none());
        Concluded { message, failure, closing: body.map(Closing::new) }
    }

    /// Drops an answer that is being replaced: nothing of it is part of the other one.
    pub(super) fn forget_replaced(&mut self) {
        if self.again.take().is_some() {
            (self.pipeline, self.scan) = (Pipeline::new(PipelineOptions::default()), None);
        }
    }

    /// Returns the first error that the server reported inside its answer.
    pub(super) fn reported(&self) -> Option<Error> {
        let Self { pipeline, destination, .. } = self;
        let (error, begun) = (reported(pipeline.problems())?, pipeline.aggregator().has_begun());
        let secrets = secrets_of(destination.as_ref());
        let error = Error::in_stream(error, pipeline.received(), begun, secrets);
        Some(self.with_hint(error))
    }

    /// Returns the error of an answer without any content.
    pub(super) fn missing(&self) -> Option<Error> {
        let Self { pipeline, content_type, .. } = self;
        let (aggregator, received) = (pipeline.aggregator(), pipeline.received());
        let secrets = secrets_of(self.destination.as_ref());
        if aggregator.has_begun() || *aggregator.finish_reason() != FinishReason::Unspecified {
            return None;
        }
        let message = if received == 0 {
            "the server answered with a success status and an empty body".to_owned()
        } else if let Some(problem) = pipeline.problems().first() {
            let problem = quotation::problem(problem, secrets);
            format!("no part of the answer could be read: {problem}")
        } else {
            quotation::no_answer(content_type.as_deref(), pipeline.head(), received, secrets)
        };
        Some(self.with_hint(Error::stream(message, received)))
    }

    /// Adds a hint: a server that sends an error or a web page may have been asked at a wrong path.
    fn with_hint(&self, mut error: Error) -> Error {
        if self.pipeline.received() > 0
            && !self.pipeline.aggregator().has_begun()
            && (error.kind() == ErrorKind::Api || self.pipeline.payloads() == 0)
        {
            error.add(self.destination.as_ref().and_then(|destination| destination.hint()));
        }
        error
    }

    /// Returns the tokens reported so far and the time spent.
    pub(super) fn usage(&self) -> Option<Usage> {
        let mut usage = self.pipeline.aggregator().usage()?;
        usage.time_to_first_token = self.beginning.first_token;
        let spent = |first| micros::whole(self.watch.elapsed().saturating_sub(first));
        usage.generation_time = usage.time_to_first_token.map(spent);
        Some(usage)
    }

    /// Reports the outcome to every callback that is left: of a message, or of the part that arrived.
    pub(super) fn tell_end(
        &mut self,
        message: Option<&AssistantMessage>,
        error: Option<&Error>,
        interrupted: bool,
    ) {
        let callbacks = std::mem::take(&mut self.beginning.callbacks);
        self.tell(callbacks, message, error, interrupted);
    }

    /// Reports the outcome to these callbacks.
    #[cold]
    pub(super) fn tell(
        &self,
        callbacks: Vec<Callback<AnswerStream>>,
        message: Option<&AssistantMessage>,
        error: Option<&Error>,
        interrupted: bool,
    ) {
        if callbacks.is_empty() {
            return;
        }
        let aggregator = self.pipeline.aggregator();
        let usage = message.map_or_else(|| self.usage(), |message| message.usage);
        let reason =
            message.map_or_else(|| aggregator.finish_reason(), |message| &message.finish_reason);
        let model = message.and_then(|message| message.model.as_deref());
        let server = self.destination.as_ref();
        let requested = server.zip(self.options.as_ref()).map(|(at, options)| options.model_at(at));
        let outcome = AnswerOutcome {
            model: model.or(requested).unwrap_or_default(),
            server: server.map(|server| server.base_url.as_str()).unwrap_or_default(),
            usage,
            finish_reason: reason,
            error,
            interrupted,
        };
        for callback in callbacks {
            if let Callback::End(on_end) = callback {
                on_end.into_inner()(&outcome);
            }
        }
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.tell_end(None, None, true);
    }
}

/// Returns the answer with the calls that were found in its text.
fn scanned(mut answer: AggregatedAnswer, scan: Option<Box<Scan>>) -> AggregatedAnswer {
    let Some(scan) = scan else { return answer };
    let is_call = |block: &ContentBlock| {
        matches!(block, ContentBlock::ToolUse(_) | ContentBlock::ToolUseError(_))
    };
    let native = std::mem::take(&mut answer.blocks).into_iter().filter(is_call);
    answer.blocks = scan.with_native(native.collect());
    let has_calls = answer.blocks.iter().any(|block| matches!(block, ContentBlock::ToolUse(_)));
    if has_calls && matches!(answer.finish_reason, FinishReason::Stop | FinishReason::Unspecified) {
        answer.finish_reason = FinishReason::ToolCalls;
    }
    answer
}
