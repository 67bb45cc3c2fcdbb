//! Memory does not grow with the number of prompts.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use oa_batch::{BatchOptions, run_batch};
use oa_chat::{AnswerDelta, AnswerStream, ChatRequest};
use oa_client::{AgentOptions, Error};
use tokio::runtime::{Builder, Runtime};
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

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}

/// Returns the most bytes that were allocated at once.
fn peak(count: usize, change: impl FnOnce(BatchOptions) -> BatchOptions) -> u64 {
    let runtime = runtime();
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
            let mut batch = run_batch(prompts(count), change(BatchOptions::new(agent)))
                .expect("nothing fails here");
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
        let peak = |count| peak(count, |options| options.in_input_order(in_order));
        let (few, many) = (peak(200), peak(5_000));
        assert!(many <= few + few / 5, "{few} bytes for 200 prompts, {many} for 5,000");
    }
}
