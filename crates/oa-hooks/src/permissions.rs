use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use oa_types::contain::Contained;
use serde_json::Value;

use crate::handler::{Running, message_of, within};
use crate::permission::{Permission, PermissionRequest};
use crate::rule::{Effect, Pattern, ToolRule};

/// The category of tools that only look.
pub const CATEGORY_READ: &str = "read";

/// What holds for calls that no rule is about.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum PermissionMode {
    /// They run.
    AllowAll,
    /// Calls of tools whose category is `read` run; somebody is asked about the others.
    AllowReads,
    /// Somebody is asked.
    Ask,
    /// Nothing runs, whatever rules say: the model is to make a plan.
    Plan,
}

/// Who may use which tool, and with what.
///
/// ```
/// # use std::{pin::pin, task::{Context, Poll, Waker}};
/// use oa_hooks::{History, Permission, PermissionRequest, Permissions, ToolRule};
/// use serde_json::json;
///
/// let permissions = Permissions::new()
///     .disallow(["format_disk"])
///     .rule(ToolRule::allow("read_*"))
///     .can_use_tool(|request| async move {
///         match request.tool_name.as_str() {
///             "delete_file" => Permission::deny("not without a backup"),
///             _ => Permission::Allow,
///         }
///     });
/// assert!(!permissions.offers("format_disk"));
///
/// # let check = async {
/// let request = PermissionRequest::new("delete_file", json!({}), "c1", History::default());
/// // With tokio: `permissions.decide(request, tokio::time::sleep)`.
/// let permission = permissions.decide(request, |_| std::future::pending()).await;
/// assert_eq!(permission, Permission::deny("not without a backup"));
/// # };
/// # let polled = pin!(check).poll(&mut Context::from_waker(Waker::noop()));
/// # assert!(matches!(polled, Poll::Ready(())));
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Permissions {
    mode: Option<PermissionMode>,
    allowed: Option<Vec<Pattern>>,
    disallowed: Vec<Pattern>,
    rules: Vec<ToolRule>,
    asked: Option<Asked>,
    timeout: Option<(Duration, Permission)>,
    asks_at_once: bool,
}

type Asked = Arc<dyn Fn(PermissionRequest) -> Running<Permission> + Send + Sync>;

impl Permissions {
    /// Allows everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows these tools and no others; a name may end in `*`. What was allowed before stays so.
    pub fn allow_only(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed.get_or_insert_default().extend(tools.into_iter().map(Pattern::new));
        self
    }

    /// Forbids these tools; a name may end in `*`.
    pub fn disallow(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.disallowed.extend(tools.into_iter().map(Pattern::new));
        self
    }

    /// Sets what happens to calls that no rule is about. By default they run, unless
    /// [`can_use_tool`](Self::can_use_tool) is set: then it is asked.
    pub fn mode(mut self, mode: PermissionMode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Adds a rule.
    pub fn rule(mut self, rule: ToolRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Sets the callback that is asked about calls that lists, rules and mode neither allow nor deny. If it panics the
    /// call is denied. Without it such calls wait: [`Permission::Later`].
    pub fn can_use_tool<F, Fut>(mut self, asked: F) -> Self
    where
        F: Fn(PermissionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Permission> + Send + 'static,
    {
        let asked = Arc::new(asked);
        self.asked = Some(Arc::new(move |request| {
            let asked = Arc::clone(&asked);
            // The closure, too, runs inside of the future, where its panic is caught.
            Box::pin(async move { asked(request).await })
        }));
        self
    }

    /// Uses `unanswered` if no answer comes within `limit`. By default an answer may take as long as it
    /// likes.
    pub fn timeout(mut self, limit: Duration, unanswered: Permission) -> Self {
        self.timeout = Some((limit, unanswered));
        self
    }

    /// Sets whether the questions of one answer are asked at the same time. By default they are asked one after
    /// another, in the order of the calls.
    pub fn ask_at_once(mut self, at_once: bool) -> Self {
        self.asks_at_once = at_once;
        self
    }

    /// Returns whether the questions of one answer are asked at the same time.
    #[must_use]
    pub fn asks_at_once(&self) -> bool {
        self.asks_at_once
    }

    /// Whether a tool is offered to the model: not if it never runs.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        let names = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.fits(tool));
        self.allowed.as_deref().is_none_or(names) && !names(&self.disallowed)
    }

    /// Whether every call runs, and nobody is asked.
    #[must_use]
    pub fn allow_everything(&self) -> bool {
        self.allowed.is_none()
            && self.disallowed.is_empty()
            && self.rules.is_empty()
            && self.effective_mode() == PermissionMode::AllowAll
    }

    /// Whether more than the lists of names is set: the rest acts only where calls are run for the caller.
    #[must_use]
    pub fn decide_about_calls(&self) -> bool {
        self.mode.is_some() || !self.rules.is_empty() || self.asked.is_some()
    }

    /// Finds what could not act.
    ///
    /// # Errors
    ///
    /// What it is, in words: a timeout without anybody to be asked, or somebody who is never asked.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.asked.is_none() {
            if self.asks_at_once {
                return Err("can_use_tool_at_once has no effect without can_use_tool");
            }
            return match self.timeout {
                Some(_) => Err("can_use_tool_timeout has no effect without can_use_tool"),
                None => Ok(()),
            };
        }
        let some_ask = self.rules.iter().any(|rule| rule.effect() == Effect::Ask);
        match self.mode {
            Some(PermissionMode::AllowAll) if !some_ask => {
                Err("can_use_tool has no effect if all is allowed and no rule asks")
            }
            _ => Ok(()),
        }
    }

