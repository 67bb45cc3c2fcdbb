//! Memory does not grow with the number of prompts.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use oa_batch::{BatchOptions, run_batch};
use oa_chat::{AnswerDelta, AnswerStream, ChatRequest};
use oa_client::{AgentOptions, Error};
use tower::service_fn;

use crate::model::prompts;

/// An answer of one text.
struct Once(Option<AnswerDelta>);

impl Stream for Once {
    type Item = Result<AnswerDelta, Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}

/// Returns the most bytes that were allocated at once.
fn peak(count: usize, in_order: bool) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("nothing fails here");
    let allocated = allocation_counter::measure(|| {
        runtime.block_on(async {
            let echo = service_fn(|request: ChatRequest| async move {
                let last = request.messages().last().map(|message| message.text());
                let delta = AnswerDelta::text(last.unwrap_or_default().repeat(100));
                Ok::<_, Error>(AnswerStream::from_deltas(Once(Some(delta))))
            });
            let agent = AgentOptions::builder()
                .model("any")
                .chat_service(echo)
                .build()
                .expect("nothing fails here");
            let options = BatchOptions::new(agent).in_input_order(in_order);
            let mut batch = run_batch(prompts(count), options).expect("nothing fails here");
            let mut replies = 0;
            while let Some((_, reply)) = batch.next().await {
                reply.expect("nothing fails here");
                replies += 1;
            }
            assert_eq!(replies, count);
        });
    });
    allocated.bytes_max
}

#[test]
fn memory_is_flat() {
    for in_order in [false, true] {
        let (few, many) = (peak(200, in_order), peak(5_000, in_order));
        assert!(many <= few + few / 5, "{few} bytes for 200 prompts, {many} for 5,000");
    }
}
