//! Gates see what runs: hooks, rules, permission callbacks and events get exactly the input that the tool gets.

mod law;
mod manual;

use std::time::Duration;

use oa_client::{AgentEvent, AgentOptionsBuilder, Client, ErrorKind, query};
use oa_executor::ToolEvent;
use oa_hooks::{HookDecision, Hooks, Permission, PermissionMode, ToolRule};
use oa_testkit::{MemoryServer, Reply};
use oa_tools::{ArgumentError, FnTool, Tool, ToolContext, tool};
use oa_types::ContentBlock;
use serde_json::{Value, json};
use tokio::time::Instant;

use suite::talk::{Log, auto, client, echo, manual, read, strict, talk, told};

/// Lists a folder. The path is `/` by default, as the schema says; the depth is 2 by default, which the model does
/// not see.
fn list(log: &Log) -> FnTool {
    let log = log.clone();
    let schema = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "default": "/" },
            "page": {
                "type": "object",
                "properties": { "size": { "type": "integer", "default": 20 } },
                "default": {},
            },
        },
    });
    tool("list", "Lists a folder")
        .schema(schema)
        .param("depth", "integer")
        .default("depth", 2)
        .build(move |args| {
            log.note(format!("ran {args}"));
            async { Ok(json!("listed")) }
        })
}

fn calling(input: Value) -> MemoryServer {
    strict([Reply::new().call_with_id("1", "list", input), Reply::text("Done.")])
}

/// A model whose only answer is the call.
fn calling_once(input: Value) -> MemoryServer {
    strict([Reply::new().call_with_id("1", "list", input)])
}

const EFFECTIVE: &str = r#"{"path":"/","page":{"size":20},"depth":2}"#;

/// Every kind of gate, recording what it sees.
fn gated(options: AgentOptionsBuilder, log: &Log) -> AgentOptionsBuilder {
    let (pre, post, rule, asked) = (log.clone(), log.clone(), log.clone(), log.clone());
    let hooks = Hooks::new()
        .add_pre_tool_use(move |event| {
            pre.note(format!("hook {}", event.tool_input));
            async { None }
        })
        .add_post_tool_use(move |event| {
            post.note(format!("post {}", event.tool_input));
            async { None }
        });
    let looking = ToolRule::deny("list").when(move |input| {
        rule.note(format!("rule {input}"));
        false
    });
    options.hooks(hooks).tool_rule(looking).can_use_tool(move |request| {
        asked.note(format!("asked {}", request.tool_input));
        async { Permission::Allow }
    })
}

/// Receives to the end, recording the calls in events.
async fn watch(client: &mut Client, log: &Log) {
    while let Some(event) = client.next_event().await.expect("nothing fails") {
        match event {
            AgentEvent::CallDenied(denied) => {
                log.note(format!("denied {} {}: {}", denied.call_id, denied.input, denied.reason));
            }
            AgentEvent::Block(ContentBlock::ToolUse(call)) => {
                log.note(format!("call {}", call.input));
            }
            AgentEvent::Tool(ToolEvent::CallStart(start)) => {
                log.note(format!("start {}", start.input));
            }
            AgentEvent::Tool(ToolEvent::CallComplete(result)) => {
                log.note(format!("{} {}", result.outcome, result.input));
            }
            AgentEvent::Tool(ToolEvent::End(_)) => log.note("end"),
            _ => {}
        }
    }
}

/// Returns the call's result as the model reads it.
fn result(client: &Client) -> String {
    told(client.history()).into_iter().rfind(|line| line.starts_with("tool: ")).unwrap_or_default()
}

#[tokio::test]
async fn every_gate_sees_the_input_that_runs() {
    let spelled = [
        json!({}),
        json!({ "path": null }),
        json!({ "page": {}, "depth": 2.0 }),
        json!({ "page": { "size": 20.0 }, "path": "/", "depth": null }),
    ];
    for given in spelled {
        let (server, log) = (calling(given.clone()), Log::default());
        let mut client = client(gated(auto(&server).tool(list(&log)), &log));
        client.send("Go.").await.unwrap();
        watch(&mut client, &log).await;
        let mut lines = log.lines();
        lines.retain(|line| line != "end");
        let (mut seen, what): (Vec<_>, Vec<_>) =
            lines.iter().filter_map(|line| line.split_once(' ')).unzip();
        // The same in every byte, regardless of the model's member order.
        assert!(what.iter().all(|input| *input == what[0]), "{given}: {lines:?}");
        let effective: Value = serde_json::from_str(EFFECTIVE).unwrap();
        assert_eq!(serde_json::from_str::<Value>(what[0]).unwrap(), effective);
        seen.dedup();
        assert_eq!(seen, ["call", "hook", "rule", "asked", "rule", "start", "ran", "ok", "post"]);
        // The model reads its own arguments.
        let own = told(client.history())[1].clone();
        assert_eq!(own, format!("assistant: [1 list {given}]"));
        let requests = server.requests();
        let sent = &requests[1].messages()[1]["tool_calls"][0]["function"]["arguments"];
        assert_eq!(serde_json::from_str::<Value>(sent.as_str().unwrap()).unwrap(), given);
    }
}

