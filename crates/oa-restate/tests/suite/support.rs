//! A server, workers, and requests to them.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use oa_transport::{RequestBody, Transport};
use serde_json::{Value, json};
use services::Restate;
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tower::Service;

use crate::worker::{READY, VARIABLE};

/// Nothing here takes longer, unless it hangs.
pub(crate) const LONGEST: Duration = Duration::from_secs(120);

/// Tests run side by side, except those that print figures or crash workers: they run alone.
pub(crate) static MACHINE: tokio::sync::RwLock<()> = tokio::sync::RwLock::const_new(());

/// A server with workers at one address.
pub(crate) struct Site {
    pub(crate) server: Restate,
    workers: Mutex<Vec<Child>>,
    pub(crate) config: Value,
    folder: TempDir,
    /// Keeps the port while all workers are dead.
    socket: TcpSocket,
    transport: Transport,
}

/// An answer of the engine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) json: Value,
}

impl Site {
    /// Starts a server and this many workers; `None` where there is no server.
    pub(crate) async fn start(workers: usize, config: Value) -> Option<Self> {
        Self::start_with(workers, config, "").await
    }

    /// Starts them with more settings of the engine's invoker.
    pub(crate) async fn start_with(workers: usize, config: Value, invoker: &str) -> Option<Self> {
        let more = format!("[worker.invoker]\nhttp2-streams-per-connection-limit = 2\n{invoker}");
        let server = services::or_skip(Restate::start_with(&more))?;
        let socket = reserve();
        let folder = TempDir::new().expect("a temporary folder");
        let mut whole = json!({
            "port": port(&socket),
            "ingress": server.ingress_url(),
            "effects": folder.path().join("effects"),
        });
        if let (Some(whole), Some(more)) = (whole.as_object_mut(), config.as_object()) {
            whole.extend(more.clone());
        }
        let transport = Transport::new();
        let workers_none = Mutex::default();
        let site = Self { server, workers: workers_none, config: whole, folder, socket, transport };
        for _ in 0..workers {
            site.add_worker();
        }
        if workers > 0 {
            site.register(port(&site.socket)).await;
        }
        Some(site)
    }

    /// Starts another worker at the same address.
    pub(crate) fn add_worker(&self) {
        let worker = start_worker(&self.config);
        self.workers().push(worker);
    }

