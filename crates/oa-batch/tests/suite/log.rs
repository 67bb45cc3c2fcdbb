//! Batches that resume where they stopped.

use std::fs;
use std::path::Path;
use std::time::Duration;

use oa_batch::{BatchLog, BatchOptions, run_batch};
use oa_client::{AgentOptions, ErrorKind, Reply as Answer, Result};
use oa_testkit::Reply;
use oa_tools::tool;
use oa_types::FinishReason;
use proptest::prelude::*;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::model::{Asked, agent, all, echo, prompts, server};

async fn open(path: &Path) -> BatchLog {
    BatchLog::open(path).await.expect("the log opens")
}

/// Runs a batch of `count` prompts to its end, with a server that answers all.
async fn finish(path: &Path, count: usize, asked: &Asked) -> Vec<(usize, Result<Answer>)> {
    let server = server(asked, |_, _| None);
    let options = BatchOptions::new(agent(server)).in_input_order(true).log(open(path).await);
    all(run_batch(prompts(count), options).expect("the options are valid")).await
}

fn check(outcomes: &[(usize, Result<Answer>)], count: usize) {
    assert_eq!(outcomes.len(), count);
    for (number, (index, reply)) in outcomes.iter().enumerate() {
        assert_eq!(*index, number);
        assert_eq!(reply.as_ref().expect("it is a reply").text, echo(&format!("prompt {number}")));
    }
}

#[tokio::test]
async fn replies_are_yielded_from_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batch.jsonl");
    let asked = Asked::default();
    let first = finish(&path, 50, &asked).await;
    check(&first, 50);
    let second = finish(&path, 60, &asked).await;
    check(&second, 60);
    assert_eq!(asked.total(), 60);
    // As they were: usage, message, finish reason.
    for ((_, first), (_, second)) in first.iter().zip(&second) {
        assert_eq!(first.as_ref().unwrap(), second.as_ref().unwrap());
    }
    let log = open(&path).await;
    assert_eq!((log.replies(), log.failures()), (60, 0));
    let mut batch = run_batch(
        prompts(61),
        BatchOptions::new(agent(server(&asked, |_, _| None))).log(log).concurrency(1),
    )
    .unwrap();
    while batch.next().await.is_some() {}
    assert_eq!((batch.progress().done, batch.progress().from_log), (61, 60));
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Dropped after some replies, any number of times: no yielded prompt is asked again.
    #[test]
    fn a_dropped_batch_goes_on(
        stops in prop::collection::vec(0_usize..40, 1..5),
        concurrency in 1_usize..9,
        in_order: bool,
    ) {
        runtime().block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("batch.jsonl");
            let mut yielded = vec![0_u32; 100];
            for stop in stops {
                let asked = Asked::default();
                let options = BatchOptions::new(agent(server(&asked, |_, _| None)))
                    .concurrency(concurrency)
                    .in_input_order(in_order)
                    .log(open(&path).await);
                let mut batch = run_batch(prompts(100), options).unwrap();
                let before = yielded.clone();
                for _ in 0..stop {
                    if let Some((index, reply)) = batch.next().await {
                        assert_eq!(reply.unwrap().text, echo(&format!("prompt {index}")));
                        yielded[index] += 1;
                    }
                }
                drop(batch);
                for (index, times) in before.iter().enumerate() {
                    let again = asked.times(&format!("prompt {index}"));
                    assert!(*times == 0 || again == 0, "prompt {index} was asked again");
                }
            }
            let asked = Asked::default();
            check(&finish(&path, 100, &asked).await, 100);
            for (index, times) in yielded.iter().enumerate() {
                let again = asked.times(&format!("prompt {index}"));
                assert!(*times == 0 || again == 0, "prompt {index} was asked again");
            }
        });
    }

    /// Cut off anywhere, as a crash does: whole lines are kept, the rest is asked again.
    #[test]
    fn a_log_may_be_cut_off_anywhere(place in 0.0_f64..=1.0) {
        runtime().block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("batch.jsonl");
            finish(&path, 10, &Asked::default()).await;
            let bytes = fs::read(&path).unwrap();
            let left = &bytes[..(bytes.len() as f64 * place) as usize];
            fs::write(&path, left).unwrap();
            let whole = left.iter().filter(|byte| **byte == b'\n').count().saturating_sub(1);
            let asked = Asked::default();
            check(&finish(&path, 10, &asked).await, 10);
            assert_eq!(asked.total() as usize, 10 - whole);
            check(&finish(&path, 10, &asked).await, 10);
            assert_eq!(asked.total() as usize, 10 - whole, "the second run finds them all");
        });
    }
}

