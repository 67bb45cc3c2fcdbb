//! A model that mostly behaves, in its own thread.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use oa_testkit::{Cut, Framing, Reply, Request, Script, SocketServer};
use serde_json::json;
use suite::Chance;
use tokio::sync::oneshot;

pub(super) struct Model {
    pub(super) base_url: String,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<usize>,
}

impl Model {
    pub(super) fn start() -> Self {
        let (told, address) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime is there");
            runtime.block_on(async {
                let passed = Mutex::default();
                let rule = Reply::by(move |request| reply(request, &passed));
                // Every request is checked by the strictest rules.
                let script = Script::new().strict().otherwise(rule);
                let server = SocketServer::start(script).await;
                let server = server.expect("loopback sockets are there");
                told.send(server.base_url()).expect("the test waits for it");
                let _ = stopped.await;
                server.wait_for_close(Duration::from_secs(30)).await;
                server.verify();
                server.connections()
            })
        });
        Self { base_url: address.recv().expect("the server starts"), stop, thread }
    }

    /// Waits until no connection is open and returns how many there were; panics if one stays open or a request
    /// was invalid.
    pub(super) fn assert_left(self) -> usize {
        // If it is gone, it panicked, and the thread reports that.
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Returns the model's reply. It depends only on the prompt and the length of the conversation, so concurrent
/// conversations do not change it.
fn reply(request: &Request, passed: &Mutex<HashSet<u64>>) -> Reply {
    let messages = request.messages();
    let is_user = |message: &&serde_json::Value| message["role"] == "user";
    let prompt = messages.iter().rfind(is_user).and_then(|message| message["content"].as_str());
    let prompt = prompt.unwrap_or_default();
    if prompt.ends_with("Be well.") {
        return Reply::text("I am well.");
    }
    let mut hasher = DefaultHasher::new();
    (prompt, messages.len()).hash(&mut hasher);
    let key = hasher.finish();
    let mut chance = Chance::new(key);
    let rounds = messages.iter().rev().take_while(|message| !is_user(message)).count();
    let speech = speech(&mut chance, rounds);
    if chance.percent(15) && passed.lock().expect("nobody panics with it").insert(key) {
        return passing(&mut chance);
    }
    if chance.percent(25) { faulty(speech, &mut chance) } else { traveling(speech, &mut chance) }
}

/// Some words, some thinking, some calls.
fn speech(chance: &mut Chance, rounds: usize) -> Reply {
    let mut reply = Reply::new();
    if chance.percent(20) {
        reply = reply.think("Let me think about that.");
    }
    let calls = if rounds < 7 && chance.percent(60) { 1 + chance.below(3) } else { 0 };
    if calls == 0 || chance.percent(50) {
        reply = reply.say("word ".repeat(1 + chance.below(40) as usize));
    }
    for _ in 0..calls {
        reply = match chance.below(12) {
            0 => reply.call("nothing", json!({})),
            1 => reply.call("look", "{\"place\": \"he"),
            2 => reply.call("look", json!({"place": 7})),
            3 => reply.call("look", json!({"place": "cellar"})),
            4 | 5 => reply.call("fail", json!({})),
            6 | 7 => reply.call("wait", json!({"ms": chance.below(10)})),
            _ => reply.call("look", json!({"place": format!("room {}", chance.below(1_000))})),
        };
    }
    reply
}

/// Returns a transient fault: a retry succeeds.
fn passing(chance: &mut Chance) -> Reply {
    match chance.below(5) {
        0 => Reply::error(503, "loading"),
        1 => Reply::error(429, "slow down").header("retry-after-ms", "3"),
        2 => Reply::hang_up(),
        3 => Reply::reset(),
        _ => Reply::text("lost").close_after(chance.below(100) as usize),
    }
}

fn faulty(speech: Reply, chance: &mut Chance) -> Reply {
    let at = chance.below(2_000) as usize;
    match chance.below(16) {
        0 => Reply::error(400, "bad"),
        1 => Reply::error(500, "jinja: roles must alternate"),
        2 => Reply::body(200, "text/html", "<html><body>Log in</body></html>"),
        3 => Reply::body(200, "text/event-stream", ""),
        4 => Reply::raw("SSH-2.0-OpenSSH_9.6\r\n"),
        5 => Reply::silence(),
        6 => speech.event(json!({"error": {"message": "out of memory"}})).reset_after(at),
        7 => speech.without_finish().without_done(),
        8 => speech.without_finish().without_done().framing(Framing::Close).close_after(at),
        9 => speech.comment_every(1).finish("length"),
        10 | 11 => speech.stall_after(at),
        12 | 13 => speech.reset_after(at),
        _ => speech.close_after(at),
    }
}

/// An answer that arrives in one of several ways.
fn traveling(speech: Reply, chance: &mut Chance) -> Reply {
    let speech = match chance.below(4) {
        0 => speech.cut(Cut::Whole),
        1 => speech.cut(Cut::Random { seed: chance.below(1_000) }),
        2 => speech.delay(Duration::from_micros(chance.below(1_500))),
        _ => speech,
    };
    match chance.below(8) {
        0 => speech.framing(Framing::Close),
        1 => speech.framing(Framing::Length),
        2 => speech.announce_close(),
        3 => speech.close_when_done(),
        _ => speech,
    }
}
