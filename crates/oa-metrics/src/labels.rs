//! The values of attributes, bounded in number for any names from servers and programs.

use std::collections::{BTreeMap, BTreeSet};

use oa_chat::ServerAddress;

/// The value for names beyond a limit.
pub(crate) const OTHER: &str = "_OTHER";

/// The longest name that is recorded, in bytes.
const NAME: usize = 128;
/// The maximum number of distinct targets.
const TARGETS: usize = 64;
/// The maximum number of distinct answering models for each target.
const ANSWERING: usize = 8;
/// The maximum number of distinct tools.
const TOOLS: usize = 256;
/// The maximum number of distinct agents.
const AGENTS: usize = 64;

/// The names recorded so far. Up to each limit new names are kept; later ones are recorded as [`OTHER`].
///
/// The program chooses targets and tools, so those limits guard against mistakes. The server chooses the name of the
/// answering model, so that limit guards against servers that report a different name in each answer.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    targets: BTreeMap<Target, BTreeSet<String>>,
    tools: BTreeSet<String>,
    agents: BTreeSet<Agent>,
}

/// An agent, as named by the program.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Agent {
    pub(crate) name: Option<String>,
    /// The model of its requests; `None` if there are several.
    pub(crate) model: Option<String>,
}

/// The target of a request, as set by the program.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Target {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) server: Option<ServerAddress>,
}

impl Labels {
    /// Returns the values to record for a target and for the model that answered there.
    pub(crate) fn admit(
        &mut self,
        target: Target,
        answered: Option<&str>,
    ) -> (Target, Option<String>) {
        let target = target.bounded();
        // Beyond the limit: one more for each known provider and one for the rest, `2 * TARGETS + 1` in all.
        let is_new = !self.targets.contains_key(&target);
        let target = if is_new && self.targets.len() >= TARGETS {
            Target { provider: target.provider_or_other(&self.targets), ..Target::other() }
        } else {
            target
        };
        let answering = self.targets.entry(target.clone()).or_default();
        (target, answered.map(|name| admit(answering, name, ANSWERING)))
    }

    /// Returns the values to record for an agent.
    pub(crate) fn agent(&mut self, agent: Agent) -> Agent {
        let agent = Agent { name: agent.name.map(bounded), model: agent.model.map(bounded) };
        if self.agents.contains(&agent) {
            return agent;
        }
        if self.agents.len() >= AGENTS {
            return Agent { name: agent.name.map(|_| OTHER.to_owned()), model: None };
        }
        self.agents.insert(agent.clone());
        agent
    }

    /// Returns the name to record for a tool.
    pub(crate) fn tool(&mut self, name: &str) -> String {
        admit(&mut self.tools, name, TOOLS)
    }
}

impl Target {
    /// Returns the target that stands for all targets beyond the limit.
    fn other() -> Self {
        Self { provider: OTHER.to_owned(), model: OTHER.to_owned(), server: None }
    }

    fn bounded(self) -> Self {
        let server = self.server.filter(|server| server.host.len() <= NAME);
        Self { provider: bounded(self.provider), model: bounded(self.model), server }
    }

    /// Returns the provider of a target beyond the limit, if a known target has the same one: that adds no new value.
    fn provider_or_other(&self, known: &BTreeMap<Self, BTreeSet<String>>) -> String {
        let is_known = known.keys().any(|target| target.provider == self.provider);
        if is_known { self.provider.clone() } else { OTHER.to_owned() }
    }
}

fn admit(known: &mut BTreeSet<String>, name: &str, most: usize) -> String {
    if known.contains(name) {
        return name.to_owned();
    }
    // Cutting a long name could make two names one.
    if name.len() > NAME || known.len() >= most {
        return OTHER.to_owned();
    }
    known.insert(name.to_owned());
    name.to_owned()
}

fn bounded(name: String) -> String {
    if name.len() > NAME { OTHER.to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target(provider: usize, model: &str, port: Option<u16>) -> Target {
        let server = port.and_then(|port| ServerAddress::of(&format!("http://gpu:{port}")));
        Target { provider: format!("p{provider}"), model: model.to_owned(), server }
    }

    /// Few letters, or more than are recorded.
    fn name() -> impl Strategy<Value = String> {
        prop_oneof!["[a-z]{1,3}", "[a-z]{2}".prop_map(|two| two.repeat(70))]
    }

    proptest! {
        /// Whatever comes, the number of different values is bounded, and so is their length.
        #[test]
        fn values_are_bounded_in_number_and_length(seen in proptest::collection::vec(
            (0..3_usize, name(), proptest::option::of(1..4_u16), name()), 0..500)) {
            let mut labels = Labels::default();
            let mut all = BTreeSet::new();
            for (provider, model, port, answered) in &seen {
                let recorded = labels.admit(target(*provider, model, *port), Some(answered));
                prop_assert!(recorded.0.model.len() <= NAME);
                prop_assert!(recorded.1.as_ref().is_some_and(|name| name.len() <= NAME));
                all.insert(recorded);
                labels.tool(answered);
                let agent = Agent { name: Some(answered.clone()), model: Some(model.clone()) };
                let agent = labels.agent(agent);
                prop_assert!(agent.name.is_some_and(|name| name.len() <= NAME));
            }
            // The rest of each provider, and of those without a place.
            prop_assert!(all.len() <= (TARGETS + 4) * (ANSWERING + 1));
            prop_assert!(labels.targets.len() <= TARGETS + 4);
            prop_assert!(labels.tools.len() <= TOOLS);
            prop_assert!(labels.agents.len() <= AGENTS);
        }

        /// A name that was recorded is recorded again, whatever came in between.
        #[test]
        fn recorded_names_stay_admitted(between in proptest::collection::vec("[a-z]{1,3}", 0..200)) {
            let mut labels = Labels::default();
            let first = target(0, "qwen3:8b", Some(1));
            let recorded = labels.admit(first.clone(), Some("qwen3"));
            prop_assert_eq!(&recorded, &(first.clone(), Some("qwen3".to_owned())));
            for name in &between {
                labels.admit(target(0, name, None), Some(name));
                labels.admit(first.clone(), Some(name));
            }
            prop_assert_eq!(labels.admit(first, Some("qwen3")), recorded);
        }
    }

    #[test]
    fn names_beyond_the_limit_become_other() {
        let mut labels = Labels::default();
        for model in 0..TARGETS {
            labels.admit(target(0, &model.to_string(), None), None);
        }
        let (late, _) = labels.admit(target(0, "late", Some(7)), None);
        assert_eq!(late, target(0, OTHER, None));
        let (foreign, _) = labels.admit(target(1, "late", Some(7)), None);
        assert_eq!(foreign, Target::other());
        for number in 0..ANSWERING {
            labels.admit(target(0, "0", None), Some(&number.to_string()));
        }
        let (kept, answered) = labels.admit(target(0, "0", None), Some("late"));
        assert_eq!((kept.model.as_str(), answered.as_deref()), ("0", Some(OTHER)));
    }
}
