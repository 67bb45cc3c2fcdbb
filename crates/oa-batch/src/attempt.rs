//! One prompt and its conversation.

#[cfg(feature = "schemars")]
use std::sync::Arc;

use oa_chat::TimeoutKind;
use oa_client::{AgentOptions, Client, Error, ErrorKind, Reply, Result, TurnText};
use oa_types::{Message, MessageRole};

#[cfg(feature = "schemars")]
use crate::output_type::OutputType;
use crate::scheduler::AttemptOutcome;

/// A conversation with one prompt, which may be sent several times.
pub(crate) struct Attempt {
    client: Client,
    prompt: Message,
    #[cfg(feature = "schemars")]
    output_type: Option<Arc<OutputType>>,
}

impl Attempt {
    pub(crate) fn new(agent: &AgentOptions, prompt: Message) -> Result<Self> {
        Ok(Self {
            client: Client::new(agent.clone())?,
            prompt,
            #[cfg(feature = "schemars")]
            output_type: None,
        })
    }

    /// Makes it ask for a value instead of text.
    #[cfg(feature = "schemars")]
    pub(crate) fn with_output_type(mut self, output_type: Option<Arc<OutputType>>) -> Self {
        self.output_type = output_type;
        self
    }

    /// Sends the prompt, or retries it: the client treats an equal prompt after a failure as a retry, so hooks and
    /// tools that have run do not run again.
    pub(crate) async fn ask(&mut self) -> Result<Reply> {
        #[cfg(feature = "schemars")]
        if let Some(output_type) = &self.output_type {
            return output_type.ask(&mut self.client, &self.prompt).await;
        }
        // Before sending: a retry goes on in the conversation, and its reply has only the newer text.
        let (mut text, mut turn) = self.text();
        self.client.send_message(self.prompt.clone()).await?;
        let mut reply = self.client.collect_reply().await?;
        turn.begin_answer();
        turn.push(&mut text, &reply.text);
        reply.text = text;
        Ok(reply)
    }

    #[cfg(feature = "log")]
    pub(crate) fn prompt(&self) -> &Message {
        &self.prompt
    }

    /// Returns the tokens of all its requests and answers, as far as the server reported them.
    pub(crate) fn tokens(&self) -> u64 {
        self.client.turn_metadata().total_usage.total().unwrap_or_default()
    }

    /// Returns the text of the answers that ended before a failure, and the joiner for the next one.
    fn text(&self) -> (String, TurnText) {
        let (mut text, mut turn) = (String::new(), TurnText::default());
        if self.client.options().final_text_only() {
            return (text, turn);
        }
        let is_answer = |message: &&Message| message.role == MessageRole::Assistant;
        for answer in self.client.history().iter().filter(is_answer).map(Message::text) {
            turn.begin_answer();
            turn.push(&mut text, &answer);
        }
        (text, turn)
    }
}

/// Judges an outcome. An answer that broke off may be requested again, because none of it was delivered.
pub(crate) fn attempt_outcome(result: &Result<Reply>) -> AttemptOutcome {
    match result {
        Err(error) if may_pass(error) => AttemptOutcome::MayPass(error.retry_after()),
        _ => AttemptOutcome::Answered,
    }
}

fn may_pass(error: &Error) -> bool {
    let broke_off = match error.kind() {
        // Reported inside of the answer.
        ErrorKind::Api => error.status().is_none(),
        ErrorKind::Stream => true,
        // A model that talks too long does so again.
        ErrorKind::Timeout => error.timeout() != Some(TimeoutKind::Total),
        _ => false,
    };
    error.is_retryable() || broke_off
}
