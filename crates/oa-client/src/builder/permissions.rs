//! Options about who may use which tool.

use oa_chat::Timeout;
use oa_hooks::{Permission, PermissionMode, PermissionRequest, ToolRule};

use super::AgentOptionsBuilder;

impl AgentOptionsBuilder {
    /// Allows these tools and no others: the rest are not offered to the model, and do not run. A name
    /// may end in `*`. One that no tool has is an error at [`build`](Self::build).
    pub fn allowed_tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.config.permissions = self.config.permissions.allow_only(tools);
        self
    }

    /// Forbids these tools: they are not offered to the model, and do not run. A name may end in `*`.
    /// One that no tool has is an error at [`build`](Self::build).
    pub fn disallowed_tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.config.permissions = self.config.permissions.disallow(tools);
        self
    }

    /// Sets what happens to calls that no rule is about. By default they run, unless
    /// [`can_use_tool`](Self::can_use_tool) is set: then it is asked. For auto mode.
    pub fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.config.permissions = self.config.permissions.mode(mode);
        self.auto_only("permission_mode")
    }

    /// Adds a rule about the calls of a tool or of a category of tools, or some of them by their arguments. A name or
    /// category that no tool has is an error at [`build`](Self::build). For auto mode.
    pub fn tool_rule(mut self, rule: ToolRule) -> Self {
        self.config.permissions = self.config.permissions.rule(rule);
        self.auto_only("tool_rule")
    }

    /// Sets the callback that is asked, after the hooks, about each call that lists, rules and mode neither allow nor
    /// deny. It allows, denies, or changes the input; or it answers [`Permission::Later`], and the turn ends until
    /// [`Client::approve`](crate::Client::approve) or its like decides. Without a callback such calls wait in the same
    /// way. For auto mode.
    ///
    /// The request has the input that would run: defaults are filled in, values converted, and changes by hooks
    /// included. An input that the callback puts in its place is completed and checked in the same way, and a rule
    /// that denies it wins. A call whose input does not fit its tool's schema is not asked about: it cannot run, and
    /// the model reads which argument is wrong.
    ///
    /// # Order
    ///
    /// 1. The text and the calls of an answer are handed out before any question, the calls with the input that their
    ///    tools make of the model's: defaults filled in, values converted.
    /// 2. The calls are decided in their order, and the questions of one answer are asked one after another;
    ///    [`can_use_tool_at_once`](Self::can_use_tool_at_once) asks them together. A call that is denied is told at
    ///    once by [`AgentEvent::CallDenied`](crate::AgentEvent::CallDenied).
    /// 3. Nothing starts before every call of the answer is decided. Then
    ///    [`ToolEvent::CallStart`](crate::ToolEvent::CallStart) tells the input of each call that is taken up; errors
    ///    and results are handed out in the order of the calls.
    pub fn can_use_tool<F, Fut>(mut self, asked: F) -> Self
    where
        F: Fn(PermissionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Permission> + Send + 'static,
    {
        self.config.permissions = self.config.permissions.can_use_tool(asked);
        self.auto_only("can_use_tool")
    }

    /// Sets whether the questions of one answer are asked at the same time. By default
    /// [`can_use_tool`](Self::can_use_tool) is asked about one call after another, in their order.
    ///
    /// Hooks still see one call after another, before the first question. What was decided is told, in the order of
    /// the calls, once all are answered. A callback that needs a person's attention for itself, like
    /// [`TerminalPrompt`](crate::TerminalPrompt), still asks one question at a time.
    pub fn can_use_tool_at_once(mut self, at_once: bool) -> Self {
        self.config.permissions = self.config.permissions.ask_at_once(at_once);
        self.auto_only("can_use_tool_at_once")
    }

    /// Uses `unanswered` if [`can_use_tool`](Self::can_use_tool) has not answered within `limit`. By
    /// default it may take as long as it likes.
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
