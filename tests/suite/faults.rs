//! Every fault at every stage of an answer, over real sockets: the documented outcome, with a valid history and a usable
//! client. A client that waits in vain has another outcome, because its patience ends.

mod case;
mod floods;
mod served;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use oa_chat::RetryConfig;
use oa_client::{AgentOptions, Client, Error, query};
use oa_testkit::Framing;
use oa_tools::{FnTool, tool};
use oa_types::{ContentBlock, FinishReason, Message};
use serde_json::json;
use suite::talk::{letters, open_calls};
use tokio::task::JoinSet;

use self::case::{Called, Case, End, Fault, Mode, Outcome, Page, RECOVERED, Stage, cases};
use self::served::Server;

fn look() -> FnTool {
    tool("look", "Looks at a place.")
        .param("place", "string")
        .build(|_| async { Ok(json!("a cat")) })
}

fn options(case: &Case, server: &Server) -> AgentOptions {
    // Short only where silence is tested, because a loaded machine may be slow.
    let stalls =
        matches!(case.fault, Fault::Stall | Fault::ErrorStall | Fault::Status(_, Page::Stall));
    let patience = if stalls { Duration::from_secs(1) } else { Duration::from_secs(20) };
    let retry = RetryConfig::new(if case.retries { 2 } else { 0 });
    AgentOptions::builder()
        .model("any")
        .base_url(server.base_url())
        .tool(look())
        .auto_execute_tools(case.mode == Mode::Auto)
        .timeout(patience)
        .first_token_timeout(patience)
        .retry(retry.initial_delay(Duration::from_millis(1)))
        .build()
        .expect("these can work")
}

/// The parts of an answer that were delivered.
#[derive(Default)]
struct Seen {
    text: String,
    call: Option<Called>,
    error: Option<Error>,
    finish: Option<FinishReason>,
}

impl Seen {
    fn take(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.text.push_str(&text.text),
            ContentBlock::ToolUse(call) if call.id == "call_f" => {
                assert_eq!(call.input, json!({"place": "here"}), "a call is whole");
                self.call = Some(Called::Whole);
            }
            ContentBlock::ToolUseError(_) => self.call = Some(Called::Broken),
            _ => {}
        }
    }

    fn outcome(self, history: &[Message], requests: usize) -> Outcome {
        let end = match self.error {
            Some(error) => End::Failed {
                kind: error.kind(),
                retryable: error.is_retryable(),
                status: error.status(),
                timeout: error.timeout().map(|timeout| match format!("{timeout:?}").as_str() {
                    "FirstToken" => "FirstToken",
                    "Idle" => "Idle",
                    _ => "another",
                }),
            },
            None => End::Finished(self.finish.unwrap_or_default().as_str().to_owned()),
        };
        let call = self.call.unwrap_or(Called::Never);
        Outcome { text: self.text, call, end, history: letters(history), requests }
    }
}

async fn run(case: &Case) -> (Outcome, Option<String>) {
    let server = Server::start(case).await.expect("loopback sockets are there");
    let options = options(case, &server);
    let early = matches!(case.fault, Fault::Early(_));
    let prompt = if early { "Look. ".repeat((8 << 20) / 6) } else { "Look.".to_owned() };
    let mut seen = Seen::default();
    let outcome = if case.mode == Mode::Query {
        match query(&prompt, &options).await {
            Ok(mut answer) => {
                while let Some(block) = answer.next().await {
                    match block {
                        Ok(block) => seen.take(block),
                        Err(error) => seen.error = Some(error),
                    }
                }
                seen.finish = answer.finish_reason().cloned();
            }
            Err(error) => seen.error = Some(error),
        }
        let words = words_of(&seen);
        let outcome = seen.outcome(&[], server.requests());
        let mut again = query("Again.", &options).await.expect("the next prompt is as any other");
        assert_eq!(again.text().await.expect("as any other"), RECOVERED);
        (outcome, words)
    } else {
        let mut client = Client::new(options).expect("there is a model");
        match client.send(&prompt).await {
            Ok(()) => loop {
                match client.receive().await {
                    Ok(Some(block)) => seen.take(block),
                    Ok(None) => break,
                    Err(error) => {
                        seen.error = Some(error);
                        break;
                    }
                }
            },
            Err(error) => seen.error = Some(error),
        }
        seen.finish = client.finish_reason().cloned();
        assert_eq!(seen.finish.is_none(), seen.error.is_some(), "a turn ends in one way");
        let words = words_of(&seen);
        let open = open_calls(client.history());
        assert!(open.is_empty() || case.mode == Mode::Manual, "{open:?} have no result");
        let outcome = seen.outcome(client.history(), server.requests());
        let reply = client.ask("Again.").await.expect("the next prompt is as any other");
        assert_eq!(reply.text, RECOVERED);
        assert_eq!(open_calls(client.history()), [""; 0]);
        assert!(letters(client.history()).ends_with("ua"));
        (outcome, words)
    };
    server.script.verify();
    outcome
}

