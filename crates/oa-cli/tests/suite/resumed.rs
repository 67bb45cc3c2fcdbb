//! Batches that were stopped and are resumed.

use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use oa_testkit::{Reply, Request, Script};

use crate::program::{Home, text};
use crate::server::Server;

const PROMPTS: usize = 12;
/// The prompts that are answered before the server falls silent.
const ANSWERED: usize = 5;

/// Starts a batch against a server that answers some prompts and then none, and waits until these are in the log.
fn started(home: &Home) -> (Child, Server) {
    let silent = Reply::by(|request: &Request| {
        let prompt = request.messages()[0]["content"].as_str().unwrap_or_default().to_owned();
        match prompt.parse() {
            Ok(0..ANSWERED) => Reply::text(format!("reply to {prompt}")),
            _ => Reply::silence(),
        }
    });
    let server = Server::start(Script::new().models(["m"]).otherwise(silent));
    let input: String = (0..PROMPTS).map(|number| format!("\"{number}\"\n")).collect();
    std::fs::write(home.path().join("in.jsonl"), input).expect("a file");
    let child = home
        .command(&["batch", "in.jsonl", "-o", "out.jsonl", "--base-url", &server.url()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let began = Instant::now();
    let logged = || {
        let log = std::fs::read_to_string(home.path().join("out.jsonl.log")).unwrap_or_default();
        // A line says the text more than once, and the last may not be complete.
        let is_reply = |line: &&str| line.ends_with('\n') && line.contains("reply to ");
        log.split_inclusive('\n').filter(is_reply).count()
    };
    while logged() < ANSWERED {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.server.story());
        thread::sleep(Duration::from_millis(5));
    }
    (child, server)
}

/// Runs the batch again, to its end.
fn go_on(home: &Home) {
    let reply = Reply::by(|request: &Request| {
        Reply::text(format!(
            "reply to {}",
            request.messages()[0]["content"].as_str().unwrap_or("?")
        ))
    });
    let server = Server::start(Script::new().models(["m"]).otherwise(reply));
    let arguments = ["batch", "in.jsonl", "-o", "out.jsonl", "--model", "m", "--base-url"];
    let output = home.run(&[&arguments[..], &[&server.url()]].concat(), "");
    assert!(output.status.success(), "{output:?}");
    let told = text(&output.stderr);
    assert!(told.contains("5 replies are in the log of an earlier run"), "{told}");
    // Another model, for example, would answer only the others.
    assert!(
        told.contains("whatever the settings are now; to ask again, delete out.jsonl.log"),
        "{told}"
    );
    let out = std::fs::read_to_string(home.path().join("out.jsonl")).expect("the output");
    for (number, line) in out.lines().enumerate() {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["index"], number);
        assert_eq!(line["text"], format!("reply to {number}"));
    }
    assert_eq!(out.lines().count(), PROMPTS);
    // What was in the log is not asked again.
    let asked = server.server.requests();
    let asked = asked.iter().filter(|request| request.path().contains("chat")).count();
    assert_eq!(asked, PROMPTS - ANSWERED);
    assert!(!home.path().join("out.jsonl.part").exists());
}

#[test]
fn killed_batch_continues() {
    let home = Home::new();
    let (mut child, _server) = started(&home);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!home.path().join("out.jsonl").exists());
    go_on(&home);
}

#[cfg(unix)]
#[test]
fn interrupted_batch_continues() {
    use rustix::process::{Pid, Signal, kill_process};

    let home = Home::new();
    let (child, _server) = started(&home);
    let id = Pid::from_raw(child.id().cast_signed()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let told = text(&output.stderr);
    assert!(told.contains("stopped: 5 of 12 replies are in the log"), "{told}");
    assert!(told.contains("Run the same command again to continue."), "{told}");
    go_on(&home);
}
