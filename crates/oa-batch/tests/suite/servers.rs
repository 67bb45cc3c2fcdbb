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

#[tokio::test]
async fn ten_thousand_prompts_survive_the_death_of_a_server() {
    let began = Instant::now();
    let (asked, requests) = (Asked::default(), Arc::new(AtomicU32::new(0)));
    let healthy = server(&asked, |_, _| None);
    // Some requests are cut off in the middle of their answer, all later ones find nobody.
    let dies = server(&asked, move |_, _| match requests.fetch_add(1, Ordering::Relaxed) {
        0..2_000 => None,
        2_000..2_010 => Some(Reply::text("Broken off in the middle").close_after(150)),
        _ => Some(Reply::hang_up()),
    });
    let router = Router::builder()
        .endpoint(Server::new(endpoint(healthy)).name("healthy").cap(16))
        .endpoint(Server::new(endpoint(dies)).name("dies").cap(16))
        .policy(Policy::LeastBusy)
        .not_sticky()
        .build()
        .unwrap();
    let agent = AgentOptions::builder().model("any").chat_service(router.clone()).build().unwrap();

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
