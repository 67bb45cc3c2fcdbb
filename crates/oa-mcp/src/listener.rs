use std::sync::Arc;

use oa_contain::{Panic, contain};
use oa_tools::LogLevel;

type LogFn = dyn Fn(LogLevel, &str) + Send + Sync;

/// The receiver of a server's log notifications.
#[derive(Clone)]
pub(crate) struct OnLog(Arc<LogFn>);

impl OnLog {
    pub(crate) fn new(on_log: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(on_log))
    }

    /// Calls it; the error describes its panic.
    pub(crate) fn call(&self, level: LogLevel, text: &str) -> Result<(), String> {
        guarded("on_log", || (self.0)(level, text))
    }
}

#[derive(Clone)]
pub(crate) struct OnStderr(Arc<dyn Fn(&str) + Send + Sync>);

impl OnStderr {
    pub(crate) fn new(on_stderr: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(on_stderr))
    }

    /// Calls it; the error describes its panic.
    pub(crate) fn call(&self, line: &str) -> Result<(), String> {
        guarded("on_stderr", || (self.0)(line))
    }
}

/// Runs a callback on a task that reads from the server: its panic would end the task, and leave calls without their
/// answers.
pub(crate) fn guarded(name: &str, run: impl FnOnce()) -> Result<(), String> {
    contain(run).map_err(|panic| panicked(name, &panic))
}

/// Describes the panic of a callback.
pub(crate) fn panicked(name: &str, panic: &Panic) -> String {
    match panic.excerpt() {
        Some(why) => format!("the callback {name} panicked: {why}"),
        None => format!("the callback {name} panicked"),
    }
}
