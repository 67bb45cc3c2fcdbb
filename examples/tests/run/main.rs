//! Every example runs without a server and prints what it demonstrates.

mod durable;
#[cfg(unix)]
mod mcp_server;
mod sessions;
mod turns;

use std::error::Error;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use examples::{Chat, stand_in};
use oa_testkit::{Reply, Request, Script, SocketServer};

/// The folder of the built examples. Cargo's arguments decide whether it builds them, so they are built here, unless the
/// gate has done it: with `OPEN_AGENT_EXAMPLES=built`, the examples are those of its own build.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let test = std::env::current_exe().expect("this program has a path");
    let profile = test.ancestors().nth(2).expect("it stands in PROFILE/deps");
    let name = match profile.file_name().and_then(|name| name.to_str()) {
        // Of the two profiles in that folder, the one that this test was built with.
        Some("debug") | None => "test",
        Some(other) => other,
    };
    let examples = profile.join("examples");
    if std::env::var("OPEN_AGENT_EXAMPLES").is_ok_and(|value| value == "built") {
        return examples;
    }
    let mut build = Command::new(env!("CARGO"));
    build
        .args([
            "build",
            "--quiet",
            "--package",
            env!("CARGO_PKG_NAME"),
            "--examples",
            "--all-features",
        ])
        .args(["--profile", name, "--target-dir"])
        .arg(profile.parent().unwrap_or(Path::new(".")))
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    // Cargo's variables for tests must not reach another cargo: build scripts would run again.
    let told = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(told) {
            build.env_remove(name);
        }
    }
    let built = build.status();
    assert!(built.is_ok_and(|status| status.success()), "the examples do not build");
    examples
});

fn example(name: &str) -> Command {
    let mut command =
        Command::new(FOLDER.join(name).with_extension(std::env::consts::EXE_EXTENSION));
    command.env_remove("OPEN_AGENT_BASE_URL").env_remove("OPEN_AGENT_MODEL");
    // Never look for a server, whatever runs on this machine.
    command.env("OPEN_AGENT_STAND_IN", "1");
    command
}

/// Runs a program and checks that it prints these texts in this order.
#[track_caller]
fn check(program: &mut Command, expected: &[&str]) {
    let output = program.output().expect("the example is built");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    assert!(!said.contains('\x1b'), "colors in a pipe: {said}");
    let mut rest = &*said;
    for expected in expected {
        let Some(at) = rest.find(expected) else {
            panic!("{expected:?} is missing in what is left of it: {rest}");
        };
        rest = &rest[at + expected.len()..];
    }
}

/// Runs a program that must fail with this message.
#[track_caller]
fn refuse(program: &mut Command, expected: &str) {
    let output = program.output().expect("the example is built");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains(expected), "{errors}");
}

/// The input typed by a user.
fn typed(line: &str) -> File {
    let mut file = tempfile::tempfile().expect("there is room");
    file.write_all(line.as_bytes()).and_then(|()| file.rewind()).expect("there is room");
    file
}

#[test]
fn help_is_shown_and_unknown_flags_rejected() {
    let sources = fs::read_dir(env!("CARGO_MANIFEST_DIR")).expect("it is there");
    let sources = sources.map(|source| source.expect("it can be read").path());
    let mut count = 0;
    for source in sources.filter(|path| path.extension().is_some_and(|end| end == "rs")) {
        let name = source.file_stem().and_then(|name| name.to_str()).expect("a name");
        // These two use none of the shared code.
        if name == "custom_transport" || name == "layers" {
            continue;
        }
        let usage = format!("    cargo run --example {name}");
        check(example(name).arg("--help"), &[&usage]);
        refuse(example(name).arg("--nothing"), "unknown argument --nothing; see --help");
        count += 1;
    }
    assert!(count >= 16, "{count} examples");
}

