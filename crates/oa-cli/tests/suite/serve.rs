//! `oa serve` and `oa mcp`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::program::{Home, PROGRAM, text};

#[test]
fn taken_address_is_an_error_with_advice() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = home.run(&["serve", "--stand-in", "--listen", &address], "");
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    let refused = std::net::TcpListener::bind(&address).expect_err("the address is taken");
    assert!(told.starts_with(&format!("oa: {address}: {refused}")), "{told}");
    assert!(told.contains("--listen 127.0.0.1:0"), "{told}");
    // The flag of other programs is understood, and a port alone is one of this machine.
    let port = address.rsplit(':').next().unwrap_or_default();
    let output = home.run(&["serve", "--stand-in", "--port", port], "");
    assert_eq!(text(&output.stderr), told);
}

/// A server in a process of its own.
pub(crate) struct Served {
    child: Child,
    // Read only where signals end the program.
    #[cfg_attr(not(unix), expect(dead_code))]
    told: BufReader<ChildStderr>,
    address: String,
}

impl Served {
    pub(crate) fn start(home: &Home, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--stand-in", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .env_clear()
            .envs(home.variables())
            .envs(variables.iter().copied())
            .current_dir(home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut told = BufReader::new(child.stderr.take().expect("its errors are ours"));
        let mut line = String::new();
        told.read_line(&mut line).expect("it says where it is");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).to_owned();
        Self { child, told, address }
    }

    /// Sends a request; returns its status and its answer.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        token: Option<&str>,
    ) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let token =
            token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n{token}content-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        let answer = text(&answer);
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status.expect("a status"), serde_json::from_str(body).unwrap_or_default())
    }

    /// Waits until a conversation has so many messages and nothing runs.
    pub(crate) fn wait_for(&self, id: &str, messages: usize) -> Value {
        for _ in 0..600 {
            let (_, conversation) =
                self.ask("GET", &format!("/api/conversations/{id}"), None, None);
            let count = conversation["messages"].as_array().map_or(0, Vec::len);
            if count >= messages && conversation["running"] == false {
                return conversation;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the conversation does not get on");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn served_conversations_are_saved() {
    let home = Home::new();
    let served = Served::start(&home, &["--name", "Helper"], &[]);
    let (status, agent) = served.ask("GET", "/api/agent", None, None);
    assert_eq!(
        (status, &agent["name"], &agent["model"]),
        (200, &json!("Helper"), &json!("stand-in"))
    );
    let (status, created) = served.ask("POST", "/api/conversations", Some(json!({})), None);
    assert_eq!(status, 201);
    let id = created["id"].as_str().unwrap().to_owned();
    let prompt = format!("/api/conversations/{id}/prompt");
    assert_eq!(served.ask("POST", &prompt, Some(json!({"text": "keep this"})), None).0, 202);
    // The call waits for somebody at a front end.
    let waiting = served.wait_for(&id, 2);
    assert_eq!(waiting["waiting"][0]["name"], "keep_note", "{waiting}");
    let call = waiting["waiting"][0]["call_id"].as_str().unwrap();
    let approve = format!("/api/conversations/{id}/calls/{call}/approve");
    assert_eq!(served.ask("POST", &approve, Some(json!({})), None).0, 202);
    let done = served.wait_for(&id, 4);
    assert!(done["messages"][3].to_string().contains("The tool says: kept"), "{done}");
    drop(served);

    let chat = home.run(&["chat", "--stand-in", "--session", &id], "And now?");
    assert_eq!(text(&chat.stdout), "You said: And now?\n", "{chat:?}");
}

#[test]
fn tokens_are_required_beyond_loopback() {
    let home = Home::new();
    let token = "a-long-secret-token";
    let served = Served::start(&home, &["--forget"], &[("OPEN_AGENT_TOKEN", token)]);
    assert_eq!(served.ask("GET", "/api/agent", None, None).0, 401);
    assert_eq!(served.ask("GET", "/api/agent", None, Some(token)).0, 200);
    let output = home.run(&["serve", "--stand-in", "--forget", "--listen", "0.0.0.0:0"], "");
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(told.starts_with("oa: 0.0.0.0:"), "it does not say that it serves: {told}");
    assert!(told.contains("reachable from other machines"), "{told}");
    assert!(told.contains("OPEN_AGENT_TOKEN="), "{told}");
    assert!(!home.data().join("sessions").exists());
}

#[cfg(unix)]
#[test]
fn signal_ends_the_server() {
    use rustix::process::{Pid, Signal, kill_process};

    let home = Home::new();
    let mut served = Served::start(&home, &[], &[]);
    let id = Pid::from_raw(served.child.id().cast_signed()).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    assert!(served.child.wait().unwrap().success());
}

/// The first waits for answers in progress.
#[cfg(unix)]
#[test]
fn second_ctrl_c_ends_the_server_at_once() {
    use rustix::process::{Pid, Signal, kill_process};

    let home = Home::new();
    let mut served = Served::start(&home, &[], &[]);
    let (_, created) = served.ask("POST", "/api/conversations", Some(json!({})), None);
    let prompt = format!("/api/conversations/{}/prompt", created["id"].as_str().unwrap());
    assert_eq!(served.ask("POST", &prompt, Some(json!({"text": "go on"})), None).0, 202);
    let id = Pid::from_raw(served.child.id().cast_signed()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    let mut line = String::new();
    served.told.read_line(&mut line).unwrap();
    assert_eq!(line, "Waiting for answers in progress. Press Ctrl-C again to stop now.\n");
    kill_process(id, Signal::INT).unwrap();
    assert_eq!(served.child.wait().unwrap().code(), Some(130));
}

#[test]
fn mcp_command_offers_tools_to_the_chat() {
    let home = Home::new();
    std::fs::write(home.path().join("notes.txt"), "rain tomorrow").unwrap();
    let servers = json!({ "mcpServers": { "notes": {
        "command": PROGRAM,
        "args": ["mcp", "--tools", "files:${FOLDER}"],
    } } });
    std::fs::write(home.path().join("servers.json"), servers.to_string()).unwrap();
    let folder = home.path().to_string_lossy().into_owned();
    let chat = ["chat", "--stand-in", "--mode", "all", "--mcp", "servers.json"];
    let output = home.run_with(&chat, "read notes.txt", &[("FOLDER", &folder)]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).contains("rain tomorrow"), "{output:?}");
    assert!(text(&output.stderr).contains("✓ notes__read_file(path: \"notes.txt\")"), "{output:?}");

    let output = home.run(&chat, "read notes.txt");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the variable FOLDER is not set"), "{output:?}");

    // A server that does not start is named once, and the chat goes on without it.
    let servers = json!({ "mcpServers": { "gone": { "command": "there-is-no-such-program" } } });
    std::fs::write(home.path().join("servers.json"), servers.to_string()).unwrap();
    let output = home.run(&chat, "hello");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = "MCP server gone: cannot start there-is-no-such-program";
    assert!(text(&output.stderr).contains(told), "{output:?}");

    let output = home.run(&["mcp"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("there are no tools"), "{output:?}");
}
