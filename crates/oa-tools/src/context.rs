use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::cancel::Cancel;
use crate::emission::{Emission, Emitter, LogLevel, Progress};
use crate::state::State;

/// What a call of a tool knows beside its arguments: which call it is, whether it is still wanted, what
/// the program shares with it, and where to tell how far it is.
///
/// ```
/// use oa_tools::{State, ToolContext};
///
/// struct Database(&'static str);
///
/// let cx = ToolContext::new("call_1", "search").with_state(State::new().with(Database("main")));
/// assert_eq!(cx.state::<Database>().map(|db| db.0), Some("main"));
/// cx.emit_progress((1, 3)); // nobody listens: costs nothing
/// ```
#[derive(Clone)]
pub struct ToolContext(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    call_id: String,
    tool_name: String,
    cancel: Cancel,
    state: State,
    emitter: Option<Arc<dyn Emitter>>,
}

impl ToolContext {
    /// Creates the context of a call that nobody cancels or listens to.
    #[must_use]
    pub fn new(call_id: impl Into<String>, tool_name: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            call_id: call_id.into(),
            tool_name: tool_name.into(),
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

    /// Sets what the program shares with the tool.
    #[must_use]
    pub fn with_state(mut self, state: State) -> Self {
        Arc::make_mut(&mut self.0).state = state;
        self
    }

    /// Sets who takes what the tool says while it runs.
    #[must_use]
    pub fn with_emitter(mut self, emitter: Arc<dyn Emitter>) -> Self {
        Arc::make_mut(&mut self.0).emitter = Some(emitter);
        self
    }

    /// Returns the id of the call.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.0.call_id
    }

    /// Returns the name that the tool was called by.
    #[must_use]
    pub fn tool_name(&self) -> &str {
        &self.0.tool_name
    }

    /// Returns the signal that tells the tool to stop.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.0.cancel
    }

    /// Returns whether the tool is to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancel.is_cancelled()
    }

    /// Returns the shared value of this type.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.state.get()
    }

    /// Returns all that the program shares with the tool.
    #[must_use]
    pub fn shared(&self) -> &State {
        &self.0.state
    }

    /// Returns whether anybody listens to what the tool says while it runs.
    #[must_use]
    pub fn is_emitting(&self) -> bool {
        self.0.emitter.is_some()
    }

    /// Tells how far the tool is: `(3, 8)`, a fraction such as `0.4`, or a [`Progress`].
    pub fn emit_progress(&self, progress: impl Into<Progress>) {
        if let Some(emitter) = &self.0.emitter {
            emitter.emit(Emission::Progress(progress.into()));
        }
    }

    /// Tells what the tool is doing now.
    ///
    /// The text is made only if somebody listens: `emit_status(format_args!("page {n}"))`.
    pub fn emit_status(&self, status: impl fmt::Display) {
        if let Some(emitter) = &self.0.emitter {
            emitter.emit(Emission::Status(status.to_string()));
        }
    }

    /// Tells a line for a log, of level [`Info`](LogLevel::Info).
    pub fn emit_log(&self, message: impl fmt::Display) {
        self.emit_log_at(LogLevel::Info, message);
    }

    /// Tells a line for a log.
    pub fn emit_log_at(&self, level: LogLevel, message: impl fmt::Display) {
        if let Some(emitter) = &self.0.emitter {
            emitter.emit(Emission::Log { level, message: message.to_string() });
        }
    }

    /// Tells anything, under a name of the tool's own.
    pub fn emit(&self, name: &str, data: Value) {
        self.emit_with(name, || data);
    }

    /// Tells anything, made only if somebody listens.
    pub fn emit_with(&self, name: &str, data: impl FnOnce() -> Value) {
        if let Some(emitter) = &self.0.emitter {
            emitter.emit(Emission::Custom { name: name.to_owned(), data: data() });
        }
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("call_id", &self.0.call_id)
            .field("tool_name", &self.0.tool_name)
            .field("cancel", &self.0.cancel)
            .field("state", &self.0.state)
            .field("is_emitting", &self.is_emitting())
            .finish_non_exhaustive()
    }
}
