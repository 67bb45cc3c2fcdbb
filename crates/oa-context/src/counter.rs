use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use oa_types::{ContentBlock, ImageDetail, Message, MessageRole, ToolResultBlock, ToolSpec};
use serde_json::Value;

/// Counts tokens, exactly or approximately.
///
/// Only [`count_text`](Self::count_text) is required; [`counter_fn`] makes a counter from a closure. The other
/// methods add the overhead given by [`costs`](Self::costs). They count the parts sent by default, without empty
/// messages, malformed calls, thinking (unless [`Costs::thinking`] is set) and the `extra` members of messages
/// and calls.
///
/// # Examples
///
/// ```
/// use oa_context::{Estimator, TokenCounter, counter_fn};
/// use oa_types::Message;
///
/// let counters: [Box<dyn TokenCounter>; 2] = [
///     Box::new(Estimator::new()),
///     Box::new(counter_fn(|text: &str| text.split_whitespace().count())),
/// ];
/// for counter in &counters {
///     assert_eq!(counter.count_text("one two three"), 3);
///     assert_eq!(counter.count_messages(&[Message::user("one two three")]), 3 + 4 + 3);
/// }
/// ```
pub trait TokenCounter: Send + Sync {
    /// Counts the tokens of a text.
    fn count_text(&self, text: &str) -> usize;

    /// Counts the tokens of a JSON value written without spaces.
    fn count_json(&self, value: &Value) -> usize {
        self.count_text(&value.to_string())
    }

    /// Returns the overhead added to texts.
    fn costs(&self) -> Costs {
        Costs::default()
    }

    /// Counts the tokens of one message, including overhead.
    fn count_message(&self, message: &Message) -> usize {
        let costs = self.costs();
        let mut count = 0_usize;
        let mut speaks = false;
        let mut add = |tokens: usize| count = count.saturating_add(tokens);
        let (is_assistant, is_tool) =
            (message.role == MessageRole::Assistant, message.role == MessageRole::Tool);
        for block in &message.content {
            match block {
                ContentBlock::Text(block) if !is_tool && !block.text.is_empty() => {
                    speaks = true;
                    add(self.count_text(&block.text));
                }
                ContentBlock::Image(image) if !is_tool && !is_assistant => {
                    speaks = true;
                    add(costs.image(image.detail));
                }
                ContentBlock::Audio(audio) if !is_tool && !is_assistant => {
                    speaks = true;
                    add(costs.audio.saturating_mul(audio.size().div_ceil(1 << 10)));
                }
                ContentBlock::ToolUse(call) if is_assistant => {
                    speaks = true;
                    add(costs.call);
                    add(self.count_text(&call.name));
                    add(self.count_json(&call.input));
                }
                // Each result is sent as a separate message.
                ContentBlock::ToolResult(result) => {
                    add(costs.message.saturating_add(costs.result));
                    add(count_result(self, result));
                    result.images.iter().for_each(|image| add(costs.image(image.detail)));
                    // Images are sent in a separate user message, after a line that names their call.
                    if !result.images.is_empty() {
                        add(costs.message.saturating_add(IMAGES));
                    }
                }
                _ => {}
            }
        }
        // Results have brought the cost of their messages, and a message that says nothing is not sent.
        if !speaks {
            return count;
        }
        add(costs.message);
        if costs.thinking && is_assistant {
            for block in &message.content {
                if let ContentBlock::Thinking(block) = block {
                    add(self.count_text(&block.thinking));
                }
            }
        }
        count
    }

    /// Counts the tokens of a conversation as it is sent; 0 if it is empty.
    fn count_messages(&self, messages: &[Message]) -> usize {
        if messages.is_empty() {
            return 0;
        }
        let counts = messages.iter().map(|message| self.count_message(message));
        counts.fold(self.costs().reply, usize::saturating_add)
    }