#[tokio::test]
async fn zero_bytes_of_a_power_failure_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batch.jsonl");
    finish(&path, 4, &Asked::default()).await;
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines[2] = "\0".repeat(lines[2].len());
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let asked = Asked::default();
    check(&finish(&path, 4, &asked).await, 4);
    assert_eq!(asked.total(), 1);
    // Of the first line, when nothing else was written yet.
    let first = text.find('\n').unwrap() + 1;
    for written in [0, 5, first - 1] {
        fs::write(&path, text[..written].to_owned() + &"\0".repeat(first - written)).unwrap();
        check(&finish(&path, 4, &Asked::default()).await, 4);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 5);
    }
}

#[tokio::test]
async fn a_changed_prompt_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batch.jsonl");
    finish(&path, 3, &Asked::default()).await;
    let asked = Asked::default();
    let options = BatchOptions::new(agent(server(&asked, |_, _| None)))
        .in_input_order(true)
        .log(open(&path).await);
    let changed = ["prompt 0", "something else", "prompt 2", "prompt 3"];
    let outcomes = all(run_batch(changed, options).unwrap()).await;
    let error = outcomes[1].1.as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("prompt 1 is not the one whose reply is in the log"));
    assert!(outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).count() == 3);
    assert_eq!(asked.total(), 1);
}

#[tokio::test(start_paused = true)]
async fn logged_failures_are_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batch.jsonl");
    let asked = Asked::default();
    let fails = server(&asked, |prompt, _| {
        prompt.ends_with('1').then(|| Reply::error(422, "no").header("x-request-id", "r1"))
    });
    let run = async |log: BatchLog| {
        let options = BatchOptions::new(agent(fails.clone())).in_input_order(true).log(log);
        all(run_batch(prompts(3), options).unwrap()).await
    };
    let first = run(open(&path).await).await;
    let log = open(&path).await;
    assert_eq!((log.replies(), log.failures()), (2, 1));
    let kept = run(log.keep_failures(true)).await;
    assert_eq!(asked.total(), 3);
    let (first, kept) = (first[1].1.as_ref().unwrap_err(), kept[1].1.as_ref().unwrap_err());
    assert_eq!((kept.status(), kept.request_id()), (Some(422), Some("r1")));
    assert_eq!(first.to_string(), kept.to_string());
    run(open(&path).await).await;
    assert_eq!((asked.total(), asked.times("prompt 1")), (4, 2));
    // A reply that came at last is what counts.
    check(&finish(&path, 3, &Asked::default()).await, 3);
    let log = open(&path).await.keep_failures(true);
    assert_eq!((log.replies(), log.failures()), (3, 0));
    assert!(run(log).await.iter().all(|(_, outcome)| outcome.is_ok()));
}

/// Such as answers that were cut off, after the limit was raised (bespokelabsai/curator #375).
#[tokio::test]
async fn unwanted_replies_are_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batch.jsonl");
    let asked = Asked::default();
    let cut = server(&asked, |prompt, _| {
        prompt.ends_with('1').then(|| Reply::text("The answer is").finish("length"))
    });
    let fails = server(&asked, |prompt, _| prompt.ends_with('1').then(|| Reply::error(422, "no")));
    let answers = server(&asked, |_, _| None);
    let run = async |server, log: BatchLog| {
        let options = BatchOptions::new(agent(server)).in_input_order(true).log(log);
        all(run_batch(prompts(3), options).unwrap()).await
    };
    let is_cut = |reply: &Answer| reply.finish_reason == FinishReason::Length;
    run(cut, open(&path).await).await;
    let text = |outcomes: &[(usize, Result<Answer>)]| outcomes[1].1.as_ref().unwrap().text.clone();
    let panics = open(&path).await.send_again_if(|_| panic!("no condition"));
    assert_eq!(text(&run(answers.clone(), panics).await), "The answer is");
    assert_eq!(asked.total(), 3);
    // Without a better reply, the logged one stays.
    let failed = run(fails, open(&path).await.send_again_if(is_cut)).await;
    assert_eq!(failed[1].1.as_ref().unwrap_err().status(), Some(422));
    assert_eq!(text(&run(answers.clone(), open(&path).await).await), "The answer is");
    assert_eq!((asked.total(), asked.times("prompt 1")), (4, 2));
    for _ in 0..2 {
        check(&run(answers.clone(), open(&path).await.send_again_if(is_cut)).await, 3);
        assert_eq!((asked.total(), asked.times("prompt 1")), (5, 3));
    }
}

#[tokio::test]
async fn a_prompt_that_failed_may_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batch.jsonl");
    let asked = Asked::default();
    let fails = server(&asked, |prompt, _| (prompt == "bad").then(|| Reply::error(400, "no")));
    for (prompt, is_ok) in [("bad", false), ("good", true), ("good", true)] {
        let log = open(&path).await.keep_failures(true);
        let options = BatchOptions::new(agent(fails.clone())).log(log);
        let outcomes = all(run_batch([prompt], options).unwrap()).await;
        assert_eq!(outcomes[0].1.is_ok(), is_ok, "{prompt}");
    }
    assert_eq!((asked.times("bad"), asked.times("good")), (1, 1));
}

