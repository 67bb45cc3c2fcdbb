//! Failures that end the program.

use std::error::Error as StdError;
use std::fmt;
use std::process::ExitCode;

use open_agent::ErrorKind;

use crate::settings::SettingsError;

/// A failure: a message for the user, and the exit status of the program.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    status: u8,
    is_silent: bool,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// The exit status after Ctrl-C, by the convention of shells.
const INTERRUPTED: u8 = 130;
/// The exit status after the reader of the output is gone, by the convention of shells.
const BROKEN_PIPE: u8 = 141;

impl Failure {
    /// Creates a failure.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: 1, is_silent: false }
    }

    /// Creates a failure for wrong usage.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: 2, is_silent: false }
    }

    /// Creates a failure for a run that the user stopped.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: INTERRUPTED, is_silent: false }
    }

    /// Prefixes the message with the file, address or line that it is about.
    pub(crate) fn at(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Adds advice for the user.
    pub(crate) fn advise(mut self, advice: &str) -> Self {
        self.message = format!("{}\n{advice}", self.message);
        self
    }

    /// Returns true if nothing is to be printed, because the reader of the output has closed it.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&open_agent::redact::printable(&self.message))
    }
}

/// Returns an error with its causes.
pub(crate) fn with_causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let told = error.to_string();
        // "connection refused: Connection refused (os error 111)" says it twice.
        let said = told.split(" (os error").next().unwrap_or(&told).to_lowercase();
        if !text.to_lowercase().contains(&said) {
            text.push_str(": ");
            text.push_str(&told);
        }
        cause = error.source();
    }
    text
}

impl From<open_agent::Error> for Failure {
    fn from(error: open_agent::Error) -> Self {
        match error.kind() {
            ErrorKind::Config | ErrorKind::InvalidInput => Self::usage(with_causes(&error)),
            _ => Self::new(with_causes(&error)),
        }
    }
}

impl From<open_agent::session::Error> for Failure {
    fn from(error: open_agent::session::Error) -> Self {
        Self::new(with_causes(&error))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self { message: error.to_string(), status: BROKEN_PIPE, is_silent: true };
        }
        // Such as an address without a port.
        let is_usage = error.kind() == std::io::ErrorKind::InvalidInput;
        if is_usage { Self::usage(error.to_string()) } else { Self::new(error.to_string()) }
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::usage(error.to_string())
    }
}
