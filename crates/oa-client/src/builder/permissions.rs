//! Options for tool permissions.

use oa_chat::Timeout;
use oa_hooks::{Permission, PermissionMode, PermissionRequest, ToolRule};

use super::AgentOptionsBuilder;

impl AgentOptionsBuilder {
    /// Allows only these tools: others are not offered to the model, and do not run. A name may end in `*`. A
    /// name that matches no tool is an error at [`build`](Self::build).
    pub fn allowed_tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.config.permissions = self.config.permissions.allow_only(tools);
        self
    }

    /// Disallows these tools: they are not offered to the model, and do not run. A name may end in `*`. A name
    /// that matches no tool is an error at [`build`](Self::build).
    pub fn disallowed_tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.config.permissions = self.config.permissions.disallow(tools);
        self
    }

    /// Sets what happens to calls that no rule matches. By default they run, unless
    /// [`can_use_tool`](Self::can_use_tool) is set: then it decides. For auto mode.
    pub fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.config.permissions = self.config.permissions.mode(mode);
        self.auto_only("permission_mode")
    }

    /// Adds a rule for the calls of a tool or a tool category, or for some of them by their arguments. A name or
    /// category that matches no tool is an error at [`build`](Self::build). For auto mode.
    pub fn tool_rule(mut self, rule: ToolRule) -> Self {
        self.config.permissions = self.config.permissions.rule(rule);
        self.auto_only("tool_rule")
    }

    /// Sets the callback for calls that lists, rules and the mode neither allow nor deny; it is called after the
    /// hooks. It allows or denies the call, changes its input, or returns [`Permission::Later`]: then the turn
    /// ends until [`Client::approve`](crate::Client::approve) or its like decides. Without a callback such calls
    /// wait in the same way. For auto mode.
    ///
    /// The request has the input that would run, with defaults, conversions, and changes by hooks. An input that
    /// the callback changes is completed and checked in the same way, and a deny rule overrides it. A call whose
    /// input does not match its tool's schema never reaches the callback: it cannot run, and the model reads
    /// which argument is wrong.
    ///
    /// # Order
    ///
    /// 1. The text and the calls of an answer are returned before any question, the calls with their complete
    ///    input: defaults added, values converted.
    /// 2. Calls are decided in order, and the questions of one answer are asked one after another;
    ///    [`can_use_tool_at_once`](Self::can_use_tool_at_once) asks them together. A denied call is reported at
    ///    once by [`AgentEvent::CallDenied`](crate::AgentEvent::CallDenied).
    /// 3. No call starts before every call of the answer is decided. Then
    ///    [`ToolEvent::CallStart`](oa_executor::ToolEvent::CallStart) has the input of each call that starts; errors
    ///    and results are returned in call order.
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
    /// Hooks still see one call after another, before the first question. Decisions are reported in call order,
    /// once all are made. A callback that needs a person's full attention, like
    /// `TerminalPrompt` of `oa-terminal`, still asks one question at a time.
    pub fn can_use_tool_at_once(mut self, at_once: bool) -> Self {
        self.config.permissions = self.config.permissions.ask_at_once(at_once);
        self.auto_only("can_use_tool_at_once")
    }

    /// Uses `unanswered` if [`can_use_tool`](Self::can_use_tool) has not answered within `limit`. By default
    /// there is no limit.
    pub fn can_use_tool_timeout(
        mut self,
        limit: impl Into<Timeout>,
        unanswered: Permission,
    ) -> Self {
        let limit = Timeout::from(self.timeout_of("can_use_tool_timeout", limit));
        self.unanswered = Some((limit, unanswered));
        self.auto_only("can_use_tool_timeout")
    }
}
