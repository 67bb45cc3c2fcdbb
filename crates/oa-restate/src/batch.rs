use oa_types::{Message, json_size};
use restate_sdk::context::DurableFuture;
use restate_sdk::context::{DurableFuturesUnordered, RequestTarget};
use restate_sdk::prelude::*;

use crate::contract::{BatchItem, BatchPrompts, SessionPrompt, TurnReply};
use crate::place::Durable;

/// The maximum number of prompts in a batch.
const MOST: usize = 10_000;

/// The maximum size of all replies of a batch, in bytes of JSON: half of the engine's limit for a message.
const MOST_BYTES: usize = 16 << 20;

/// Runs many prompts, each in its own session.
pub(crate) struct AgentBatch;

#[restate_sdk::service(client_visibility = "pub(crate)")]
impl AgentBatch {
    /// Returns the replies in the order of the prompts.
    #[handler]
    async fn run(
        &self,
        ctx: Context<'_>,
        input: Json<BatchPrompts>,
    ) -> Result<Json<Vec<BatchItem>>, HandlerError> {
        let Json(BatchPrompts { name, prompts, at_once, output }) = input;
        if prompts.len() > MOST {
            let message = format!("a batch has at most {MOST} prompts, not {}", prompts.len());
            return Err(TerminalError::new_with_code(413, message).into());
        }
        let at_once = at_once.unwrap_or(16).clamp(1, 256);
        let mut items: Vec<BatchItem> = (0..prompts.len())
            .map(|place| BatchItem { session: format!("{name}/{place}"), reply: None, error: None })
            .collect();
        let mut left = MOST_BYTES;
        let mut waiting = prompts.into_iter().enumerate();
        let mut running: DurableFuturesUnordered<Durable<'_, _>> = DurableFuturesUnordered::new();
        loop {
            while running.len() < at_once
                && let Some((place, prompt)) = waiting.next()
            {
                let target = RequestTarget::object("Agent", &*items[place].session, "prompt");
                let mut prompt = SessionPrompt::new(Message::user(prompt));
                prompt.output.clone_from(&output);
                let called = ctx.request::<_, Json<TurnReply>>(target, Json(prompt)).call();
                running.push(Box::pin(called.map(move |reply| (place, reply))));
            }
            let Some((_, (place, reply))) = running.next().await? else { break };
            let item: &mut BatchItem = &mut items[place];
            match reply {
                Ok(Json(mut reply)) => {
                    let bytes = json_size(&reply);
                    if bytes > left {
                        item.error = Some(format!(
                            "the batch has no room for this reply of {bytes} bytes: read it from the session"
                        ));
                        (reply.text, reply.value) = (String::new(), None);
                    }
                    // Counts what is sent: without text and value if there was no room for them.
                    left = left.saturating_sub(json_size(&reply));
                    item.reply = Some(reply);
                }
                Err(error) => item.error = Some(error.message().to_owned()),
            }
        }
        Ok(Json(items))
    }
}
