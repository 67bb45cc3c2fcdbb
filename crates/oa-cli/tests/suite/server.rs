//! The program with model servers: scripted ones, on real sockets.

use oa_testkit::{Reply, Request, Script, SocketServer};
use serde_json::{Value, json};

use crate::program::{Home, text};
#[cfg(unix)]
use crate::terminal::Terminal;

/// A server for a test that waits for the program, on threads of its own.
pub(crate) struct Server {
    pub(crate) server: SocketServer,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    pub(crate) fn start(script: Script) -> Self {
        let builder = &mut tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        let server = runtime.block_on(SocketServer::start(script)).expect("a socket");
        Self { server, _runtime: runtime }
    }

    pub(crate) fn url(&self) -> String {
        self.server.base_url()
    }
}

pub(crate) fn echo() -> Script {
    let reply = Reply::by(|request: &Request| {
        let last = request.messages().last();
        Reply::text(format!(
            "You said {}",
            last.and_then(|last| last["content"].as_str()).unwrap_or("?")
        ))
    });
    Script::new().models(["text-embed", "echo"]).otherwise(reply)
}

#[test]
fn first_chat_model_is_used() {
    let (home, server) = (Home::new(), Server::start(echo()));
    let output = home.run(&["models", "--base-url", &server.url()], "");
    assert_eq!(text(&output.stdout), "text-embed\necho\n", "{output:?}");
    let output = home.run(&["chat", "--base-url", &server.url(), "Hello"], "");
    assert_eq!(text(&output.stdout), "You said Hello\n", "{output:?}");
    let asked = server.server.requests();
    assert_eq!(asked.last().unwrap().model(), Some("echo"));
}

#[test]
fn settings_are_sent_and_the_key_is_masked() {
    let (home, server) = (Home::new(), Server::start(echo()));
    let config = home.config();
    std::fs::create_dir_all(&config).unwrap();
    let key = "sk-canary-0123456789";
    std::fs::write(
        config.join("config.toml"),
        format!(
            "base_url = '{}'\napi_key = '{key}'\nmodel = 'from-file'\nmax_tokens = 7\n",
            server.url()
        ),
    )
    .unwrap();
    let variables = [("OPEN_AGENT_MODEL", "from-environment"), ("OPEN_AGENT_TEMPERATURE", "0.5")];
    let output = home.run_with(&["chat", "--system", "Be brief."], "Hello", &variables);
    assert_eq!(text(&output.stdout), "You said Hello\n", "{output:?}");
    let asked = server.server.requests();
    let request = asked.last().unwrap();
    assert_eq!(request.model(), Some("from-environment"));
    assert_eq!(request.json()["temperature"], 0.5);
    assert_eq!(request.json()["max_tokens"], 7);
    assert_eq!(request.messages()[0]["content"], "Be brief.");
    assert_eq!(request.headers()["authorization"], format!("Bearer {key}"));

    let report = text(&home.run_with(&["config"], "", &variables).stdout);
    assert!(report.contains("variable OPEN_AGENT_MODEL"), "{report}");
    assert!(report.contains("config.toml, line 4"), "{report}");
    assert!(report.contains("****") && !report.contains(key), "{report}");
}

