use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use oa_aggregate::TemplateCache;

use crate::endpoint::KnownModel;
use crate::structured::Asking;

/// What was learned about a server; shared by all who ask it.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// It refuses to be asked for usage (QUIRKS row 74).
    pub(crate) refuses_usage: AtomicBool,
    /// Models of which it says that they have no tools (QUIRKS row 81).
    pub(crate) without_tools: ByModel<()>,
    /// How it takes the form of an answer, where that was refused.
    pub(crate) asking: ByModel<Asking>,
    /// The templates of its chunks, of as many answers as came at once.
    templates: Mutex<Vec<TemplateCache>>,
}

/// The number of answers whose templates are kept: where more come at once, the others learn them anew.
const MOST_FORMS: usize = 8;

impl Learned {
    /// What is known from the start, and nothing else.
    pub(crate) fn of(known: Option<&KnownModel>) -> Self {
        let learned = Self::default();
        if let Some(known) = known {
            if known.lacks_tools {
                learned.without_tools.note(&known.name, ());
            }
            if known.lacks_schema {
                learned.asking.note(&known.name, Asking::Object);
            }
        }
        learned
    }

    /// Takes templates for an answer; only one answer has them at a time.
    pub(crate) fn take_templates(&self) -> TemplateCache {
        self.templates().pop().unwrap_or_default()
    }

    /// Keeps the templates of an answer that ended well for the next.
    pub(crate) fn keep_templates(&self, templates: TemplateCache) {
        let mut kept = self.templates();
        if kept.len() < MOST_FORMS {
            kept.push(templates);
        }
    }

    fn templates(&self) -> MutexGuard<'_, Vec<TemplateCache>> {
        self.templates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was learned about models, by name: bounded, because names are whatever somebody sets.
#[derive(Debug)]
pub(crate) struct ByModel<T>(Mutex<Vec<(String, T)>>);

/// How many models are remembered.
const MOST: usize = 64;

impl<T: Copy> ByModel<T> {
    pub(crate) fn get(&self, model: &str) -> Option<T> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(name, _)| name == model).map(|(_, what)| *what)
    }

    /// Remembers it in place of what was known.
    pub(crate) fn note(&self, model: &str, what: T) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

    use super::*;
    use crate::{AgentOptions, Client, Endpoint, RetryConfig};

    fn endpoint(script: impl Into<Script>) -> Endpoint {
        let server = MemoryServer::new(script);
        Endpoint::builder().base_url("http://gpu/v1").transport(server).build().expect("it can be")
    }

    fn client(endpoint: &Endpoint) -> Client {
        let options = AgentOptions::builder().model("any").retry(RetryConfig::none());
        let options = options.chat_service(endpoint.clone()).build();
        Client::new(options.expect("they can be")).expect("a client")
    }

    /// Returns the templates of as many answers as came at once, each with how many there are.
    fn kept(endpoint: &Endpoint) -> Vec<String> {
        endpoint.0.learned.templates().iter().map(|templates| format!("{templates:?}")).collect()
    }

    #[tokio::test]
    async fn forms_are_kept_of_answers_that_end_well_and_of_no_other() {
        let endpoint = endpoint(Script::from([
            Reply::text("one two three"),
            Reply::text("one"),
            Reply::text("one two three").reset_after(400),
            Reply::text("one"),
            Reply::text("one two three").stall_after(400),
        ]));
        assert!(kept(&endpoint).is_empty());
        assert_eq!(client(&endpoint).ask("Go.").await.unwrap().text, "one two three");
        let first = kept(&endpoint);
        assert!(first.len() == 1 && !first[0].contains("count: 0"), "{first:?}");
        assert_eq!(client(&endpoint).ask("Go.").await.unwrap().text, "one");
        assert_eq!(kept(&endpoint), first, "they are handed on");

        assert!(client(&endpoint).ask("Go.").await.is_err());
        assert!(kept(&endpoint).is_empty(), "the answer failed");

        assert_eq!(client(&endpoint).ask("Go.").await.unwrap().text, "one");
        assert_eq!(kept(&endpoint).len(), 1);
        let mut client = client(&endpoint);
        client.send("Go.").await.unwrap();
        assert!(client.receive().await.unwrap().is_some());
        assert!(kept(&endpoint).is_empty(), "an answer has them");
        drop(client);
        assert!(kept(&endpoint).is_empty(), "the answer was given up");
    }

    #[tokio::test]
    async fn answers_that_come_at_once_have_forms_each_and_few_are_kept() {
        let count = 3 * MOST_FORMS;
        let endpoint = endpoint(Script::from(vec![Reply::text("one"); count]));
        let answers = (0..count).map(|_| {
            let mut client = client(&endpoint);
            tokio::spawn(async move { client.ask("Go.").await.map(|reply| reply.text) })
        });
        for answer in answers.collect::<Vec<_>>() {
            assert_eq!(answer.await.unwrap().unwrap(), "one");
        }
        assert!((1..=MOST_FORMS).contains(&kept(&endpoint).len()));
        for _ in 0..count {
            endpoint.0.learned.keep_templates(TemplateCache::default());
        }
        assert_eq!(kept(&endpoint).len(), MOST_FORMS);
    }

    #[test]
    fn the_last_word_counts_and_the_oldest_is_forgotten() {
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
