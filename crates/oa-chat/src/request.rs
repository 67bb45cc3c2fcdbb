//! A request for an answer.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use oa_transport::RequestBody;
use oa_turn::{StepPlan, repair};
use oa_types::wire::ToolChoice;
use oa_types::{History, Message, ToolSpec};
use tokio::time::Instant;

use crate::envelope::{Envelope, Offer};
use crate::options::ChatOptions;
use crate::prepared::PreparedOptions;
use crate::transcript::Transcript;
use crate::wire_format::WireFormat;

/// A request for an answer: a conversation and its options.
///
/// It is plain data that services in between may read, compare and change: [`with_model`](Self::with_model),
/// [`with_messages`](Self::with_messages), [`with_tools`](Self::with_tools), [`with_options`](Self::with_options). An
/// agent's requests carry messages that are already serialized. Messages that no longer match after a change are
/// serialized again, so a changed request is correct, only slower. Clones share everything.
///
/// Two requests are equal if their options, messages, tools, conversation and id seed are equal. To compare requests of
/// different conversations, set [`with_conversation`](Self::with_conversation) and [`with_id_seed`](Self::with_id_seed)
/// of both to 0.
///
/// ```
/// use oa_chat::ChatRequest;
/// use oa_types::Message;
///
/// let request = ChatRequest::new("qwen3:8b", vec![Message::user("Why is the sky blue?")]);
/// let request = request.with_model("qwen3:30b").with_options(|options| {
///     options.parameters.temperature = Some(0.0);
/// });
/// assert_eq!(request.model(), "qwen3:30b");
/// ```
#[derive(Clone)]
pub struct ChatRequest {
    options: PreparedOptions,
    messages: History,
    /// The serialized messages, if there are any yet.
    written: Option<Written>,
    offers_tools: bool,
    /// True if text after a call is held back.
    holds_text: bool,
    /// The seed for generated call ids.
    id_seed: u64,
    conversation: u64,
    /// The time at which the request was created; retries do not change it.
    began: Instant,
}

/// Messages serialized for servers of one format.
#[derive(Clone)]
pub(crate) struct Written {
    pub(crate) format: WireFormat,
    /// The messages, each with a comma before it.
    pub(crate) segments: Arc<[Bytes]>,
    /// Messages that are not in a segment yet.
    pub(crate) last: Arc<[u8]>,
}

impl ChatRequest {
    /// Creates a request with default options.
    #[must_use]
    pub fn new(model: impl Into<String>, messages: Vec<Message>) -> Self {
        Self::from_options(ChatOptions::new(model), messages)
    }

    /// Creates a request. The messages are repaired into a conversation that strict servers accept: one system message
    /// at the front, one result after each call, unique call ids.
    ///
    /// The total timeout starts now.
    #[must_use]
    pub fn from_options(options: impl Into<PreparedOptions>, messages: Vec<Message>) -> Self {
        Self::of(options.into(), repair(messages).into(), 0)
    }

    /// Creates a request from a conversation that is already valid.
    pub(crate) fn of(options: PreparedOptions, messages: History, conversation: u64) -> Self {
        Self {
            options,
            messages,
            written: None,
            offers_tools: true,
            holds_text: false,
            id_seed: conversation,
            conversation,
            began: Instant::now(),
        }
    }

    pub(crate) fn with_written(self, written: Written) -> Self {
        Self { written: Some(written), ..self }
    }

    /// Replaces the model.
    #[must_use]
    pub fn with_model(self, model: impl Into<String>) -> Self {
        self.with_options(|options| {
            options.parameters.model = model.into();
            // It would override the name.
            options.parameters.extra_body.shift_remove("model");
        })
    }

    /// Replaces the conversation, which is repaired as by [`from_options`](Self::from_options).
    #[must_use]
    pub fn with_messages(self, messages: Vec<Message>) -> Self {
        Self { messages: repair(messages).into(), written: None, ..self }
    }

    /// Replaces the tools and offers them. A tool choice that names none of them is dropped.
    #[must_use]
    pub fn with_tools(self, tools: Vec<ToolSpec>) -> Self {
        let changed = self.with_options(|options| {
            let parameters = &mut options.parameters;
            if let Some(ToolChoice::Tool(name)) = &parameters.tool_choice
                && !tools.iter().any(|tool| tool.name == *name)
            {
                parameters.tool_choice = None;
            }
            parameters.tools = tools;
            // They would override these.
            parameters.extra_body.shift_remove("tools");
        });
        Self { offers_tools: true, ..changed }
    }

    /// Offers no tools, even if the options have some. Calls in the conversation stay.
    #[must_use]
    pub fn without_tools(self) -> Self {
        Self { offers_tools: false, ..self }
    }

