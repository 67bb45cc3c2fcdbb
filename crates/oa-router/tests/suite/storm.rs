//! Five hundred clients and three servers, of which first one and then all are down for a minute.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use oa_chat::RetryConfig;
use oa_client::{AgentOptions, Client};
use oa_router::{BreakerConfig, Policy, Router, RouterBuilder};
use oa_testkit::{MemoryServer, Reply, Script};
use tokio::time::Instant;

use crate::{Count, lasting, over, pause};

const CLIENTS: usize = 500;
const DOWN: std::ops::Range<u64> = 20..80;
const END: u64 = 140;

/// A server, and its number of requests in each second.
struct Server {
    server: MemoryServer,
    by_second: Arc<Mutex<Vec<usize>>>,
}

impl Server {
    fn new(began: Instant, is_down: impl Fn(u64) -> bool + Send + Sync + 'static) -> Self {
        let by_second = Arc::new(Mutex::new(vec![0; 600]));
        let note = Arc::clone(&by_second);
        let server = MemoryServer::new(Script::new().otherwise(Reply::by(move |_| {
            let second = began.elapsed().as_secs();
            note.lock().expect("nothing panics here")[second as usize] += 1;
            if is_down(second) {
                Reply::error(503, "down")
            } else {
                lasting(800, "Done.").delay_first(Duration::from_millis(200))
            }
        })));
        Self { server, by_second }
    }

    /// The number of requests in these seconds.
    fn requests(&self, seconds: std::ops::Range<u64>) -> usize {
        let by_second = self.by_second.lock().expect("nothing panics here");
        by_second[seconds.start as usize..seconds.end as usize].iter().sum()
    }

    fn most_in_a_second(&self, seconds: std::ops::Range<u64>) -> usize {
        let by_second = self.by_second.lock().expect("nothing panics here");
        let seconds = &by_second[seconds.start as usize..seconds.end as usize];
        seconds.iter().copied().max().unwrap_or_default()
    }
}

/// The results of a storm.
#[derive(Debug, Default)]
struct Told {
    asked: Count,
    answered: Count,
    failed: Count,
}

/// Clients that ask about every five seconds, until the end.
async fn storm(router: &Router, retry: RetryConfig, began: Instant) -> Arc<Told> {
    let told = Arc::new(Told::default());
    let options = AgentOptions::builder().model("any").retry(retry).chat_service(router.clone());
    let options = options.build().expect("these can work");
    let tasks: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (options, told) = (options.clone(), Arc::clone(&told));
            tokio::spawn(async move {
                pause(10 * number as u64).await;
                while began.elapsed() < Duration::from_secs(END) {
                    let mut client = Client::new(options.clone()).expect("there is a model");
                    told.asked.add();
                    match client.ask("Go.").await {
                        Ok(_) => told.answered.add(),
                        Err(_) => told.failed.add(),
                    };
                    pause(4_000).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("nothing panics here");
    }
    told
}

fn balanced(servers: &[Server]) -> RouterBuilder {
    let router = over(servers.iter().map(|server| &server.server));
    router.policy(Policy::LeastBusy).seed(1).cap(100)
}

/// It is hardly asked meanwhile, no client notices, and it comes back gently.
#[tokio::test(start_paused = true)]
async fn one_server_down_for_a_minute() {
    let began = Instant::now();
    let servers = [
        Server::new(began, |second| DOWN.contains(&second)),
        Server::new(began, |_| false),
        Server::new(began, |_| false),
    ];
    let router = balanced(&servers).build().unwrap();
    let told = storm(&router, RetryConfig::none(), began).await;

    let [a, b, c] = &servers;
    let before = a.most_in_a_second(5..DOWN.start);
    let while_down = a.requests(DOWN);
    let after = a.most_in_a_second(DOWN.end..END);
    let back = (DOWN.end..END).find(|second| a.requests(*second..second + 1) > 10);
    let requests: usize = servers.iter().map(|server| server.requests(0..600)).sum();
    println!(
        "{CLIENTS} clients asked {} times in {requests} requests: {} answered, {} failed.\n\
         The server that went down: {before} requests in its busiest second before, {while_down} in \
         the minute it was down, {after} in its busiest second after; back at second {back:?}.\n\
         The others: {} and {} in their busiest seconds.",
        told.asked.get(),
        told.answered.get(),
        told.failed.get(),
        b.most_in_a_second(0..END),
        c.most_in_a_second(0..END),
    );
    assert_eq!((told.asked.get(), told.failed.get()), (told.answered.get(), 0), "nobody noticed");
    // Three that open the circuit, and trials after 1, 2, 4, 8, 16, 30 seconds and so on.
    assert!((4..=9).contains(&while_down), "{while_down}");
    assert_eq!(requests, told.asked.get() + while_down, "one more for each that went there");
    let back = back.expect("it has come back");
    assert!(back <= DOWN.end + 31, "{back}");
    assert!(after <= 2 * before, "{after} in a second, after {before} before");
}

/// They are asked no more often than the retry budget allows, and come back gently.
#[tokio::test(start_paused = true)]
async fn all_servers_down_for_a_minute() {
    let began = Instant::now();
    let servers = [(); 3].map(|()| Server::new(began, |second| DOWN.contains(&second)));
    let config = BreakerConfig::default().max_open(Duration::from_secs(10));
    let router = balanced(&servers).breaker(config).build().unwrap();
    let told = storm(&router, RetryConfig::new(3).budget(50), began).await;

    let while_down: usize = servers.iter().map(|server| server.requests(DOWN)).sum();
    let before = servers.iter().map(|server| server.most_in_a_second(5..DOWN.start)).max();
    let after = servers.iter().map(|server| server.most_in_a_second(DOWN.end..END)).max();
    let back = (DOWN.end..END).find(|second| servers[0].requests(*second..second + 1) > 10);
    println!(
        "{CLIENTS} clients asked {} times: {} answered, {} failed; {while_down} requests while all \
         were down, {before:?} and {after:?} in the busiest second of one before and after; back at \
         second {back:?}.",
        told.asked.get(),
        told.answered.get(),
        told.failed.get(),
    );
    assert_eq!(told.asked.get(), told.answered.get() + told.failed.get(), "each is told something");
    // For each server, three that open the circuit, and trials after 1, 2, 4, 8, 10, 10, ... seconds.
    assert!((3 * 4..=3 * 12).contains(&while_down), "{while_down}");
    assert!(back.expect("they have come back") <= DOWN.end + 11);
    // The cap limits concurrent requests; each takes a second.
    assert!(after.unwrap() <= 101, "{after:?}");
    assert!(router.status().iter().all(|status| status.in_use == 0) && router.waiting() == 0);
}