#[test]
fn server_errors_have_status_1() {
    let home = Home::new();
    let script = Script::new().models(["m"]).otherwise(Reply::error(400, "no such luck"));
    let server = Server::start(script);
    let output = home.run(&["chat", "--base-url", &server.url()], "Hello");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no such luck"), "{output:?}");
    assert_eq!(text(&output.stdout), "");

    let nobody = Server::start(echo());
    let url = nobody.url();
    drop(nobody);
    let output = home.run(&["chat", "--base-url", &url], "Hello");
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.starts_with(&format!("oa: {url}: ")), "{told}");
    for part in ["refused", "No server listens there", "ollama serve", "vllm serve", "--stand-in"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn escape_sequences_are_neutralized() {
    let home = Home::new();
    let script = Script::new().models(["m\x1b[2J"]).otherwise(Reply::text("a\x1b]0;title\x07b"));
    let server = Server::start(script);
    let output = home.run(&["models", "--base-url", &server.url()], "");
    assert_eq!(text(&output.stdout), "m\\u{1b}[2J\n");
    let output = home.run(&["chat", "-m", "m", "--base-url", &server.url()], "Hello");
    assert_eq!(text(&output.stdout), "a\\u{1b}]0;title\\u{7}b\n");
}

/// Names that a server sends, one for each way to break a line or to reach the terminal, and what is shown of them.
const NAMES: [(&str, &str); 6] = [
    ("m\nok", r"m\u{a}ok"),
    ("m\rok", r"m\u{d}ok"),
    ("m\tok", r"m\u{9}ok"),
    ("m\x1b[2J", r"m\u{1b}[2J"),
    ("m\u{9b}2J", r"m\u{9b}2J"),
    ("m\u{2028}\u{202e}", r"m\u{2028}\u{202e}"),
];

/// A server of models with these names, and the names as they are shown.
fn named() -> (Server, [&'static str; NAMES.len()]) {
    let script = Script::new().models(NAMES.map(|(name, _)| name));
    (Server::start(script.otherwise(Reply::text("hi"))), NAMES.map(|(_, shown)| shown))
}

#[test]
fn names_of_a_server_are_one_line_each() {
    let (home, (server, shown)) = (Home::new(), named());
    let output = home.run(&["models", "--base-url", &server.url()], "");
    assert_eq!(text(&output.stdout).lines().collect::<Vec<_>>(), shown);
    let output = home.run(&["doctor", "-m", "m", "--base-url", &server.url()], "");
    let report = text(&output.stdout);
    assert!(!report.contains(|c: char| c != '\n' && c.is_control()), "{report}");
}

#[cfg(unix)]
#[test]
fn names_are_one_line_each_in_a_terminal() {
    let (home, (server, shown)) = (Home::new(), named());
    let mut terminal = Terminal::start(&home, &["models", "--base-url", &server.url()]);
    terminal.wait_for_end();
    let list = format!("{}\n  {}", server.url(), shown.join("\n  "));
    terminal.wait_for(&list);
    // A name with control characters cannot be chosen, but is listed.
    let terminal = Terminal::start(&home, &["chat", "-m", "m", "--base-url", &server.url()]);
    terminal.wait_for_prompt();
    terminal.type_keys("/model\r");
    terminal.wait_for(&format!("\n  {}\n", shown.join("\n  ")));
}

#[test]
fn calls_in_a_pipe_are_one_line_each() {
    let home = Home::new();
    let reply = Reply::by(|request: &Request| match request.messages().last() {
        Some(last) if last["role"] == "user" => {
            Reply::new().call("list_files", json!({"path": ".", "a\nb\u{9b}": "c\u{2028}d"}))
        }
        _ => Reply::text("done"),
    });
    let server = Server::start(Script::new().models(["m"]).otherwise(reply));
    for mode in ["all", "plan"] {
        let arguments = ["chat", "--tools", "files:.", "--mode", mode, "--base-url", &server.url()];
        let output = home.run(&arguments, "Hello");
        let told = text(&output.stderr);
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.contains(r"a\u{a}b\u{9b}: ") && told.contains(r"c\u{2028}d"), "{told}");
    }
}

/// The output has a hole, or a call less: standard error says so.
#[test]
fn problems_of_an_answer_are_told_in_a_pipe() {
    let (home, begin) =
        (Home::new(), json!({"choices": [{"index": 0, "delta": {"content": "a"}}]}));
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let answer = format!("data: {begin}\n\ndata: {{\"choices\": [\u{9b}\n\ndata: {end}\n\n");
    let server = Server::start(Script::new().models(["m"]).otherwise(Reply::sse(answer)));
    let output = home.run(&["chat", "--base-url", &server.url()], "Hello");
    assert_eq!(text(&output.stdout), "a\n");
    let told = text(&output.stderr);
    assert!(told.starts_with("problem in the stream: not JSON at byte "), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");

    let reply = Reply::by(|request: &Request| match request.messages().last() {
        Some(last) if last["role"] == "user" => Reply::new().call("list_files", "{bad"),
        _ => Reply::text("done"),
    });
    let server = Server::start(Script::new().models(["m"]).otherwise(reply));
    let arguments = ["chat", "--tools", "files:.", "--base-url", &server.url()];
    let told = text(&home.run(&arguments, "Hello").stderr);
    assert!(told.starts_with("✗ list_files: the arguments are not valid JSON"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

/// The problem that ended the turn is its error, and told once.
#[test]
fn the_error_of_an_answer_is_told_once() {
    let home = Home::new();
    let begin = json!({"choices": [{"index": 0, "delta": {"content": "a"}}]});
    let failed = json!({"error": {"message": "out of memory", "code": 500}});
    let answer = format!("data: {begin}\n\ndata: {failed}\n\n");
    let server = Server::start(Script::new().models(["m"]).otherwise(Reply::sse(answer)));
    let chat = ["chat", "--base-url", &server.url()];
    for arguments in [&chat[..], &[&chat[..], &["--session", "trip"]].concat()] {
        let output = home.run(arguments, "Hello");
        assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(1), "a\n"));
        let told = text(&output.stderr);
        assert_eq!(told, "oa: the server reported an error: out of memory\n");
    }
}

#[test]
fn the_doctor_reports_and_writes_a_profile() {
    let (home, server) = (Home::new(), Server::start(echo()));
    let arguments = ["doctor", "--json", "--profile", "profile.json", "--base-url", &server.url()];
    let output = home.run(&arguments, "");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["model"], "echo");
    assert_eq!(report["findings"][0]["probe"], "reach");
    // This server calls no tools.
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let profile = std::fs::read_to_string(home.path().join("profile.json")).unwrap();
    assert!(profile.contains("\"model\": \"echo\""), "{profile}");
}

#[test]
fn batch_replies_are_in_order_and_resumed() {
    let home = Home::new();
    let reply = Reply::by(|request: &Request| {
        let last = &request.messages()[0]["content"];
        match last.as_str() {
            Some("two") if request.number() < 8 => Reply::error(400, "not now"),
            other => Reply::text(format!("reply to {}", other.unwrap_or("?"))),
        }
    });
    let server = Server::start(Script::new().models(["m"]).otherwise(reply));
    let input =
        "\"one\"\n\n{\"id\": \"b\", \"prompt\": \"two\"}\n{\"prompt\": \"three\", \"id\": 3}\n";
    std::fs::write(home.path().join("in.jsonl"), input).unwrap();
    let url = server.url();
    let arguments = ["batch", "in.jsonl", "-o", "out.jsonl", "--base-url", &url];
    let rows = || -> Vec<Value> {
        let out = std::fs::read_to_string(home.path().join("out.jsonl")).unwrap();
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };

    let output = home.run(&arguments, "");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = "1 of 3 prompts failed: their errors are in out.jsonl\n";
    assert!(text(&output.stderr).contains(told), "{output:?}");
    assert_eq!(rows()[0]["text"], "reply to one");
    assert_eq!((&rows()[1]["id"], rows()[1]["error"].is_string()), (&json!("b"), true));
    assert_eq!((&rows()[2]["id"], &rows()[2]["text"]), (&json!(3), &json!("reply to three")));

    // Until the server answers: what is in the log is not asked again.
    let mut runs = 0;
    while home.run(&arguments, "").status.code() != Some(0) {
        runs += 1;
        assert!(runs < 10, "{}", server.server.story());
    }
    assert_eq!(
        rows()[1],
        json!({
            "index": 1, "id": "b", "text": "reply to two", "finish_reason": "stop",
            "prompt_tokens": rows()[1]["prompt_tokens"], "completion_tokens": rows()[1]["completion_tokens"]
        })
    );
    let asked = |word: &str| {
        let requests = server.server.requests();
        requests
            .iter()
            .filter(|request| request.messages().first().is_some_and(|m| m["content"] == word))
            .count()
    };
    assert_eq!((asked("one"), asked("three")), (1, 1));
    assert!(!home.path().join("out.jsonl.part").exists());
}

/// Numbers of any length, and everything else character by character, also when replies come from the log.
#[test]
fn ids_of_a_batch_come_back_as_they_came() {
    let (home, server) = (Home::new(), Server::start(echo()));
    let ids = [
        "12345678901234567890123456789",
        "-9223372036854775809",
        "0.10000000000000000000000001",
        "1E400",
        "-0",
        r#""caf\u00e9""#,
        "null",
        r#"{"b": [18446744073709551616], "a": 1.0}"#,
    ];
    let lines = ids.map(|id| format!("{{\"id\": {id} , \"prompt\": \"Hello\"}}\n"));
    std::fs::write(home.path().join("in.jsonl"), lines.concat()).unwrap();
    let url = server.url();
    for _run in 0..2 {
        let output = home.run(&["batch", "in.jsonl", "-o", "out.jsonl", "--base-url", &url], "");
        assert!(output.status.success(), "{output:?}");
        let out = std::fs::read_to_string(home.path().join("out.jsonl")).unwrap();
        assert_eq!(out.lines().count(), ids.len());
        for (index, (line, id)) in out.lines().zip(ids).enumerate() {
            assert!(line.starts_with(&format!("{{\"id\":{id},")), "{line}");
            assert!(line.contains(&format!("\"index\":{index},")), "{line}");
        }
    }
    let chats = server.server.requests().iter().filter(|it| it.model().is_some()).count();
    assert_eq!(chats, ids.len());
}

#[test]
fn batch_never_overwrites_its_input() {
    let (home, server) = (Home::new(), Server::start(echo()));
    let at = |name: &str| home.path().join(name);
    std::fs::create_dir(at("sub")).unwrap();
    for name in ["in.jsonl", "in.log", "in.part"] {
        std::fs::write(at(name), "\"one\"\n").unwrap();
    }
    let cases = [
        ("in.jsonl", "in.jsonl", "would be overwritten"),
        ("in.jsonl", "sub/../in.jsonl", "would be overwritten"),
        // The names of the log and of the incomplete output.
        ("in.log", "in", "would be overwritten"),
        ("in.part", "in", "would be overwritten"),
        ("in.jsonl", "sub", "this is not a regular file"),
    ];
    #[cfg(unix)]
    let cases = {
        std::os::unix::fs::symlink(at("in.jsonl"), at("link.jsonl")).unwrap();
        std::os::unix::fs::symlink(at("in.jsonl"), at("out.jsonl.part")).unwrap();
        let mut cases = cases.to_vec();
        cases.push(("in.jsonl", "link.jsonl", "would be overwritten"));
        cases.push(("link.jsonl", "in.jsonl", "would be overwritten"));
        cases.push(("in.jsonl", "out.jsonl", "would be overwritten"));
        cases
    };
    for (input, output, wanted) in cases {
        let run = home.run(&["batch", input, "-o", output, "--base-url", &server.url()], "");
        assert_eq!(run.status.code(), Some(2), "{input} {output}: {run:?}");
        assert!(text(&run.stderr).contains(wanted), "{input} {output}: {run:?}");
        assert_eq!(std::fs::read_to_string(at(input)).unwrap(), "\"one\"\n");
    }
    assert!(server.server.requests().is_empty());
}

/// A device as the output, such as `/dev/stdout`, was replaced by a file.
#[cfg(unix)]
#[test]
fn batch_replaces_only_regular_files() {
    use std::os::unix::fs::{FileTypeExt, symlink};

    let (home, server) = (Home::new(), Server::start(echo()));
    let at = |name: &str| home.path().join(name);
    std::fs::write(at("in.jsonl"), "\"one\"\n").unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    symlink(at("socket"), at("linked-socket")).unwrap();
    for (input, output) in
        [("in.jsonl", "socket"), ("in.jsonl", "linked-socket"), ("socket", "out.jsonl")]
    {
        let run = home.run(&["batch", input, "-o", output, "--base-url", &server.url()], "");
        assert_eq!(run.status.code(), Some(2), "{input} {output}: {run:?}");
        assert!(text(&run.stderr).contains("not a regular file"), "{input} {output}: {run:?}");
    }
    assert!(std::fs::metadata(at("linked-socket")).unwrap().file_type().is_socket());
    assert!(server.server.requests().is_empty());

    std::fs::create_dir(at("sub")).unwrap();
    std::fs::write(at("sub/target"), "old").unwrap();
    symlink(at("sub/target"), at("link")).unwrap();
    let run = home.run(&["batch", "in.jsonl", "-o", "link", "--base-url", &server.url()], "");
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(at("link").is_symlink());
    assert!(std::fs::read_to_string(at("sub/target")).unwrap().contains("\"index\":0"));
}

#[test]
fn files_may_begin_with_a_byte_order_mark() {
    let (home, server) = (Home::new(), Server::start(echo()));
    let write = |name: &str, text: &str| {
        std::fs::write(home.path().join(name), format!("\u{feff}{text}")).unwrap();
    };
    write("in.jsonl", "{\"prompt\": \"one\", \"id\": 7}\n");
    write("config.toml", &format!("base_url = '{}'\nmcp = 'mcp.json'\n", server.url()));
    write("mcp.json", "{\"mcpServers\": {}}");
    let config = ["--config", "config.toml"];
    let output = home.run(&[&["batch", "in.jsonl", "-o", "out.jsonl"], &config[..]].concat(), "");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = home.run(&[&["chat"], &config[..]].concat(), "\u{feff}two");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let requests = server.server.requests();
    let prompts = requests.iter().flat_map(Request::messages);
    let prompts: Vec<_> = prompts.map(|message| message["content"].clone()).collect();
    assert_eq!(prompts, ["one", "two"]);
}

#[test]
fn max_tokens_limits_answers_to_the_doctor() {
    let (home, server) = (Home::new(), Server::start(echo()));
    home.run(&["doctor", "--max-tokens", "777", "--base-url", &server.url()], "");
    let requests = server.server.requests();
    let limits = requests.iter().map(|request| request.json()["max_tokens"].clone());
    assert!(limits.filter(|limit| *limit == 777).count() > 4);
}

/// Before the measurement, which takes minutes.
#[test]
fn unwritable_profile_stops_the_doctor_early() {
    let (home, server) = (Home::new(), Server::start(echo()));
    for profile in [".", "none/profile.json"] {
        let opened = std::fs::OpenOptions::new().append(true).open(home.path().join(profile));
        let wanted = format!("{profile}: {}", opened.expect_err("it cannot be written"));
        let doctor = ["doctor", "--base-url", &server.url(), "--profile", profile];
        let output = home.run(&doctor, "");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains(&wanted), "{output:?}");
        assert_eq!(text(&output.stdout), "");
    }
    assert!(server.server.requests().is_empty());
    // The check leaves no empty profile behind.
    let stopped = ["doctor", "--base-url", "none", "--profile", "profile.json"];
    assert_ne!(home.run(&stopped, "").status.code(), Some(0));
    assert!(!home.path().join("profile.json").exists());
}

#[test]
fn invalid_batch_line_stops_before_requests() {
    let (home, server) = (Home::new(), Server::start(echo()));
    std::fs::write(home.path().join("in.jsonl"), "\"one\"\n{\"text\": \"two\"}\n").unwrap();
    let output =
        home.run(&["batch", "in.jsonl", "-o", "out.jsonl", "--base-url", &server.url()], "");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr), "oa: in.jsonl: line 2: \"prompt\" is missing\n");
    assert!(server.server.requests().is_empty());
}

#[test]
fn changed_batch_input_keeps_the_output() {
    let (home, server) = (Home::new(), Server::start(echo()));
    let url = server.url();
    let write = |text: &str| std::fs::write(home.path().join("in.jsonl"), text).unwrap();
    let run = || home.run(&["batch", "in.jsonl", "-o", "out.jsonl", "--base-url", &url], "");
    write("\"one\"\n\"two\"\n");
    assert!(run().status.success());
    let read = || std::fs::read_to_string(home.path().join("out.jsonl")).unwrap();
    let before = read();
    write("\"zero\"\n\"one\"\n\"two\"\n");
    let output = run();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let told = text(&output.stderr);
    assert!(told.contains("oa: out.jsonl.log: prompt 0 is not the one"), "{told}");
    assert!(told.contains("The input has changed since an earlier run."), "{told}");
    assert_eq!(read(), before);
    assert!(!home.path().join("out.jsonl.part").exists());
    // More prompts at the end are only added.
    write("\"one\"\n\"two\"\n\"three\"\n");
    let output = run();
    assert!(output.status.success(), "{output:?}");
    assert!(read().starts_with(&before));
}
