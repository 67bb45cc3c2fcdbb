use std::fmt;
use std::sync::Arc;

use oa_contain::contain;
use serde_json::Value;

/// The effect of a rule. The strictest of all matching rules applies: variants are in order of strictness.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Effect {
    Allow,
    Ask,
    Deny,
}

/// A rule that allows, denies or asks about calls, by tool name or category and optionally by arguments.
///
/// A name may end in `*` to match any suffix; an agent rejects a `*` elsewhere. Categories are compared exactly; a tool
/// without a category matches no category rule. If several rules match, the strictest wins regardless of order: deny, then
/// ask, then allow.
///
/// ```
/// use oa_hooks::ToolRule;
///
/// let rules = [
///     ToolRule::allow("read_*"),
///     ToolRule::ask("write_file"),
///     ToolRule::deny_category("network"),
///     ToolRule::deny("shell")
///         .when(|input| input["command"].as_str().is_none_or(|command| command.contains("rm ")))
///         .because("nothing may be deleted here: move files to the trash folder"),
/// ];
/// # assert_eq!(rules.len(), 4);
/// ```
#[derive(Clone)]
#[must_use]
pub struct ToolRule {
    subject: Subject,
    effect: Effect,
    when: Option<Condition>,
    reason: Option<Arc<str>>,
}

type Condition = Arc<dyn Fn(&Value) -> bool + Send + Sync>;

impl ToolRule {
    /// Allows calls to these tools without asking.
    pub fn allow(tools: impl Into<String>) -> Self {
        Self::new(Subject::Tools(Pattern::new(tools)), Effect::Allow)
    }

    /// Asks about calls to these tools.
    pub fn ask(tools: impl Into<String>) -> Self {
        Self::new(Subject::Tools(Pattern::new(tools)), Effect::Ask)
    }

    /// Denies calls to these tools.
    pub fn deny(tools: impl Into<String>) -> Self {
        Self::new(Subject::Tools(Pattern::new(tools)), Effect::Deny)
    }

    /// Allows calls to tools in this category without asking.
    pub fn allow_category(category: impl Into<String>) -> Self {
        Self::new(Subject::Category(category.into()), Effect::Allow)
    }

    /// Asks about calls to tools in this category.
    pub fn ask_category(category: impl Into<String>) -> Self {
        Self::new(Subject::Category(category.into()), Effect::Ask)
    }

    /// Denies calls to tools in this category.
    pub fn deny_category(category: impl Into<String>) -> Self {
        Self::new(Subject::Category(category.into()), Effect::Deny)
    }

    fn new(subject: Subject, effect: Effect) -> Self {
        Self { subject, effect, when: None, reason: None }
    }

    /// Restricts the rule to calls whose arguments meet a condition. A panicking condition never allows a call:
    /// rules that ask or deny then match, and rules that allow do not.
    pub fn when(mut self, condition: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        self.when = Some(Arc::new(condition));
        self
    }

    /// Sets the reason for a denial, which the model reads and events contain: say what the model may do instead. The
    /// default is "a permission rule denies this call". If several rules deny a call, the first reason is used.
    pub fn because(mut self, reason: impl Into<Arc<str>>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Returns the tool name pattern, if the rule is about tools.
    pub(crate) fn tools(&self) -> Option<&str> {
        match &self.subject {
            Subject::Category(_) => None,
            Subject::Tools(pattern) => Some(pattern.as_str()),
        }
    }

    /// Returns the category, if the rule is about one.
    pub(crate) fn category(&self) -> Option<&str> {
        match &self.subject {
            Subject::Category(category) => Some(category),
            Subject::Tools(_) => None,
        }
    }

    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    pub(crate) fn effect(&self) -> Effect {
        self.effect
    }

    /// Returns the rule's effect on a call, if it matches.
    pub(crate) fn effect_on(
        &self,
        tool: &str,
        category: Option<&str>,
        input: &Value,
    ) -> Option<Effect> {
        let is_about = match &self.subject {
            Subject::Category(name) => category == Some(name),
            Subject::Tools(pattern) => pattern.fits(tool),
        };
        if !is_about {
            return None;
        }
        let fits = self.when.as_ref().is_none_or(|condition| {
            // A panic counts as the safer answer for this effect: the rule denies or asks, but never allows.
            contain(|| condition(input)).unwrap_or(self.effect != Effect::Allow)
        });
        fits.then_some(self.effect)
    }
}

impl fmt::Debug for ToolRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRule")
            .field("subject", &self.subject)
            .field("effect", &self.effect)
            .field("has_condition", &self.when.is_some())
            .field("reason", &self.reason)
            .finish()
    }
}

/// The tools that a rule matches.
#[derive(Clone, Debug)]
enum Subject {
    Category(String),
    Tools(Pattern),
}

/// A tool name or a prefix.
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

/// The fault of a pattern with a `*` before its end. A denial would silently apply to no tool.
pub(crate) const INNER_ASTERISK: &str = "in the name of a tool, `*` is possible only at the end";

/// Returns true if a pattern has a `*` before its end.
pub(crate) fn has_inner_asterisk(pattern: &str) -> bool {
    pattern.strip_suffix('*').unwrap_or(pattern).contains('*')
}
