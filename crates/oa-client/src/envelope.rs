//! What is the same in every chat request of one agent, made once.

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use oa_transport::{ApiKey, RequestBody};
use oa_types::wire::{ChatRequest, Form, write_message};
use oa_types::{BaseUrl, Message};

use crate::error::{Error, Result};

/// Address, headers, and the bytes around the messages.
#[derive(Clone)]
pub(crate) struct Envelope {
    chat: Uri,
    models: Uri,
    headers: HeaderMap,
    /// With the type of a body.
    chat_headers: HeaderMap,
    /// Up to the messages; ends with `[`, or with the system prompt.
    head: Bytes,
    /// From the messages on, with and without tools.
    tail: Bytes,
    tail_without_tools: Bytes,
}

impl Envelope {
    pub(crate) fn new(
        base_url: &BaseUrl,
        api_key: Option<&ApiKey>,
        extra: &HeaderMap,
        system_prompt: Option<&str>,
        request: &ChatRequest,
    ) -> Result<Self> {
        let uri = |path: &str| {
            let uri = format!("{base_url}{path}").parse();
            uri.map_err(|_| Error::config(format!("the base URL is no address: {base_url}")))
        };
        let mut headers = HeaderMap::new();
        let accepted = HeaderValue::from_static("text/event-stream, application/json");
        headers.insert(ACCEPT, accepted);
        let agent = concat!("open-agent/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        if let Some(key) = api_key {
            headers.insert(AUTHORIZATION, key.header_value());
        }
        for (name, value) in extra {
            headers.insert(name, value.clone());
        }
        let mut chat_headers = headers.clone();
        let json = HeaderValue::from_static("application/json");
        chat_headers.entry(CONTENT_TYPE).or_insert(json);
        let mut head = request.head();
        if let Some(prompt) = system_prompt {
            write_message(&Message::system(prompt), &Form::default(), &mut head);
        }
        let mut without_tools = request.clone();
        without_tools.tools.clear();
        Ok(Self {
            chat: uri("/chat/completions")?,
            models: uri("/models")?,
            headers,
            chat_headers,
            head: head.into(),
            tail: request.tail().into(),
            tail_without_tools: without_tools.tail().into(),
        })
    }

    /// A chat request. The messages come as segments, each message with a comma before it; the last
    /// segment is copied together with what follows.
    pub(crate) fn chat(
        &self,
        mut segments: Vec<Bytes>,
        last: &[u8],
        tools: bool,
    ) -> Request<RequestBody> {
        let tail = if tools { &self.tail } else { &self.tail_without_tools };
        let comma = usize::from(self.head.ends_with(b"["));
        if segments.is_empty() {
            let last = &last[comma.min(last.len())..];
            let length = self.head.len() + last.len() + tail.len();
            let mut body = BytesMut::with_capacity(length);
            body.put_slice(&self.head);
            body.put_slice(last);
            body.put_slice(tail);
            segments.push(body.freeze());
        } else {
            segments[0] = segments[0].slice(comma..);
            segments.insert(0, self.head.clone());
            let mut end = BytesMut::with_capacity(last.len() + tail.len());
            end.put_slice(last);
            end.put_slice(tail);
            segments.push(end.freeze());
        }
        let mut request = Request::new(RequestBody::from_segments(segments));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.chat.clone();
        *request.headers_mut() = self.chat_headers.clone();
        request
    }

    /// A request for the list of models.
    pub(crate) fn models(&self) -> Request<RequestBody> {
        let mut request = Request::new(RequestBody::empty());
        *request.uri_mut() = self.models.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}