/// A reply that cannot be read back would fail its prompt in every later run. So the deepest ones that a server can
/// send are read back: arguments of a call beyond 100 levels are its raw text.
#[tokio::test]
async fn deeply_nested_replies_are_read_back() {
    let nested = |depth: usize| (0..depth).fold(json!("[\"{"), |inner, _| json!([inner]));
    let call = |depth| Reply::new().call("save", json!({ "value": nested(depth) }));
    let kept = json!({"choices": [{"delta": {"content": "Done.", "extra_content": nested(123)}}]});
    for reply in [call(99), call(125), Reply::new().event(kept)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("batch.jsonl");
        let asked = Asked::default();
        for _ in 0..2 {
            let reply = reply.clone();
            let server = server(&asked, move |_, _| Some(reply.clone()));
            let save = tool("save", "Saves").build(|_| async { Ok(json!("saved")) });
            let agent = AgentOptions::builder().model("any").transport(server).tool(save);
            let options = BatchOptions::new(agent.build().unwrap()).log(open(&path).await);
            let outcomes = all(run_batch(["Go."], options).unwrap()).await;
            assert!(outcomes[0].1.as_ref().is_ok_and(|reply| reply.message.is_some()));
        }
        assert_eq!(asked.total(), 1);
    }
}

#[tokio::test]
async fn a_log_is_open_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batch.jsonl");
    let first = open(&path).await;
    let second = BatchLog::open(&path);
    tokio::pin!(second);
    let waits = tokio::time::timeout(Duration::from_millis(50), second.as_mut()).await;
    assert!(waits.is_err(), "the file is in use");
    drop(first);
    second.await.unwrap();
}

/// Replies that the next run does not find would be paid for twice.
#[cfg(unix)]
#[tokio::test]
async fn removed_log_ends_the_batch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batch.jsonl");
    let server = server(&Asked::default(), |_, _| None);
    let options = BatchOptions::new(agent(server)).concurrency(1).window(0).log(open(&path).await);
    let mut batch = run_batch(prompts(100), options).unwrap();
    assert!(batch.next().await.is_some_and(|(_, reply)| reply.is_ok()));
    fs::remove_file(&path).unwrap();
    let mut failed = 0;
    while let Some((_, outcome)) = batch.next().await {
        // The line of a prompt in progress may have been written before.
        let Err(error) = outcome else { continue };
        assert_eq!(error.kind(), ErrorKind::Storage);
        assert!(error.to_string().ends_with("batch.jsonl was removed or replaced"), "{error}");
        failed += 1;
    }
    assert!((1..5).contains(&failed), "{failed}");
}

#[tokio::test]
async fn other_files_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let (long, zeros) = ("x".repeat(100_000), "\0".repeat(100));
    for content in ["Buy milk.\n", "{\"batch_log\":2}\n", "{\"batch_lo!", &long, &zeros] {
        fs::write(&path, content).unwrap();
        let error = BatchLog::open(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Storage);
        assert!(error.to_string().contains("line 1: this is not a batch log"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

#[tokio::test]
async fn damage_before_the_end_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batch.jsonl");
    finish(&path, 4, &Asked::default()).await;
    let whole = fs::read_to_string(&path).unwrap();
    for damage in ["{\"index\":1", "{}", "{\"index\":1,\"prompt\":\"zz\",\"reply\":{}}"] {
        let mut lines: Vec<_> = whole.lines().collect();
        lines[2] = damage;
        let damaged = lines.join("\n") + "\n";
        fs::write(&path, &damaged).unwrap();
        let error = BatchLog::open(&path).await.unwrap_err();
        assert!(error.to_string().contains("line 3"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn only_regular_files_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("batch.jsonl"), folder.path().join("link"));
    fs::write(&path, "").unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for path in [link.as_path(), folder.path()] {
        let error = BatchLog::open(path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Storage);
    }
    open(&path).await;
    assert_eq!(mode(&path), 0o600);
}

#[cfg(unix)]
#[tokio::test]
async fn only_logs_are_closed_to_other_users() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("passwd");
    let loose = || fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&path, "root:x:0:0:root:/root:/bin/bash\n").unwrap();
    loose();
    BatchLog::open(&path).await.unwrap_err();
    assert_eq!(mode(&path), 0o644);

    fs::write(&path, "").unwrap();
    open(&path).await;
    loose();
    open(&path).await;
    assert_eq!(mode(&path), 0o600);
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    let metadata = fs::metadata(path).expect("it exists");
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777
}
