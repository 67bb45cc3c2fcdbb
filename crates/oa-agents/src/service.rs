use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use oa_client::{AgentEvent, AgentOptions, Client, Error, Result};
use oa_types::Message;
use tower::Service;

/// An agent as a tower `Service` from a prompt to a stream of events.
///
/// Each prompt starts a new conversation over the shared connection pool. It works with tower's limits, timeouts,
/// buffers and balancers. To them, a call ends when the answer begins; the rest of the answer is in the stream.
///
/// ```
/// use oa_agents::AgentService;
/// use oa_client::{AgentEvent, AgentOptions};
/// use oa_testkit::{MemoryServer, Reply};
/// use oa_types::{ContentBlock, Message};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let options = AgentOptions::builder()
///     .model("any")
///     .transport(MemoryServer::new(Reply::text("Hello!"))) // leave this out for a real server
///     .build()?;
/// let agent = ServiceBuilder::new()
///     .map_request(|prompt: &str| Message::user(prompt))
///     .service(AgentService::new(options));
///
/// let mut events = agent.oneshot("Say hello.").await?;
/// let mut text = String::new();
/// while let Some(event) = events.next().await {
///     if let AgentEvent::Block(ContentBlock::Text(block)) = event? {
///         text += &block.text;
///     }
/// }
/// assert_eq!(text, "Hello!");
/// # Ok(())
/// # }
/// ```
///
/// With tower's features `limit` and `timeout`: ten prompts per minute, at most two that wait for their answer to
/// begin, each for at most a minute:
///
/// ```
/// # use std::time::Duration;
/// # use oa_agents::AgentService;
/// # use oa_client::AgentOptions;
/// # use oa_testkit::{MemoryServer, Reply};
/// # use oa_types::Message;
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// # let server = MemoryServer::new(Reply::text("Hello!"));
/// # let options = AgentOptions::builder().model("any").transport(server).build()?;
/// let mut agent = ServiceBuilder::new()
///     .rate_limit(10, Duration::from_secs(60))
///     .concurrency_limit(2)
///     .timeout(Duration::from_secs(60))
///     .service(AgentService::new(options));
/// let events = agent.ready().await?.call(Message::user("Say hello.")).await?;
/// # drop(events);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AgentService {
    options: AgentOptions,
    history: Vec<Message>,
}

impl AgentService {
    /// Creates a service whose conversations start empty.
    #[must_use]
    pub fn new(options: AgentOptions) -> Self {
        Self { options, history: Vec::new() }
    }

    /// Sets the messages that each conversation starts with.
    #[must_use]
    pub fn with_history(mut self, messages: Vec<Message>) -> Self {
        self.history = messages;
        self
    }
}

impl Service<Message> for AgentService {
    type Response = AgentStream;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<AgentStream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, prompt: Message) -> Self::Future {
        let Self { options, history } = self.clone();
        Box::pin(async move {
            let mut client = Client::with_history(options, history)?;
            client.send_message(prompt).await?;
            Ok(AgentStream { client, is_over: false })
        })
    }
}

/// The response of [`AgentService`]: the events of one turn, and its conversation.
///
/// It ends with the turn, or after an error.
///
/// # Cancel safety
///
/// Dropping a pending [`next`](Self::next) loses nothing. Dropping the stream closes the connection and cancels
/// running tools.
#[must_use = "streams do nothing unless polled"]
pub struct AgentStream {
    client: Client,
    is_over: bool,
}

impl AgentStream {
    /// Waits for the next event.
    ///
    /// # Panics
    ///
    /// When polled outside of a tokio runtime, or in one without time or I/O.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<AgentEvent>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns the client that runs this turn.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the client, to read the rest of the turn or to continue the conversation.
    #[must_use]
    pub fn into_client(self) -> Client {
        self.client
    }
}

impl Stream for AgentStream {
    type Item = Result<AgentEvent>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let event = ready!(self.client.poll_event(cx)).transpose();
        // A client can go on after an error; this stream is one turn, and ends.
        self.is_over = !matches!(event, Some(Ok(_)));
        Poll::Ready(event)
    }
}

impl fmt::Debug for AgentStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentStream").field("client", &self.client).finish_non_exhaustive()
    }
}
