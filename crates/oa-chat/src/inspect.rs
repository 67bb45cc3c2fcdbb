//! Requests sent exactly as given, and unprocessed responses: for programs that examine a server.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use oa_aggregate::Quirks;
use oa_transport::{RequestBody, Timeouts, Watch};
use oa_types::Message;
use oa_types::wire::{ChatParameters, write_message};
use serde_json::Value;
use tokio::time::Instant;

use crate::answer::AnswerStream;
use crate::body::{AnyBody, FramePoll, Frames};
use crate::endpoint::Endpoint;
use crate::envelope::{Envelope, Offer};
use crate::error::{Error, Result, server_error};
use crate::fetch::{ROOM, SmallBody, collect, head, send};
use crate::models;
use crate::options::{ChatOptions, Limits};
use crate::pipeline::PipelineOptions;
use crate::prepared::PreparedOptions;
use crate::server_traits::ServerTraits;

/// A request for [`Endpoint::fetch`], which returns the response unprocessed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Target<'a> {
    /// A chat with exactly this body.
    Chat(&'a Value),
    /// The list of models.
    Models,
    /// A page, by its path from the root of the server.
    Page(&'a str),
}

/// A complete response, whatever its status.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RawResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers. They may hold secrets that the server repeats.
    pub headers: HeaderMap,
    /// The body, at most 4 MiB. It may hold secrets that the server repeats.
    pub body: Vec<u8>,
    /// The time from the request to the head of the response.
    pub took: Duration,
}

impl RawResponse {
    /// Returns `true` if the status is a success.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the body as JSON; `null` if it is not JSON, or would take more than 64 MiB of memory.
    #[must_use]
    pub fn json(&self) -> Value {
        oa_json::read_within(&self.body, ROOM).unwrap_or_default()
    }

    /// Returns the error that an agent would return for this response.
    #[must_use]
    pub fn to_error(&self, endpoint: &Endpoint) -> Error {
        let status = http::StatusCode::from_u16(self.status).unwrap_or_default();
        Error::response(status, &self.headers, &self.body, &endpoint.0.secrets)
    }

    /// Returns the server's message in the body of an error, with secrets masked.
    #[must_use]
    pub fn server_message(&self, endpoint: &Endpoint) -> String {
        server_error(&self.body, &endpoint.0.secrets).message
    }
}

/// A raw chat request, with the options for reading its answer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RawChat<'a> {
    /// The request without its messages.
    pub parameters: &'a ChatParameters,
    /// The messages, sent unchanged.
    pub messages: &'a [Message],
    /// The quirks for writing messages.
    pub traits: ServerTraits,
    /// The timeouts.
    pub timeouts: Timeouts,
    /// Limits on the answer.
    pub limits: Limits,
    /// The quirks for reading the answer.
    pub quirks: Quirks,
}

impl<'a> RawChat<'a> {
    /// Creates a chat with default timeouts and limits, for a server without quirks.
    #[must_use]
    pub fn new(parameters: &'a ChatParameters, messages: &'a [Message]) -> Self {
        Self {
            parameters,
            messages,
            traits: ServerTraits::default(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            quirks: Quirks::default(),
        }
    }
}

impl Endpoint {
    /// Sends a request and reads the whole response, whatever its status.
    ///
    /// # Errors
    ///
    /// `Connect`, `Timeout` and `Stream`, and `Config` for an invalid path.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub async fn fetch(&self, target: Target<'_>, timeouts: Timeouts) -> Result<RawResponse> {
        let mut request = models::request(&self.0)?;
        match target {
            Target::Chat(body) => {
                *request.method_mut() = Method::POST;
                *request.uri_mut() = self.0.at("/chat/completions")?;
                let json = http::HeaderValue::from_static("application/json");
                request.headers_mut().entry(http::header::CONTENT_TYPE).or_insert(json);
                *request.body_mut() = RequestBody::new(body.to_string());
            }
            Target::Models => {}
            Target::Page(path) => *request.uri_mut() = self.0.at_root(path)?,
        }
        let mut watch = Watch::new(timeouts);
        let asked = Instant::now();
        let response = head(&self.0, request, &mut watch).await?;
        let took = asked.elapsed();
        let (head, body) = response.into_parts();
        let SmallBody { bytes: body, broken } = collect(&self.0, body, &mut watch).await?;
        if let Some(error) = broken.filter(|_| body.is_empty()) {
            return Err(error);
        }
        Ok(RawResponse { status: head.status.as_u16(), headers: head.headers, body, took })
    }

    /// Sends one chat request exactly as given, without retries and fallbacks, and passes each piece of the body
    /// to `tap` as it arrives, before it is parsed.
    ///
    /// # Errors
    ///
    /// As for any chat.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub async fn open<F>(&self, chat: RawChat<'_>, tap: F) -> Result<AnswerStream>
    where
        F: FnMut(&Bytes) + Send + Unpin + 'static,
    {
        let envelope = Envelope::new(&self.0, [None, None], [chat.parameters; 2])?;
        // The envelope already has the bracket; this one stands for the comma before the first message.
        let mut written = vec![b'['];
        for message in chat.messages {
            write_message(message, &chat.traits.format, &mut written);
        }
        let body = envelope.body(None, &[], &written, Offer { tools: true, usage: true });
        let mut watch = Watch::new(chat.timeouts);
        let response = send(&self.0, envelope.chat_with(body), &mut watch).await?;
        let mut pipeline = PipelineOptions { parser: chat.limits.events, ..Default::default() };
        pipeline.aggregator.limits = chat.limits.answer;
        pipeline.aggregator.quirks = chat.quirks;
        let response = response.map(|body| AnyBody::new(Tap { body, tap }));
        let options = PreparedOptions::new(ChatOptions::new(&chat.parameters.model));
        Ok(AnswerStream::new(&self.0, options, response, pipeline, watch))
    }
}

/// A body that is observed by `tap`.
struct Tap<F> {
    body: AnyBody,
    tap: F,
}

impl<F: FnMut(&Bytes) + Unpin> Frames for Tap<F> {
    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> FramePoll {
        let frame = ready!(self.body.poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(bytes) = frame.data_ref()
        {
            (self.tap)(bytes);
        }
        Poll::Ready(frame)
    }
}
