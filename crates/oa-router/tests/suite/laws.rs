//! Laws for random failures, delays and interrupts in any order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oa_chat::RetryConfig;
use oa_client::{AgentOptions, Client};
use oa_router::{BreakerConfig, Policy, Router};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_types::FinishReason;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use crate::{lasting, over, pause};

/// A sequence of server behaviors and clients.
#[derive(Clone, Debug)]
struct Play {
    caps: usize,
    queue: usize,
    policy: Policy,
    sticky: bool,
    failures: u32,
    /// For each server.
    replies: Vec<Vec<Behavior>>,
    /// For each client: its start, its interrupt if any, and its number of prompts.
    clients: Vec<(u64, Option<u64>, u32)>,
}

#[derive(Clone, Copy, Debug)]
enum Behavior {
    Answer(u64),
    Break,
    Fail(u16),
    HangUp,
    LateHead(u64),
    Lost,
    RetryAfter,
    Silence,
}

impl Behavior {
    fn reply(self) -> Reply {
        let half = "data: {\"choices\":[{\"delta\":{\"content\":\"Half\"}}]}\n\ndata: x";
        match self {
            Self::Answer(time) => lasting(time, "Done."),
            Self::Break => Reply::sse(half).close_after(60),
            Self::Fail(status) => Reply::error(status, "no"),
            Self::HangUp => Reply::hang_up(),
            Self::LateHead(time) => lasting(5, "Done.").delay_head(Duration::from_millis(time)),
            Self::Lost => Reply::text("Lost.").close_after(0),
            Self::RetryAfter => Reply::error(429, "slow").header("retry-after-ms", "700"),
            Self::Silence => Reply::silence(),
        }
    }
}

fn behavior() -> impl Strategy<Value = Behavior> {
    prop_oneof![
        6 => (0..500_u64).prop_map(Behavior::Answer),
        1 => Just(Behavior::Break),
        1 => prop::sample::select(vec![400, 401, 404, 500, 503]).prop_map(Behavior::Fail),
        1 => Just(Behavior::HangUp),
        1 => (0..900_u64).prop_map(Behavior::LateHead),
        1 => Just(Behavior::Lost),
        1 => Just(Behavior::RetryAfter),
        1 => Just(Behavior::Silence),
    ]
}

fn play() -> impl Strategy<Value = Play> {
    let replies = prop::collection::vec(prop::collection::vec(behavior(), 1..12), 1..5);
    let interrupt = prop::option::weighted(0.4, 0..2_000_u64);
    let clients = prop::collection::vec((0..1_500_u64, interrupt, 1..4_u32), 1..25);
    let policy = prop_oneof![Just(Policy::Failover), Just(Policy::LeastBusy)];
    (1..4_usize, 0..12_usize, policy, any::<bool>(), 1..4_u32, replies, clients).prop_map(
        |(caps, queue, policy, sticky, failures, replies, clients)| Play {
            caps,
            queue,
            policy,
            sticky,
            failures,
            replies,
            clients,
        },
    )
}

fn server(behaviors: Vec<Behavior>) -> MemoryServer {
    // Repeats forever.
    let next = Mutex::new(behaviors.into_iter().cycle());
    MemoryServer::new(Script::new().otherwise(Reply::by(move |_| {
        let behavior = next.lock().expect("nothing panics here").next();
        behavior.map_or_else(Reply::hang_up, Behavior::reply)
    })))
}

/// The number of a server's unfinished requests.
fn open(server: &MemoryServer) -> usize {
    server.requests().iter().filter(|request| !request.is_over() && !request.aborted()).count()
}

/// Runs one client and returns the result of each prompt.
async fn talk(router: Router, play: (u64, Option<u64>, u32)) -> Vec<&'static str> {
    let (begin, interrupt, prompts) = play;
    pause(begin).await;
    let options = AgentOptions::builder().model("any").retry(RetryConfig::none());
    let options = options.first_token_timeout(3).timeout(3).chat_service(router);
    let mut client = Client::new(options.build().expect("these can work")).expect("it has a model");
    if let Some(after) = interrupt {
        let handle = client.interrupt_handle();
        tokio::spawn(async move {
            pause(after).await;
            handle.interrupt();
        });
    }
    let mut outcomes = Vec::new();
    for _ in 0..prompts {
        outcomes.push(match client.ask("Go.").await {
            Ok(answer) if answer.finish_reason == FinishReason::Interrupted => "interrupted",
            Ok(_) => "answered",
            Err(_) => "failed",
        });
    }
    outcomes
}

/// Runs a play and counts the outcomes. Errors name the violated law.
async fn run(play: Play) -> Result<BTreeMap<&'static str, usize>, TestCaseError> {
    let servers: Vec<_> = play.replies.into_iter().map(server).collect();
    let router = over(&servers).policy(play.policy).cap(play.caps).queue(play.queue);
    let router = if play.sticky { router.sticky(4) } else { router.not_sticky() };
    let router = router.breaker(BreakerConfig::new(play.failures)).build();
    let router = router.map_err(|error| TestCaseError::fail(error.to_string()))?;
    let prompts: u32 = play.clients.iter().map(|(_, _, prompts)| prompts).sum();
    let tasks: Vec<_> =
        play.clients.into_iter().map(|client| tokio::spawn(talk(router.clone(), client))).collect();
    // Checked every few milliseconds and whenever a server is used.
    let broken = Arc::new(Mutex::new(None));
    while tasks.iter().any(|task| !task.is_finished()) {
        for (status, server) in router.status().iter().zip(&servers) {
            let open = open(server);
            if status.in_use > play.caps || open > play.caps || router.waiting() > play.queue {
                *broken.lock().expect("nothing panics here") = Some(format!("{open} {router:?}"));
            }
        }
        pause(7).await;
    }
    prop_assert_eq!(broken.lock().expect("nothing panics here").take(), None);
    let mut outcomes = BTreeMap::new();
    for task in tasks {
        let told = task.await.map_err(|error| TestCaseError::fail(error.to_string()))?;
        for outcome in told {
            *outcomes.entry(outcome).or_insert(0) += 1;
        }
    }
    prop_assert_eq!(outcomes.values().sum::<usize>(), prompts as usize, "each was told something");

    prop_assert_eq!(router.waiting(), 0);
    prop_assert!(router.remembered() <= 4);
    for (status, server) in router.status().iter().zip(&servers) {
        prop_assert_eq!(status.in_use, 0, "{:?}", status);
        let sum = status.answered + status.failed + status.refused + status.given_up;
        prop_assert_eq!(status.asked, sum, "{:?}", status);
        prop_assert_eq!(open(server), 0);
        prop_assert!(server.requests().len() as u64 <= status.asked);
    }
    let answered: u64 = router.status().iter().map(|status| status.answered).sum();
    prop_assert!(answered as usize >= outcomes.get("answered").copied().unwrap_or_default());
    Ok(outcomes)
}

proptest! {
    #![proptest_config(Config { rng_seed: RngSeed::Fixed(11), ..Config::with_cases(400) })]

    /// No request is lost either.
    #[test]
    fn caps_hold_and_no_slot_leaks(play in play()) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build();
        runtime.expect("a runtime can be made").block_on(run(play))?;
    }
}
