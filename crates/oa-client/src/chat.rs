//! From a conversation's bytes to an answer: the service that retries are a layer around.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use oa_transport::Watch;
use tower::Service;

use crate::answer::AnswerStream;
use crate::envelope::Wanted;
use crate::error::{Error, Result};
use crate::pipeline::PipelineOptions;
use crate::service::send;
use crate::settings::Settings;
use crate::work::Future;

/// One request for an answer; a clone shares its bytes.
#[derive(Clone)]
pub(crate) struct ChatRequest {
    /// The messages, each with a comma before it.
    pub(crate) segments: Arc<[Bytes]>,
    /// Those that are in no segment yet.
    pub(crate) last: Bytes,
    /// Whether tools are offered.
    pub(crate) tools: bool,
    /// What ids are made of that the server leaves out.
    pub(crate) id_seed: u64,
}

/// What was learned about a server; shared by all who ask it with the same options.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// It refuses to be asked for usage (QUIRKS row 74).
    refuses_usage: AtomicBool,
}

/// Sends chat requests over the transport.
#[derive(Clone)]
pub(crate) struct ChatService(Arc<Settings>);

impl ChatService {
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
        Self(settings)
    }

    async fn answer(self, request: ChatRequest) -> Result<AnswerStream> {
        let settings = &self.0;
        let refuses_usage = &settings.learned.refuses_usage;
        let usage = !refuses_usage.load(Ordering::Relaxed);
        match self.send(&request, usage).await {
            Err(error) if usage && error.refuses("stream_options") => {
                let answer = self.send(&request, false).await?;
                refuses_usage.store(true, Ordering::Relaxed);
                Ok(answer)
            }
            answer => answer,
        }
    }

    async fn send(&self, request: &ChatRequest, usage: bool) -> Result<AnswerStream> {
        let settings = &self.0;
        let wanted = Wanted { tools: request.tools, usage };
        let http = settings.envelope.chat(&request.segments, &request.last, wanted);
        let mut watch = Watch::new(settings.timeouts);
        let response = send(&settings.service, http, &mut watch).await?;
        let mut aggregator = oa_aggregate::Options::default();
        aggregator.limits = settings.limits.answer;
        aggregator.quirks = settings.quirks;
        aggregator.id_seed = request.id_seed;
        let options = PipelineOptions { parser: settings.limits.events, aggregator };
        Ok(AnswerStream::new(response, options, watch))
    }
}

impl Service<ChatRequest> for ChatService {
    type Response = AnswerStream;
    type Error = Error;
    type Future = Future<Result<AnswerStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ChatRequest) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

impl fmt::Debug for ChatService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChatService").finish()
    }
}
