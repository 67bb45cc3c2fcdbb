//! The gates of a call: the tool prepares its input, then hooks and permissions see the input that would run.

use std::sync::Arc;

use oa_contain::contain;
use oa_events::{AgentEvent, CallDenied};
use oa_executor::Batch;
use oa_hooks::{
    History, HookOutcome, Hooks, Permission, PermissionRequest, Permissions, PreToolUseEvent,
};
use oa_tools::{ArgumentError, ErrorBody, IdempotencyKey, Tool};
use oa_turn::{Call, Decision, Fit};
use oa_types::ToolUseBlock;
use serde_json::Value;
use tokio::time::sleep;

use crate::settings::AgentConfig;

/// An input with the tool's defaults and conversions, or as given if it does not match the schema.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) input: Value,
    pub(crate) fit: Fit,
}

impl Prepared {
    pub(crate) fn by(tool: Option<&Arc<dyn Tool>>, input: Value) -> Self {
        match prepare(tool, input.clone()) {
            Ok(input) => Self { input, fit: Fit::Fits },
            Err(reason) => Self { input, fit: Fit::Unfit(reason) },
        }
    }
}

/// Returns the input with the tool's defaults and conversions, or the reason why it does not match the schema.
pub(crate) fn prepare(tool: Option<&Arc<dyn Tool>>, input: Value) -> Result<Value, String> {
    let Some(tool) = tool else {
        // A tool of this name may be added before the call runs, but no gate has seen the call.
        return Err("there was no such tool when the call was decided".to_owned());
    };
    match contain(|| tool.prepare(input)) {
        Ok(prepared) => prepared.map_err(|error| error.to_string()),
        Err(panic) => {
            Err(format!("checking the arguments panicked: {}", panic.excerpt().unwrap_or_default()))
        }
    }
}

/// The hooks and permissions of a call. A changed input is prepared again, so that the last sees the input that runs.
pub(crate) struct CallGate {
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

/// The decision of a [`CallGate`], and the input that it has seen.
pub(crate) struct Decided {
    pub(crate) tool: Option<Arc<dyn Tool>>,
    pub(crate) prepared: Prepared,
    pub(crate) decision: GateDecision,
}

pub(crate) enum GateDecision {
    Allow,
    Deny(Denial),
    Later,
}

impl GateDecision {
    /// Returns the decision for the turn, and the event of a denial. `later` is the decision until permission is given.
    pub(crate) fn apply(
        self,
        block: &ToolUseBlock,
        input: &Value,
        later: fn(Value) -> Decision,
    ) -> (Decision, Option<AgentEvent>) {
        match self {
            Self::Allow => (Decision::Run(input.clone()), None),
            Self::Deny(denial) => {
                let content = denial.to_value(&block.name);
                (Decision::Refuse(content), Some(denial.event(block, input)))
            }
            Self::Later => (later(input.clone()), None),
        }
    }
}

/// Calls that are about to run.
pub(crate) struct Admission {
    pub(crate) blocks: Vec<ToolUseBlock>,
    pub(crate) batch: Batch,
    pub(crate) denied: Vec<Refused>,
    /// The calls of external tools, which wait for their results.
    pub(crate) external: Vec<usize>,
}

/// A call that must not run any more.
pub(crate) struct Refused {
    pub(crate) place: usize,
    /// The result that the model reads.
    pub(crate) content: Value,
    pub(crate) event: AgentEvent,
}

impl AgentConfig {
    /// Returns true if hooks or permissions decide about a call.
    pub(crate) fn has_gate(&self, call: &Call) -> bool {
        let name = &call.block.name;
        self.hooks.has_pre_tool_use(name) || self.needs_permission(name)
    }

    /// Returns the gate of a call, which lets the call pass if there is none.
    pub(crate) fn gate(&self, call: &Call, history: &History) -> CallGate {
        let ToolUseBlock { id, name, .. } = &*call.block;
        CallGate {
            hooks: self.hooks.has_pre_tool_use(name).then(|| self.hooks.clone()),
            permissions: self.needs_permission(name).then(|| self.permissions.clone()),
            is_approved: call.is_approved,
            tool: self.tools.get(name).cloned(),
            name: name.clone(),
            id: id.clone(),
            history: history.clone(),
            prepared: self.prepared(call),
        }
    }

    fn needs_permission(&self, tool: &str) -> bool {
        self.tools.get(tool).is_some() && !self.permissions.allow_everything()
    }

    /// Returns true if nothing has to decide about a valid call: the rules and the mode allow it without a question,
    /// and no hook is for it.
    pub(crate) fn is_allowed(&self, call: &Call) -> bool {
        let Call { block, input, fit, .. } = call;
        if *fit != Fit::Fits || self.hooks.has_pre_tool_use(&block.name) {
            return false;
        }
        let allowed = |category| self.permissions.known(&block.name, input, category);
        category(self.tools.get(&block.name))
            .is_ok_and(|category| allowed(category) == Some(Permission::Allow))
    }

    /// Returns the input of a call, prepared by its tool unless that was done.
    pub(crate) fn prepared(&self, call: &Call) -> Prepared {
        match call.fit {
            Fit::Fits => Prepared { input: call.input.clone(), fit: Fit::Fits },
            _ => Prepared::by(self.tools.get(&call.block.name), call.input.clone()),
        }
    }

