//! Facts learned about a server from its answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use oa_aggregate::TemplateCache;
use oa_output::FormatRequest;
use oa_types::wire::Demands;

use crate::negotiation::Lessons;
use crate::server_traits::KnownModel;

/// The facts learned about a server, shared by all its users.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// It rejects requests for usage (QUIRKS row 74).
    refuses_usage: AtomicBool,
    /// Models that do not support tools, according to the server (QUIRKS row 81).
    pub(crate) without_tools: ByModel<()>,
    /// Models that accept no tool choice (QUIRKS row 130).
    pub(crate) without_choice: ByModel<()>,
    /// The way to request a format, for models for which a stricter one was rejected.
    pub(crate) format: ByModel<FormatRequest>,
    /// The demands on the form of requests for models.
    pub(crate) demands: ByModel<Demands>,
    /// The server's chunk templates, one set for each answer that ran concurrently.
    templates: Mutex<Vec<TemplateCache>>,
}

/// The maximum number of stored template sets. Further concurrent answers learn their own templates.
const MOST_CACHES: usize = 8;

impl Learned {
    /// Creates the facts known from a profile.
    pub(crate) fn of(known: Option<&KnownModel>) -> Self {
        let learned = Self::default();
        let Some(known) = known else { return learned };
        if known.lacks_tools {
            learned.without_tools.note(&known.name, ());
        }
        if known.keeps_schema == Some(false) {
            learned.format.note(&known.name, FormatRequest::Object);
        }
        learned
    }

    /// Returns `true` unless the server is known to reject requests for usage.
    pub(crate) fn takes_usage(&self) -> bool {
        !self.refuses_usage.load(Ordering::Relaxed)
    }

    /// Records what an answer revealed about the server and a model.
    pub(crate) fn note(&self, model: &str, lessons: &Lessons) {
        if lessons.refuses_usage {
            self.refuses_usage.store(true, Ordering::Relaxed);
        }
        if lessons.refuses_tools {
            self.without_tools.note(model, ());
        }
        if lessons.refuses_choice {
            self.without_choice.note(model, ());
        }
        if let Some(format) = lessons.format {
            self.format.note(model, format);
        }
        if let Some(demands) = lessons.demands {
            self.demands.note(model, demands);
        }
    }

    /// Takes the templates for an answer; only one answer has them at a time.
    pub(crate) fn take_templates(&self) -> TemplateCache {
        self.templates().pop().unwrap_or_default()
    }

    /// Keeps the templates of an answer that ended well, for the next.
    pub(crate) fn keep_templates(&self, templates: TemplateCache) {
        let mut kept = self.templates();
        if kept.len() < MOST_CACHES {
            kept.push(templates);
        }
    }

    fn templates(&self) -> MutexGuard<'_, Vec<TemplateCache>> {
        self.templates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Facts about models, by name; bounded, because any name can be set.
#[derive(Debug)]
pub(crate) struct ByModel<T>(Mutex<Vec<(String, T)>>);

/// The maximum number of models.
const MOST: usize = 64;

impl<T: Copy> ByModel<T> {
    pub(crate) fn get(&self, model: &str) -> Option<T> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(name, _)| name == model).map(|(_, what)| *what)
    }

    /// Records a fact, replacing an earlier one.
    pub(crate) fn note(&self, model: &str, what: T) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Oldest first: a model that is noted again moves to the end.
        known.retain(|(name, _)| name != model);
        if known.len() == MOST {
            known.remove(0);
        }
        known.push((model.to_owned(), what));
    }
}

impl<T> Default for ByModel<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use oa_testkit::{MemoryServer, Reply, Script};
    use oa_types::Message;
    use tower::Service;

    use super::*;
    use crate::{AnswerDelta, AnswerStream, ChatRequest, Endpoint, Result};

    fn endpoint(script: impl Into<Script>) -> Endpoint {
        let server = MemoryServer::new(script);
        Endpoint::builder().base_url("http://gpu/v1").transport(server).build().expect("it can be")
    }

    async fn begun(endpoint: &Endpoint) -> AnswerStream {
        let request = ChatRequest::new("any", vec![Message::user("Go.")]);
        endpoint.clone().call(request).await.expect("the head comes")
    }

    async fn asked(endpoint: &Endpoint) -> Result<String> {
        Ok(begun(endpoint).await.message().await?.text())
    }

    /// Returns the templates of as many answers as came at once, each with how many there are.
    fn kept(endpoint: &Endpoint) -> Vec<String> {
        endpoint.0.learned.templates().iter().map(|templates| format!("{templates:?}")).collect()
    }

    #[tokio::test]
    async fn only_complete_answers_keep_templates() {
        let endpoint = endpoint(Script::from([
            Reply::text("one two three"),
            Reply::text("one"),
            Reply::text("one two three").reset_after(400),
            Reply::text("one"),
            Reply::text("one two three").stall_after(400),
        ]));
        assert!(kept(&endpoint).is_empty());
        assert_eq!(asked(&endpoint).await.unwrap(), "one two three");
        let first = kept(&endpoint);
        assert!(first.len() == 1 && !first[0].contains("count: 0"), "{first:?}");
        assert_eq!(asked(&endpoint).await.unwrap(), "one");
        assert_eq!(kept(&endpoint), first, "they are handed on");

        assert!(asked(&endpoint).await.is_err());
        assert!(kept(&endpoint).is_empty(), "the answer failed");

        assert_eq!(asked(&endpoint).await.unwrap(), "one");
        assert_eq!(kept(&endpoint).len(), 1);
        let mut answer = begun(&endpoint).await;
        let delta = answer.next_delta().await.unwrap().unwrap();
        assert!(matches!(delta, AnswerDelta::Text { .. }));
        assert!(kept(&endpoint).is_empty(), "an answer has them");
        drop(answer);
        assert!(kept(&endpoint).is_empty(), "the answer was given up");
    }

    #[tokio::test]
    async fn concurrent_answers_have_own_templates() {
        let count = 3 * MOST_CACHES;
        let endpoint = endpoint(Script::from(vec![Reply::text("one"); count]));
        let mut answers = Vec::new();
        for _ in 0..count {
            answers.push(begun(&endpoint).await);
        }
        for answer in answers {
            assert_eq!(answer.message().await.unwrap().text(), "one");
        }
        assert_eq!(kept(&endpoint).len(), MOST_CACHES);
    }

    #[test]
    fn latest_note_counts_oldest_is_evicted() {
        let known = ByModel::default();
        for model in 0..MOST {
            known.note(&model.to_string(), model);
        }
        known.note("0", 7);
        assert_eq!((known.get("0"), known.get("1")), (Some(7), Some(1)));
        known.note("new", 8);
        assert_eq!((known.get("0"), known.get("1"), known.get("new")), (Some(7), None, Some(8)));
    }
}
