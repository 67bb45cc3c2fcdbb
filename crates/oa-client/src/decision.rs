//! What becomes of a call: the hooks' word, then that of the permissions.

use oa_hooks::{Hooks, Permission, PermissionRequest, Permissions, PreToolUseEvent, Verdict};
use oa_tools::ErrorBody;
use oa_turn::Decision;
use tokio::time::sleep;

/// Who is asked about one call.
pub(crate) struct Judges {
    pub(crate) hooks: Hooks,
    /// None for a call that nobody needs to permit: of a tool that does not exist, or one that somebody
    /// has permitted who was asked in vain before.
    pub(crate) permissions: Option<Permissions>,
    /// What the call's tool says it does.
    pub(crate) category: Option<String>,
}

impl Judges {
    /// Hears them. An error is a hook that failed: the turn ends.
    pub(crate) async fn decide(self, event: PreToolUseEvent) -> Result<Decision, oa_hooks::Error> {
        let Self { hooks, permissions, category } = self;
        let PreToolUseEvent { tool_name, mut tool_input, tool_use_id, history, .. } = event.clone();
        match hooks.pre_tool_use(event, sleep).await? {
            Verdict::Allow => {}
            Verdict::Block { reason } => {
                let body = ErrorBody::new(tool_name, "a hook blocked the call");
                return Ok(Decision::Refuse(body.with_reason(reason).to_value()));
            }
            Verdict::Modify(change) => tool_input = change.value,
        }
        let Some(permissions) = permissions else { return Ok(Decision::Run(tool_input)) };
        let request = PermissionRequest::new(&*tool_name, tool_input.clone(), tool_use_id, history);
        let request = request.with_category(category);
        Ok(match permissions.decide(request, sleep).await {
            Permission::Allow => Decision::Run(tool_input),
            Permission::AllowWith(input) => Decision::Run(input),
            Permission::Later => Decision::Wait(tool_input),
            Permission::Deny(reason) => Decision::Refuse(denied(&tool_name, reason)),
            // What is not known here lets nothing pass.
            _ => Decision::Refuse(denied(&tool_name, "it was not allowed".to_owned())),
        })
    }
}

/// What the model reads of a call that was denied.
pub(crate) fn denied(tool: &str, reason: String) -> serde_json::Value {
    ErrorBody::new(tool, "permission denied").with_reason(reason).to_value()
}
