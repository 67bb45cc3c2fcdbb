//! Options for tool permissions.

use oa_hooks::{Permission, PermissionMode, PermissionRequest, ToolRule};
use oa_types::Timeout;

use super::AgentOptionsBuilder;

impl AgentOptionsBuilder {
    /// Allows only these tools. Others are not offered to the model and do not run. A name that no tool has is an error
    /// at [`build`](Self::build). A name may end in `*`; such a pattern need not match a tool.
    pub fn allowed_tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.config.permissions = self.config.permissions.allow_only(tools);
        self
    }

    /// Disallows these tools: they are not offered to the model and do not run. A name that no tool has is an error at
    /// [`build`](Self::build). A name may end in `*`; such a pattern need not match a tool.
    pub fn disallowed_tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.config.permissions = self.config.permissions.disallow(tools);
        self
    }

    /// Sets the default for calls that no rule matches. Without a mode, such calls run, or
    /// [`can_use_tool`](Self::can_use_tool) decides if it is set. Applies to auto mode.
    pub fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.config.permissions = self.config.permissions.mode(mode);
        self.auto_only("permission_mode")
    }

    /// Adds a rule for the calls of a tool or category, optionally depending on their arguments. A name or category
    /// that matches no tool is an error at [`build`](Self::build). Applies to auto mode.
    pub fn tool_rule(mut self, rule: ToolRule) -> Self {
        self.config.permissions = self.config.permissions.rule(rule);
        self.auto_only("tool_rule")
    }

    /// Sets the callback for calls that the lists, rules and mode neither allow nor deny. It is called after the hooks.
    /// It allows or denies the call, changes its input, or returns [`Permission::Later`]: the turn then ends until
    /// [`Client::approve`](crate::Client::approve) or a similar method decides. Without a callback, such calls wait in
    /// the same way. Applies to auto mode.
    ///
    /// The request contains the input that would run, including defaults, conversions, and changes by hooks. Input
    /// that the callback changes is completed and checked in the same way, and a deny rule overrides it. A call whose
    /// input does not match its tool's schema never reaches the callback: the model reads which argument is wrong.
    ///
    /// # Order
    ///
    /// 1. The text and the calls of an answer are returned before any question. Calls have their complete input, with
    ///    defaults added and values converted.
    /// 2. Calls are decided in order, with one question at a time;
    ///    [`can_use_tool_at_once`](Self::can_use_tool_at_once) asks all questions of an answer together. A denied call
    ///    is reported immediately by [`AgentEvent::CallDenied`](crate::AgentEvent::CallDenied).
    /// 3. No call starts before every call of the answer is decided. Then
    ///    [`ToolEvent::CallStart`](oa_executor::ToolEvent::CallStart) reports the input of each call that starts.
    ///    Errors and results are returned in call order.
    pub fn can_use_tool<F, Fut>(mut self, asked: F) -> Self
    where
        F: Fn(PermissionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Permission> + Send + 'static,
    {
        self.config.permissions = self.config.permissions.can_use_tool(asked);
        self.auto_only("can_use_tool")
    }

    /// Sets whether the questions of one answer are asked concurrently. By default
    /// [`can_use_tool`](Self::can_use_tool) is called for one call after another, in order.
    ///
    /// Hooks still see one call after another, before the first question. Decisions are reported in call order, once
    /// all have been made. A callback that needs a person's full attention, such as `TerminalPrompt` of `oa-terminal`,
    /// still asks one question at a time.
    pub fn can_use_tool_at_once(mut self, at_once: bool) -> Self {
        self.config.permissions = self.config.permissions.ask_at_once(at_once);
        self.auto_only_if(at_once, "can_use_tool_at_once")
    }

    /// Sets a time limit for [`can_use_tool`](Self::can_use_tool), none by default, and the decision when it expires.
    pub fn can_use_tool_timeout(
        mut self,
        limit: impl Into<Timeout>,
        unanswered: Permission,
    ) -> Self {
        let limit = self.timeout_of("can_use_tool_timeout", limit);
        self.unanswered = limit.map(|limit| (limit, unanswered));
        self.auto_only_if(limit.is_some(), "can_use_tool_timeout")
    }
}
