use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use oa_contain::Contained;
use oa_types::Timeout;
use serde_json::Value;

use crate::handler::{Running, message_of, within};
use crate::permission::{Permission, PermissionRequest};
use crate::rule::{Effect, INNER_ASTERISK, Pattern, ToolRule, has_inner_asterisk};

/// The category of tools that only read.
pub const CATEGORY_READ: &str = "read";

/// The default for calls that no rule matches.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum PermissionMode {
    /// Calls run.
    AllowAll,
    /// Calls of tools in category `read` run; the user is asked about others.
    AllowReads,
    /// The user is asked about every call.
    Ask,
    /// No call runs, whatever the rules say: the model should write a plan.
    Plan,
}

/// The permission settings of an agent: lists, rules, a mode and a callback.
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
    pub(crate) mode: Option<PermissionMode>,
    allowed: Option<Vec<Pattern>>,
    pub(crate) disallowed: Vec<Pattern>,
    pub(crate) rules: Vec<ToolRule>,
    pub(crate) callback: Option<Callback>,
    pub(crate) timeout: Option<(Duration, Permission)>,
    pub(crate) asks_at_once: bool,
    /// The names of the nested sub-agents that these permissions belong to, outermost first.
    pub(crate) agents: Vec<String>,
    /// The permissions of the outer agent, if they can deny a call.
    pub(crate) outer: Option<Arc<Self>>,
}

pub(crate) type Callback = Arc<dyn Fn(PermissionRequest) -> Running<Permission> + Send + Sync>;

impl Permissions {
    /// Creates permissions that allow every call.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows these tools and no others, in addition to any allowed before. A name may end in `*`.
    pub fn allow_only(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed.get_or_insert_default().extend(tools.into_iter().map(Pattern::new));
        self
    }

    /// Forbids these tools. A name may end in `*`.
    pub fn disallow(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.disallowed.extend(tools.into_iter().map(Pattern::new));
        self
    }

