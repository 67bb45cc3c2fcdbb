//! A server for the tests, which violates the protocol on demand. The first argument selects its behavior at the start,
//! and the argument of its tool `do` selects the effect of a call.

#![expect(clippy::print_stderr, reason = "what a server says there is part of the tests")]
#![expect(clippy::zombie_processes, reason = "what a server leaves behind is, too")]

use std::io::{self, BufRead, Write};
use std::process::{Command, Stdio, exit};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

mod library;
mod questions;
mod rounds;

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    match &*mode {
        "die" => {
            eprintln!("no config file, key {}", std::env::var("CANARY").unwrap_or_default());
            exit(3);
        }
        mode if mode.starts_with("hang") => loop {
            eprintln!("still loading");
            thread::sleep(Duration::from_secs(60));
        },
        "stubborn" => ignore_signals(),
        _ => {}
    }
    let mut server = Server {
        mode,
        has_more_tools: false,
        last_cancel: Value::Null,
        client: Value::Null,
        late: <(Value, Value)>::default(),
    };
    let mut lines = io::stdin().lock().lines();
    while let Some(Ok(line)) = lines.next() {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        server.handle(&message, &mut lines);
    }
    if server.mode == "stubborn" {
        loop {
            thread::sleep(Duration::from_secs(60));
        }
    }
}

/// A shell that ignores SIGTERM takes our place, and we its place again: `unsafe` is forbidden here.
fn ignore_signals() {
    #[cfg(unix)]
    if std::env::var_os("IGNORES").is_none() {
        use std::os::unix::process::CommandExt as _;

        let own = std::env::current_exe().expect("a path");
        let script = "trap '' TERM; export IGNORES=1; exec \"$0\" stubborn";
        let error = Command::new("sh").arg("-c").arg(script).arg(own).exec();
        eprintln!("{error}");
        exit(1);
    }
}

struct Server {
    mode: String,
    has_more_tools: bool,
    last_cancel: Value,
    /// The capabilities of the client.
    client: Value,
    /// The id and the token of a call that is answered too late.
    late: (Value, Value),
}

type Lines = io::Lines<io::StdinLock<'static>>;

