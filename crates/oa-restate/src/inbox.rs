//! Messages steered into a turn. A turn in progress does not see changes of its own session, so they wait here.

use oa_types::{Message, json_size};
use restate_sdk::prelude::*;

/// The key of the messages.
const MESSAGES: &str = "messages";

/// The maximum number of waiting messages, which is that of a turn.
const MOST: usize = 32;

/// The maximum size of all waiting messages, in bytes of JSON. They are one value of the state, and one entry in the
/// journal of the turn that takes them.
const MOST_BYTES: usize = 4 << 20;

/// The inbox of a session.
pub(crate) struct AgentInbox;

#[restate_sdk::object(client_visibility = "pub(crate)")]
impl AgentInbox {
    /// Adds a message.
    #[handler]
    async fn push(
        &self,
        ctx: ObjectContext<'_>,
        message: Json<Message>,
    ) -> Result<(), HandlerError> {
        let Json(message) = message;
        let Json(mut messages) = ctx.get::<Json<Vec<Message>>>(MESSAGES).await?.unwrap_or_default();
        if messages.len() >= MOST {
            let message = format!("{MOST} messages are already waiting");
            return Err(TerminalError::new_with_code(429, message).into());
        }
        messages.push(message);
        let size = json_size(&messages);
        if size > MOST_BYTES {
            let message =
                format!("the waiting messages would have {size} bytes; the limit is {MOST_BYTES}");
            return Err(TerminalError::new_with_code(413, message).into());
        }
        ctx.set(MESSAGES, Json(messages));
        Ok(())
    }

    /// Takes all messages.
    #[handler]
    async fn take(&self, ctx: ObjectContext<'_>) -> Result<Json<Vec<Message>>, HandlerError> {
        let messages = ctx.get::<Json<Vec<Message>>>(MESSAGES).await?;
        if messages.is_some() {
            ctx.clear(MESSAGES);
        }
        Ok(messages.unwrap_or_default())
    }
}
