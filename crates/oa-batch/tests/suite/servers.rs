//! Two servers behind a router, one of which dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Instant;

use oa_batch::{BatchOptions, run_batch};
use oa_chat::Endpoint;
use oa_client::AgentOptions;
use oa_router::{Policy, Router, Server};
use oa_testkit::{MemoryServer, Reply};

use crate::model::{Asked, echo, prompts, server};

const PROMPTS: usize = 10_000;

fn endpoint(server: MemoryServer) -> Endpoint {
    let endpoint = Endpoint::builder().base_url("http://memory/v1").model("any");
    endpoint.transport(server).build().expect("the endpoint is valid")
}

/// Returns an agent with two servers, of which one dies after so many requests: some are cut off in the middle of their
/// answer, all later ones find nobody.
fn agent_of_two(asked: &Asked, lives: u32) -> (AgentOptions, Router) {
    let requests = Arc::new(AtomicU32::new(0));
    let healthy = server(asked, |_, _| None);
    let dies = server(asked, move |_, _| {
        let past = requests.fetch_add(1, Ordering::Relaxed).checked_sub(lives)?;
        Some(match past {
            0..10 => Reply::text("Broken off in the middle").close_after(150),
            _ => Reply::hang_up(),
        })
    });
    let router = Router::builder()
        .endpoint(Server::new(endpoint(healthy)).name("healthy").cap(16))
        .endpoint(Server::new(endpoint(dies)).name("dies").cap(16))
        .policy(Policy::LeastBusy)
        .not_sticky()
        .build()
        .expect("the router is valid");
    let agent = AgentOptions::builder().model("any").chat_service(router.clone()).build();
    (agent.expect("the options are valid"), router)
}

#[tokio::test]
async fn prompts_survive_the_death_of_a_server() {
    let began = Instant::now();
    let asked = Asked::default();
    let (agent, router) = agent_of_two(&asked, 2_000);
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let prompts = prompts(PROMPTS).inspect(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let options = BatchOptions::new(agent).concurrency(32).window(32).in_input_order(true);
    let mut batch = run_batch(prompts, options).unwrap();
    let mut yielded = 0;
    while let Some((index, reply)) = batch.next().await {
        assert_eq!(index, yielded);
        assert_eq!(reply.unwrap().text, echo(&format!("prompt {index}")));
        assert!(taken.load(Ordering::Relaxed) - yielded <= 64);
        yielded += 1;
    }
    let progress = batch.progress();
    assert_eq!((yielded, progress.done, progress.failed), (PROMPTS, 10_000, 0));
    assert!(progress.retries <= 10, "{progress:?}");
    let status = router.status();
    assert!(status[1].answered >= 2_000 && status[1].failed >= 3, "{status:?}");
    // Besides those that broke off, prompts were only asked again of a server that hung up.
    let again = u64::from(asked.total()) - PROMPTS as u64;
    assert_eq!(again, status[1].failed, "{status:?}");
    println!("10,000 prompts in {:?}, {} of them asked again", began.elapsed(), again);
}

/// Stopped in the middle, before and after the death of the server: what was yielded is not asked again, and every
/// prompt has one reply.
#[cfg(feature = "log")]
#[tokio::test]
async fn prompts_resume_from_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batch.jsonl");
    let mut replies = vec![false; PROMPTS];
    for (run, stop) in [1_303, 7_109, PROMPTS].into_iter().enumerate() {
        let asked = Asked::default();
        // In the second run it is well again, and dies. In the third it is dead from the start.
        let (agent, _) = agent_of_two(&asked, [10_000, 2_000, 0][run]);
        let log = oa_batch::BatchLog::open(&path).await.unwrap();
        let known = log.replies();
        assert!(known >= replies.iter().filter(|has_reply| **has_reply).count());
        let options = BatchOptions::new(agent).concurrency(32).window(32).log(log);
        let taken = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&taken);
        let prompts = prompts(PROMPTS).inspect(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let mut batch = run_batch(prompts, options.in_input_order(true)).unwrap();
        for number in 0..stop {
            let (index, reply) = batch.next().await.expect("there are more");
            assert_eq!(index, number, "in order of input, also from the log");
            assert_eq!(reply.unwrap().text, echo(&format!("prompt {index}")));
            let again = asked.times(&format!("prompt {index}"));
            assert!(!replies[index] || again == 0, "prompt {index} was asked again");
            assert!(taken.load(Ordering::Relaxed) - number <= 64, "more is held than allowed");
            replies[index] = true;
        }
        let progress = batch.progress();
        assert_eq!(progress.failed, 0);
        assert!(progress.from_log <= known as u64, "{progress:?}");
        if stop == PROMPTS {
            assert!(batch.next().await.is_none());
            assert_eq!((progress.done, progress.from_log), (10_000, known as u64));
            assert!(u64::from(asked.total()) >= (PROMPTS - known) as u64);
        }
    }
}
