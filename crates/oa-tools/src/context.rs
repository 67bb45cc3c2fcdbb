use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use oa_types::ImageBlock;
use serde_json::Value;

use crate::cancel::Cancel;
use crate::emission::{Emission, Emitter, LogLevel, Progress};
use crate::idempotency::IdempotencyKey;
use crate::images::{Images, MAX_IMAGE_BYTES, MAX_IMAGES};
use crate::state::State;
use crate::tool_error::ToolError;

/// The context of a tool call: its id and idempotency key, a cancellation signal, the program's shared state, and a
/// channel for progress.
///
/// ```
/// use oa_tools::{State, ToolContext};
///
/// struct Database(&'static str);
///
/// let cx = ToolContext::new("call_1", "search").with_state(State::new().with(Database("main")));
/// assert_eq!(cx.state::<Database>().map(|db| db.0), Some("main"));
/// cx.emit_progress((1, 3)); // no listener: costs nothing
/// ```
#[derive(Clone)]
pub struct ToolContext(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    call: Arc<Call>,
    key: Option<IdempotencyKey>,
    cancel: Cancel,
    state: State,
    emitter: Option<Arc<dyn Emitter>>,
}

/// The call, shared by the contexts of its attempts.
struct Call {
    id: String,
    tool_name: String,
    images: Images,
}

impl ToolContext {
    /// The largest number of images that one call may attach: 16.
    pub const MAX_IMAGES: usize = MAX_IMAGES;

    /// The largest size of all images that one call attaches: 32 MiB, counted in their URLs.
    pub const MAX_IMAGE_BYTES: usize = MAX_IMAGE_BYTES;

