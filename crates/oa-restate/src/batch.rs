use oa_types::Message;
use restate_sdk::context::DurableFuture;
use restate_sdk::context::{DurableFuturesUnordered, RequestTarget};
use restate_sdk::prelude::*;

use crate::contract::{BatchItem, BatchPrompts, SessionPrompt, TurnReply};
use crate::place::Durable;

/// The number of prompts that a batch may have.
const MOST: usize = 10_000;

/// Runs many prompts, each in a session of its own.
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
        let Json(BatchPrompts { name, prompts, at_once }) = input;
        if prompts.len() > MOST {
            let message = format!("a batch has at most {MOST} prompts, not {}", prompts.len());
            return Err(TerminalError::new_with_code(413, message).into());
        }
        let at_once = at_once.unwrap_or(16).clamp(1, 256);
        let mut items: Vec<BatchItem> = (0..prompts.len())
            .map(|place| BatchItem { session: format!("{name}/{place}"), reply: None, error: None })
            .collect();
        let mut waiting = prompts.into_iter().enumerate();
        let mut running: DurableFuturesUnordered<Durable<'_, _>> = DurableFuturesUnordered::new();
        loop {
            while running.len() < at_once
                && let Some((place, prompt)) = waiting.next()
            {
                let target = RequestTarget::object("Agent", &*items[place].session, "prompt");
                let prompt = Json(SessionPrompt::new(Message::user(prompt)));
                let called = ctx.request::<_, Json<TurnReply>>(target, prompt).call();
                running.push(Box::pin(called.map(move |reply| (place, reply))));
            }
            let Some((_, (place, reply))) = running.next().await? else { break };
            let item: &mut BatchItem = &mut items[place];
            match reply {
                Ok(Json(reply)) => item.reply = Some(reply),
                Err(error) => item.error = Some(error.message().to_owned()),
            }
        }
        Ok(Json(items))
    }
}
