use std::sync::{Arc, PoisonError, RwLock};

use oa_redact::Secrets;

/// The secrets of one server: those of its configuration, and the keys that a callback has returned since.
pub(crate) struct KnownSecrets(RwLock<Arc<Secrets>>);

impl KnownSecrets {
    pub(crate) fn new(configured: Secrets) -> Self {
        Self(RwLock::new(Arc::new(configured)))
    }

    pub(crate) fn get(&self) -> Arc<Secrets> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    #[cfg(feature = "http")]
    pub(crate) fn add_key(&self, key: &str) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // A callback may return the same key for each request.
        if known.spans(key).first() != Some(&(0..key.len())) {
            Arc::make_mut(&mut known).add_key(key);
        }
    }
}
