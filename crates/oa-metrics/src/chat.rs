//! Recording of a chat service's requests.

use std::any::Any;
use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use oa_chat::{
    AnswerOutcome, AnswerStream, ChatRequest, Endpoint, Error, ErrorKind, Provider, ServerAddress,
};
use oa_redact::Secrets;
use oa_types::Usage;
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower::Service;

use crate::labels::{OTHER, Target};
use crate::measurement::Ended;
use crate::recorder::Recorder;

/// The provider name for a server without one: the conventions use the name of the protocol, which is OpenAI's.
const UNNAMED: &str = "openai";

/// The number of characters of a model's name that are read.
const NAME: usize = 200;

/// A chat service that records each of its requests once: when its answer ends, fails or is dropped.
///
/// [`Metrics::endpoint`](crate::Metrics::endpoint) and the layer [`Metrics`](crate::Metrics) create it. An agent's
/// retries wrap it, so each attempt is recorded as a separate request. Around a service that retries or fails over, all
/// attempts are one request, with the outcome of the last.
#[derive(Clone)]
pub struct MeteredChat<S> {
    service: S,
    recorder: Recorder,
    origin: Arc<Origin>,
}

/// The server, as far as it is known before the answer.
#[derive(Clone)]
struct Origin {
    provider: String,
    server: Option<ServerAddress>,
    /// The keys to mask in model names.
    secrets: Secrets,
}

impl<S> MeteredChat<S> {
    pub(crate) fn new(service: S, recorder: Recorder) -> Self {
        let secrets = Secrets::default();
        let origin = Origin { provider: UNNAMED.to_owned(), server: None, secrets };
        Self { service, recorder, origin: Arc::new(origin) }
    }

    /// Sets `gen_ai.provider.name`. For a service of an unknown kind it is `openai`, after the protocol.
    #[must_use]
    pub fn provider(mut self, name: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.origin).provider = name.into();
        self
    }

    /// Sets the keys to mask if a server returns one as its model's name. The keys of endpoints are masked already.
    #[must_use]
    pub fn secrets(mut self, secrets: Secrets) -> Self {
        Arc::make_mut(&mut self.origin).secrets = secrets;
        self
    }

    /// Returns the inner service.
    pub fn service(&self) -> &S {
        &self.service
    }
}

impl MeteredChat<Endpoint> {
    pub(crate) fn of_endpoint(endpoint: Endpoint, recorder: Recorder) -> Self {
        let origin = Origin {
            provider: endpoint.provider().map_or(UNNAMED, Provider::telemetry_name).to_owned(),
            server: ServerAddress::of(endpoint.base_url()),
            secrets: endpoint.secrets().clone(),
        };
        Self { service: endpoint, recorder, origin: Arc::new(origin) }
    }
}

impl<S> Service<ChatRequest> for MeteredChat<S>
where
    S: Service<ChatRequest, Response = AnswerStream>,
    S::Error: 'static,
{
    type Response = AnswerStream;
    type Error = S::Error;
    type Future = MeteredFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: ChatRequest) -> Self::Future {
        let open = Open {
            recorder: self.recorder.clone(),
            origin: Arc::clone(&self.origin),
            model: request.model().to_owned(),
            started: Instant::now(),
            first_chunk: Arc::default(),
            has_ended: false,
        };
        MeteredFuture { future: self.service.call(request), open: Some(open) }
    }
}

impl<S: fmt::Debug> fmt::Debug for MeteredChat<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeteredChat").field("service", &self.service).finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of a [`MeteredChat`].
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the request, which is recorded as interrupted.
    #[must_use = "futures do nothing unless polled"]
    pub struct MeteredFuture<F> {
        #[pin]
        future: F,
        open: Option<Open>,
    }
}

impl<F, E: 'static> Future for MeteredFuture<F>
where
    F: Future<Output = Result<AnswerStream, E>>,
{
    type Output = Result<AnswerStream, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.future.poll(cx));
        // `open` moves on to whoever sees the end: the answer's callback, or `fail`. Dropped anywhere before
        // that, it records an interrupt, so each request is recorded exactly once.
        let Some(open) = this.open.take() else { return Poll::Ready(result) };
        match result {
            Ok(mut answer) => {
                let (first, started) = (Arc::clone(&open.first_chunk), open.started);
                answer.on_begin(move || {
                    let _ = first.set(started.elapsed());
                });
                answer.on_end(move |outcome| open.end_with(outcome));
                Poll::Ready(Ok(answer))
            }
            Err(error) => {
                open.fail(&error);
                Poll::Ready(Err(error))
            }
        }
    }
}

impl<F> fmt::Debug for MeteredFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeteredFuture").finish_non_exhaustive()
    }
}

/// A request in progress. If dropped before its end, it is recorded as interrupted.
struct Open {
    recorder: Recorder,
    origin: Arc<Origin>,
    model: String,
    started: Instant,
    first_chunk: Arc<OnceLock<Duration>>,
    has_ended: bool,
}

impl Open {
    fn end_with(mut self, outcome: &AnswerOutcome<'_>) {
        let error = match outcome.error {
            Some(error) => Some(named(error.kind())),
            None => outcome.interrupted.then(|| named(ErrorKind::Interrupted)),
        };
        self.record(Some((outcome.model, outcome.server)), outcome.usage, error);
    }

    fn fail<E: 'static>(mut self, error: &E) {
        self.record(None, None, Some(type_of(error)));
    }

    /// Records the end. `answered` holds the name of the model that answered and the base URL of its server.
    fn record(
        &mut self,
        answered: Option<(&str, &str)>,
        usage: Option<Usage>,
        error: Option<Cow<'static, str>>,
    ) {
        self.has_ended = true;
        let (model, base_url) = answered.unzip();
        let model = model.map(|name| self.origin.secrets.excerpt(name, NAME));
        let target = Target {
            provider: self.origin.provider.clone(),
            model: std::mem::take(&mut self.model),
            // A router chooses the server, so the answer knows better than the wrapped service.
            server: base_url.and_then(ServerAddress::of).or_else(|| self.origin.server.clone()),
        };
        // The lock is released before anything is recorded: exporters and views are foreign code.
        let (target, answered) = self.recorder.labels().admit(target, model.as_deref());
        let ended = Ended {
            target,
            answered,
            duration: self.started.elapsed(),
            first_chunk: self.first_chunk.get().copied(),
            usage,
            error,
        };
        for measurement in ended.measurements() {
            self.recorder.record(&measurement);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.has_ended {
            self.record(None, None, Some(named(ErrorKind::Interrupted)));
        }
    }
}

/// Returns the class of an error, with the same name as in spans.
pub(crate) fn named(kind: ErrorKind) -> Cow<'static, str> {
    kind.as_str().into()
}

/// Returns the class of a service's error: its kind if it is an [`Error`], boxed or not; otherwise [`OTHER`].
pub(crate) fn type_of<E: 'static>(error: &E) -> Cow<'static, str> {
    let error: &dyn Any = error;
    // Layers such as tower's timeout box the errors of the service inside.
    let boxed = || error.downcast_ref::<Box<dyn StdError + Send + Sync>>()?.downcast_ref::<Error>();
    let ours = error.downcast_ref::<Error>().or_else(boxed);
    ours.map_or(Cow::Borrowed(OTHER), |error| named(error.kind()))
}
