//! Permissions of sub-agents.

use std::sync::Arc;

use serde_json::Value;

use crate::permissions::{PermissionMode, Permissions};
use crate::rule::{Effect, ToolRule};

impl Permissions {
    /// Returns these permissions as those of a sub-agent called `name`, which an agent with the permissions `outer`
    /// runs.
    ///
    /// - Denials are inherited: a name that `outer` disallows, one of its deny rules, and [`PermissionMode::Plan`]
    ///   apply to the sub-agent too. [`allow_only`](Self::allow_only) is not inherited, because it lists the outer
    ///   agent's own tools.
    /// - If the sub-agent has a mode, rules or a callback, those decide; otherwise the outer agent's rules, mode and
    ///   callback do.
    /// - If the sub-agent has no callback, the outer agent's callback is asked. The request names the sub-agents
    ///   involved.
    ///
    /// ```
    /// use oa_hooks::{Permission, Permissions, ToolRule};
    /// use serde_json::json;
    ///
    /// let outer = Permissions::new().rule(ToolRule::deny("delete_*"));
    /// let inner = Permissions::new().rule(ToolRule::allow("*")).within(&outer, "researcher");
    /// assert_eq!(inner.agents(), ["researcher"]);
    /// assert!(inner.denies("delete_file", &json!({}), None).is_some());
    /// assert_eq!(inner.known("search", &json!({}), None), Some(Permission::Allow));
    /// ```
    pub fn within(mut self, outer: &Self, name: impl Into<String>) -> Self {
        // Before the callback is inherited: an inherited one is no setting of the sub-agent's own.
        let decides = self.decide_about_calls();
        if !decides {
            (self.mode, self.rules) = (outer.mode, outer.rules.clone());
        } else if self.callback.is_none() {
            // The default of an agent without a callback: an inherited callback does not change it.
            self.mode = Some(self.effective_mode());
        }
        if self.callback.is_none() {
            (self.callback, self.timeout) = (outer.callback.clone(), outer.timeout.clone());
            self.asks_at_once |= outer.asks_at_once;
        }
        self.agents = outer.agents.iter().cloned().chain([name.into()]).collect();
        // Kept whole rather than merged: what the outer agent denies must win over the rules and the mode
        // here, while what it allows or asks about must not.
        self.outer = outer.can_forbid().then(|| Arc::new(outer.clone()));
        self
    }

    /// Returns the same permissions for something called `name` that an agent's call raises, such as a question of a
    /// server. Unlike those of a [sub-agent](Self::within), they include [`allow_only`](Self::allow_only).
    pub fn nested(mut self, name: impl Into<String>) -> Self {
        self.agents.push(name.into());
        self
    }

    /// Returns the names of the nested sub-agents that these permissions belong to, outermost first; empty for a
    /// top-level agent.
    #[must_use]
    pub fn agents(&self) -> &[String] {
        &self.agents
    }

    /// Returns true if a tool is disallowed by name, here or in an outer agent.
    pub(crate) fn disallows(&self, tool: &str) -> bool {
        self.disallowed.iter().any(|pattern| pattern.fits(tool))
            || self.outer.as_ref().is_some_and(|outer| outer.disallows(tool))
    }

    /// Returns why the mode or a rule forbids a call, here or in an outer agent.
    pub(crate) fn forbids(
        &self,
        tool: &str,
        input: &Value,
        category: Option<&str>,
    ) -> Option<&str> {
        if self.mode == Some(PermissionMode::Plan) {
            return Some("no tools run in plan mode: answer with a plan");
        }
        let denies = |rule: &&ToolRule| rule.effect_on(tool, category, input) == Some(Effect::Deny);
        let mut denying = self.rules.iter().filter(denies).map(ToolRule::reason).peekable();
        if denying.peek().is_some() {
            return Some(denying.flatten().next().unwrap_or("a permission rule denies this call"));
        }
        self.outer.as_ref()?.forbids(tool, input, category)
    }

    fn can_forbid(&self) -> bool {
        let denies = self.rules.iter().any(|rule| rule.effect() == Effect::Deny);
        let has_plan_mode = self.mode == Some(PermissionMode::Plan);
        denies || has_plan_mode || !self.disallowed.is_empty() || self.outer.is_some()
    }
}