#[test]
fn quickstart() {
    let default = ["few rules and no language model", "add(a: 25, b: 17)", "(25 + 17) × 3 is 126."];
    check(&mut example("quickstart"), &default);
    check(example("quickstart").arg("divide 10 by 4"), &["divide(a: 10, b: 4)", "10 ÷ 4 is 2.5."]);
    let failed = ["divide failed: a number cannot be divided by zero", "7 ÷ 0 has no answer"];
    check(example("quickstart").args(["7", "/", "0"]), &failed);
    check(example("quickstart").arg("Who are you?"), &["I am a stand-in", "tool rounds: 0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn quickstart_finds_a_server() -> Result<(), Box<dyn Error>> {
    let answer = |request: &Request| stand_in::answer(&Chat::of(request));
    let script = Script::new().models(["some-embedder", "some-model"]);
    let server = SocketServer::start(script.otherwise(Reply::by(answer))).await?;
    let mut quickstart = example("quickstart");
    quickstart.env_remove("OPEN_AGENT_STAND_IN").env("OPEN_AGENT_BASE_URL", server.base_url());
    let found = format!("Found OPEN_AGENT_BASE_URL at {}, model some-model.", server.base_url());
    let run = move || check(&mut quickstart, &["Looking", &found, "is 126."]);
    Ok(tokio::task::spawn_blocking(run).await?)
}

#[test]
fn query() {
    check(
        &mut example("query"),
        &["> Why is the sky blue?", "air scatters blue", "finish reason: stop"],
    );
}

#[test]
fn manual_tools() {
    let expected = [
        r#"divide {"a":84,"b":2} gives 42.0"#,
        "fails: a number cannot be divided by zero",
        "84 ÷ 2 is 42; 7 ÷ 0 has no answer",
        "history: user, assistant, tool, tool, assistant",
    ];
    check(&mut example("manual_tools"), &expected);
}

#[test]
fn auto_tools() {
    let expected = [
        r#"count = {"pieces":12}"#,
        r#"order(item: "apples", pieces: 30, speed: "express")"#,
        "order 3/3 delivered",
        "forecast: not run: iteration limit",
        "This program allows two more.",
        r#"forecast = {"left":7}"#,
        "about 7 apples.",
        "finish reason: stop",
    ];
    check(&mut example("auto_tools"), &expected);
}

#[test]
fn typed_tools() {
    let expected = [
        r#""enum": ["#,
        r#""default": "second""#,
        r#"departures(route: "island", limit: 2)"#,
        r#""time":"08:15""#,
        "book failed: invalid arguments: `passengers[1].age`: required, but missing",
        "Ben has a seat, 2 of 2",
        r#""fare":25,"seats_left":10"#,
        "Booked for 25 crowns, second class",
        r#"Departure { number: 1, time: "09:00" }"#,
    ];
    check(&mut example("typed_tools"), &expected);
}

#[test]
fn multi_tool() {
    let expected =
        ["Sequential", "Weather: sunny", "Parallel", "Weather: sunny", "one by one", "saved"];
    check(&mut example("multi_tool"), &expected);
}

#[test]
fn hooks() {
    let expected = [
        r#"key = \"(hidden)\""#,
        "delete_file failed: a hook blocked the call: only people delete files",
        "Not sent: a hook blocked the prompt: it contains a password",
        r#"sandbox/etc/motd     "configured""#,
        r#"key = \"s3cr3t\""#,
        "Audit log",
        "delete_file blocked",
        "write_file ok",
    ];
    check(&mut example("hooks"), &expected);
}

#[test]
fn doctor() {
    let name = format!("open-agent-doctor-{}.json", std::process::id());
    let file = std::env::temp_dir().join(name);
    let expected = [
        "reach           ok ",
        "models          ok       stand-in is the only one",
        "streaming       ok ",
        "usage           ok       in a separate last chunk",
        "thinking        ok       apart from the text, in `reasoning_content`",
        "auto calls      ok       get_weather({\"city\":\"Paris\"})",
        "parallel calls  ok       get_weather({\"city\":\"Paris\"}), get_weather({\"city\":\"Rome\"})",
        "schema          fail     ignored: ",
        "-> do not rely on response_format",
        "bad request     ok       400: ",
        "Written to ",
        "\"model\": \"stand-in\"",
        "\"tools\": true",
        "Read back: stand-in at http://127.0.0.1:",
    ];
    check(example("doctor").arg(&file), &expected);
    fs::remove_file(&file).expect("it was written");
    check(&mut example("doctor"), &["bad request     ok", "name a file"]);
}

#[test]
fn executor_events() {
    let expected = [
        "tool_call_start    resize",
        "tool_retry         fetch, attempt 1: the connection was reset",
        "tool_call_complete fetch ok",
        "tool_call_complete resize ok",
        "tools_end          4 messages for the model",
        "event: tool_call_complete\ndata: {",
        r#""cached":true"#,
        "event: tools_end\ndata: {",
    ];
    check(&mut example("executor_events"), &expected);
}

#[test]
fn custom_transport() {
    check(&mut example("custom_transport"), &["call ", "finish reason: tool_calls"]);
    // Errors that are not the data of an ordinary event.
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/own");
    for name in ["llamacpp-error-field.sse", "relay-event-named-error.sse"] {
        let output = example("custom_transport").arg(own.join(name)).output();
        let said = output.expect("the example is built").stderr;
        assert!(said.starts_with(b"problem: "), "{name}: {said:?}");
    }
}

#[test]
fn layers() {
    let expected = ["a transport.", "call read_file({\"path\":\"a.txt\"})", "next request: 1"];
    check(&mut example("layers"), &expected);
}

#[test]
fn fallback() {
    let calls = "convert(amount: 25, from: \"km\", to: \"mi\")\n  convert(amount: 70";
    let expected = [
        "React\n",
        calls,
        "25 km is 15.53 mi; 70 kg is 154.32 lb.",
        "Action: convert(amount=25.0, from=\"km\", to=\"mi\")",
        "Observation: 25 km = 15.53 mi",
        "Markers\n",
        calls,
        "[TOOL:convert:amount=25.0",
        "[RESULT:convert] 25 km",
        "TaggedJson\n",
        calls,
        "{\"name\": \"convert\", \"arguments\": {\"amount\":25.0",
        "<tool_response>",
        "Auto\n",
        "Switching to calls as text: ",
        "this model does not support tools.",
        calls,
        "25 km is 15.53 mi; 70 kg is 154.32 lb.",
        "the same in each",
        "MarkersInline\nHere you are: ",
        calls,
        "\n25 km = 15.53 mi, and 70 kg = 154.32 lb.",
    ];
    check(&mut example("fallback"), &expected);
    let said = example("fallback").output().expect("it is built").stdout;
    assert!(!String::from_utf8_lossy(&said).contains("99"), "what was guessed is cut");
    let failed = [
        "convert failed: no conversion between these units",
        "5 kg cannot be converted to ft",
        "the same",
    ];
    check(example("fallback").arg("What is 5 kg in ft?"), &failed);
}

#[test]
fn metrics() {
    let page = include_str!("../../../crates/open-agent/src/guide/observability.md");
    let (_, shown) = page.split_once("```text\n").expect("the page shows what the example prints");
    let (shown, _) = shown.split_once("```").expect("the block ends");
    let output = example("metrics").output().expect("the example is built");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    // Times are those of this machine.
    assert_eq!(without_times(&said), without_times(shown), "{said}");
    assert!(shown.contains("560 tokens") && shown.contains("error.type=api"), "{shown}");
}

/// Returns the lines without the times in them.
fn without_times(text: &str) -> Vec<String> {
    let untimed = |word: &str| !word.contains('.') || word.parse::<f64>().is_err();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| line.split(' ').filter(|word| untimed(word)).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn router() {
    let expected = [
        "There are 6 apples, says qwen3-32b.",
        "desk: healthy, 2 answered, 0 failed",
        "stock(of: \"plums\")",
        "There are 5 plums, says qwen3-8b.",
        "desk: circuit open for",
        "3 answered, 1 failed",
        "spare: healthy, 1 answered, 0 failed",
        "There are 5 pears, says qwen3-32b.",
        "desk: healthy, 5 answered, 1 failed",
    ];
    check(&mut example("router"), &expected);
}

#[test]
fn mcp() {
    let expected = [
        "clock: clock__now, clock__time, clock__wait",
        "missing: cannot start no-such-program",
        "> What time is it in Lisbon?",
        "clock__time",
        "It is 14:30 in Lisbon.",
        "> Wait for three ticks.",
        "tick 1 of 3",
        "tick 3 of 3",
        "I have waited: 3 ticks.",
        "> Wake me when they are over.",
        "clock asks: Which sound?",
        "You were woken with birds.",
    ];
    check(&mut example("mcp"), &expected);
}

/// Its other tests need Node.
#[test]
fn mcp_server() {
    let mut program = example("mcp_server");
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it is built");
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
    writeln!(child.stdin.take().expect("its input"), "{hello}").expect("it reads");
    let output = child.wait_with_output().expect("it ends with its input");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(r#""serverInfo":{"name":"examples","version":"0.1.0"}"#), "{said}");
}

#[test]
fn serve() {
    let expected = ["> What is 25 + 17?", "42"];
    check(example("serve").arg("--try"), &expected);
}

#[test]
fn batch() {
    let expected = [
        "0: positive",
        "stopped after",
        "replies from the log",
        "40 done, 0 to come",
        "40 replies, 0 failed",
        "desk: ",
        "spare: ",
    ];
    check(&mut example("batch"), &expected);
}

#[test]
fn agent_builder() {
    let folder = tempfile::tempdir().expect("there is room");
    let run = || {
        let mut program = example("agent_builder");
        program.arg("--in").arg(folder.path());
        program
    };
    let poet = folder.path().join("poet.json");
    let created = ["create_agent(name: \"poet\"", "You are an agent that writes haiku."];
    let prompt = "Create an agent called poet that writes haiku, with reverse.";
    check(run().arg(prompt), &created);
    check(run().arg(prompt), &["create_agent failed: cannot create \"poet\": "]);
    check(run().arg("Change poet so that it writes odes."), &["modify_agent(name: \"poet\""]);
    check(
        run().arg("Which agents are there?"),
        &["\"poet\": \"You are an agent that writes odes."],
    );
    let said = ["poet says: ", "writes odes.", "You say: \\\"frogs\\\"", "reverse: \\\"sgorf\\\""];
    check(run().arg("Ask poet: frogs."), &said);
    check(
        run().arg("Ask Poet: frogs."),
        &["a name may contain only lowercase letters, digits and hyphens"],
    );

    // Without an answer, nothing is deleted.
    check(run().arg("Delete poet."), &["permission denied: the user said no"]);
    let kept = "permission denied: the user said no: I like it";
    check(run().arg("Delete poet.").stdin(typed("no I like it\n")), &[kept]);
    assert!(fs::read_to_string(&poet).expect("it is there").contains("odes"));
    check(run().arg("Delete poet.").stdin(typed("y\n")), &["delete_agent = \"deleted\""]);
    assert!(!poet.exists());

    let all = ["create_agent = {", "counter says: ", "count_words: 7", "says please", "deleted"];
    check(run().arg("--yes"), &all);
    check(run().arg("List them."), &["list_agents = []"]);
}

#[test]
fn copy_editor() {
    let mended = [
        "replace(paragraph: 1, text: \"The ferry leaves at noon, and the crew is never late.\")",
        "[1] The ferry leaves at noon, and [-teh-] {+the+} crew is never late.",
        "[2] We will [-recieve-] {+receive+} guests from the [-the-] mainland. Bring [-alot-] {+a+}",
        "Name a --file",
    ];
    check(&mut example("copy_editor"), &mended);
    refuse(example("copy_editor").arg("--write"), "--write needs a --file");

    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("letter.txt");
    let run = || {
        let mut program = example("copy_editor");
        program.arg("--file").arg(&file);
        program
    };
    let text = "Dear Ada,\n\n\nteh seperate\n\n  rooms are definately\nfine.\n\n";
    fs::write(&file, text).expect("there is room");
    check(
        &mut run(),
        &[
            "[3] rooms are [-definately-] {+definitely+} fine.",
            "Nothing is written without --write.",
        ],
    );
    assert_eq!(fs::read_to_string(&file).expect("it is there"), text);
    check(run().args(["--write", "Mend it."]), &["> Mend it.", "letter.txt is written."]);
    let text = text.replace("teh seperate", "the separate").replace("definately", "definitely");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), text);
    check(&mut run(), &["nothing to mend", "Changes\n  none"]);
    fs::write(&file, "word ".repeat(20_000)).expect("there is room");
    refuse(&mut run(), "is longer than 65536 bytes");
}

#[test]
fn git_commit_agent() {
    let folder = tempfile::tempdir().expect("there is room");
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(folder.path()).args(arguments);
        let output = alone(&mut git).output().expect("git is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let mut nowhere = example("git_commit_agent");
    refuse(alone(nowhere.arg("--in").arg(folder.path())), "is not a git repository");
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("there is room");
        git(&["add", "--", name]);
    };
    let run = || {
        let mut program = example("git_commit_agent");
        alone(&mut program).arg("--in").arg(folder.path());
        program
    };
    let last = || git(&["log", "-n1", "--format=%s"]);

    git(&["init", "--quiet"]);
    check(run().arg("--yes"), &["git_log failed: git: ", "Nothing is staged"]);
    // Without a log there is no style to follow.
    write("parser.rs", "fn parse() {}\n");
    check(run().arg("--yes"), &["Committed: ", "add parser.rs."]);
    for message in ["feat(parser): parse", "fix: mend"] {
        git(&["commit", "--quiet", "--allow-empty", "--message", message]);
    }

    write("parser.rs", "fn parse() { parse(); }\n");
    let proposed =
        ["commit(message: \"fix: change parser.rs\")", "Not committed: permission denied"];
    check(&mut run(), &proposed);
    check(
        run().stdin(typed("no not yet\n")),
        &["the user said no: not yet", "I proposed: \"fix: "],
    );
    assert_eq!(last(), "fix: mend");
    check(run().stdin(typed("yes\n")), &["Committed: ", "fix: change parser.rs."]);
    assert_eq!(last(), "fix: change parser.rs");

    // Text in a message or a name is neither an option nor a command.
    write("--amend $(touch pwned).md", "# Hello\n");
    check(run().arg("--yes"), &["docs: add --amend $(touch pwned).md"]);
    assert_eq!(last(), "docs: add --amend $(touch pwned).md");
    assert!(!folder.path().join("pwned").exists());
    refuse(run().arg("--no"), "unknown argument --no;");
}

/// Isolates git from this machine's configuration.
fn alone(program: &mut Command) -> &mut Command {
    program.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        program
            .env(format!("GIT_{who}_NAME"), "Ada")
            .env(format!("GIT_{who}_EMAIL"), "ada@localhost");
    }
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        program.env_remove(name);
    }
    program
}