    /// Returns the names of tools in the lists and rules, as they were given.
    pub fn listed(&self) -> impl Iterator<Item = &str> {
        let lists = self.allowed.iter().flatten().chain(&self.disallowed);
        lists.map(Pattern::as_str).chain(self.rules.iter().filter_map(ToolRule::tools))
    }

    /// Returns the categories in the rules.
    pub fn categories(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter_map(ToolRule::category)
    }

    /// Returns the names of the tools that are allowed, as they were given; `None` if all are.
    #[must_use]
    pub fn allowed(&self) -> Option<Vec<&str>> {
        Some(self.allowed.as_ref()?.iter().map(Pattern::as_str).collect())
    }

    /// Returns the names of the tools that are forbidden, as they were given.
    #[must_use]
    pub fn disallowed(&self) -> Vec<&str> {
        self.disallowed.iter().map(Pattern::as_str).collect()
    }

    /// Returns whether there is somebody to be asked: whether [`can_use_tool`](Self::can_use_tool) is set.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.asked.is_some()
    }

    /// Decides what needs no asking; `None` if somebody is to be asked.
    #[must_use]
    pub fn known(&self, tool: &str, input: &Value, category: Option<&str>) -> Option<Permission> {
        if !self.offers(tool) {
            return Some(Permission::deny("this tool is not allowed"));
        }
        if self.mode == Some(PermissionMode::Plan) {
            return Some(Permission::deny("only a plan is wanted now: nothing is run"));
        }
        let effects = self.rules.iter().filter_map(|rule| rule.effect_on(tool, category, input));
        match (effects.max(), self.effective_mode()) {
            (Some(Effect::Deny), _) => Some(Permission::deny("a rule forbids this call")),
            (Some(Effect::Allow), _) | (None, PermissionMode::AllowAll) => Some(Permission::Allow),
            (None, PermissionMode::AllowReads) if category == Some(CATEGORY_READ) => {
                Some(Permission::Allow)
            }
            _ => None,
        }
    }

    /// Returns why a call is denied without asking: by the lists, the mode or a rule.
    ///
    /// It wins over any approval, so whoever runs calls asks for it when a call is about to run, too: rules, mode or
    /// input may have changed since the call was permitted.
    #[must_use]
    pub fn denies(&self, tool: &str, input: &Value, category: Option<&str>) -> Option<String> {
        match self.known(tool, input, category) {
            Some(Permission::Deny(reason)) => Some(reason),
            _ => None,
        }
    }

    /// Decides, and asks if need be. `sleep` stands in for a clock: it returns a future that completes
    /// after the given time, as for [`Hooks`](crate::Hooks::pre_tool_use).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the future of what is asked.
    pub async fn decide<S, F>(&self, request: PermissionRequest, sleep: S) -> Permission
    where
        S: Fn(Duration) -> F + Send + Sync,
        F: Future<Output = ()> + Send,
    {
        let PermissionRequest { tool_name, tool_input, category, .. } = &request;
        if let Some(known) = self.known(tool_name, tool_input, category.as_deref()) {
            return known;
        }
        let Some(asked) = &self.asked else { return Permission::Later };
        let answer = Contained::new(asked(request));
        let answered = match &self.timeout {
            None => answer.await,
            Some((limit, unanswered)) => match within(answer, sleep(*limit)).await {
                Some(answered) => answered,
                None => return unanswered.clone(),
            },
        };
        answered.unwrap_or_else(|panic| {
            Permission::Deny(format!("asking panicked: {}", message_of(&panic)))
        })
    }

    /// Returns what holds for calls that no rule is about, also where nothing was said of it.
    #[must_use]
    pub fn effective_mode(&self) -> PermissionMode {
        let unsaid =
            if self.asked.is_some() { PermissionMode::Ask } else { PermissionMode::AllowAll };
        self.mode.unwrap_or(unsaid)
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permissions")
            .field("mode", &self.effective_mode())
            .field("allowed", &self.allowed)
            .field("disallowed", &self.disallowed)
            .field("rules", &self.rules)
            .field("asks", &self.asked.is_some())
            .field("timeout", &self.timeout)
            .field("asks_at_once", &self.asks_at_once)
            .finish()
    }
}
