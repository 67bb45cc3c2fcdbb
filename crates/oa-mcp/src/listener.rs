use std::sync::Arc;

use oa_tools::LogLevel;

type LogFn = dyn Fn(LogLevel, &str) + Send + Sync;

/// The receiver of a server's log notifications.
#[derive(Clone)]
pub(crate) struct OnLog(Arc<LogFn>);

impl OnLog {
    pub(crate) fn new(on_log: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(on_log))
    }

    pub(crate) fn call(&self, level: LogLevel, text: &str) {
        (self.0)(level, text);
    }
}

#[derive(Clone)]
pub(crate) struct OnStderr(Arc<dyn Fn(&str) + Send + Sync>);

impl OnStderr {
    pub(crate) fn new(on_stderr: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(on_stderr))
    }

    pub(crate) fn call(&self, line: &str) {
        (self.0)(line);
    }
}