#[test]
fn log_analyzer() {
    let found = [
        "count_by_level()\n  most_frequent(level: \"ERROR\")\n",
        "count_by_level = {\"ERROR\":",
        "\"db: connection # refused\" occurs ",
        "from 2026-03-02T10:40:01Z on",
        "WARN db: no connection is free",
        "tool rounds: 2",
    ];
    check(&mut example("log_analyzer"), &found);
    let between =
        ["lines_between(from: \"10:40\", to: \"10:41\")", "120 lines", "10:40:00Z WARN db"];
    check(example("log_analyzer").arg("What happened between 10:40 and 10:41?"), &between);

    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("server.log");
    let run = || {
        let mut program = example("log_analyzer");
        program.arg("--file").arg(&file);
        program
    };
    refuse(run().arg("--fast"), "unknown argument --fast;");
    check(&mut run(), &["count_by_level failed: ", "I cannot read the log"]);
    let bytes =
        b"at main.rs:3 in main\n\n12:00:01 WARN disk 1 is full\n\xff\n12:00:02 INFO hello \xff world\n\
                  12:00:03 WARN disk 27 is full";
    fs::write(&file, bytes).expect("there is room");
    check(
        &mut run(),
        &["count_by_level = {\"INFO\":1,\"WARN\":2,\"other\":2}", "no line of level ERROR"],
    );
    check(run().arg("Any warnings?"), &["\"disk # is full\" occurs 2 times, from 12:00:01 on"]);
    check(
        run().arg("Who said \"hello\"?"),
        &["search(text: \"hello\")", "1 lines", "hello \u{fffd} world"],
    );
}

#[test]
fn context_patterns() {
    let expected = [
        "Stateless",
        "> What is my name?",
        "I do not know.",
        "Truncation",
        "4 messages became 2.",
        "I do not know.",
        "Budget",
        "A summary replaced 2 messages",
        "Your name is Ada.",
        "External memory",
        r#"remember(key: "name", note: "Ada")"#,
        r#"recall(key: "name")"#,
        "Your name is Ada.",
    ];
    check(&mut example("context_patterns"), &expected);
}