    /// Creates a context that is never canceled and has no listener.
    #[must_use]
    pub fn new(call_id: impl Into<String>, tool_name: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            call: Arc::new(Call {
                id: call_id.into(),
                tool_name: tool_name.into(),
                images: Images::default(),
            }),
            key: None,
            cancel: Cancel::new(),
            state: State::new(),
            emitter: None,
        }))
    }

    /// Sets the signal that tells the tool to stop.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        Arc::make_mut(&mut self.0).cancel = cancel;
        self
    }

    /// Sets the [idempotency key](Self::idempotency_key). Contexts of the same call must get equal keys, and contexts
    /// of different calls different ones.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: impl Into<IdempotencyKey>) -> Self {
        Arc::make_mut(&mut self.0).key = Some(key.into());
        self
    }

    /// Sets the state shared with the tool.
    #[must_use]
    pub fn with_state(mut self, state: State) -> Self {
        Arc::make_mut(&mut self.0).state = state;
        self
    }

    /// Sets the receiver of progress, status and log output.
    #[must_use]
    pub fn with_emitter(mut self, emitter: Arc<dyn Emitter>) -> Self {
        Arc::make_mut(&mut self.0).emitter = Some(emitter);
        self
    }

    /// Returns the id of the call.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.0.call.id
    }

    /// Returns the name by which the tool was called.
    #[must_use]
    pub fn tool_name(&self) -> &str {
        &self.0.call.tool_name
    }

    /// Returns the idempotency key of the call, for tools with side effects. Pass it to a service that accepts one, or
    /// record it together with the effect and do nothing if it is already recorded.
    ///
    /// Every attempt of the call sees the same key, and so does each replay in another process. No other call has the
    /// same key, not even a call of the same tool with the same input. The key does not tell whether the call has run
    /// before. `None` if the caller of the tool sets no key.
    ///
    /// ```
    /// use oa_tools::ToolContext;
    ///
    /// let cx = ToolContext::new("call_1", "pay").with_idempotency_key("chat-7:1:0:9f86d081884c7d65");
    /// let header = cx.idempotency_key().map(|key| ("idempotency-key", key));
    /// assert!(header.is_some());
    /// ```
    #[must_use]
    pub fn idempotency_key(&self) -> Option<&str> {
        self.0.key.as_ref().map(IdempotencyKey::as_str)
    }

    /// Returns the signal that tells the tool to stop.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.0.cancel
    }

    /// Returns true if the tool should stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancel.is_cancelled()
    }

    /// Returns the shared value of this type.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.state.get()
    }

    /// Returns the shared value of this type, for a tool that cannot work without it.
    ///
    /// ```
    /// use oa_tools::{ToolContext, ToolError};
    ///
    /// struct Database;
    ///
    /// fn search(cx: &ToolContext) -> Result<(), ToolError> {
    ///     let _database = cx.require_state::<Database>()?;
    ///     Ok(())
    /// }
    /// # let error = search(&ToolContext::new("call_1", "search")).unwrap_err();
    /// # assert!(error.message().ends_with("Database"));
    /// ```
    ///
    /// # Errors
    ///
    /// Names the type that is missing. Running the tool again does not help.
    pub fn require_state<T: Send + Sync + 'static>(&self) -> Result<&T, ToolError> {
        self.state().ok_or_else(|| {
            let message = format!("this agent has no state of type {}", type_name::<T>());
            ToolError::new(message).retryable(false)
        })
    }

    /// Returns all shared state.
    #[must_use]
    pub fn shared(&self) -> &State {
        &self.0.state
    }

    /// Attaches an image to the result of the call, such as a screenshot: the model sees it with the result, after
    /// images attached before. Attach before the tool returns. The images of a failed attempt are dropped.
    ///
    /// ```
    /// use oa_tools::tool;
    /// use oa_types::ImageBlock;
    /// use serde_json::json;
    ///
    /// let screenshot = tool("screenshot", "Shows the screen").build_with_context(|_, cx| async move {
    ///     cx.attach_image(ImageBlock::from_file_path("screen.png")?)?;
    ///     Ok(json!("This is the screen."))
    /// });
    /// # drop(screenshot);
    /// ```
    ///
    /// # Errors
    ///
    /// If the call already has [`MAX_IMAGES`](Self::MAX_IMAGES) images, if their URLs together would be longer than
    /// [`MAX_IMAGE_BYTES`](Self::MAX_IMAGE_BYTES), or if the call was canceled. Running the tool again does not help.
    pub fn attach_image(&self, image: ImageBlock) -> Result<(), ToolError> {
        self.0.call.images.add(image, &self.0.cancel)
    }

    /// Takes the images attached so far, for code that runs calls itself.
    #[must_use]
    pub fn take_images(&self) -> Vec<ImageBlock> {
        self.0.call.images.take()
    }

    /// Returns true if there is a receiver for the tool's output.
    #[must_use]
    pub fn is_emitting(&self) -> bool {
        self.0.emitter.is_some()
    }

    /// Reports progress: `(3, 8)`, a fraction such as `0.4`, or a [`Progress`].
    pub fn emit_progress(&self, progress: impl Into<Progress>) {
        if let Some(emitter) = &self.0.emitter {
            emitter.emit(Emission::Progress(progress.into()));
        }
    }

    /// Reports the tool's current activity.
    ///
    /// The text is only formatted if there is a listener: `emit_status(format_args!("page {n}"))`.
    pub fn emit_status(&self, status: impl fmt::Display) {
        if let Some(emitter) = &self.0.emitter {
            emitter.emit(Emission::Status(status.to_string()));
        }
    }

    /// Emits a log line at level [`Info`](LogLevel::Info).
    pub fn emit_log(&self, message: impl fmt::Display) {
        self.emit_log_at(LogLevel::Info, message);
    }

    /// Emits a log line.
    pub fn emit_log_at(&self, level: LogLevel, message: impl fmt::Display) {
        if let Some(emitter) = &self.0.emitter {
            emitter.emit(Emission::Log { level, message: message.to_string() });
        }
    }

    /// Emits custom data under a name chosen by the tool.
    pub fn emit(&self, name: &str, data: Value) {
        self.emit_with(name, || data);
    }

    /// Emits custom data, computed only if there is a listener.
    pub fn emit_with(&self, name: &str, data: impl FnOnce() -> Value) {
        if let Some(emitter) = &self.0.emitter {
            emitter.emit(Emission::Custom { name: name.to_owned(), data: data() });
        }
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("call_id", &self.call_id())
            .field("tool_name", &self.tool_name())
            .field("key", &self.0.key)
            .field("cancel", &self.0.cancel)
            .field("state", &self.0.state)
            .field("is_emitting", &self.is_emitting())
            .finish_non_exhaustive()
    }
}