    /// Applies the plan of a step, except for its end. A tool choice that names a tool that is not offered is ignored.
    #[must_use]
    pub fn with_plan(self, plan: &StepPlan) -> Self {
        let mut request = self;
        if let Some(model) = &plan.model {
            request = request.with_model(model);
        }
        if plan.only_tools.is_some() && request.offers_tools() {
            let tools = request.tools().iter().filter(|tool| plan.offers(&tool.name));
            let tools = tools.cloned().collect();
            request = request.with_tools(tools);
        }
        let tools = request.tools();
        let choice = plan.tool_choice.clone().filter(|choice| match choice {
            ToolChoice::Tool(name) => tools.iter().any(|tool| tool.name == *name),
            _ => !tools.is_empty(),
        });
        request.with_options(|options| {
            let parameters = &mut options.parameters;
            if choice.is_some() {
                // The caller's own choice, unlike that of structured output, is never left out.
                options.tool_choice_fallback = false;
                parameters.tool_choice = choice;
            }
            parameters.temperature = plan.temperature.or(parameters.temperature);
            parameters.max_tokens = plan.max_tokens.or(parameters.max_tokens);
            parameters.extra_body.extend(plan.extra_body.clone());
            options.thinking = plan.thinking.clone().or_else(|| options.thinking.take());
            if let Some(instructions) = &plan.instructions {
                let prompt = match options.system_prompt.as_deref() {
                    Some(prompt) => format!("{prompt}\n\n{instructions}"),
                    None => instructions.clone(),
                };
                options.system_prompt = Some(prompt.into());
            }
        })
    }

    /// Changes the options.
    #[must_use]
    pub fn with_options(self, change: impl FnOnce(&mut ChatOptions)) -> Self {
        let mut options = self.options.options().clone();
        change(&mut options);
        Self { options: PreparedOptions::new(options), ..self }
    }

    /// Sets the number of the conversation.
    #[must_use]
    pub fn with_conversation(self, conversation: u64) -> Self {
        Self { conversation, ..self }
    }

    /// Sets the seed for the ids of calls that arrive without one. Use a different seed for each request of a
    /// conversation.
    #[must_use]
    pub fn with_id_seed(self, id_seed: u64) -> Self {
        Self { id_seed, ..self }
    }

    /// Sets whether text after a call is held back, for tools whose results replace their calls in the text.
    #[must_use]
    pub fn hold_text(self, hold: bool) -> Self {
        Self { holds_text: hold, ..self }
    }

    /// Returns the number of the conversation: the same for all its requests, and unique among conversations; 0 if
    /// there is none. A router uses it to prefer the server that has the conversation in its prompt cache.
    #[must_use]
    pub fn conversation(&self) -> u64 {
        self.conversation
    }

    /// Returns the messages, without the system prompt of the options.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the messages as a shared history.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.messages
    }

    /// Returns the model's name. A server may have its own name for it.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.options.parameters.model
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &PreparedOptions {
        &self.options
    }

    /// Returns the tools offered to the model.
    #[must_use]
    pub fn tools(&self) -> &[ToolSpec] {
        if self.offers_tools { &self.options.parameters.tools } else { &[] }
    }

    /// Returns `true` if the request may offer tools, `false` if it must be answered without them.
    #[must_use]
    pub fn offers_tools(&self) -> bool {
        self.offers_tools
    }

    /// Returns the seed for generated call ids.
    #[must_use]
    pub fn id_seed(&self) -> u64 {
        self.id_seed
    }

    /// Returns `true` if text after a call is held back.
    #[must_use]
    pub fn holds_text(&self) -> bool {
        self.holds_text
    }

    /// Returns the time at which the request was created; retries do not change it.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Returns the deadline of the total timeout.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.began.checked_add(self.options.timeouts.total?)
    }

    /// Writes the body for servers of this format, reusing serialized messages that fit.
    pub(crate) fn body(
        &self,
        format: WireFormat,
        envelope: &Envelope,
        offer: Offer,
    ) -> RequestBody {
        let instructions = format.instructions(&self.messages);
        // They are of these very messages: whoever replaces the messages drops them.
        if let Some(Written { segments, last, .. }) =
            self.written.as_ref().filter(|written| written.format == format)
        {
            return envelope.body(instructions.as_deref(), segments, last, offer);
        }
        let (segments, last) = Transcript::of(format, &self.messages).bytes();
        envelope.body(instructions.as_deref(), &segments, &last, offer)
    }
}

impl PartialEq for ChatRequest {
    fn eq(&self, other: &Self) -> bool {
        self.options == other.options
            && self.messages == other.messages
            && self.offers_tools == other.offers_tools
            && self.holds_text == other.holds_text
            && self.conversation == other.conversation
            && self.id_seed == other.id_seed
    }
}

impl fmt::Debug for ChatRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatRequest")
            .field("model", &self.model())
            .field("messages", &self.messages.len())
            .field("tools", &self.tools().len())
            .field("conversation", &self.conversation)
            .finish_non_exhaustive()
    }
}

// Each service passes it on by value; up to this size it is copied without a call.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<ChatRequest>() <= 128);
