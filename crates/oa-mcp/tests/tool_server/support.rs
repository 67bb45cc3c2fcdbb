//! Clients that send exactly the given messages.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use oa_mcp::{HttpService, ServerLimits, ToolServer};
use oa_tools::{FnTool, Registry};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

/// The server of the tests' own.
pub(crate) const OFFERED: &str = env!("CARGO_BIN_EXE_oa-mcp-offered");
/// Longer than anything takes on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn hello(id: i64) -> Value {
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "0" },
    });
    request(id, "initialize", params)
}

pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// A call that asks for progress.
pub(crate) fn watched(id: i64, tool: &str, arguments: Value) -> Value {
    let meta = json!({ "progressToken": id });
    request(id, "tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta }))
}

pub(crate) fn cancel(id: i64) -> Value {
    let params = json!({ "requestId": id, "reason": "enough" });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
}

/// The text of a result.
pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

pub(crate) fn is_error(answer: &Value) -> bool {
    answer["result"]["isError"] == true
}

/// A child process that offers tools.
pub(crate) struct Offered {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    pub(crate) output: Lines<BufReader<ChildStdout>>,
}

impl Offered {
    pub(crate) fn start() -> Self {
        let mut command = Command::new(OFFERED);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            command.kill_on_drop(true).spawn().unwrap_or_else(|error| panic!("{error}"));
        let input = child.stdin.take();
        let output = child.stdout.take().unwrap_or_else(|| panic!("no output"));
        Self { child, input, output: BufReader::new(output).lines() }
    }

    /// Starts one that has been said `initialize` to.
    pub(crate) async fn ready() -> Self {
        let mut this = Self::start();
        this.send(&hello(0)).await;
        assert_eq!(this.next().await["id"], 0);
        this
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let Some(input) = &mut self.input else { panic!("the input is closed") };
        input.write_all(bytes).await.unwrap_or_else(|error| panic!("{error}"));
        input.flush().await.unwrap_or_else(|error| panic!("{error}"));
    }

    /// The next message; null at the end.
    pub(crate) async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("no message")).unwrap_or_default();
        line.map_or(Value::Null, |line| {
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
        })
    }

    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.next().await
    }
}

/// A server in memory.
pub(crate) struct InMemory {
    pub(crate) input: Option<WriteHalf<DuplexStream>>,
    pub(crate) output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pub(crate) serving: JoinHandle<()>,
}

impl InMemory {
    pub(crate) fn start(server: ToolServer) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(ours);
        let serving = tokio::spawn(server.serve(input, output));
        let (output, input) = tokio::io::split(theirs);
        Self { input: Some(input), output: BufReader::new(output).lines(), serving }
    }

    pub(crate) async fn ready(server: ToolServer) -> Self {
        let mut this = Self::start(server);
        this.send(&hello(0)).await;
        assert_eq!(this.next().await["id"], 0);
        this
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        let Some(input) = &mut self.input else { panic!("the input is closed") };
        let line = format!("{text}\n");
        input.write_all(line.as_bytes()).await.unwrap_or_else(|error| panic!("{error}"));
    }

    pub(crate) async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("no message")).unwrap_or_default();
        line.map_or(Value::Null, |line| {
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
        })
    }

    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.next().await
    }

    /// Closes the input.
    pub(crate) async fn close(&mut self) {
        if let Some(mut input) = self.input.take() {
            let _ = input.shutdown().await;
        }
    }
}

pub(crate) fn server(tools: impl IntoIterator<Item = FnTool>) -> ToolServer {
    let registry = Registry::from_tools(tools).unwrap_or_else(|error| panic!("{error}"));
    ToolServer::new(registry).name("test")
}

pub(crate) fn limits(mut change: impl FnMut(&mut ServerLimits)) -> ServerLimits {
    let mut limits = ServerLimits::default();
    change(&mut limits);
    limits
}

/// A service on a socket of its own.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) service: HttpService,
}

impl Served {
    pub(crate) async fn start(service: HttpService) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap_or_else(|e| panic!("{e}"));
        let address = listener.local_addr().unwrap_or_else(|e| panic!("{e}"));
        let on = service.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(on.clone());
                let stream = TokioIo::new(stream);
                tokio::spawn(http1::Builder::new().serve_connection(stream, service));
            }
        });
        Self { address, service }
    }
}
