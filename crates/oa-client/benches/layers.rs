//! The layers without the client: `oa-transport`, `oa-sse` and `oa-aggregate`, combined as in
//! `examples/layers.rs`. The common part of requests is written once, and templates are reused across answers.

use std::hint::black_box;
use std::mem;

use bytes::Bytes;
use oa_aggregate::{Aggregator, Delta, Options, StreamStatus, TemplateCache};
use oa_sse::Parser;
use oa_transport::{RequestBody, RequestHead, Transport};

pub(crate) struct Layers {
    transport: Transport,
    head: RequestHead,
    body: RequestBody,
    templates: TemplateCache,
}

impl Layers {
    pub(crate) fn new(port: usize, path: &str, body: &'static str) -> Self {
        let request =
            http::Request::post(format!("http://127.0.0.1:{port}{path}/chat/completions"))
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(());
        let (parts, ()) = request.expect("the request is valid").into_parts();
        Self {
            transport: Transport::new(),
            head: RequestHead::new(parts).expect("the address is valid"),
            body: RequestBody::new(body),
            templates: TemplateCache::default(),
        }
    }

    /// Sends a prompt and reports the pieces as they arrive.
    pub(crate) async fn ask(&mut self, mut on_pieces: impl FnMut(usize)) {
        let response = self.transport.send(&self.head, self.body.clone()).await;
        let mut body = response.expect("the server answers").into_body();
        let mut parser = Parser::new();
        let mut aggregator =
            Aggregator::with_templates(Options::default(), mem::take(&mut self.templates));
        // Read to its very end, so that the connection serves the next request.
        while let Some(bytes) = body.chunk().await.expect("the answer is whole") {
            parser.push(bytes);
            while let Some(event) = parser.next_event().expect("events are small") {
                let progress = aggregator.push(event.raw_data()).expect("the answer is small");
                while let Some(delta) = aggregator.next_delta() {
                    if let Delta::Text(text) = delta {
                        black_box(text.to_owned());
                        on_pieces(1);
                    }
                }
                if progress == StreamStatus::Done {
                    break;
                }
            }
            // The parser lets go of the read, so that the transport can use its buffer again.
            parser.push(Bytes::new());
        }
        self.templates = aggregator.take_templates();
        black_box(aggregator.into_answer());
    }
}
