use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};

use oa_types::{ContentBlock, Message};

use crate::error::Error;
use crate::saved::SavedSession;

/// A conversation in progress that a [`SavedSession`] can [follow](SavedSession::follow). `Client` implements this
/// with the feature `session` of `oa-client`.
pub trait Follow {
    /// An event of the conversation.
    type Event;
    /// The error that a failed turn returns.
    type Error;

    /// Polls for the next event. It also stops at each checkpoint, once: after the last result of each step, and
    /// before it returns the end of the turn.
    ///
    /// # Errors
    ///
    /// The error that ended the turn.
    fn poll_progress(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<FollowProgress<Self::Event>, Self::Error>>;

    /// Returns the conversation.
    fn messages(&self) -> &[Message];

    /// Returns the block of an event, if it has one.
    fn block(event: Self::Event) -> Option<ContentBlock>;
}

/// Progress of a conversation, returned by [`Follow::poll_progress`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "whoever follows must handle each")]
pub enum FollowProgress<E> {
    /// A checkpoint: the conversation is worth saving.
    Checkpoint,
    /// An event.
    Event(E),
    /// No turn is in progress.
    Over,
}

/// A turn that is saved while it runs, returned by [`SavedSession::follow`].
///
/// It forwards the events of the turn. It saves the conversation before the first event, after each step, and at the
/// end of the turn, also if the turn fails, and even if calls wait for permission or results (like [`save_waiting`](SavedSession::save_waiting)).
/// If the program dies, it loses at most one answer of the model, together with the results of its calls and any
/// answers that hooks refused before it.
///
/// # Errors of the store
///
/// A store error is returned once, as [`FollowError::Store`]. No event is lost, and the turn is not affected: call
/// again to continue. The next checkpoint saves everything. If another program has written to the session, every save
/// is a conflict until [`SavedSession::reload`].
///
/// # Cancel safety
///
/// Dropping a pending future loses nothing: the next call saves whatever is due and continues. Dropping the handle
/// leaves the turn in progress: save its end yourself, or follow it again.
#[must_use = "nothing is saved unless the events are read"]
pub struct Following<'a, C: Follow> {
    saved: &'a mut SavedSession,
    conversation: &'a mut C,
    /// True if the conversation must be saved before anything else.
    is_due: bool,
    /// The error that ended the turn, until the conversation is saved.
    failure: Option<C::Error>,
}

/// The error of a [`Following`].
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there are these two parts")]
pub enum FollowError<E> {
    /// The turn failed.
    Conversation(E),
    /// The conversation could not be saved. The turn is not affected.
    Store(Error),
}

impl SavedSession {
    /// Follows a turn in progress: returns a handle that forwards its events and saves the conversation after each
    /// step. Call it after `send`, or after any other method that begins a turn.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use std::task::{Context, Poll};
    /// # use oa_session::{Follow, FollowProgress, MemoryStore, NewSession, SavedSession, SessionId, Timestamp};
    /// # use oa_types::{ContentBlock, Message};
    /// # struct Client(Vec<Message>, u8);
    /// # impl Follow for Client {
    /// #     type Event = u8;
    /// #     type Error = std::convert::Infallible;
    /// #     fn poll_progress(&mut self, _: &mut Context<'_>) -> Poll<Result<FollowProgress<u8>, Self::Error>> {
    /// #         self.1 += 1;
    /// #         Poll::Ready(Ok(match self.1 {
    /// #             1 => { self.0.push(Message::assistant(vec![])); FollowProgress::Checkpoint }
    /// #             2 => FollowProgress::Event(2),
    /// #             _ => FollowProgress::Over,
    /// #         }))
    /// #     }
    /// #     fn messages(&self) -> &[Message] { &self.0 }
    /// #     fn block(_: u8) -> Option<ContentBlock> { None }
    /// # }
    /// # oa_session::contract::block_on(async {
    /// # let store = Arc::new(MemoryStore::new());
    /// # let new = NewSession::new(SessionId::new("chat-1")?, Timestamp::now());
    /// # let mut client = Client(vec![Message::user("Hi")], 0);
    /// let mut saved = SavedSession::open_or_create(store, new).await?;
    /// // client.send("Hi").await?;
    /// let mut turn = saved.follow(&mut client);
    /// while let Some(event) = turn.next_event().await.expect("neither the turn nor the store fails") {
    ///     println!("{event:?}");
    /// }
    /// assert_eq!(saved.session().messages.len(), 2);
    /// # Ok::<(), oa_session::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn follow<'a, C: Follow>(&'a mut self, conversation: &'a mut C) -> Following<'a, C> {
        // The prompt is worth saving, too.
        Following { saved: self, conversation, is_due: true, failure: None }
    }
}

impl<C: Follow> Following<'_, C> {
    /// Waits for the next event; `None` if the turn has ended or waits for the caller.
    ///
    /// # Errors
    ///
    /// `Conversation` with the error that ended the turn; `Store` if the conversation could not be saved. If both fail,
    /// the next call returns the first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next_event(&mut self) -> Result<Option<C::Event>, FollowError<C::Error>> {
        loop {
            if self.is_due {
                // If this future is dropped here, the save is still due and the next call repeats it. After
                // an error it is not: the error is reported once, and the next checkpoint saves everything.
                let saving = self.saved.save_waiting_now(self.conversation.messages()).await;
                self.is_due = false;
                saving.map_err(FollowError::Store)?;
            }
            if let Some(error) = self.failure.take() {
                return Err(FollowError::Conversation(error));
            }
            match poll_fn(|cx| self.conversation.poll_progress(cx)).await {
                Ok(FollowProgress::Checkpoint) => self.is_due = true,
                Ok(FollowProgress::Event(event)) => return Ok(Some(event)),
                Ok(FollowProgress::Over) => return Ok(None),
                // A failure may have taken the prompt back, so it is saved before it is returned.
                Err(error) => (self.is_due, self.failure) = (true, Some(error)),
            }
        }
    }

    /// Waits for the next block; `None` if the turn has ended or waits for the caller. Other events are dropped.
    ///
    /// # Errors
    ///
    /// The same as [`next_event`](Self::next_event).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn receive(&mut self) -> Result<Option<ContentBlock>, FollowError<C::Error>> {
        while let Some(event) = self.next_event().await? {
            if let Some(block) = C::block(event) {
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    /// Runs the turn to its end and discards its events.
    ///
    /// # Errors
    ///
    /// The first error of [`next_event`](Self::next_event). After a store error the turn is still in progress:
    /// [follow](SavedSession::follow) it again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses only events.
    pub async fn finish(mut self) -> Result<(), FollowError<C::Error>> {
        while self.next_event().await?.is_some() {}
        Ok(())
    }

    /// Returns the conversation.
    #[must_use]
    pub fn get_ref(&self) -> &C {
        self.conversation
    }

    /// Returns the conversation, to interrupt or steer it.
    pub fn get_mut(&mut self) -> &mut C {
        self.conversation
    }
}

impl<C: Follow + fmt::Debug> fmt::Debug for Following<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Following")
            .field("saved", &self.saved)
            .field("conversation", &self.conversation)
            .field("is_due", &self.is_due)
            .finish_non_exhaustive()
    }
}

impl<E: fmt::Display> fmt::Display for FollowError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conversation(error) => error.fmt(f),
            Self::Store(error) => write!(f, "the conversation could not be saved: {error}"),
        }
    }
}

impl<E: std::error::Error> std::error::Error for FollowError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Conversation(error) => error.source(),
            Self::Store(error) => error.source(),
        }
    }
}
