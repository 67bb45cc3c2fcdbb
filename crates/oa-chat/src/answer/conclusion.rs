//! The end of an answer: its message, and its callbacks.

use std::sync::PoisonError;

use oa_aggregate::AggregatedAnswer;
use oa_redact::Secrets;
use oa_types::{AssistantMessage, ContentBlock, FinishReason};

use super::{Arriving, Concluded, EMPTY};
use crate::answer_outcome::AnswerOutcome;
use crate::closing::Closing;
use crate::destination::secrets_of;
use crate::error::{Error, ErrorKind};
use crate::pipeline::reported;
use crate::quotation;
use crate::scan::Scan;

impl Arriving {
    pub(super) fn conclude(&mut self) -> Concluded {
        self.is_concluded = true;
        let received = self.pipeline.received();
        let secrets = secrets_of(self.destination.as_ref());
        // The start of a body without payloads, safe to show.
        let strange = (self.pipeline.payloads() == 0).then(|| {
            let (kind, head) = (self.content_type.as_deref(), self.pipeline.head());
            quotation::no_event_stream(kind, head, received, secrets)
        });
        // `take_answer` leaves the pipeline empty, so all else is read before it.
        let forms = self.pipeline.take_templates();
        let answer = self.pipeline.take_answer();
        let read = || failure(&answer, received, strange, secrets);
        let mut failure = self.failure.take().or_else(read);
        // A server that sent an error or a web page instead of an answer may have been asked at a wrong path.
        if let Some(failure) = &mut failure
            && self.beginning.first_token.is_none()
            && received > 0
            && (failure.kind() == ErrorKind::Api || self.pipeline.payloads() == 0)
        {
            failure.add(self.destination.as_ref().and_then(|destination| destination.hint()));
        }
        match failure.take() {
            Some(error) => failure = Some(error.masked(secrets)),
            None => {
                if let Some(destination) = &self.destination {
                    destination.learned.keep_templates(forms);
                }
                self.beginning.give_back();
            }
        }
        let answer = match self.scan.take() {
            Some(scan) => scanned(answer, *scan),
            None => answer,
        };
        // After a failure the rest is useless; closing tells the server to stop.
        let body = self.body.take().filter(|_| failure.is_none());
        let closing = body.map(|body| Closing::new(body.into_body()));
        let mut message = AssistantMessage::from(answer);
        if let Some(given) = self.ending.take()
            && let Some(given) = given.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            message = *given;
        }
        quotation::broken_calls(&mut message.content, secrets);
        if let (Some(first_token), Some(whole)) = (self.beginning.first_token, self.whole) {
            let usage = message.usage.get_or_insert_default();
            usage.time_to_first_token = Some(first_token);
            usage.generation_time = Some(whole.saturating_sub(first_token));
        }
        if self.on_end.is_some() {
            self.tell_end(Some(&message), failure.as_ref(), false);
        }
        Concluded { message, failure, closing }
    }

    /// Reports the outcome once: of a message, or of the part that arrived.
    #[cold]
    pub(super) fn tell_end(
        &mut self,
        message: Option<&AssistantMessage>,
        error: Option<&Error>,
        interrupted: bool,
    ) {
        let Some(on_end) = self.on_end.take() else { return };
        let aggregator = self.pipeline.aggregator();
        let usage = message.map_or_else(|| aggregator.usage(), |message| message.usage);
        let reason =
            message.map_or_else(|| aggregator.finish_reason(), |message| &message.finish_reason);
        let model = message.and_then(|message| message.model.as_deref());
        let server = self.destination.as_ref();
        let requested = server.zip(self.options.as_ref()).map(|(at, options)| options.model_at(at));
        on_end(&AnswerOutcome {
            model: model.or(requested).unwrap_or_default(),
            server: server.map(|server| server.base_url.as_str()).unwrap_or_default(),
            usage,
            finish_reason: reason,
            error,
            interrupted,
        });
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        if self.on_end.is_some() {
            self.tell_end(None, None, true);
        }
    }
}

/// Returns the answer with the calls that were found in its text.
fn scanned(mut answer: AggregatedAnswer, scan: Scan) -> AggregatedAnswer {
    let is_call = |block: &ContentBlock| {
        matches!(block, ContentBlock::ToolUse(_) | ContentBlock::ToolUseError(_))
    };
    let native = std::mem::take(&mut answer.blocks).into_iter().filter(is_call);
    answer.blocks = scan.with_native(native);
    let has_calls = answer.blocks.iter().any(|block| matches!(block, ContentBlock::ToolUse(_)));
    if has_calls && matches!(answer.finish_reason, FinishReason::Stop | FinishReason::Unspecified) {
        answer.finish_reason = FinishReason::ToolCalls;
    }
    answer
}

/// Returns the error of an answer whose body came to its end; `strange` describes a body without payloads.
fn failure(
    answer: &AggregatedAnswer,
    received: u64,
    strange: Option<String>,
    secrets: &Secrets,
) -> Option<Error> {
    if let Some(error) = reported(&answer.problems) {
        return Some(Error::in_stream(error, received, secrets));
    }
    if !answer.is_empty() || answer.is_finished() {
        return None;
    }
    let message = if received == 0 {
        EMPTY.to_owned()
    } else if let Some(problem) = answer.problems.first() {
        format!("no part of the answer could be read: {}", quotation::problem(problem, secrets))
    } else {
        strange
            .unwrap_or_else(|| format!("the stream ended without an answer after {received} bytes"))
    };
    Some(Error::stream(message, received))
}
