use std::error::Error as StdError;
use std::fmt;

/// The longest chain of causes that is followed, because a chain may be circular.
const CAUSES: usize = 16;

/// The error of a failed tool, in words for the model.
///
/// Converts from any error and from text, so `?` works on everything in a handler. For that it cannot implement
/// [`Error`](std::error::Error) itself. Keeps the messages of an error and its causes.
///
/// ```
/// use oa_tools::ToolError;
///
/// fn parse(text: &str) -> Result<u16, ToolError> {
///     if text.is_empty() {
///         return Err("the port is empty".into());
///     }
///     Ok(text.parse()?)
/// }
///
/// assert_eq!(parse("").unwrap_err().to_string(), "the port is empty");
/// assert_eq!(parse("x").unwrap_err().to_string(), "invalid digit found in string");
/// ```
#[derive(Clone)]
pub struct ToolError {
    message: String,
    causes: Vec<String>,
    retryable: Option<bool>,
}

impl ToolError {
    /// Creates an error with this message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), causes: Vec::new(), retryable: None }
    }

    /// Sets whether running the tool again may help. It only matters to the executor's retry policy, and by default
    /// there is none.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = Some(retryable);
        self
    }

    /// Adds context: `context` becomes the message, and the previous message the first cause.
    #[must_use]
    pub fn context(mut self, context: impl Into<String>) -> Self {
        let message = std::mem::replace(&mut self.message, context.into());
        self.causes.insert(0, message);
        self
    }

    /// Returns the message without its causes.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the messages of the causes, outermost first.
    #[must_use]
    pub fn causes(&self) -> &[String] {
        &self.causes
    }

    /// Returns whether running the tool again may help, if the handler [set](Self::retryable) it.
    #[must_use]
    pub fn retry_hint(&self) -> Option<bool> {
        self.retryable
    }
}

impl<E> From<E> for ToolError
where
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    fn from(error: E) -> Self {
        let error = error.into();
        let mut this = Self::new(error.to_string());
        let mut source = error.source();
        while let Some(cause) = source
            && this.causes.len() < CAUSES
        {
            this.causes.push(cause.to_string());
            source = cause.source();
        }
        this
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError")
            .field("message", &self.message)
            .field("causes", &self.causes)
            .field("retryable", &self.retryable)
            .finish()
    }
}

/// Writes the message and its causes, joined with `: `, skipping a cause already contained in the text before
/// it.
impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let mut before = &self.message;
        for cause in &self.causes {
            if !before.contains(&**cause) {
                write!(f, ": {cause}")?;
            }
            before = cause;
        }
        Ok(())
    }
}
