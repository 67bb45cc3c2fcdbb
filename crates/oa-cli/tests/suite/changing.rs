//! The tools of `oa mcp`, and MCP servers whose lists change while the program runs or whose results are long. The servers
//! are scripts of a shell.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use oa_testkit::{Reply, Script};
use serde_json::{Value, json};

use crate::program::Home;
use crate::server::Server;
use crate::terminal::Terminal;

const CHANGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/changing-server.sh");
const LONG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/long-server.sh");

/// Writes the file with the server whose list changes, which gets these arguments.
fn with_server(home: &Home, arguments: &[&str]) {
    write_servers(home, &[&[CHANGING], arguments].concat());
}

fn write_servers(home: &Home, arguments: &[&str]) {
    let servers = json!({ "mcpServers": { "shelf": { "command": "/bin/sh", "args": arguments } } });
    std::fs::write(home.path().join("servers.json"), servers.to_string())
        .expect("a file in a folder of ours");
}

/// `oa mcp`, and what it says.
struct Offering {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Offering {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.command(&["mcp"]);
        command.args(arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let input = child.stdin.take().expect("its input is ours");
        let output = BufReader::new(child.stdout.take().expect("its output is ours"));
        Self { child, input, output }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("it reads");
    }

    /// Reads on to the message that is wanted.
    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            let count = self.output.read_line(&mut line).expect("it writes UTF-8");
            assert!(count > 0, "the program has ended");
            let message = serde_json::from_str(&line).expect("a message");
            if is_it(&message) {
                return message;
            }
        }
    }

    fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.until(|message| message["id"] == id)["result"].clone()
    }

    fn begin(&mut self) -> Value {
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
        let hello = self.ask(1, "initialize", hello);
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        hello
    }

    fn names(&mut self, id: u64) -> Vec<String> {
        let list = self.ask(id, "tools/list", json!({}));
        let tools = list["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Drop for Offering {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The tools of the stand-in are there without any configuration, to try a client.
#[test]
fn the_stand_in_has_tools() {
    let home = Home::new();
    let mut offering = Offering::start(&home, &["--stand-in"]);
    offering.begin();
    assert_eq!(offering.names(2), ["count_words", "keep_note"]);
    let call = json!({ "name": "keep_note", "arguments": { "text": "milk" } });
    let result = offering.ask(3, "tools/call", call);
    assert_eq!(result["content"][0]["text"], "kept, until the program ends");
}

/// `oa mcp` passes on the tools of other servers, and tells its own client when they change.
#[test]
fn changes_are_passed_on_to_clients() {
    let home = Home::new();
    with_server(&home, &[]);
    let mut offering = Offering::start(&home, &["--mcp", "servers.json"]);
    let hello = offering.begin();
    assert_eq!(hello["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(offering.names(2), ["shelf__read_file"]);
    let call = |name: &str| json!({ "name": name, "arguments": {} });
    let said = offering.ask(3, "tools/call", call("shelf__read_file"));
    assert_eq!(said["content"][0]["text"], "said by read_file");
    offering.until(|message| message["method"] == "notifications/tools/list_changed");
    assert_eq!(offering.names(4), ["shelf__better_read_file"]);
    let said = offering.ask(5, "tools/call", call("shelf__better_read_file"));
    assert_eq!(said["content"][0]["text"], "said by better_read_file");
}

/// Starts a chat with the tools of the server.
fn chat_with_server(home: &Home) -> Terminal {
    with_server(home, &[]);
    let chat = ["chat", "--stand-in", "--mode", "all", "--mcp", "servers.json"];
    let terminal = Terminal::start(home, &chat);
    terminal.wait_for_prompt();
    terminal
}

/// Calls the tool whose call changes the list.
fn use_the_old_tool(terminal: &Terminal) {
    terminal.type_keys("read p0\r");
    terminal.wait_for("The tool says: said by read_file");
    terminal.wait_for_prompt();
}

/// `/tools` lists what the next request offers, also if no request was sent since the change.
#[test]
fn tools_command_lists_the_next_request() {
    let home = Home::new();
    let terminal = chat_with_server(&home);
    terminal.type_keys("/tools\r");
    // Its description has several lines.
    terminal.wait_for("shelf__read_file  mcp  Reads. Args: none\n");
    terminal.wait_for_prompt();
    use_the_old_tool(&terminal);
    // The list is read again after a moment of quiet.
    let began = std::time::Instant::now();
    for number in 1.. {
        // The command behind it, which there is not, shows that the list is there.
        terminal.type_keys(&format!("/tools\r/n{number}\r"));
        terminal.wait_for(&format!("/n{number}"));
        terminal.wait_for_prompt();
        if terminal.text().contains("shelf__better_read_file") {
            break;
        }
        assert!(began.elapsed().as_secs() < 60, "the list stays: {}", terminal.text());
    }
    assert!(!terminal.text().contains("✓ shelf__better_read_file"), "no request was sent for it");
}

/// A chat that runs offers the model the tools of the moment.
#[test]
fn running_chat_gets_changed_tools() {
    let home = Home::new();
    let terminal = chat_with_server(&home);
    use_the_old_tool(&terminal);
    // The list is read again after a moment of quiet; until then, the call of the old tool fails.
    let began = std::time::Instant::now();
    for number in 1.. {
        terminal.type_keys(&format!("read p{number}\r"));
        terminal.wait_for(&format!("(path: \"p{number}\")"));
        terminal.wait_for_prompt();
        let text = terminal.text();
        if text.contains("✓ shelf__better_read_file(path: ") {
            assert!(text.contains("The tool says: said by better_read_file"), "{text}");
            return;
        }
        assert!(began.elapsed().as_secs() < 60, "the list stays: {text}");
    }
}

/// The model is told how to read on in a result that was cut.
#[test]
fn long_results_can_be_read_on() {
    let home = Home::new();
    write_servers(&home, &[LONG]);
    let reads = json!({ "id": "first", "from_line": 1999 });
    let script = Script::new()
        .models(["m"])
        .reply(Reply::new().call_with_id("first", "shelf__report", json!({})))
        .reply(Reply::new().call("read_result", reads))
        .reply(Reply::text("done"));
    let server = Server::start(script);
    let chat = ["chat", "--mode", "all", "--mcp", "servers.json", "--base-url", &server.url()];
    let output = home.run(&[&chat[..], &["Read the report"]].concat(), "");
    assert!(output.status.success(), "{output:?}");
    let asked = server.server.requests();
    let asked: Vec<_> = asked.iter().filter(|it| !it.messages().is_empty()).collect();
    let offers: Vec<_> =
        asked.iter().map(|it| it.json()["tools"].to_string().contains("read_result")).collect();
    assert_eq!(offers, [false, true, true]);
    let page = asked[2].messages().last().unwrap()["content"].to_string();
    assert!(page.contains("1999: line 1999 of the report"), "{page}");
}

/// The answer "always" is about the tool that the person knew, not about its name.
#[test]
fn a_changed_tool_needs_permission_again() {
    let home = Home::new();
    with_server(&home, &["description"]);
    let chat = ["chat", "--stand-in", "--mode", "ask", "--mcp", "servers.json"];
    let terminal = Terminal::start(&home, &chat);
    terminal.wait_for_prompt();
    terminal.type_keys("read p0\r");
    terminal.wait_for(r#"shelf__read_file({"path":"p0"})? [y]es, [n]o, [a]lways:"#);
    terminal.type_keys("a\r");
    terminal.wait_for("The tool says: said by read_file");
    terminal.wait_for_prompt();
    // The list is read again after a moment of quiet; until then, the tool is the one that was allowed.
    let began = std::time::Instant::now();
    for number in 1.. {
        terminal.type_keys(&format!("read p{number}\r"));
        let call = format!("shelf__read_file({{\"path\":\"p{number}\"}})?");
        let done = format!("✓ shelf__read_file(path: \"p{number}\")");
        terminal.wait_until("the call", |text| text.contains(&call) || text.contains(&done));
        if terminal.text().contains(&call) {
            break;
        }
        terminal.wait_for_prompt();
        assert!(began.elapsed().as_secs() < 60, "the list stays: {}", terminal.text());
    }
    terminal.wait_for("This tool has changed since you always allowed it:");
    terminal.type_keys("n\r");
    terminal.wait_for("The tool says: the user said no");
}
