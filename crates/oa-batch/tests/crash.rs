//! Batches whose process is killed. No harness, because the program starts itself as the batch.

use std::collections::BTreeSet;
use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use oa_batch::{BatchLog, BatchOptions, run_batch};
use oa_client::AgentOptions;
use oa_testkit::{MemoryServer, Reply, Request, Script};

const RUN: &str = "--run-until-killed";
const PROMPTS: usize = 3_000;
const ROUNDS: usize = 12;
const CONCURRENCY: usize = 6;
const WINDOW: usize = 20;

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    if let Some(place) = arguments.iter().position(|argument| argument == RUN) {
        runtime.block_on(run(Path::new(&arguments[place + 1])));
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for files");
    let path = folder.path().join("batch.jsonl");
    let (mut yielded, mut asked) = (BTreeSet::new(), BTreeSet::new());
    let (mut killed, mut replies) = (0, 0);
    // The last one runs to its end.
    for round in 0..=ROUNDS {
        let mut child = Command::new(env::current_exe().expect("this program has a path"))
            .args([RUN.as_ref(), path.as_os_str()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started");
        let output = BufReader::new(child.stdout.take().expect("it is a pipe"));
        // It is killed after this many lines. It cannot have ended by then: a pipe does not hold all that it tells.
        let last = if round < ROUNDS { 2 + 17 * round } else { usize::MAX };
        let mut news = BTreeSet::new();
        let mut again = 0;
        for (count, line) in output.lines().enumerate() {
            // The last one may be cut off.
            let Ok(line) = line else { break };
            if count == last {
                child.kill().expect("it can be killed");
            }
            let Some((what, number)) = line.split_once(' ') else { continue };
            let Some(number) = number.strip_suffix('.') else { continue };
            let number: usize = number.parse().expect("it is a number");
            match what {
                "asked" => {
                    assert!(!yielded.contains(&number), "{number} was asked again");
                    again += usize::from(!asked.insert(number));
                }
                _ => assert!(news.insert(number), "{number} was yielded twice"),
            }
        }
        // What the crash before this run has cost.
        assert!(again <= CONCURRENCY + WINDOW, "{again} prompts were asked again");
        let has_ended = child.wait().expect("it is gone").success();
        killed += usize::from(!has_ended);
        if round == ROUNDS {
            assert!(has_ended);
            replies = news.len();
            break;
        }
        yielded.extend(news);
    }
    assert!(killed > 0 && !yielded.is_empty(), "killed {killed} times, {} yielded", yielded.len());
    assert_eq!(replies, PROMPTS);
    let told = writeln!(
        io::stdout(),
        "{} prompts were yielded by batches that were killed {killed} times, and none was asked again\n\
         test result: ok. 1 passed; 0 failed; 0 ignored",
        yielded.len()
    );
    told.expect("somebody reads it");
}

/// Runs the batch and tells which prompts are asked and yielded.
async fn run(path: &Path) {
    let tell = |what: &str, number: &str| {
        // In one write, so that a line is whole or cut off. It fails when nobody reads any more.
        let _ = io::stdout().write_all(format!("{what} {number}.\n").as_bytes());
    };
    let echo = Reply::by(move |request: &Request| {
        let prompt = request.messages()[0]["content"].as_str().unwrap_or_default();
        tell("asked", prompt);
        Reply::text(format!("{prompt}!"))
    });
    let server = MemoryServer::new(Script::new().otherwise(echo));
    let agent = AgentOptions::builder().model("any").transport(server).build();
    let log = BatchLog::open(path).await.expect("the log opens");
    let options = BatchOptions::new(agent.expect("the options are valid"));
    let options = options.concurrency(CONCURRENCY).window(WINDOW).log(log);
    let prompts = (0..PROMPTS).map(|number| number.to_string());
    let mut batch = run_batch(prompts, options).expect("the batch begins");
    while let Some((index, reply)) = batch.next().await {
        assert_eq!(reply.expect("the model answers").text, format!("{index}!"));
        tell("yielded", &index.to_string());
    }
}
