use std::fmt;
use std::sync::{Arc, OnceLock};

/// The idempotency key of a call: a text, or a closure that computes it when a tool first asks for it.
///
/// Cheap to clone. Clones share the text, which is computed at most once.
///
/// ```
/// use oa_tools::IdempotencyKey;
///
/// assert_eq!(IdempotencyKey::from("order-17").as_str(), "order-17");
/// let key = IdempotencyKey::lazy(|| format!("order-{}", 18)); // nothing is formatted yet
/// assert_eq!(key.as_str(), "order-18");
/// ```
#[derive(Clone)]
pub struct IdempotencyKey(Arc<dyn Source>);

impl IdempotencyKey {
    /// Creates a key that is computed on first use and then kept.
    pub fn lazy(compute: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(Lazy { text: OnceLock::new(), compute }))
    }

    /// Returns the text of the key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.text()
    }
}

impl From<String> for IdempotencyKey {
    fn from(text: String) -> Self {
        Self(Arc::new(text))
    }
}

impl From<&str> for IdempotencyKey {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the text: showing it would compute it.
        f.debug_struct("IdempotencyKey").finish_non_exhaustive()
    }
}

/// The source of a key's text. One allocation holds the closure and its result.
trait Source: Send + Sync {
    fn text(&self) -> &str;
}

impl Source for String {
    fn text(&self) -> &str {
        self
    }
}

struct Lazy<F> {
    text: OnceLock<String>,
    compute: F,
}

impl<F: Fn() -> String + Send + Sync> Source for Lazy<F> {
    fn text(&self) -> &str {
        self.text.get_or_init(&self.compute)
    }
}