    fn workers(&self) -> MutexGuard<'_, Vec<Child>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the process ids of the workers.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.workers().iter().map(Child::id).collect()
    }

    /// Kills all workers.
    pub(crate) fn kill_workers(&self) {
        while !self.workers().is_empty() {
            self.kill_worker(0);
        }
    }

    /// Waits for the end of a worker that was asked to end.
    pub(crate) fn wait_for_worker(&self, place: usize) -> bool {
        let mut worker = self.workers().remove(place);
        worker.wait().expect("it is a child").success()
    }

    /// Waits for the end of a worker that dies by itself.
    pub(crate) async fn until_dead(&self, place: usize) {
        self.until(|| matches!(self.workers()[place].try_wait(), Ok(Some(_)))).await;
        let _ = self.workers().remove(place).wait();
    }

    /// Kills a worker as `kill -9` does.
    pub(crate) fn kill_worker(&self, place: usize) {
        let mut workers = self.workers();
        let place = place % workers.len();
        let mut worker = workers.remove(place);
        drop(workers);
        worker.kill().expect("it runs");
        worker.wait().expect("it is a child");
    }

    /// Tells the engine about workers.
    pub(crate) async fn register(&self, port: u16) -> Answer {
        let body = json!({ "uri": format!("http://127.0.0.1:{port}"), "force": true });
        let url = format!("{}/deployments", self.server.admin_url());
        let answer = self.send("POST", &url, Some(body), None).await;
        assert!(answer.status < 300, "{answer:?} {}", self.server.log());
        answer
    }

    /// Calls a handler of a session.
    pub(crate) async fn call(&self, session: &str, handler: &str, input: Option<Value>) -> Answer {
        let url = format!("{}/Agent/{session}/{handler}", self.server.ingress_url());
        self.send("POST", &url, input, None).await
    }

    pub(crate) async fn prompt(&self, session: &str, wish: &Value) -> Answer {
        self.call(session, "prompt", Some(json!({ "message": wish.to_string() }))).await
    }

    /// Begins a turn without waiting for its end.
    pub(crate) async fn begin(&self, session: &str, wish: &Value) {
        let input = json!({ "message": wish.to_string() });
        let answer = self.call(session, "prompt/send", Some(input)).await;
        assert!(answer.status < 300, "{answer:?}");
    }

    /// Waits until no turn is in progress, and returns the checked history.
    pub(crate) async fn end(&self, session: &str, messages: usize) -> Vec<Value> {
        let is_over =
            |status: &Value| status["turn"].is_null() && status["messages"] == messages as u64;
        self.until_status(session, is_over).await;
        let history = self.history(session).await;
        check_history(&history);
        history
    }

    pub(crate) async fn history(&self, session: &str) -> Vec<Value> {
        let answer = self.call(session, "history", None).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json.as_array().expect("messages").clone()
    }

    /// Sends a request; a broken connection has status 0.
    pub(crate) async fn send(
        &self,
        method: &str,
        url: &str,
        body: Option<Value>,
        key: Option<&str>,
    ) -> Answer {
        self.exchange(LONGEST, method, url, body, key).await
    }

    async fn exchange(
        &self,
        most: Duration,
        method: &str,
        url: &str,
        body: Option<Value>,
        key: Option<&str>,
    ) -> Answer {
        let mut request = http::Request::builder().method(method).uri(url);
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        request = request.header("accept", "application/json");
        let body = body.map_or_else(RequestBody::empty, |body| RequestBody::new(body.to_string()));
        let request = request.body(body).expect("a request");
        let mut transport = self.transport.clone();
        let exchange = async move {
            let Ok(response) = transport.call(request).await else {
                return Answer { status: 0, json: Value::Null };
            };
            let status = response.status().as_u16();
            let (mut body, mut said) = (response.into_body(), Vec::new());
            while let Ok(Some(chunk)) = body.chunk().await {
                said.extend_from_slice(&chunk);
            }
            let text = || Value::from(String::from_utf8_lossy(&said).into_owned());
            let json = serde_json::from_slice(&said).unwrap_or_else(|_| text());
            Answer { status, json }
        };
        timeout(most, exchange).await.unwrap_or_else(|_| panic!("no answer: {method} {url}"))
    }

    /// Waits for an answer that may take this long.
    pub(crate) async fn send_for(&self, most: Duration, method: &str, url: &str) -> Answer {
        self.exchange(most, method, url, None, None).await
    }

    /// Asks the engine's tables.
    pub(crate) async fn query(&self, sql: &str) -> Vec<Value> {
        let url = format!("{}/query", self.server.admin_url());
        let answer = self.send("POST", &url, Some(json!({ "query": sql })), None).await;
        answer.json["rows"].as_array().cloned().unwrap_or_default()
    }

    /// Returns what the workers have written down.
    pub(crate) fn effects(&self) -> Vec<Value> {
        let effects = std::fs::read_to_string(self.effects_file()).unwrap_or_default();
        effects.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    pub(crate) fn effects_file(&self) -> PathBuf {
        self.folder.path().join("effects")
    }

    /// Waits until the status of a session is like this.
    pub(crate) async fn until_status(
        &self,
        session: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Value {
        let since = Instant::now();
        loop {
            let status = self.call(session, "status", None).await.json;
            if is_so(&status) {
                return status;
            }
            assert!(since.elapsed() < LONGEST, "the status stays {status}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, is_so: impl Fn() -> bool) {
        let since = Instant::now();
        while !is_so() {
            assert!(since.elapsed() < LONGEST, "it does not happen");
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until the workers have written this down.
    pub(crate) async fn until_effect(&self, is_so: impl Fn(&Value) -> bool) {
        self.until(|| self.effects().iter().any(&is_so)).await;
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.kill_workers();
    }
}

/// Reserves a port for workers that share it.
pub(crate) fn reserve() -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseport(true).expect("Unix has it");
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free port");
    socket
}

pub(crate) fn port(socket: &TcpSocket) -> u16 {
    socket.local_addr().expect("it is bound").port()
}

/// Starts a worker, and waits until it listens.
pub(crate) fn start_worker(config: &Value) -> Child {
    let program = std::env::current_exe().expect("this program has a path");
    let mut worker = Command::new(program)
        .args(["worker::process", "--exact", "--nocapture"])
        .env(VARIABLE, config.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the worker starts");
    let output = worker.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(output).lines();
    let is_ready = lines.any(|line| line.is_ok_and(|line| line.ends_with(READY)));
    assert!(is_ready, "the worker has ended");
    // What it says later goes nowhere, but it must not fail.
    std::thread::spawn(move || lines.for_each(drop));
    worker
}

/// Checks that each call of a conversation has exactly one result, in order.
pub(crate) fn check_history(messages: &[Value]) {
    let blocks = |message: &Value, kind: &str, id: &str| -> Vec<String> {
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        let of_kind = blocks.into_iter().filter(|block| block["type"] == kind);
        of_kind.map(|block| block[id].as_str().unwrap_or_default().to_owned()).collect()
    };
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        let results = blocks(message, "tool_result", "tool_use_id");
        if results.is_empty() {
            assert!(open.is_empty(), "calls without results: {open:?} in {messages:?}");
        }
        for result in results {
            assert!(!open.is_empty() && open.remove(0) == result, "{result} in {messages:?}");
        }
        open.extend(blocks(message, "tool_use", "id"));
    }
    assert!(open.is_empty(), "calls without results at the end: {open:?}");
}

/// Returns a number from the environment, or this one: tests in the gate count less far.
pub(crate) fn count(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

/// Returns the content of the results in a conversation, as JSON text.
pub(crate) fn results(messages: &[Value]) -> Vec<String> {
    let blocks = messages.iter().flat_map(|message| message["content"].as_array());
    let results = blocks.flatten().filter(|block| block["type"] == "tool_result");
    results.map(|block| block["content"].to_string()).collect()
}

/// Starts a prompt in a task of its own.
pub(crate) fn prompting(site: &Arc<Site>, session: &str, wish: Value) -> JoinHandle<Answer> {
    let (site, session) = (Arc::clone(site), session.to_owned());
    tokio::spawn(async move { site.prompt(&session, &wish).await })
}

/// Prints a figure, also of a test that passes.
pub(crate) fn figure(text: &str) {
    // Not by a macro, whose output tests keep to themselves.
    let _ = writeln!(std::io::stderr(), "oa-restate: {text}");
}

/// A call for the scripted model.
pub(crate) fn work(ms: u64) -> Value {
    json!({ "name": "work", "input": { "ms": ms } })
}