    /// Counts the tokens of the tools offered in a request; 0 without tools.
    fn count_tools(&self, tools: &[ToolSpec]) -> usize {
        if tools.is_empty() {
            return 0;
        }
        let costs = self.costs();
        let count = |tool: &ToolSpec| {
            let texts = [self.count_text(&tool.name), self.count_text(&tool.description)];
            let texts = texts.into_iter().fold(costs.tool, usize::saturating_add);
            texts.saturating_add(self.count_json(&tool.parameters))
        };
        tools.iter().map(count).fold(costs.tools, usize::saturating_add)
    }
}

/// The approximate tokens of the text around the images of a result.
const IMAGES: usize = 24;

/// Strings are sent as they are, other results as JSON.
fn count_result<C: TokenCounter + ?Sized>(counter: &C, result: &ToolResultBlock) -> usize {
    match &result.content {
        Value::String(text) => counter.count_text(text),
        value => counter.count_json(value),
    }
}

/// The token overhead of a request, which depends on the model's chat template and image encoder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Costs {
    /// Per message: role, start and end. 4 by default.
    pub message: usize,
    /// Once: the start of the answer. 3 by default.
    pub reply: usize,
    /// Per call, in addition to its name and arguments. 10 by default.
    pub call: usize,
    /// Per result, in addition to the overhead of a message. 4 by default.
    pub result: usize,
    /// Per tool, in addition to its name, description and schema. 16 by default.
    pub tool: usize,
    /// Once, if there are tools: instructions for calling them. 80 by default.
    pub tools: usize,
    /// An image in low resolution. 85 by default.
    pub image_low: usize,
    /// An image in the resolution chosen by the server. 765 by default.
    pub image_auto: usize,
    /// An image in full resolution. 1,105 by default.
    pub image_high: usize,
    /// A KiB of audio. 1 by default: 31 for a second of 16-bit mono at 16 kHz.
    pub audio: usize,
    /// True if thinking is sent back to the model. `false` by default, like the default for requests.
    pub thinking: bool,
}

impl Costs {
    fn image(&self, detail: ImageDetail) -> usize {
        match detail {
            ImageDetail::High => self.image_high,
            ImageDetail::Low => self.image_low,
            _ => self.image_auto,
        }
    }
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            message: 4,
            reply: 3,
            call: 10,
            result: 4,
            tool: 16,
            tools: 80,
            image_low: 85,
            image_auto: 765,
            image_high: 1_105,
            audio: 1,
            thinking: false,
        }
    }
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<C: TokenCounter + ?Sized> TokenCounter for $pointer {
            fn count_text(&self, text: &str) -> usize {
                (**self).count_text(text)
            }

            fn count_json(&self, value: &Value) -> usize {
                (**self).count_json(value)
            }

            fn costs(&self) -> Costs {
                (**self).costs()
            }

            fn count_message(&self, message: &Message) -> usize {
                (**self).count_message(message)
            }

            fn count_messages(&self, messages: &[Message]) -> usize {
                (**self).count_messages(messages)
            }

            fn count_tools(&self, tools: &[ToolSpec]) -> usize {
                (**self).count_tools(tools)
            }
        }
    )*};
}

forward!(&C, Arc<C>, Box<C>);

/// Creates a counter from a closure that counts the tokens of a text.
pub fn counter_fn<F>(count: F) -> CounterFn<F>
where
    F: Fn(&str) -> usize + Send + Sync,
{
    CounterFn { costs: Costs::default(), count }
}

/// A counter made from a closure; see [`counter_fn`].
#[derive(Clone)]
pub struct CounterFn<F> {
    costs: Costs,
    count: F,
}

impl<F> CounterFn<F> {
    /// Sets the token overhead.
    #[must_use]
    pub fn with_costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }
}

impl<F: Fn(&str) -> usize + Send + Sync> TokenCounter for CounterFn<F> {
    fn count_text(&self, text: &str) -> usize {
        (self.count)(text)
    }

    fn costs(&self) -> Costs {
        self.costs
    }
}

impl<F> fmt::Debug for CounterFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CounterFn")
            .field("costs", &self.costs)
            .field("count", &format_args!("{}", type_name::<F>()))
            .finish()
    }
}
