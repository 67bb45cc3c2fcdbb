//! The parts that all chat requests of one agent to one server share, built once.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, Request};
use oa_transport::{RequestBody, RequestHead};
use oa_types::Message;
use oa_types::wire::{ChatParameters, MessageFormat, write_message};

use crate::destination::Destination;
use crate::error::Result;

/// Address, headers, and the bytes around the messages of a request.
pub(crate) struct Envelope {
    /// A chat request without its body.
    chat: Parts,
    /// The same, in the form of the library's own transport.
    chat_head: Option<RequestHead>,
    /// The body up to the messages; ends with `[`, or with the system prompt: without tools, and with them.
    heads: [Bytes; 2],
    /// Where the system prompt begins in them.
    prompt_at: usize,
    system_prompts: [Option<Arc<str>>; 2],
    /// The body from the messages on, for each offer.
    tails: [Bytes; 4],
}

/// The optional parts of a request around its messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    /// True if tools are offered.
    pub(crate) tools: bool,
    /// True if usage is requested.
    pub(crate) usage: bool,
}

impl Offer {
    fn place(self) -> usize {
        usize::from(self.tools) * 2 + usize::from(self.usage)
    }
}

impl Envelope {
    /// Creates the envelope for requests without tools, and with them.
    pub(crate) fn new(
        destination: &Destination,
        system_prompts: [Option<Arc<str>>; 2],
        requests: [&ChatParameters; 2],
    ) -> Result<Self> {
        let (mut chat, ()) = Request::new(()).into_parts();
        (chat.method, chat.uri) = (Method::POST, destination.at("/chat/completions")?);
        chat.headers = destination.all_headers();
        let json = HeaderValue::from_static("application/json");
        chat.headers.entry(CONTENT_TYPE).or_insert(json);
        let head = |system_prompt: Option<&str>| {
            let mut head = requests[0].head();
            if let Some(prompt) = system_prompt {
                write_message(&Message::system(prompt), &MessageFormat::default(), &mut head);
            }
            Bytes::from(head)
        };
        let prompt_at = requests[0].head().len();
        let tail = |tools: bool, usage: bool| {
            let mut request = requests[usize::from(tools)].clone();
            request.include_usage &= usage;
            Bytes::from(request.tail())
        };
        Ok(Self {
            chat_head: destination.service.head(&chat),
            chat,
            heads: system_prompts.each_ref().map(|prompt| head(prompt.as_deref())),
            prompt_at,
            system_prompts,
            tails: [tail(false, false), tail(false, true), tail(true, false), tail(true, true)],
        })
    }

    /// Creates a chat request with this body.
    pub(crate) fn chat_with(&self, body: RequestBody) -> Request<RequestBody> {
        Request::from_parts(self.chat.clone(), body)
    }

    /// Returns a chat request without its body, if the library's own transport is to send it.
    pub(crate) fn chat_head(&self) -> Option<&RequestHead> {
        self.chat_head.as_ref()
    }

    /// Creates the body of a chat request. The messages come as segments, each message with a comma before it;
    /// the last segment is copied together with what follows. The text of the conversation's own system message
    /// is appended to the system prompt, in one message.
    pub(crate) fn body(
        &self,
        instructions: Option<&str>,
        segments: &[Bytes],
        last: &[u8],
        offer: Offer,
    ) -> RequestBody {
        let tail = &self.tails[offer.place()];
        let head = match instructions {
            None => self.heads[usize::from(offer.tools)].clone(),
            Some(instructions) => self.head_with(instructions, offer.tools),
        };
        // `..,"messages":[` + `,{a},{b}` + `],"stream":true}`: no first comma without a system prompt.
        let comma = usize::from(head.ends_with(b"["));
        match segments {
            [] => RequestBody::new([&head[..], &last[comma.min(last.len())..], &tail[..]].concat()),
            [first, others @ ..] => {
                let mut all = Vec::with_capacity(segments.len() + 2);
                all.extend([head.clone(), first.slice(comma..)]);
                all.extend_from_slice(others);
                all.push([last, &tail[..]].concat().into());
                RequestBody::from_segments(all)
            }
        }
    }

    fn head_with(&self, instructions: &str, tools: bool) -> Bytes {
        let place = usize::from(tools);
        let mut head = self.heads[place][..self.prompt_at].to_vec();
        let prompt = self.system_prompts[place].as_deref();
        let parts: Vec<&str> = prompt.into_iter().chain([instructions]).collect();
        write_message(&Message::system(parts.join("\n\n")), &MessageFormat::default(), &mut head);
        Bytes::from(head)
    }

    /// Returns the number of bytes around the messages.
    pub(crate) fn length(&self, offer: Offer) -> usize {
        self.heads[usize::from(offer.tools)].len() + self.tails[offer.place()].len()
    }
}