    /// Sets the default for calls that no rule matches. Without a mode, they run, or
    /// [`can_use_tool`](Self::can_use_tool) decides if it is set.
    pub fn mode(mut self, mode: PermissionMode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Adds a rule.
    pub fn rule(mut self, rule: ToolRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Sets the callback for calls that the lists, rules and mode neither allow nor deny. A panic denies the call.
    /// Without a callback, such calls wait: [`Permission::Later`].
    pub fn can_use_tool<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(PermissionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Permission> + Send + 'static,
    {
        let callback = Arc::new(callback);
        self.callback = Some(Arc::new(move |request| {
            let callback = Arc::clone(&callback);
            // Call the closure inside the future too, where its panic is caught.
            Box::pin(async move { callback(request).await })
        }));
        self
    }

    /// Sets a time limit for the callback, in seconds or as a `Duration`, and the decision used when it expires. By default
    /// there is no limit.
    pub fn timeout(mut self, limit: impl Into<Timeout>, unanswered: Permission) -> Self {
        self.timeout = limit.into().duration().map(|limit| (limit, unanswered));
        self
    }

    /// Sets whether the callback is asked about all calls of one answer concurrently. By default it is asked about one
    /// call at a time, in call order.
    pub fn ask_at_once(mut self, at_once: bool) -> Self {
        self.asks_at_once = at_once;
        self
    }

    /// Returns true if the callback is asked about all calls of one answer concurrently.
    #[must_use]
    pub fn asks_at_once(&self) -> bool {
        self.asks_at_once
    }

    /// Returns true if a tool is offered to the model. Tools that can never run are not.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        let names = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.fits(tool));
        self.allowed.as_deref().is_none_or(names)
            && !names(&self.disallowed)
            && self.outer.as_ref().is_none_or(|outer| !outer.disallows(tool))
    }

    /// Returns true if every call runs without a question.
    #[must_use]
    pub fn allow_everything(&self) -> bool {
        self.allowed.is_none()
            && self.disallowed.is_empty()
            && self.rules.is_empty()
            && self.outer.is_none()
            && self.effective_mode() == PermissionMode::AllowAll
    }

    /// Returns true if anything beyond the name lists is set. Those settings affect only calls that run automatically.
    #[must_use]
    pub fn decide_about_calls(&self) -> bool {
        self.mode.is_some() || !self.rules.is_empty() || self.callback.is_some()
    }

    /// Checks for settings that have no effect.
    ///
    /// # Errors
    ///
    /// A message that names the setting: a time limit without a callback, a callback that is never asked, or a name with a
    /// `*` before its end.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.listed().any(has_inner_asterisk) {
            return Err(INNER_ASTERISK);
        }
        if self.callback.is_none() {
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
                Err("can_use_tool has no effect because every call is allowed and no rule asks")
            }
            _ => Ok(()),
        }
    }

    /// Returns the tool names in the lists and rules, as given.
    pub fn listed(&self) -> impl Iterator<Item = &str> {
        let lists = self.allowed.iter().flatten().chain(&self.disallowed);
        lists.map(Pattern::as_str).chain(self.rules.iter().filter_map(ToolRule::tools))
    }

    /// Returns the categories in the rules.
    pub fn categories(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter_map(ToolRule::category)
    }

    /// Returns the allowed tool names, as given; `None` if all are allowed.
    #[must_use]
    pub fn allowed(&self) -> Option<Vec<&str>> {
        Some(self.allowed.as_ref()?.iter().map(Pattern::as_str).collect())
    }

    /// Returns the forbidden tool names, as given.
    #[must_use]
    pub fn disallowed(&self) -> Vec<&str> {
        self.disallowed.iter().map(Pattern::as_str).collect()
    }

    /// Returns true if [`can_use_tool`](Self::can_use_tool) is set.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.callback.is_some()
    }

    /// Decides without asking; `None` if the callback must be asked.
    #[must_use]
    pub fn known(&self, tool: &str, input: &Value, category: Option<&str>) -> Option<Permission> {
        // Denials first, including those of outer agents: no rule, mode or callback here can lift them.
        if !self.offers(tool) {
            return Some(Permission::deny("this tool is not allowed"));
        }
        if let Some(reason) = self.forbids(tool, input, category) {
            return Some(Permission::deny(reason));
        }
        // `None` covers rules that ask, the mode `Ask`, and calls of other categories under `AllowReads`.
        // `Plan` does not get here: `forbids` denies every call.
        match (self.effect(tool, input, category), self.effective_mode()) {
            (Some(Effect::Allow), _) | (None, PermissionMode::AllowAll) => Some(Permission::Allow),
            (None, PermissionMode::AllowReads) if category == Some(CATEGORY_READ) => {
                Some(Permission::Allow)
            }
            _ => None,
        }
    }

    /// Returns the reason if the lists, the mode or a rule deny the call.
    ///
    /// This overrides any approval, so check it again right before a call runs: rules, mode or input may have
    /// changed since the call was approved.
    #[must_use]
    pub fn denies(&self, tool: &str, input: &Value, category: Option<&str>) -> Option<String> {
        match self.known(tool, input, category) {
            Some(Permission::Deny(reason)) => Some(reason),
            _ => None,
        }
    }

    /// Decides, asking the callback if needed. `sleep` replaces a clock: it returns a future that completes
    /// after the given time, as for [`Hooks`](crate::Hooks::pre_tool_use).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the callback's future.
    pub async fn decide<S, F>(&self, request: PermissionRequest, sleep: S) -> Permission
    where
        S: Fn(Duration) -> F + Send + Sync,
        F: Future<Output = ()> + Send,
    {
        let PermissionRequest { tool_name, tool_input, category, .. } = &request;
        if let Some(known) = self.known(tool_name, tool_input, category.as_deref()) {
            return known;
        }
        let Some(callback) = &self.callback else { return Permission::Later };
        let answer = Contained::new(callback(request.with_agents(&self.agents)));
        let answered = match &self.timeout {
            None => answer.await,
            // The callback's future is dropped when the time is up, so a late answer has no effect.
            Some((limit, unanswered)) => match within(answer, sleep(*limit)).await {
                Some(answered) => answered,
                None => return unanswered.clone(),
            },
        };
        answered.unwrap_or_else(|panic| {
            Permission::Deny(format!("the permission callback panicked: {}", message_of(&panic)))
        })
    }

    /// Returns the effect of the strictest rule that matches.
    pub(crate) fn effect(
        &self,
        tool: &str,
        input: &Value,
        category: Option<&str>,
    ) -> Option<Effect> {
        self.rules.iter().filter_map(|rule| rule.effect_on(tool, category, input)).max()
    }

    /// Returns the default for calls that no rule matches, including the implied one.
    #[must_use]
    pub fn effective_mode(&self) -> PermissionMode {
        // A program that sets a callback wants to be asked; without one, nobody could answer.
        let unsaid =
            if self.callback.is_some() { PermissionMode::Ask } else { PermissionMode::AllowAll };
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
            .field("asks", &self.callback.is_some())
            .field("timeout", &self.timeout)
            .field("asks_at_once", &self.asks_at_once)
            .field("agents", &self.agents)
            .field("outer", &self.outer)
            .finish()
    }
}
