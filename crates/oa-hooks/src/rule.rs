use std::fmt;
use std::sync::Arc;

use oa_types::contain::contain;
use serde_json::Value;

/// What a rule says of the calls it is about. Of several that fit a call the strictest counts.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Effect {
    Allow,
    Ask,
    Deny,
}

/// What holds for the calls of a tool, or for some of them by their arguments.
///
/// A name may end in `*`, which stands for any end. Of several rules that fit a call a denial counts
/// before a wish to be asked, and that before an allowance, in whatever order they were added.
///
/// ```
/// use oa_hooks::ToolRule;
///
/// let rules = [
///     ToolRule::allow("read_*"),
///     ToolRule::ask("write_file"),
///     ToolRule::deny("shell").when(|input| {
///         input["command"].as_str().is_none_or(|command| command.contains("rm "))
///     }),
/// ];
/// # assert_eq!(rules.len(), 3);
/// ```
#[derive(Clone)]
#[must_use]
pub struct ToolRule {
    tools: Pattern,
    effect: Effect,
    when: Option<Condition>,
}

type Condition = Arc<dyn Fn(&Value) -> bool + Send + Sync>;

impl ToolRule {
    /// The name that it was given.
    pub(crate) fn tools(&self) -> &str {
        self.tools.as_str()
    }

    /// These calls run, and nobody is asked.
    pub fn allow(tools: impl Into<String>) -> Self {
        Self::new(tools, Effect::Allow)
    }

    /// Somebody is asked about these calls.
    pub fn ask(tools: impl Into<String>) -> Self {
        Self::new(tools, Effect::Ask)
    }

    /// These calls do not run.
    pub fn deny(tools: impl Into<String>) -> Self {
        Self::new(tools, Effect::Deny)
    }

    fn new(tools: impl Into<String>, effect: Effect) -> Self {
        Self { tools: Pattern::new(tools), effect, when: None }
    }

    /// Is only about calls whose arguments fulfil this. One that panics allows nothing.
    pub fn when(mut self, condition: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        self.when = Some(Arc::new(condition));
        self
    }

    pub(crate) fn effect(&self) -> Effect {
        self.effect
    }

    /// What it says of a call, if anything.
    pub(crate) fn effect_on(&self, tool: &str, input: &Value) -> Option<Effect> {
        if !self.tools.fits(tool) {
            return None;
        }
        let fits = self.when.as_ref().is_none_or(|condition| {
            contain(|| condition(input)).unwrap_or(self.effect != Effect::Allow)
        });
        fits.then_some(self.effect)
    }
}

impl fmt::Debug for ToolRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRule")
            .field("tools", &self.tools)
            .field("effect", &self.effect)
            .field("has_condition", &self.when.is_some())
            .finish()
    }
}

/// A tool's name, or how it begins.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(String);

impl Pattern {
    pub(crate) fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    pub(crate) fn fits(&self, tool: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(begin) => tool.starts_with(begin),
            None => tool == self.0,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}