fn words_of(seen: &Seen) -> Option<String> {
    seen.error.as_ref().map(ToString::to_string)
}

/// Returns true if the error shows the server's own message, where it sent one.
fn tells(case: &Case, words: Option<&str>) -> bool {
    let has_words = matches!(
        case.fault,
        Fault::Status(400.., Page::Json | Page::Html)
            | Fault::JsonError
            | Fault::ErrorEvent
            | Fault::ErrorReset
            | Fault::ErrorStall
    );
    let unread = matches!(case.stage, Stage::BeforeHead) && case.fault == Fault::JsonError;
    !has_words || unread || words.is_none_or(|words| words.contains("no luck"))
}

struct Done {
    number: usize,
    case: Case,
    /// The outcome and the message of its error; `None` if the case panicked.
    outcome: Option<(Outcome, Option<String>)>,
    time: Duration,
}

/// Runs cases, with this number of workers.
async fn run_all(cases: Vec<(usize, Case)>, workers: usize) -> Vec<Done> {
    let queue = Arc::new(Mutex::new(VecDeque::from(cases)));
    let next = move || queue.lock().expect("nobody panics with it").pop_front();
    let mut running = JoinSet::new();
    for _ in 0..workers {
        let next = next.clone();
        running.spawn(async move {
            let mut done = Vec::new();
            while let Some((number, case)) = next() {
                let began = Instant::now();
                // A task per case, so that a panic does not hide the others.
                let outcome = tokio::spawn(async move { run(&case).await }).await.ok();
                done.push(Done { number, case, outcome, time: began.elapsed() });
            }
            done
        });
    }
    running.join_all().await.into_iter().flatten().collect()
}

#[derive(Default)]
struct Line {
    /// The outcomes in manual mode, by framing.
    outcomes: Vec<(Framing, String)>,
    cases: usize,
    slowest: Duration,
}

/// The client is usable after each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_has_its_documented_outcome() {
    let began = Instant::now();
    // Large requests keep whole cores busy, so not while others wait for a second of silence.
    let (large, others): (Vec<_>, Vec<_>) = cases()
        .into_iter()
        .enumerate()
        .partition(|(_, case)| matches!(case.fault, Fault::Early(_)));
    let mut done = run_all(others, 48).await;
    done.extend(run_all(large, 2).await);
    done.sort_by_key(|done| done.number);
    let (count, took) = (done.len(), began.elapsed());

    let mut wrong = Vec::new();
    let mut order = Vec::new();
    let mut lines: BTreeMap<String, Line> = BTreeMap::new();
    for Done { case, outcome, time, .. } in &done {
        let stage = format!("{:?}", case.stage);
        let name = format!("{stage:12} {:?}", case.fault);
        if !order.contains(&name) {
            order.push(name.clone());
        }
        let line = lines.entry(name).or_default();
        line.cases += 1;
        line.slowest = line.slowest.max(*time);
        let Some((outcome, words)) = outcome else {
            wrong.push(format!("{case:?} panicked"));
            continue;
        };
        if case.mode == Mode::Manual && !case.retries {
            line.outcomes.push((case.framing, format!("{outcome} [{}]", outcome.history)));
        }
        let expected = case.expected();
        if *outcome != expected {
            wrong.push(format!(
                "{case:?}\n  expected {expected:?}\n  seen     {outcome:?} {words:?}"
            ));
        }
        if !tells(case, words.as_deref()) {
            wrong.push(format!("{case:?} does not tell what the server said: {words:?}"));
        }
    }
    println!("what a client in manual mode sees, and [the messages that stay in its history]:");
    for name in order {
        let Line { outcomes, cases, slowest } = &lines[&name];
        let same = outcomes.iter().all(|(_, outcome)| *outcome == outcomes[0].1);
        let shown: Vec<String> = match &outcomes[..] {
            [(_, outcome), ..] if same => vec![outcome.clone()],
            several => several.iter().map(|(how, what)| format!("{how:?}: {what}")).collect(),
        };
        println!("{name:40} {cases:2} cases, {:4} ms  {}", slowest.as_millis(), shown.join("; "));
    }
    println!("{count} cases in {took:?}");
    assert!(wrong.is_empty(), "{} of {count} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 300);
}