#[tokio::test]
async fn rules_match_defaulted_arguments() {
    let (server, log) = (calling(json!({})), Log::default());
    let root = ToolRule::deny("list").when(|input| input["path"] == "/");
    let mut client = client(auto(&server).tool(list(&log)).tool_rule(root));
    client.send("Go.").await.unwrap();
    watch(&mut client, &log).await;
    let denied = format!("denied 1 {EFFECTIVE}: a permission rule denies this call");
    assert_eq!(log.lines(), [format!("call {EFFECTIVE}"), denied]);
}

#[tokio::test]
async fn manual_mode_and_query_complete_the_input() {
    let log = Log::default();
    let options = |server: MemoryServer| {
        let log = log.clone();
        let hooks = Hooks::new().add_pre_tool_use(move |event| {
            log.note(event.tool_input.to_string());
            async { None }
        });
        manual(&server).tool(list(&Log::default())).hooks(hooks)
    };
    let mut client = client(options(calling_once(json!({}))));
    assert_eq!(talk(&mut client, "Go.").await, [format!("[1 list {EFFECTIVE}]")]);
    assert_eq!(told(client.history())[1], "assistant: [1 list {}]");
    // Invalid input is left unchanged.
    let mut client = suite::talk::client(options(calling_once(json!({ "path": 5 }))));
    assert_eq!(talk(&mut client, "Go.").await, [r#"[1 list {"path":5}]"#]);
    let options = options(calling_once(json!({ "depth": 3.0 }))).build().unwrap();
    let mut answer = query("Go.", &options).await.unwrap();
    let Some(Ok(ContentBlock::ToolUse(call))) = answer.next().await else { panic!("a call") };
    assert_eq!(call.input, json!({ "path": "/", "page": { "size": 20 }, "depth": 3 }));
    assert_eq!(log.lines()[..2], [EFFECTIVE, r#"{"path":5}"#]);
}

#[tokio::test]
async fn replaced_input_gets_its_defaults() {
    let (server, log) = (calling(json!({ "path": "a" })), Log::default());
    let hooks = Hooks::new()
        .add_pre_tool_use(|_| async { Some(HookDecision::modify_input(json!({}), "all of it")) });
    let asked = log.clone();
    let options = auto(&server).tool(list(&log)).hooks(hooks).can_use_tool(move |request| {
        asked.note(format!("asked {}", request.tool_input));
        async { Permission::AllowWith(json!({ "path": "b", "depth": 1.0 })) }
    });
    talk(&mut client(options), "Go.").await;
    let ran = r#"ran {"path":"b","depth":1,"page":{"size":20}}"#;
    assert_eq!(log.lines(), [format!("asked {EFFECTIVE}"), ran.to_owned()]);
}

#[tokio::test]
async fn allow_with_obeys_rules_and_schema() {
    let run = async |instead: Value| {
        let (server, log) = (calling(json!({ "path": "a" })), Log::default());
        let root = ToolRule::deny("list").when(|input| input["path"] == "/");
        let options = auto(&server).tool(list(&log)).tool_rule(root);
        let asked = options.can_use_tool(move |_| {
            let instead = instead.clone();
            async { Permission::AllowWith(instead) }
        });
        let mut client = client(asked);
        talk(&mut client, "Go.").await;
        assert_eq!(log.lines(), Vec::<String>::new());
        result(&client)
    };
    assert!(run(json!({})).await.contains("a permission rule denies this call"));
    let unfit = run(json!({ "path": 5 })).await;
    assert!(unfit.contains("invalid arguments") && unfit.contains("`path`"), "{unfit}");
}

/// A hook can repair the input first.
#[tokio::test]
async fn approval_is_not_asked_for_invalid_input() {
    let run = async |hooks: Hooks, rule: Option<ToolRule>| {
        let (server, log) = (calling(json!({ "path": 5 })), Log::default());
        let asked = log.clone();
        let mut options = auto(&server).tool(list(&log)).hooks(hooks).can_use_tool(move |_| {
            asked.note("asked");
            async { Permission::Allow }
        });
        if let Some(rule) = rule {
            options = options.tool_rule(rule);
        }
        let mut client = client(options);
        client.send("Go.").await.unwrap();
        watch(&mut client, &log).await;
        (log.lines(), result(&client))
    };
    let (lines, told) = run(Hooks::new(), None).await;
    let expected =
        [r#"call {"path":5}"#, r#"start {"path":5}"#, r#"invalid_input {"path":5}"#, "end"];
    assert_eq!(lines, expected);
    assert!(told.contains("`path`: expected string, found number 5"), "{told}");
    let mending = Hooks::new().add_pre_tool_use(|event| async move {
        assert_eq!(event.tool_input, json!({ "path": 5 }));
        Some(HookDecision::modify_input(json!({ "path": "/" }), "a number is no path"))
    });
    let (lines, _) = run(mending, None).await;
    assert_eq!(lines[1..3], ["asked".to_owned(), format!("start {EFFECTIVE}")]);
    // A denial takes precedence over invalid input.
    let (lines, told) = run(Hooks::new(), Some(ToolRule::deny("list"))).await;
    assert!(lines.len() == 2 && lines[1].starts_with("denied 1"), "{lines:?}");
    assert!(told.contains("permission denied"), "{told}");
}

/// Wraps its input each time it is prepared, which a tool must not do.
struct Wrapping(Value, Log);

impl Tool for Wrapping {
    fn name(&self) -> &str {
        "list"
    }

    fn description(&self) -> &str {
        ""
    }

    fn input_schema(&self) -> &Value {
        &self.0
    }

    fn prepare(&self, input: Value) -> Result<Value, ArgumentError> {
        Ok(json!({ "of": input }))
    }

    fn call(&self, input: Value, _: ToolContext) -> oa_tools::ToolFuture<'_> {
        self.1.note(format!("ran {input}"));
        Box::pin(async { Ok(json!("fine")) })
    }
}

#[tokio::test]
async fn prepared_input_is_not_prepared_again() {
    let (server, log) = (calling(json!({})), Log::default());
    let tool = Wrapping(json!({ "type": "object" }), log.clone());
    let mut client = client(gated(auto(&server).tool(tool), &log));
    talk(&mut client, "Go.").await;
    let seen = r#"{"of":{}}"#;
    assert!(log.lines().iter().all(|line| line.ends_with(seen)), "{:?}", log.lines());
    assert!(log.lines().contains(&format!("ran {seen}")));
    // The same for a waiting call that is approved later.
    let (server, log) = (calling(json!({})), Log::default());
    let tool = Wrapping(json!({ "type": "object" }), log.clone());
    let mut client =
        suite::talk::client(auto(&server).tool(tool).permission_mode(PermissionMode::Ask));
    talk(&mut client, "Go.").await;
    let shown = client.pending_approvals()[0].input.clone();
    client.approve("1").unwrap();
    client.continue_turn().await.unwrap();
    read(&mut client).await;
    assert_eq!(log.lines(), [format!("ran {shown}")]);
}

/// Panics when it is asked for its category.
struct Uncategorized(Value, Log);

impl Tool for Uncategorized {
    fn name(&self) -> &str {
        "list"
    }

    fn description(&self) -> &str {
        ""
    }

    fn input_schema(&self) -> &Value {
        &self.0
    }

    fn category(&self) -> Option<&str> {
        panic!("out of order")
    }

    fn call(&self, _: Value, _: ToolContext) -> oa_tools::ToolFuture<'_> {
        self.1.note("ran");
        Box::pin(async { Ok(json!("fine")) })
    }
}

#[tokio::test]
async fn a_tool_whose_category_panics_does_not_run() {
    let (server, log) = (calling(json!({})), Log::default());
    let tool = Uncategorized(json!({ "type": "object" }), log.clone());
    let asked = log.clone();
    let mut client = client(auto(&server).tool(tool).can_use_tool(move |_| {
        asked.note("asked");
        async { Permission::Allow }
    }));
    talk(&mut client, "Go.").await;
    assert!(log.lines().is_empty(), "{:?}", log.lines());
    assert!(result(&client).contains("the tool's category panicked"), "{}", result(&client));
}

#[tokio::test]
async fn later_hooks_do_not_replace_earlier_ones() {
    let (server, log) = (calling(json!({})), Log::default());
    let gate = Hooks::new().add_pre_tool_use(|_| async { Some(HookDecision::block("no lists")) });
    let seen = log.clone();
    let audit = Hooks::new().add_post_tool_use(move |event| {
        seen.note(event.tool_result.to_string());
        async { None }
    });
    let mut client = client(auto(&server).tool(list(&log)).hooks(gate).hooks(audit));
    talk(&mut client, "Go.").await;
    assert!(result(&client).contains("no lists"), "{}", result(&client));
    assert!(log.lines().iter().all(|line| line.contains("no lists")), "{:?}", log.lines());
}

/// A client whose call waits for permission, with more options.
async fn waiting(
    log: &Log,
    server: &MemoryServer,
    more: impl FnOnce(AgentOptionsBuilder) -> AgentOptionsBuilder,
) -> Client {
    let options = auto(server).tool(list(log)).permission_mode(PermissionMode::Ask);
    let mut client = client(more(options));
    talk(&mut client, "Go.").await;
    assert_eq!(client.pending_approvals().len(), 1);
    client
}

#[tokio::test]
async fn rules_and_mode_are_checked_after_approval() {
    let log = Log::default();
    let mut client = waiting(&log, &calling(json!({})), |options| options).await;
    assert_eq!(client.pending_approvals()[0].input.to_string(), EFFECTIVE);
    client.approve("1").unwrap();
    client.set_permission_mode(PermissionMode::Plan).unwrap();
    client.continue_turn().await.unwrap();
    watch(&mut client, &log).await;
    let denied = format!("denied 1 {EFFECTIVE}: no tools run in plan mode: answer with a plan");
    assert_eq!(log.lines(), [denied]);
    assert!(result(&client).contains("plan mode"));

    let root = || ToolRule::deny("list").when(|input| input["path"] == "/");
    let log = Log::default();
    let mut client =
        waiting(&log, &calling(json!({ "path": "a" })), |options| options.tool_rule(root())).await;
    let error = client.approve_with("1", json!({ "path": 5 })).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("`path`"), "{error}");
    assert_eq!(client.pending_approvals().len(), 1, "it still waits");
    client.approve_with("1", json!({})).unwrap();
    client.continue_turn().await.unwrap();
    read(&mut client).await;
    assert!(
        log.lines().is_empty() && result(&client).contains("a permission rule denies this call")
    );
}

/// The first call is allowed, but does not start until the second one is approved.
#[tokio::test]
async fn allowed_calls_obey_a_later_mode_change() {
    let log = Log::default();
    let two = Reply::new().call_with_id("1", "list", json!({ "path": "a" })).call_with_id(
        "2",
        "list",
        json!({}),
    );
    let server = strict([two, Reply::text("Done.")]);
    let options = auto(&server)
        .tool(list(&log))
        .tool_rule(ToolRule::ask("list").when(|input| input["path"] == "/"));
    let mut client = client(options);
    talk(&mut client, "Go.").await;
    client.approve("2").unwrap();
    client.set_permission_mode(PermissionMode::Plan).unwrap();
    client.continue_turn().await.unwrap();
    watch(&mut client, &log).await;
    let ids: Vec<String> = log.lines().iter().map(|line| line[..8].to_owned()).collect();
    assert_eq!(ids, ["denied 1", "denied 2"]);
}

#[tokio::test]
async fn resumed_approvals_obey_the_new_rules() {
    let log = Log::default();
    let mut first = waiting(&log, &calling_once(json!({ "path": "a" })), |options| options).await;
    first.approve_with("1", json!({ "path": "privileged" })).unwrap();
    let saved = serde_json::to_string(first.history()).unwrap();
    assert!(!saved.contains("privileged"), "what was approved is not kept");
    let messages = || serde_json::from_str(&saved).unwrap();

    let server = strict([Reply::text("Done.")]);
    let root = ToolRule::deny("list").when(|input| input["path"] == "/");
    let to_root = Hooks::new()
        .add_pre_tool_use(|_| async { Some(HookDecision::modify_input(json!({}), "")) });
    let options = auto(&server).tool(list(&log)).permission_mode(PermissionMode::Ask);
    let options = options.tool_rule(root).hooks(to_root).build().unwrap();
    let mut client = Client::resume(options, messages()).unwrap();
    let shown = r#"{"path":"a","page":{"size":20},"depth":2}"#;
    assert_eq!(client.pending_approvals()[0].input.to_string(), shown);
    client.approve("1").unwrap();
    client.continue_turn().await.unwrap();
    watch(&mut client, &log).await;
    assert_eq!(log.lines(), [format!("denied 1 {EFFECTIVE}: a permission rule denies this call")]);

    let (server, log) = (strict([Reply::text("Done.")]), Log::default());
    let options = auto(&server).tool(list(&log)).permission_mode(PermissionMode::Plan);
    let mut client = Client::resume(options.build().unwrap(), messages()).unwrap();
    client.approve("1").unwrap();
    client.continue_turn().await.unwrap();
    read(&mut client).await;
    assert!(log.lines().is_empty() && result(&client).contains("plan mode"));
}

#[tokio::test]
async fn replaced_tools_validate_approved_input() {
    let log = Log::default();
    let mut client = waiting(&log, &calling(json!({})), |options| options).await;
    client.approve("1").unwrap();
    let ran = log.clone();
    let other = tool("list", "").param("folder", "string").build(move |_| {
        ran.note("ran");
        async { Ok(json!(null)) }
    });
    client.set_tools([other]).unwrap();
    client.continue_turn().await.unwrap();
    read(&mut client).await;
    assert!(log.lines().is_empty() && result(&client).contains("`folder`"), "{}", result(&client));
}

#[tokio::test(start_paused = true)]
async fn questions_run_in_turn_or_concurrently() {
    let three = || {
        let call = |reply: Reply, id| reply.call_with_id(id, "echo", json!({ "say": id }));
        strict([call(call(call(Reply::new(), "1"), "2"), "3"), Reply::text("Done.")])
    };
    let run = async |at_once| {
        let log = Log::default();
        let (hooked, asked) = (log.clone(), log.clone());
        let hooks = Hooks::new().add_pre_tool_use(move |event| {
            hooked.note(format!("hook {}", event.tool_use_id));
            async { None }
        });
        let options = auto(&three()).tool(echo()).hooks(hooks).can_use_tool(move |request| {
            let asked = asked.clone();
            async move {
                asked.note(format!("asked {}", request.tool_use_id));
                tokio::time::sleep(Duration::from_secs(match &*request.tool_use_id {
                    "1" => 3,
                    _ => 1,
                }))
                .await;
                match &*request.tool_use_id {
                    "2" => Permission::deny("no"),
                    _ => Permission::Allow,
                }
            }
        });
        let mut client = client(options.can_use_tool_at_once(at_once));
        let began = Instant::now();
        client.send("Go.").await.unwrap();
        watch(&mut client, &log).await;
        (began.elapsed().as_secs(), log.lines())
    };
    let (seconds, lines) = run(false).await;
    assert_eq!(seconds, 5);
    let one_by_one = [
        "hook 1",
        "asked 1",
        "hook 2",
        "asked 2",
        r#"denied 2 {"say":"2"}: no"#,
        "hook 3",
        "asked 3",
        r#"start {"say":"1"}"#,
        r#"start {"say":"3"}"#,
        r#"ok {"say":"1"}"#,
        r#"ok {"say":"3"}"#,
        "end",
    ];
    let shown = [r#"call {"say":"1"}"#, r#"call {"say":"2"}"#, r#"call {"say":"3"}"#];
    assert_eq!(lines[..3], shown);
    assert_eq!(lines[3..], one_by_one);
    let (seconds, lines) = run(true).await;
    assert_eq!(seconds, 3);
    let before = ["hook 1", "hook 2", "hook 3", "asked 1", "asked 2", "asked 3"];
    assert_eq!(lines[3..9], before);
    assert_eq!(lines[9..], [&one_by_one[4..5], &one_by_one[7..]].concat());
}

#[tokio::test]
async fn unknown_tools_do_not_delay_questions() {
    let call = |reply: Reply, name| reply.call_with_id(name, name, json!({}));
    let names = ["none", "echo", "nothing", "nil", "list", "nobody"];
    let server = strict([names.into_iter().fold(Reply::new(), call), Reply::text("Done.")]);
    let log = Log::default();
    let options = auto(&server).tool(echo()).tool(list(&log)).can_use_tool_at_once(true);
    let mut client = client(options.can_use_tool(|request| async move {
        match &*request.tool_name {
            "echo" => Permission::deny("no"),
            _ => Permission::Allow,
        }
    }));
    talk(&mut client, "Go.").await;
    let results = &told(client.history())[2..];
    let unknown = "no such tool";
    let outcomes = [unknown, r#""reason":"no""#, unknown, unknown, "listed", unknown];
    for (result, outcome) in results.iter().zip(outcomes) {
        assert!(result.contains(outcome), "{results:?}");
    }
    assert_eq!(results[6], "assistant: Done.");
}
