//! The overhead that the router adds to a request.
//!
//! The servers are functions that answer immediately with one piece of text, so that only the client's work is
//! counted. Instructions are counted by `valgrind`; without it, only times are measured.
//! `cargo bench -p oa-router` prints the table.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

#[path = "../../oa-aggregate/benches/instructions.rs"]
mod instructions;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use oa_chat::Endpoint;
use oa_client::{AgentOptions, AgentOptionsBuilder, Client};
use oa_router::{Policy, Router, RouterBuilder};
use tokio::runtime;
use tower::service_fn;

use crate::instructions::{Valgrind, grouped, numbers};

const ANSWER: &str = concat!(
    r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    "\n\ndata: [DONE]\n\n",
);

type Serve = fn(AgentOptionsBuilder) -> AgentOptionsBuilder;

/// The compared setups, and the way each answers requests.
const CASES: [(&str, Serve); 7] = [
    ("an endpoint", |options| options.chat_service(endpoint())),
    ("a router: one server", |options| options.chat_service(built(over(1)))),
    ("three, in order", |options| options.chat_service(built(over(3)))),
    ("three, the least busy", |options| options.chat_service(built(balanced(3).not_sticky()))),
    ("three, and its own of them", |options| options.chat_service(built(balanced(3)))),
    ("sixteen, the least busy", |options| options.chat_service(built(balanced(16).not_sticky()))),
    ("three, with caps", |options| options.chat_service(built(balanced(3).not_sticky().cap(4)))),
];

const REQUESTS: usize = 200;
const TURNS: usize = 7;

fn main() {
    if let [case, requests] = numbers()[..] {
        return ask(case, requests);
    }
    let valgrind = Valgrind::find();
    let mut plain = [0.0; 3];
    let columns = ["instructions", "more", "allocations", "more", "us", "ratio"];
    let [instructions, more, allocations, others, us, ratio] = columns;
    println!(
        "{:28}{instructions:>14}{more:>9}{allocations:>13}{others:>6}{us:>9}{ratio:>9}",
        "a request to"
    );
    for (case, (name, _)) in CASES.into_iter().enumerate() {
        let instructions = valgrind.map_or(0.0, |v| v.instructions(None, &[case], REQUESTS));
        let allocations = valgrind.map_or(0.0, |v| v.allocations(&[case], REQUESTS));
        let time = (0..TURNS).map(|_| time(case)).fold(f64::MAX, f64::min);
        if case == 0 {
            plain = [instructions, allocations, time];
        }
        println!(
            "{name:28}{:>14}{:>9}{allocations:>13.1}{:>6.1}{time:>9.2}{:>8.3}x",
            grouped(instructions),
            grouped(instructions - plain[0]),
            allocations - plain[1],
            time / plain[2],
        );
    }
}

/// Microseconds a request.
fn time(case: usize) -> f64 {
    const MANY: usize = 5_000;
    let start = Instant::now();
    ask(case, MANY);
    start.elapsed().as_secs_f64() * 1e6 / MANY as f64
}

/// Asks so often, in one conversation that is forgotten each time.
fn ask(case: usize, requests: usize) {
    let options = CASES[case].1(AgentOptions::builder().model("any"));
    let options = options.build().expect("these can work");
    let runtime = runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime starts").block_on(async {
        let mut client = Client::new(options).expect("there is a model");
        for _ in 0..requests {
            let answer = client.ask("Say hello.").await.expect("it is answered");
            assert_eq!(answer.text, "Hello");
            client.clear_history();
        }
    });
}

fn endpoint() -> Endpoint {
    let endpoint = Endpoint::builder().base_url("http://model/v1").transport(service_fn(answer));
    endpoint.build().expect("it can work")
}

fn answer<B>(_: Request<B>) -> Ready<Result<Response<Full<Bytes>>, Infallible>> {
    ready(Ok(Response::new(Full::new(Bytes::from_static(ANSWER.as_bytes())))))
}

fn over(servers: usize) -> RouterBuilder {
    Router::builder().endpoints((0..servers).map(|_| endpoint()))
}

fn balanced(servers: usize) -> RouterBuilder {
    over(servers).policy(Policy::LeastBusy).seed(1)
}

fn built(router: RouterBuilder) -> Router {
    router.build().expect("it can work")
}