    /// Adds decided calls to a batch, except those denied by now: a rule, the mode or the input may have changed
    /// since their approval. A valid call of an external tool needs no place in it.
    pub(crate) fn admit<'a>(
        &self,
        batch: Batch,
        calls: impl Iterator<Item = (usize, &'a Call, Option<IdempotencyKey>)>,
    ) -> Admission {
        let (blocks, denied, external) = (Vec::new(), Vec::new(), Vec::new());
        let mut admission = Admission { blocks, batch, denied, external };
        for (place, call, key) in calls {
            let Call { block, input, fit, .. } = call;
            if let Some(denial) = self.denial(call) {
                let (content, event) = (denial.to_value(&block.name), denial.event(block, input));
                admission.denied.push(Refused { place, content, event });
                continue;
            }
            // A call that does not fit still gets its place in the batch, and its error as its result: results
            // stay in call order.
            let prepared = match fit {
                Fit::Fits if call.is_external => {
                    admission.external.push(place);
                    continue;
                }
                Fit::Fits => Ok(()),
                Fit::Unfit(why) => Err(ArgumentError::new(why)),
                // A call that no gate has checked must not run.
                _ => Err(ArgumentError::new("the arguments were not checked")),
            };
            admission.batch = admission.batch.prepared(&*block.id, prepared);
            if let Some(key) = key {
                admission.batch = admission.batch.idempotency_key(&block.id, key);
            }
            admission.blocks.push(call.block_to_run());
        }
        admission
    }

    /// Returns why a call must not run now, even if it was approved.
    pub(crate) fn denial(&self, call: &Call) -> Option<Denial> {
        let Call { block, input, .. } = call;
        let tool = self.tools.get(&block.name).filter(|_| self.needs_permission(&block.name))?;
        denial(&self.permissions, Some(tool), &block.name, input)
    }
}

/// Returns why the lists, the rules or the mode deny a call.
fn denial(
    permissions: &Permissions,
    tool: Option<&Arc<dyn Tool>>,
    name: &str,
    input: &Value,
) -> Option<Denial> {
    // Deny the call if reading the category panics, because a rule may forbid that category.
    category(tool)
        .map_or_else(Some, |category| permissions.denies(name, input, category))
        .map(Denial::by_permission)
}

/// Returns the category of a tool, or an error if the tool panics.
fn category(tool: Option<&Arc<dyn Tool>>) -> Result<Option<&str>, String> {
    contain(|| tool?.category()).map_err(|_| "the tool's category panicked".to_owned())
}

/// The reason why a call does not run.
pub(crate) struct Denial {
    error: &'static str,
    reason: String,
}

impl CallGate {
    /// Runs the whole gate. An error is a hook that failed: the turn ends.
    pub(crate) async fn decide(mut self) -> Result<Decided, oa_hooks::Error> {
        Ok(match self.before_question().await? {
            Some(decision) => self.decided(decision),
            None => self.question().await,
        })
    }

    /// Runs the hooks, the rules and the mode; `None` if permission is still needed.
    pub(crate) async fn before_question(
        &mut self,
    ) -> Result<Option<GateDecision>, oa_hooks::Error> {
        if let Some(hooks) = &self.hooks {
            let (input, history) = (self.prepared.input.clone(), self.history.clone());
            let event = PreToolUseEvent::new(&*self.name, input, &*self.id, history);
            match hooks.pre_tool_use(event, sleep).await? {
                HookOutcome::Allow => {}
                HookOutcome::Block { reason } => {
                    return Ok(Some(GateDecision::Deny(Denial::by_hook(reason))));
                }
                // Permission sees the input that runs: with the hook's change, and defaults added.
                HookOutcome::Modify(change) => self.prepare(change.value),
            }
        }
        let Some(permissions) = &self.permissions else { return Ok(Some(GateDecision::Allow)) };
        if let Some(denial) = self.denial(permissions) {
            return Ok(Some(GateDecision::Deny(denial)));
        }
        // Do not ask about a call that cannot run: its result reports the invalid input.
        let is_settled = self.is_approved || self.prepared.fit != Fit::Fits;
        Ok(is_settled.then_some(GateDecision::Allow))
    }

    /// Asks for permission.
    pub(crate) async fn question(mut self) -> Decided {
        let Some(permissions) = self.permissions.take() else {
            return self.decided(GateDecision::Allow);
        };
        let (input, history) = (self.prepared.input.clone(), self.history.clone());
        let spec = self.tool.as_ref().and_then(|tool| contain(|| tool.spec()).ok());
        let request = PermissionRequest::new(&*self.name, input, &*self.id, history);
        // A tool whose category panics was denied before.
        let category = category(self.tool.as_ref()).unwrap_or_default();
        let request = request.with_tool(spec).with_category(category);
        let decision = match permissions.decide(request, sleep).await {
            Permission::Allow => GateDecision::Allow,
            Permission::AllowWith(input) => {
                self.prepare(input);
                // A rule may forbid the replaced input.
                self.denial(&permissions).map_or(GateDecision::Allow, GateDecision::Deny)
            }
            Permission::Later => GateDecision::Later,
            Permission::Deny(reason) => GateDecision::Deny(Denial::by_permission(reason)),
            // Deny the call on a decision that is unknown here.
            _ => GateDecision::Deny(Denial::by_permission("it was not allowed".to_owned())),
        };
        self.decided(decision)
    }

    pub(crate) fn decided(self, decision: GateDecision) -> Decided {
        Decided { tool: self.tool, prepared: self.prepared, decision }
    }

    fn prepare(&mut self, input: Value) {
        self.prepared = Prepared::by(self.tool.as_ref(), input);
    }

    fn denial(&self, permissions: &Permissions) -> Option<Denial> {
        denial(permissions, self.tool.as_ref(), &self.name, &self.prepared.input)
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

    /// Returns the event that reports the denial.
    pub(crate) fn event(self, block: &ToolUseBlock, input: &Value) -> AgentEvent {
        let denied = CallDenied::new(&block.id, &block.name, input.clone(), self.reason);
        AgentEvent::CallDenied(Box::new(denied))
    }
}
