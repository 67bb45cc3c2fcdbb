//! The gates of a call: the tool prepares its input, then hooks and permissions see the input that would run.

use std::sync::Arc;

use oa_contain::contain;
use oa_hooks::{
    History, HookOutcome, Hooks, Permission, PermissionRequest, Permissions, PreToolUseEvent,
};
use oa_tools::{ErrorBody, Tool};
use oa_turn::Fit;
use serde_json::Value;
use tokio::time::sleep;

/// An input with the tool's defaults and conversions, or as given if it does not match the schema.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) input: Value,
    pub(crate) fit: Fit,
}

impl Prepared {
    pub(crate) fn by(tool: Option<&Arc<dyn Tool>>, input: Value) -> Self {
        let Some(tool) = tool else {
            // Should a tool of this name appear before the call runs, nobody has asked about it.
            let fit = Fit::Unfit("there was no such tool when the call was decided".to_owned());
            return Self { input, fit };
        };
        let why = match contain(|| tool.prepare(input.clone())) {
            Ok(Ok(input)) => return Self { input, fit: Fit::Fits },
            Ok(Err(error)) => error.to_string(),
            Err(panic) => {
                format!("checking them panicked: {}", panic.excerpt().unwrap_or_default())
            }
        };
        Self { input, fit: Fit::Unfit(why) }
    }
}

/// The gates of one call. Each change is prepared again, so that the last gate has seen the input that runs.
pub(crate) struct Judges {
    /// `None` if no hook is for this tool.
    pub(crate) hooks: Option<Hooks>,
    /// `None` for a call that needs no permission, and for one of an unknown tool.
    pub(crate) permissions: Option<Permissions>,
    /// True if the call was approved before: then no question is asked, but a denial still counts.
    pub(crate) is_approved: bool,
    pub(crate) tool: Option<Arc<dyn Tool>>,
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) history: History,
    pub(crate) prepared: Prepared,
}

/// The decision of the gates about a call, and the input that they have seen.
pub(crate) struct Ruling {
    pub(crate) tool: Option<Arc<dyn Tool>>,
    pub(crate) prepared: Prepared,
    pub(crate) word: Word,
}

pub(crate) enum Word {
    Allow,
    Deny(Denial),
    Later,
}

/// Why a call does not run.
pub(crate) struct Denial {
    error: &'static str,
    pub(crate) reason: String,
}

impl Judges {
    /// Runs all gates. An error is a hook that failed: the turn ends.
    pub(crate) async fn decide(mut self) -> Result<Ruling, oa_hooks::Error> {
        Ok(match self.before_question().await? {
            Some(word) => self.rule(word),
            None => self.question().await,
        })
    }

    /// Runs the hooks, the rules and the mode; `None` if permission is still needed.
    pub(crate) async fn before_question(&mut self) -> Result<Option<Word>, oa_hooks::Error> {
        if let Some(hooks) = &self.hooks {
            let event = PreToolUseEvent::new(
                &*self.name,
                self.prepared.input.clone(),
                &*self.id,
                self.history.clone(),
            );
            match hooks.pre_tool_use(event, sleep).await? {
                HookOutcome::Allow => {}
                HookOutcome::Block { reason } => {
                    return Ok(Some(Word::Deny(Denial::by_hook(reason))));
                }
                HookOutcome::Modify(change) => self.prepare(change.value),
            }
        }
        let Some(permissions) = &self.permissions else { return Ok(Some(Word::Allow)) };
        if let Some(reason) = self.denial(permissions) {
            return Ok(Some(Word::Deny(Denial::by_permission(reason))));
        }
        // Nobody is bothered about a call that cannot run: its result says what does not fit.
        let is_settled = self.is_approved || self.prepared.fit != Fit::Fits;
        Ok(is_settled.then_some(Word::Allow))
    }

    /// Asks for permission.
    pub(crate) async fn question(mut self) -> Ruling {
        let Some(permissions) = self.permissions.take() else { return self.rule(Word::Allow) };
        let request = PermissionRequest::new(
            &*self.name,
            self.prepared.input.clone(),
            &*self.id,
            self.history.clone(),
        );
        let word = match permissions.decide(request.with_category(self.category()), sleep).await {
            Permission::Allow => Word::Allow,
            Permission::AllowWith(input) => {
                self.prepare(input);
                // A rule may forbid what somebody has put in the place of what was asked.
                let denial = self.denial(&permissions);
                denial.map_or(Word::Allow, |reason| Word::Deny(Denial::by_permission(reason)))
            }
            Permission::Later => Word::Later,
            Permission::Deny(reason) => Word::Deny(Denial::by_permission(reason)),
            // What is not known here lets nothing pass.
            _ => Word::Deny(Denial::by_permission("it was not allowed".to_owned())),
        };
        self.rule(word)
    }

    pub(crate) fn rule(self, word: Word) -> Ruling {
        Ruling { tool: self.tool, prepared: self.prepared, word }
    }

    fn prepare(&mut self, input: Value) {
        self.prepared = Prepared::by(self.tool.as_ref(), input);
    }

    fn denial(&self, permissions: &Permissions) -> Option<String> {
        permissions.denies(&self.name, &self.prepared.input, self.category())
    }

    fn category(&self) -> Option<&str> {
        self.tool.as_ref().and_then(|tool| tool.category())
    }
}

impl Denial {
    pub(crate) fn by_hook(reason: String) -> Self {
        Self { error: "a hook blocked the call", reason }
    }

    pub(crate) fn by_permission(reason: String) -> Self {
        Self { error: "permission denied", reason }
    }

    /// Returns the result that the model reads.
    pub(crate) fn to_value(&self, tool: &str) -> Value {
        ErrorBody::new(tool, self.error).with_reason(&*self.reason).to_value()
    }
}
