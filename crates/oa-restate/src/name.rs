//! The names of journal entries and sessions, and the digest of an agent. The engine compares names in a replay, so
//! they depend only on durable facts.

use oa_client::AgentOptions;
use oa_turn::StepCall;
use serde_json::json;

use crate::limits::Limits;

/// The version of the path that a turn takes through the journal. Raise it with each change of the order, the number,
/// the names or the inputs of entries, so that workers notice a turn that an older version began.
const PATH: u32 = 2;

/// The maximum length of a part of a name that the model has chosen, in characters.
const LONGEST: usize = 64;

/// Returns the name of a step on a call: `call search call_1`.
pub(crate) fn of_call(step: &str, call: &StepCall) -> String {
    let block = &call.call.block;
    format!("{step} {} {}", part(&block.name), part(&block.id))
}

/// Returns the name of the decision on a call: `decide call_1`.
pub(crate) fn of_decision(call: &StepCall) -> String {
    format!("decide {}", part(&call.call.block.id))
}

/// Returns the beginning of a word, with control characters removed.
fn part(word: &str) -> String {
    word.chars().filter(|char| !char.is_control()).take(LONGEST).collect()
}

/// Returns the key of the session of a sub-agent. A call's key is unique to one invocation, so no two calls share a
/// session.
pub(crate) fn of_sub_session(session: &str, call: &StepCall) -> String {
    // Only the outermost session is named, so that keys do not grow with each level.
    format!("{}~{}", session.split('~').next().unwrap_or_default(), call.key)
}

/// Returns the conversation number of a turn, from which ids are made for calls without an id from the server. Turns of
/// one session are so far apart that their requests never share a number.
pub(crate) fn conversation(session: &str, turn: u64) -> u64 {
    hash(session.as_bytes()).wrapping_add(turn << 32)
}

/// Returns a digest of everything that determines the steps of a turn: limits, tools, hooks, and a store. A turn that
/// was begun with one digest may not be replayable with another.
pub(crate) fn digest<'a>(
    agents: impl Iterator<Item = (&'a str, &'a AgentOptions)>,
    limits: &Limits,
    has_store: bool,
) -> String {
    // These sizes are in the input of calls, or decide if a request follows. The other limits only affect what a
    // step records, so they may change.
    let sizes = [limits.session_bytes, limits.result_bytes, limits.round_bytes];
    let agents = agents.map(|(name, options)| {
        let tools = options.tools().iter().map(|tool| {
            let hooks = options.hooks();
            json!([tool.name(), tool.is_external(), hooks.has_post_tool_use(tool.name())])
        });
        json!([
            name,
            options.turn_options(),
            format!("{:?}", options.executor().mode),
            options.executor().max_parallel,
            options.max_run_time().is_some(),
            options.hooks().has_user_prompt_submit(),
            tools.collect::<Vec<_>>(),
        ])
    });
    let agents: Vec<_> = agents.collect();
    format!("{:016x}", hash(json!([agents, sizes, has_store, PATH]).to_string().as_bytes()))
}

/// A 64-bit FNV-1a hash: the same in each process and version.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use oa_executor::ExecutorOptions;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn digest_covers_limits_and_executor() {
        let agent = |change: fn(ExecutorOptions) -> ExecutorOptions| {
            let executor = change(ExecutorOptions::new());
            AgentOptions::builder()
                .base_url("http://localhost/v1")
                .model("any")
                .executor(executor)
                .auto_execute_tools(true)
                .build()
        };
        let of = |agent: Result<AgentOptions, _>, limits: &Limits| {
            let agent: Result<AgentOptions, oa_client::Error> = agent;
            digest([("", &agent.expect("it is valid"))].into_iter(), limits, false)
        };
        let (limits, mut smaller) = (Limits::default(), Limits::default());
        smaller.result_bytes = 1_000;
        let plain = of(agent(|executor| executor), &limits);
        assert_eq!(of(agent(|executor| executor), &limits), plain);
        assert_ne!(of(agent(|executor| executor), &smaller), plain);
        assert_ne!(of(agent(|executor| executor.max_parallel(1)), &limits), plain);
        assert_ne!(
            of(agent(|executor| executor.mode(oa_executor::ExecutionMode::Sequential)), &limits),
            plain
        );
        smaller = limits;
        smaller.longest_wait /= 2;
        assert_eq!(of(agent(|executor| executor), &smaller), plain, "times may change");
    }

    proptest! {
        #[test]
        fn parts_are_short_and_printable(word in "\\PC{0,100}|[\\x00-\\x7f]{0,100}") {
            let part = part(&word);
            prop_assert!(part.chars().count() <= LONGEST);
            prop_assert!(!part.chars().any(char::is_control));
        }

        /// Requests of two turns of one session never have the same number, so that no two calls get the same id.
        #[test]
        fn turn_numbers_never_collide(session in ".{0,20}", turn in 0..1_000_000_u64, request in 0..1_000_000_u64) {
            let next = conversation(&session, turn + 1);
            prop_assert!(conversation(&session, turn).wrapping_add(request) != next);
        }
    }
}