impl Server {
    fn handle(&mut self, message: &Value, lines: &mut Lines) {
        let id = &message["id"];
        match message["method"].as_str() {
            Some("initialize") if self.mode == "stateless" => {
                refuse(id, -32601, "there is no such method");
            }
            Some("server/discover") => respond(
                id,
                json!({
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": { "tools": { "listChanged": true } },
                }),
            ),
            Some("subscriptions/listen") => {
                print(&json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {} }).to_string());
            }
            Some("initialize") => {
                let version = if self.mode == "old" { "1999-01-01" } else { "2025-06-18" };
                if self.mode == "greeting" {
                    print("Server listening!");
                }
                // Milliseconds in which it starts.
                let wait = std::env::args().nth(2).and_then(|wait| wait.parse().ok());
                thread::sleep(Duration::from_millis(wait.unwrap_or(0)));
                self.client = message["params"]["capabilities"].clone();
                let mut capabilities = json!({ "tools": { "listChanged": true } });
                if matches!(&*self.mode, "mute" | "nothing" | "unannounced") {
                    capabilities = json!({});
                }
                if self.mode == "library" {
                    capabilities["resources"] = json!({});
                    capabilities["prompts"] = json!({});
                }
                respond(
                    id,
                    json!({
                        "protocolVersion": version,
                        "capabilities": capabilities,
                        "serverInfo": { "name": "scripted", "version": "1" },
                        "instructions": "Be kind.",
                    }),
                );
            }
            Some("notifications/cancelled") => self.last_cancel = message["params"].clone(),
            Some("tools/list") if self.mode == "forward" => {
                self.last_cancel = questions::ask(&questions::form(), lines);
                self.list(id, &message["params"]);
            }
            Some("tools/list") if self.mode == "mute" => {}
            Some("tools/list") if self.mode == "nothing" => refuse(id, -32601, "no such method"),
            Some("tools/list") => self.list(id, &message["params"]),
            Some("tools/call") => self.call(id, &message["params"], lines),
            Some(method) if method.starts_with("resources/") || method.starts_with("prompts/") => {
                library::answer(method, id, &message["params"]);
            }
            Some("mirror") => respond(id, message["params"].clone()),
            Some("refuse") => refuse(id, -32000, "I would rather not"),
            _ => {}
        }
    }

    fn list(&self, id: &Value, params: &Value) {
        let word = if self.mode == "changed" { "Other tool" } else { "Tool" };
        let tool = |name: &str| json!({ "name": name, "description": format!("{word} {name}"), "inputSchema": { "type": "object" } });
        let page =
            params["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0_u64);
        if self.mode == "endless" {
            respond(
                id,
                json!({ "tools": [tool(&format!("t{page}"))], "nextCursor": (page + 1).to_string() }),
            );
            return;
        }
        if self.mode == "no-list" {
            return respond(id, json!({ "tools": "none" }));
        }
        let mut tools = vec![tool("echo"), tool("do")];
        if self.mode == "idempotent" {
            tools[1]["annotations"] = json!({ "idempotentHint": true });
        }
        if self.mode == "changed" {
            tools[0] = json!({ "name": "echo", "description": "Tool echo", "inputSchema": { "type": "object" } });
            tools.push(tool("new"));
        }
        if self.mode == "bad-tools" {
            tools.push(json!({ "name": "schemaless" }));
            tools.push(json!({ "name": "circular", "inputSchema": { "$ref": "#" } }));
            tools.push(json!({ "description": "nameless" }));
            tools.push(json!({ "name": "task", "inputSchema": {}, "execution": { "taskSupport": "required" } }));
            tools.push(json!({ "name": "read.file", "inputSchema": {}, "annotations": { "readOnlyHint": true } }));
            tools.reverse();
        }
        if self.has_more_tools {
            tools = vec![tool("do"), tool("grown")];
        }
        respond(id, json!({ "tools": tools }));
    }

    fn call(&mut self, id: &Value, params: &Value, lines: &mut Lines) {
        let arguments = &params["arguments"];
        if params["name"] == "echo" {
            return say(id, arguments["text"].as_str().unwrap_or_default());
        }
        match arguments["what"].as_str().unwrap_or_default() {
            "die" => {
                eprintln!("out of memory, key {}", std::env::var("CANARY").unwrap_or_default());
                exit(3);
            }
            "garbage" => {
                print("Loading...");
                print("{\"neither\": \"request nor answer\"}");
                say(id, "after garbage");
            }
            "much garbage" => (0..200).for_each(|line| print(&format!("garbage {line}"))),
            "huge" => say(id, &"x".repeat(arguments["bytes"].as_u64().unwrap_or(0) as usize)),
            "endless line" => loop {
                write_raw(&[b'x'; 65_536]);
            },
            "both" => print(&json!({ "jsonrpc": "2.0", "id": id, "result": {}, "error": { "code": 1, "message": "no" } }).to_string()),
            "neither" => print(&json!({ "jsonrpc": "2.0", "id": id, "result": null }).to_string()),
            "no result" => print(&json!({ "jsonrpc": "2.0", "id": id }).to_string()),
            "error text" => print(&json!({ "jsonrpc": "2.0", "id": id, "error": "the disk is full" }).to_string()),
            "shape" => respond(id, json!(["not", "a", "result"])),
            "unknown content" => respond(id, json!({ "content": [
                { "type": "text", "text": "known" }, { "type": "smell", "of": "coffee" },
            ] })),
            "twice" => {
                say(&json!(999_999), "for nobody");
                say(id, "first");
                say(id, "second");
            }
            "late" => self.late = (id.clone(), params["_meta"]["progressToken"].clone()),
            "overdue" => {
                let (late, token) = &self.late;
                let progress = json!({ "progressToken": token, "progress": 1 });
                print(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }).to_string());
                say(late, "too late");
                say(id, "in time");
            }
            "string id" => say(&json!(id.to_string()), "accepted"),
            "stderr" => {
                let line = "e".repeat(1_023);
                (0..10 * 1_024).for_each(|_| eprintln!("{line}"));
                say(id, "said it");
            }
            "to stderr" => {
                eprint!("{}", arguments["text"].as_str().unwrap_or_default());
                say(id, "said it");
            }
            "progress" => {
                let token = &params["_meta"]["progressToken"];
                let steps = arguments["steps"].as_u64().unwrap_or(0);
                let mut burst = String::new();
                for step in 1..=steps {
                    let params = json!({ "progressToken": token, "progress": step, "total": steps, "message": format!("step {step}") });
                    burst += &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string();
                    burst.push('\n');
                }
                burst += &json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [{ "type": "text", "text": "done" }] } }).to_string();
                burst.push('\n');
                // Nobody's, after the end.
                let late = json!({ "progressToken": token, "progress": 0 });
                burst += &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": late }).to_string();
                burst.push('\n');
                write_raw(burst.as_bytes());
            }
            "slow progress" => {
                for step in 1..=arguments["steps"].as_u64().unwrap_or(0) {
                    thread::sleep(Duration::from_millis(100));
                    let params = json!({ "progressToken": params["_meta"]["progressToken"], "progress": step });
                    print(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string());
                }
                say(id, "done");
            }
            "one step" => {
                let params = json!({ "progressToken": params["_meta"]["progressToken"], "progress": 1 });
                print(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string());
            }
            "log" => {
                let params = json!({ "level": "critical", "data": format!("disk full, {}", std::env::var("CANARY").unwrap_or_default()) });
                print(&json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params }).to_string());
                say(id, "logged");
            }
            "change" => {
                self.has_more_tools = true;
                for _ in 0..5 {
                    print(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }).to_string());
                }
                say(id, "changed");
            }
            "sample" => {
                print(&json!({ "jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {} }).to_string());
                print(&json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }).to_string());
                let mut answers = lines.by_ref().map_while(Result::ok);
                let mut next = || serde_json::from_str::<Value>(&answers.next().unwrap_or_default()).unwrap_or_default();
                let (refusal, pong) = (next(), next());
                say(id, &format!("{} {} {}", refusal["id"], refusal["error"]["code"], pong));
            }
            "child" => {
                let child = Command::new("sleep").arg("300").stdin(Stdio::null()).spawn().expect("sleep starts");
                say(id, &format!("{} {}", std::process::id(), child.id()));
            }
            "environment" => {
                let mut names: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
                names.sort();
                say(id, &names.join(" "));
            }
            "folder" => {
                let folder = std::env::current_dir().expect("it is there");
                say(id, &folder.to_string_lossy());
            }
            "capabilities" => say(id, &self.client.to_string()),
            "envelope" => {
                let of = |name: &str| &params["_meta"][format!("io.modelcontextprotocol/{name}")];
                let version = of("protocolVersion").as_str().unwrap_or_default();
                say(id, &format!("{version} {}", of("clientCapabilities")));
            }
            what if rounds::is_one(what) => rounds::run(what, id, params),
            what if questions::is_one(what) => questions::run(what, id, lines),
            "refuse" => refuse(id, -32602, "steps must be positive"),
            "last cancel" => say(id, &self.last_cancel.to_string()),
            // Silence.
            _ => {}
        }
    }
}

fn say(id: &Value, text: &str) {
    respond(id, json!({ "content": [{ "type": "text", "text": text }] }));
}

fn respond(id: &Value, result: Value) {
    print(&json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string());
}

fn refuse(id: &Value, code: i64, message: &str) {
    print(
        &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
            .to_string(),
    );
}

fn print(line: &str) {
    write_raw(format!("{line}\n").as_bytes());
}

fn write_raw(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        exit(0);
    }
}
