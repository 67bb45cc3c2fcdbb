//! A custom client built from the layers: `oa-transport` sends, `oa-sse` parses, `oa-aggregate` builds the
//! answer. No agent, no history, no tool loop.
//!
//! Two things make the second request cheaper than the first. The request head is prepared once
//! (`RequestHead`), and the templates of one answer's chunks (`TemplateCache`) are compared with the next answer's
//! chunks, so that almost nothing of it is parsed.
//!
//!     cargo run --example layers

use std::error::Error;
use std::mem;

use oa_aggregate::{AggregatedAnswer, Aggregator, ContentBlock, Delta, Options, TemplateCache};
use oa_sse::Parser;
use oa_testkit::{Reply, Script, SocketServer};
use oa_transport::{RequestBody, RequestHead, Transport};

/// A server and the state kept between requests.
struct Server {
    transport: Transport,
    head: RequestHead,
    templates: TemplateCache,
}

impl Server {
    fn new(base_url: &str) -> Result<Self, Box<dyn Error>> {
        let (parts, ()) = http::Request::post(format!("{base_url}/chat/completions"))
            .header("content-type", "application/json")
            .body(())?
            .into_parts();
        let head = RequestHead::new(parts)?;
        Ok(Self { transport: Transport::new(), head, templates: TemplateCache::default() })
    }

    /// Sends a request, prints text as it arrives, and returns the whole answer.
    async fn ask(&mut self, request: String) -> Result<AggregatedAnswer, Box<dyn Error>> {
        let response = self.transport.send(&self.head, RequestBody::new(request)).await?;
        if !response.status().is_success() {
            return Err(format!("the server answered {}", response.status()).into());
        }
        let mut body = response.into_body();
        let mut parser = Parser::new();
        let mut aggregator =
            Aggregator::with_templates(Options::default(), mem::take(&mut self.templates));
        while let Some(bytes) = body.chunk().await? {
            parser.push(bytes);
            while let Some(event) = parser.next_event()? {
                aggregator.push(event.raw_data())?;
                show(&mut aggregator);
            }
        }
        // Many servers omit the blank line after their last event.
        parser.finish_lenient();
        while let Some(event) = parser.next_event()? {
            aggregator.push(event.raw_data())?;
        }
        aggregator.finish()?;
        show(&mut aggregator);
        println!();
        self.templates = aggregator.take_templates();
        Ok(aggregator.into_answer())
    }
}

fn show(aggregator: &mut Aggregator) {
    while let Some(delta) = aggregator.next_delta() {
        match delta {
            Delta::Text(text) => print!("{text}"),
            Delta::Problem(problem) => eprintln!("problem: {problem}"),
            _ => {}
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().len() > 1 {
        println!("cargo run --example layers");
        return Ok(());
    }
    // A scripted server on a socket; a real one works the same way.
    let script =
        Script::new().reply(Reply::text("A parser, an aggregator and a transport.")).reply(
            Reply::text("Let me look.").call("read_file", serde_json::json!({ "path": "a.txt" })),
        );
    let socket = SocketServer::start(script).await?;
    let mut server = Server::new(&socket.base_url())?;
    for prompt in ["What are you made of?", "Read a.txt."] {
        let messages = serde_json::json!([{ "role": "user", "content": prompt }]);
        let request = serde_json::json!({ "model": "any", "messages": messages, "stream": true });
        let answer = server.ask(request.to_string()).await?;
        for block in &answer.blocks {
            if let ContentBlock::ToolUse(call) = block {
                println!("call {}({})", call.name, call.input);
            }
        }
        println!("finish reason: {}", answer.finish_reason);
    }
    println!("idle connections for the next request: {}", server.transport.idle_connections());
    Ok(())
}
