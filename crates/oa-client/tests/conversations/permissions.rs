//! Tool permissions: lists, rules, modes, callbacks, and calls that wait for approval.

use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oa_client::{AgentEvent, AgentOptionsBuilder, Client, ErrorKind};
use oa_executor::{ExecutorOptions, TimeoutPolicy, ToolEvent};
use oa_hooks::{HookDecision, Hooks, Permission, PermissionMode, PermissionRequest, ToolRule};
use oa_terminal::TerminalPrompt;
use oa_testkit::{MemoryServer, Reply, Request, Script};
use oa_tools::{FnTool, tool};
use oa_types::FinishReason;
use serde_json::json;
use tokio::time::Instant;

use suite::talk::{Log, auto, client, echo, manual, read, read_on, strict, talk};

/// Records its runs and their input.
fn noting(name: &str, category: Option<&str>, log: &Log) -> FnTool {
    let log = log.clone();
    let note = name.to_owned();
    let tool = tool(name, "Notes").param("path", "string").optional("path");
    let tool = category.into_iter().fold(tool, |tool, category| tool.category(category));
    tool.build(move |args| {
        log.note(format!("{note} {}", args["path"]));
        async { Ok(json!("done")) }
    })
}

fn offered(request: &Request) -> Vec<&str> {
    let tools = request.json()["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

/// A model that reads and writes in one answer and then finishes.
fn reader_and_writer() -> MemoryServer {
    strict([
        Reply::new().call_with_id("r", "read_file", json!({"path": "a"})).call_with_id(
            "w",
            "write_file",
            json!({"path": "b"}),
        ),
        Reply::text("Done."),
    ])
}

fn options(server: &MemoryServer, log: &Log) -> AgentOptionsBuilder {
    auto(server).tool(noting("read_file", Some("read"), log)).tool(noting("write_file", None, log))
}

/// Returns the result of a call as the model reads it.
fn result(server: &MemoryServer, request: usize, call: &str) -> String {
    let requests = server.requests();
    let messages = requests[request].messages();
    let result = messages.iter().find(|message| message["tool_call_id"] == call);
    result.expect("the call has a result")["content"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn disallowed_tools_are_not_offered_or_run() {
    type Set = fn(AgentOptionsBuilder) -> AgentOptionsBuilder;
    let sets: [Set; 3] = [
        |options| options.allowed_tools(["read_*"]),
        |options| options.disallowed_tools(["write_file"]),
        |options| options.allowed_tools(["read_file", "write_file"]).disallowed_tools(["w*"]),
    ];
    for set in sets {
        let (server, log) = (reader_and_writer(), Log::default());
        let lines = talk(&mut client(set(options(&server, &log))), "Go.").await;
        assert_eq!(log.lines(), ["read_file \"a\""]);
        assert_eq!(offered(&server.requests()[0]), ["read_file"]);
        let denied = result(&server, 1, "w");
        assert!(denied.contains("permission denied"), "{denied}");
        assert!(lines.iter().any(|line| line.contains("permission denied")), "{lines:?}");
    }
    // A model that invents a tool name is told the allowed names.
    let server = strict([Reply::new().call_with_id("x", "fly", json!({})), Reply::text("Done.")]);
    let log = Log::default();
    talk(&mut client(options(&server, &log).disallowed_tools(["write_file"])), "Go.").await;
    let unknown = result(&server, 1, "x");
    assert!(unknown.contains("read_file") && !unknown.contains("write_file"), "{unknown}");
    // The same holds in manual mode, and for tools that are set later.
    let server =
        strict([Reply::new().call_with_id("w", "write_file", json!({})), Reply::text("Done.")]);
    let tools = [noting("read_file", None, &log), noting("write_file", None, &log)];
    let mut client = client(manual(&server).tools(tools.clone()).disallowed_tools(["write_file"]));
    client.set_tools(tools).unwrap();
    let lines = talk(&mut client, "Go.").await;
    assert!(lines[0].contains("permission denied"), "{lines:?}");
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Done."]);
    assert_eq!(offered(&server.requests()[1]), ["read_file"]);
}

#[tokio::test]
async fn modes_decide_which_calls_are_asked_about() {
    let asked = |log: &Log| {
        let log = log.clone();
        move |request: PermissionRequest| {
            log.note(format!("asked about {}", request.tool_name));
            async { Permission::Allow }
        }
    };
    let run = async |mode| {
        let (server, log) = (reader_and_writer(), Log::default());
        let asked = options(&server, &log).can_use_tool(asked(&log));
        talk(&mut client(asked.permission_mode(mode)), "Go.").await;
        log.lines()
    };
    assert_eq!(
        run(PermissionMode::AllowReads).await,
        ["asked about write_file", "read_file \"a\"", "write_file \"b\""]
    );
    assert_eq!(
        run(PermissionMode::Ask).await,
        ["asked about read_file", "asked about write_file", "read_file \"a\"", "write_file \"b\""]
    );
    assert_eq!(run(PermissionMode::Plan).await, Vec::<String>::new());
}

/// A program that remembers an answer can see that the tool is another one later.
#[tokio::test]
async fn requests_have_the_tool_that_would_run() {
    let (server, log) = (reader_and_writer(), Log::default());
    let asked = log.clone();
    let options = options(&server, &log).can_use_tool(move |request| {
        asked.note(json!([request.tool_name, request.tool]).to_string());
        async { Permission::deny("no") }
    });
    let mut client = client(options);
    talk(&mut client, "Go.").await;
    let offered = |name| json!([name, client.options().tool(name).unwrap().spec()]).to_string();
    assert_eq!(log.lines(), [offered("read_file"), offered("write_file")]);
}

#[tokio::test]
async fn rules_match_tool_categories() {
    let (server, log) = (reader_and_writer(), Log::default());
    let tools = [noting("read_file", Some("read"), &log), noting("write_file", Some("disk"), &log)];
    let ruled = || auto(&server).tools(tools.clone());
    let denied = ruled().tool_rule(ToolRule::deny_category("disk"));
    talk(&mut client(denied), "Go.").await;
    assert_eq!(log.lines(), ["read_file \"a\""]);
    assert!(result(&server, 1, "w").contains("a permission rule denies this call"));
    let error = ruled().tool_rule(ToolRule::ask_category("dsik")).build().unwrap_err();
    insta::assert_snapshot!(error, @r#"no tool has the category "dsik", which a rule refers to"#);

    let (server, log) = (reader_and_writer(), Log::default());
    let asked = auto(&server)
        .tool(noting("read_file", Some("read"), &log))
        .tool(noting("write_file", Some("disk"), &log))
        .permission_mode(PermissionMode::Ask)
        .tool_rule(ToolRule::allow_category("disk"))
        .can_use_tool(|_| async { Permission::deny("not now") });
    talk(&mut client(asked), "Go.").await;
    assert_eq!(log.lines(), ["write_file \"b\""]);
}

#[tokio::test]
async fn plan_mode_runs_no_tools() {
    let write = || Reply::new().call_with_id("w", "write_file", json!({"path": "b"}));
    let server = strict([write(), Reply::text("I would write b."), write(), Reply::text("Done.")]);
    let log = Log::default();
    let rules = options(&server, &log).tool_rule(ToolRule::allow("*"));
    let mut client = client(rules.permission_mode(PermissionMode::Plan));
    talk(&mut client, "Plan.").await;
    assert!(log.lines().is_empty() && result(&server, 1, "w").contains("plan mode"));
    client.set_permission_mode(PermissionMode::AllowAll).unwrap();
    talk(&mut client, "Do it.").await;
    assert_eq!(log.lines(), ["write_file \"b\""]);
}

#[tokio::test]
async fn the_strictest_matching_rule_wins() {
    let secret = |input: &serde_json::Value| input["path"] == "b";
    let (server, log) = (reader_and_writer(), Log::default());
    let ruled = options(&server, &log)
        .tool_rule(ToolRule::allow("*"))
        .tool_rule(ToolRule::ask("*").when(secret))
        .tool_rule(ToolRule::deny("write_*").when(secret));
    talk(&mut client(ruled), "Go.").await;
    assert_eq!(log.lines(), ["read_file \"a\""]);
    assert!(result(&server, 1, "w").contains("a permission rule denies this call"));
    // A condition that panics allows nothing.
    let (server, log) =
        (strict([Reply::new().call("read_file", json!({"path": "a"}))]), Log::default());
    let ruled = options(&server, &log)
        .permission_mode(PermissionMode::Ask)
        .tool_rule(ToolRule::allow("read_file").when(|_| panic!("a condition")))
        .tool_rule(ToolRule::ask("read_file").when(|_| panic!("another")));
    let mut client = client(ruled);
    talk(&mut client, "Go.").await;
    assert_eq!(client.finish_reason(), Some(&FinishReason::ApprovalPending));
    assert_eq!(client.pending_approvals()[0].name, "read_file");
    assert!(log.lines().is_empty());
}

/// The callback may also allow, change or deny a call.
#[tokio::test(start_paused = true)]
async fn callback_panics_and_timeouts_deny_calls() {
    let (server, log) = (reader_and_writer(), Log::default());
    let asked = options(&server, &log).can_use_tool(|request| async move {
        assert_eq!(request.history.len(), 2, "it ends with the answer that has the call");
        match &*request.tool_name {
            "read_file" => Permission::AllowWith(json!({"path": "sandbox/a"})),
            _ => Permission::deny("ask me tomorrow"),
        }
    });
    talk(&mut client(asked), "Go.").await;
    assert_eq!(log.lines(), ["read_file \"sandbox/a\""]);
    assert!(result(&server, 1, "w").contains("ask me tomorrow"));

    let (server, log) = (reader_and_writer(), Log::default());
    let asked = options(&server, &log)
        .can_use_tool(|request| async move {
            match &*request.tool_name {
                "read_file" => panic!("no idea"),
                _ => std::future::pending().await,
            }
        })
        .can_use_tool_timeout(Duration::from_secs(30), Permission::deny("nobody is there"));
    let began = Instant::now();
    talk(&mut client(asked), "Go.").await;
    assert_eq!(began.elapsed().as_secs(), 30);
    assert!(log.lines().is_empty());
    assert!(result(&server, 1, "r").contains("no idea"));
    assert!(result(&server, 1, "w").contains("nobody is there"));
}

#[tokio::test]
async fn hooks_run_before_the_callback() {
    let (server, log) = (reader_and_writer(), Log::default());
    let hooks = Hooks::new().add_pre_tool_use(|event| async move {
        Some(match &*event.tool_name {
            "read_file" => HookDecision::modify_input(json!({"path": "sandbox"}), "kept inside"),
            _ => HookDecision::block("no"),
        })
    });
    let note = log.clone();
    let asked = options(&server, &log).hooks(hooks).can_use_tool(move |request| {
        note.note(format!("asked about {} {}", request.tool_name, request.tool_input));
        async { Permission::Allow }
    });
    talk(&mut client(asked), "Go.").await;
    assert_eq!(
        log.lines(),
        [r#"asked about read_file {"path":"sandbox"}"#, "read_file \"sandbox\""]
    );
}

#[tokio::test]
async fn interrupts_end_the_callback() {
    let (server, log) = (reader_and_writer(), Log::default());
    let mut client = client(options(&server, &log).can_use_tool(|_| std::future::pending()));
    client.send("Go.").await.unwrap();
    for _ in 0..2 {
        client.receive().await.unwrap().expect("a call");
    }
    client.interrupt();
    assert_eq!(client.receive().await.unwrap(), None);
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
    assert_eq!(talk(&mut client, "Again.").await, ["Done."]);
}

#[tokio::test]
async fn turns_continue_after_approvals() {
    let (server, log) = (reader_and_writer(), Log::default());
    let mut client = client(options(&server, &log).permission_mode(PermissionMode::AllowReads));
    talk(&mut client, "Go.").await;
    assert_eq!(client.finish_reason(), Some(&FinishReason::ApprovalPending));
    assert!(log.lines().is_empty(), "every call is decided before any runs");
    let pending = client.pending_approvals();
    assert_eq!(
        (pending.len(), &*pending[0].id, &pending[0].input),
        (1, "w", &json!({"path": "b"}))
    );
    let error = client.continue_turn().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("waiting for permission: w"), "{error}");
    for id in ["r", "nothing"] {
        assert_eq!(client.approve(id).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    client.approve_with("w", json!({"path": "c"})).unwrap();
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await.last().map(String::as_str), Some("Done."));
    assert_eq!(log.lines(), ["read_file \"a\"", "write_file \"c\""]);

    let (server, log) = (reader_and_writer(), Log::default());
    let mut client =
        suite::talk::client(options(&server, &log).permission_mode(PermissionMode::Ask));
    talk(&mut client, "Go.").await;
    client.approve("r").unwrap();
    client.deny("w", "not this file").unwrap();
    client.send("").await.unwrap();
    assert_eq!(read(&mut client).await.last().map(String::as_str), Some("Done."));
    assert_eq!(log.lines(), ["read_file \"a\""]);
    assert!(result(&server, 1, "w").contains("not this file"));
}

#[tokio::test]
async fn new_prompts_close_waiting_calls() {
    let (server, log) = (reader_and_writer(), Log::default());
    let mut client = client(options(&server, &log).permission_mode(PermissionMode::Ask));
    talk(&mut client, "Go.").await;
    assert_eq!(talk(&mut client, "Never mind.").await, ["Done."]);
    assert!(client.pending_approvals().is_empty() && log.lines().is_empty());
    assert!(result(&server, 1, "w").contains("not run"));
}

/// A client whose only call was approved, of a tool that takes five seconds and reports what it does.
async fn approved(server: &MemoryServer, log: &Log) -> Client {
    let log = log.clone();
    let slow = tool("slow", "Takes a while").build_with_context(move |_, cx| {
        let log = log.clone();
        async move {
            for second in 1..=5 {
                cx.emit_progress((second, 5));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            log.note("ran");
            Ok(json!("slept"))
        }
    });
    let mut client = client(auto(server).tool(slow).permission_mode(PermissionMode::Ask));
    talk(&mut client, "Go.").await;
    for call in client.pending_approvals() {
        client.approve(&call.id).expect("it waits");
    }
    client
}

#[tokio::test(start_paused = true)]
async fn approved_calls_run_during_receive() {
    let server = strict([Reply::new().call("slow", json!({})), Reply::text("Done.")]);
    let log = Log::default();
    let mut client = approved(&server, &log).await;
    let begin = Instant::now();
    // It returns at once, so that dropping it cannot cancel a call.
    client.continue_turn().await.unwrap();
    assert_eq!((begin.elapsed(), log.lines().len()), (Duration::ZERO, 0));
    let mut times = Vec::new();
    while let Some(event) = client.next_event().await.unwrap() {
        if let AgentEvent::Tool(ToolEvent::Progress(_)) = event {
            times.push(begin.elapsed().as_secs());
        }
    }
    assert_eq!(times, [0, 1, 2, 3, 4], "as it happens");
    assert_eq!(log.lines(), ["ran"]);
    assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
}

#[tokio::test(start_paused = true)]
async fn results_are_shown_before_a_server_error() {
    let down = Reply::error(503, "down");
    let server = strict([Reply::new().call("slow", json!({})), down, Reply::text("Done.")]);
    let mut client = approved(&server, &Log::default()).await;
    client.continue_turn().await.unwrap();
    let (seen, error) = read_on(&mut client).await;
    assert!(seen.iter().any(|line| line.contains("slept")), "{seen:?}");
    assert_eq!(error.unwrap().status(), Some(503));
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Done."]);
}

#[tokio::test]
async fn waiting_calls_can_resume_elsewhere() {
    let log = Log::default();
    let saved = {
        let server = strict([Reply::new().call_with_id("w", "write_file", json!({"path": "b"}))]);
        let mut client = client(options(&server, &log).permission_mode(PermissionMode::Ask));
        talk(&mut client, "Go.").await;
        serde_json::to_string(client.history()).unwrap()
    };
    let server = strict([Reply::text("Done.")]);
    let hooks = Hooks::new().add_pre_tool_use(|_| async {
        Some(HookDecision::modify_input(json!({"path": "sandbox/b"}), "kept inside"))
    });
    let options = options(&server, &log).permission_mode(PermissionMode::Ask).hooks(hooks);
    let messages = serde_json::from_str(&saved).unwrap();
    let mut client = Client::resume(options.build().unwrap(), messages).unwrap();
    assert_eq!(client.pending_approvals()[0].id, "w");
    client.approve("w").unwrap();
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await.last().map(String::as_str), Some("Done."));
    assert_eq!(log.lines(), ["write_file \"sandbox/b\""], "the hooks of this program are asked");
}

#[test]
fn ineffective_permissions_are_rejected() {
    let server = MemoryServer::new(Script::new());
    let auto = || auto(&server).tool(echo());
    let allow = |_: PermissionRequest| async { Permission::Allow };
    let refused = |options: AgentOptionsBuilder| {
        let error = options.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        error.to_string()
    };
    insta::assert_snapshot!(refused(auto().allowed_tools(["ecko"])), @r#"there is no tool "ecko", which permissions refer to; a tool that is added later needs a pattern, such as "ecko*""#);
    insta::assert_snapshot!(refused(auto().tool_rule(ToolRule::deny("ecko"))), @r#"there is no tool "ecko", which permissions refer to; a tool that is added later needs a pattern, such as "ecko*""#);
    insta::assert_snapshot!(refused(auto().tool_rule(ToolRule::deny("*_echo"))), @"in the name of a tool, `*` is possible only at the end");
    insta::assert_snapshot!(refused(auto().disallowed_tools(["*echo*"])), @"in the name of a tool, `*` is possible only at the end");
    let gate = || Hooks::new().add_pre_tool_use(|_| async { None });
    insta::assert_snapshot!(refused(auto().hooks(gate().for_tools(["*echo*"]))), @"in the name of a tool, `*` is possible only at the end");
    insta::assert_snapshot!(refused(auto().hooks(gate().for_tools(["echo", "ecko"]))), @r#"there is no tool "ecko", which hooks refer to; a tool that is added later needs a pattern, such as "ecko*""#);
    insta::assert_snapshot!(refused(auto().hooks(Hooks::new().for_tools(["echo"]).merge(gate()))), @"for_tools restricts the hooks that were added before it, and there are none");
    insta::assert_snapshot!(refused(auto().hooks(Hooks::new().with_timeout(1).merge(gate()))), @"with_timeout limits the hooks that were added before it, and there are none");
    insta::assert_snapshot!(refused(auto().hooks(gate().with_timeout(0))), @"with_timeout needs a time above zero");
    assert!(auto().hooks(gate().for_tools(["echo", "later_*"])).build().is_ok());
    let timeouts = TimeoutPolicy::none().tool("ecko", Duration::from_secs(1));
    insta::assert_snapshot!(refused(auto().executor(ExecutorOptions::new().timeouts(timeouts))), @r#"there is no tool "ecko", which a timeout refers to"#);
    insta::assert_snapshot!(refused(auto().can_use_tool_timeout(Duration::from_secs(1), Permission::Allow)), @"can_use_tool_timeout has no effect without can_use_tool");
    insta::assert_snapshot!(refused(auto().can_use_tool(allow).permission_mode(PermissionMode::AllowAll)), @"can_use_tool has no effect because every call is allowed and no rule asks");
    insta::assert_snapshot!(refused(manual(&server).tool(echo()).can_use_tool(allow)), @"can_use_tool has no effect without auto_execute_tools");
    // What is turned off needs no auto mode.
    let manual = || manual(&server).tool(echo());
    let off = manual().final_text_only(true).final_text_only(false).repeat_guard(None);
    let off = off.can_use_tool_at_once(false).last_answer_without_tools(false);
    assert!(off.can_use_tool_timeout(None, Permission::Allow).build().is_ok());
    insta::assert_snapshot!(refused(manual().repeat_guard(None).repeat_guard(2)), @"repeat_guard has no effect without auto_execute_tools");
    let mut client = client(manual());
    let error = client.set_permission_mode(PermissionMode::Plan).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

/// A writer whose output a test can read.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nothing panics here").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn terminal_prompt_asks_about_each_call() {
    let screen = Screen::default();
    let lines = "y\nno too dangerous\n\na shorter answer\nYes, but not that\nno, wait\nALWAYS\n";
    let person = TerminalPrompt::new(Cursor::new(lines), screen.clone());
    let request = |input| PermissionRequest::new("shell", input, "c", Vec::new());
    let spoof = json!({"command": "ls \u{202e}\u{9b}31m"});
    let deny = Permission::deny;
    for (input, answer) in [
        (spoof, Permission::Allow),
        (json!({"command": "rm -r /"}), deny("the user said no: too dangerous")),
        (json!({}), deny("the user said no")),
        (json!({}), deny("the user said no: a shorter answer")),
        (json!({}), deny("the user said no: Yes, but not that")),
        (json!({}), deny("the user said no: wait")),
        (json!({}), Permission::Allow),
        (json!({"command": "x".repeat(5_000)}), Permission::Allow),
    ] {
        assert_eq!(person.ask(request(input)).await, answer);
    }
    let other = PermissionRequest::new("other", json!({}), "c", Vec::new());
    assert_eq!(person.ask(other).await, deny("the user said no"), "the input has ended");
    let shown = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
    insta::assert_snapshot!(shown.replace(": ", ":\n"), @r#"
    shell({"command":"ls \u{202e}\u{9b}31m"})? [y]es, [n]o, [a]lways:
    shell({"command":"rm -r /"})? [y]es, [n]o, [a]lways:
    shell({})? [y]es, [n]o, [a]lways:
    shell({})? [y]es, [n]o, [a]lways:
    shell({})? [y]es, [n]o, [a]lways:
    shell({})? [y]es, [n]o, [a]lways:
    shell({})? [y]es, [n]o, [a]lways:
    other({})? [y]es, [n]o, [a]lways:
    "#);
}

/// Returns the text shown to a person who types these lines, for a call.
async fn asked(lines: &'static str, tool: &str, input: serde_json::Value) -> (String, Permission) {
    let screen = Screen::default();
    let person = TerminalPrompt::new(Cursor::new(lines), screen.clone());
    let answer = person.ask(PermissionRequest::new(tool, input, "c", Vec::new())).await;
    let shown = String::from_utf8(screen.0.lock().expect("nothing fails here").clone())
        .expect("nothing fails here");
    (shown, answer)
}

#[tokio::test]
async fn terminal_questions_are_escaped() {
    let command =
        "ls\u{a0}\u{1b}[2K\r\n\u{9b}A\u{200b}\u{e0041}\u{2028}\u{fe0f}\u{3164}\u{2800}\u{34f}#";
    let (shown, _) = asked("y\n", "sh\u{202e}\x1b[1mell", json!({"command": command})).await;
    insta::assert_snapshot!(shown.trim_end(), @r#"sh\u{202e}\u{1b}[1mell({"command":"ls\u{a0}\u001b[2K\r\n\u{9b}A\u{200b}\u{e0041}\u{2028}\u{fe0f}\u{3164}\u{2800}\u{34f}#"})? [y]es, [n]o, [a]lways:"#);
    assert!(!shown.chars().any(char::is_control));
}

#[tokio::test]
async fn long_calls_are_shown_whole_on_demand() {
    let command = format!("echo {} && rm -r /", "é".repeat(5_000));
    let input = json!({"command": command});
    let whole = format!("shell({input})? [y]es, [n]o, [a]lways: ");
    let (shown, answer) = asked("y\n", "shell", input.clone()).await;
    assert_eq!(answer, Permission::Allow);
    let (question, rest) = shown.split_once(" [.. ").unwrap();
    assert_eq!(question.chars().count(), 500);
    assert!(question.starts_with(r#"shell({"command":"echo éé"#), "{question}");
    let (size, rest) = rest.split_once(" ..] ").unwrap();
    assert_eq!(size, "4037 of 5037 characters not shown");
    assert!(rest.ends_with(" && rm -r /\"})? [y]es, [n]o, [a]lways, [s]how all: "), "{rest}");
    for lines in ["s\nno way\n", "S\nno way\n", "Show\nno way\n", " SHOW.\nno way\n"] {
        let (shown, answer) = asked(lines, "shell", input.clone()).await;
        assert!(shown.ends_with(&whole), "{shown}");
        assert_eq!(answer, Permission::deny("the user said no: way"));
    }
    // A call shown in full has nothing more to show.
    let (_, answer) = asked("s\ny\n", "shell", json!({})).await;
    assert_eq!(answer, Permission::deny("the user said no"));
}
