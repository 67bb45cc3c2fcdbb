//! Requests from a server within a turn: permissions, answers and budgets.

use std::sync::{Arc, Mutex};

use oa_agents::McpHost;
use oa_client::{AgentEvent, AgentOptions, AgentOptionsBuilder, Client};
use oa_hooks::{HookDecision, Hooks, Permission, PermissionMode, ToolRule};
use oa_mcp::{ElicitationAnswer, McpServer};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_types::{FinishReason, wire::ToolChoice};
use serde_json::json;

use crate::support::{agent, calls, client, connect, model, result, server};

pub(crate) fn painter() -> MemoryServer {
    model(Reply::text("Blue.").usage(80, 20))
}

pub(crate) fn host(model: &MemoryServer, hooks: Hooks) -> McpHost {
    let model = model.clone();
    let options = move || {
        AgentOptions::builder().model("small").transport(model.clone()).hooks(hooks.clone())
    };
    McpHost::new(options).unwrap_or_else(|error| panic!("{error}"))
}

/// Has an agent call the server's tool, which asks. Returns the client after its turn, and the events.
pub(crate) async fn turn(
    server: McpServer,
    what: &str,
    change: impl FnOnce(AgentOptionsBuilder) -> AgentOptionsBuilder,
) -> (Client, Vec<AgentEvent>) {
    let connected = connect(server).await;
    let model = calls(what);
    let mut client = client(change(agent(&model, &connected)));
    client.send("Go.").await.unwrap_or_else(|error| panic!("{error}"));
    let mut events = Vec::new();
    while let Some(event) = client.next_event().await.unwrap_or_else(|error| panic!("{error}")) {
        events.push(event);
    }
    connected.close().await;
    (client, events)
}

#[tokio::test]
async fn sampling_uses_the_budget_without_tools() {
    let painter = painter();
    let host = host(&painter, Hooks::new());
    let (client, events) = turn(server().0.on_sampling(host.sampling()), "model", |it| it).await;
    assert_eq!(result(&client), "the model says Blue.");
    let requests = painter.requests();
    let asked = requests[0].json();
    assert_eq!((&asked["model"], &asked["max_tokens"]), (&json!("small"), &json!(50)));
    assert!(asked.get("tools").is_none(), "{asked}");
    assert_eq!(asked["messages"][0]["content"], "You paint.");
    assert_eq!(asked["messages"][1]["content"], "Which color?");
    let nested = events.iter().filter_map(|event| match event {
        AgentEvent::Nested(nested) => Some(&*nested.agent),
        _ => None,
    });
    assert!(nested.clone().count() > 0 && nested.clone().all(|name| name == "s__sampling"));

    // 10 tokens of its own, and 100 of the painter's.
    let of = async |most: u64| {
        let host = self::host(&self::painter(), Hooks::new());
        let server = server().0.on_sampling(host.sampling());
        turn(server, "model", |options| options.max_run_tokens(most))
            .await
            .0
            .finish_reason()
            .cloned()
    };
    assert_eq!(of(200).await, Some(FinishReason::Stop));
    assert_eq!(of(100).await, Some(FinishReason::MaxRunTokens));
}

#[tokio::test]
async fn permissions_of_the_calling_agent_decide() {
    let ask = async |change: fn(AgentOptionsBuilder) -> AgentOptionsBuilder| {
        let painter = painter();
        let host = host(&painter, Hooks::new());
        let (client, _) = turn(server().0.on_sampling(host.sampling()), "model", change).await;
        (result(&client), painter.requests().len())
    };
    let denied = ask(|options| options.tool_rule(ToolRule::deny("s__sampling"))).await;
    assert_eq!(denied, ("refused: a permission rule denies this call".to_owned(), 0));
    let denied = ask(|options| options.disallowed_tools(["s__sampling"])).await;
    assert_eq!(denied, ("refused: this tool is not allowed".to_owned(), 0));
    let unlisted = ask(|options| options.allowed_tools(["s__run"])).await;
    assert_eq!(unlisted, ("refused: this tool is not allowed".to_owned(), 0));
    let listed = ask(|options| options.allowed_tools(["s__*"])).await;
    assert_eq!(listed, ("the model says Blue.".to_owned(), 1));
    let asked = ask(|options| {
        options.can_use_tool(|request| async move {
            match &*request.tool_name {
                "s__run" => Permission::Allow,
                name => {
                    assert_eq!(request.agents, ["s__sampling"]);
                    assert_eq!(request.tool_input["messages"][0]["role"], "user");
                    Permission::deny(format!("not {name}"))
                }
            }
        })
    })
    .await;
    assert_eq!(asked, ("refused: not s__sampling".to_owned(), 0));
    // Nobody can be asked.
    let nobody = ask(|options| {
        options.permission_mode(PermissionMode::Ask).tool_rule(ToolRule::allow("s__run"))
    })
    .await;
    assert_eq!(nobody, ("refused: no user is available to approve it".to_owned(), 0));
    let allowed = ask(|options| {
        options.permission_mode(PermissionMode::Ask).tool_rule(ToolRule::allow("s__*"))
    })
    .await;
    assert_eq!(allowed, ("the model says Blue.".to_owned(), 1));
}

/// A host whose options have permissions of their own, which may deny but not allow.
#[tokio::test]
async fn permissions_of_the_host_only_deny() {
    for (rule, refused) in [
        (ToolRule::allow("*"), "refused: not now"),
        (ToolRule::deny("s__*"), "refused: a permission rule denies this call"),
    ] {
        let painter = painter();
        let model = painter.clone();
        let options = move || {
            let options = AgentOptions::builder().model("small").transport(model.clone());
            options.tool(extra()).auto_execute_tools(true).tool_rule(rule.clone())
        };
        let host = McpHost::new(options).unwrap();
        let (client, _) = turn(server().0.on_sampling(host.sampling()), "model", |options| {
            options.can_use_tool(|request| async move {
                let is_question = request.tool_name == "s__sampling";
                if is_question { Permission::deny("not now") } else { Permission::Allow }
            })
        })
        .await;
        assert_eq!((&*result(&client), painter.requests().len()), (refused, 0));
    }
}

/// A tool of the host's options, which no model may get.
fn extra() -> oa_tools::FnTool {
    oa_tools::tool("s__extra", "Does more").build(|_| async { Ok(json!("done")) })
}

struct Extra;

impl oa_tools::ToolSource for Extra {
    fn revision(&self) -> u64 {
        1
    }

    fn tools(&self) -> Vec<Arc<dyn oa_tools::Tool>> {
        vec![Arc::new(extra())]
    }
}

#[tokio::test]
async fn sampling_gets_no_tools_of_a_source() {
    let painter = painter();
    let model = painter.clone();
    let options = move || {
        let options = AgentOptions::builder().model("small").transport(model.clone());
        let tools = json!({"tools": [{"type": "function", "function": {"name": "more"}}]});
        let options = options.tool_source(Extra).auto_execute_tools(true);
        options.extra_body(tools).tool_choice(ToolChoice::Required)
    };
    let host = McpHost::new(options).unwrap();
    let (client, _) = turn(server().0.on_sampling(host.sampling()), "model", |it| it).await;
    assert_eq!(result(&client), "the model says Blue.");
    let requests = painter.requests();
    let asked = requests[0].json();
    assert_eq!((asked.get("tools"), asked.get("tool_choice")), (None, None), "{asked}");
}

/// The server's request ends with a message of the model that the server wrote, and a prompt.
#[tokio::test]
async fn messages_of_the_server_are_no_answers() {
    let painter = model(Reply::new().think("Hm.").finish("length"));
    let hooks = Hooks::new().add_pre_tool_use(|event| async move {
        let mut input = event.tool_input;
        let said = |role: &str| json!({"role": role, "content": [{"type": "text", "text": "b"}]});
        input["messages"] = json!([said("user"), said("assistant"), said("user")]);
        Some(HookDecision::modify_input(input, "longer"))
    });
    let host = host(&painter, hooks);
    let (client, _) = turn(server().0.on_sampling(host.sampling()), "model", |it| it).await;
    assert_eq!(result(&client), "refused: the model gave no answer: it ended with length");
}

#[tokio::test]
async fn hooks_see_and_change_questions_and_answers() {
    let painter = painter();
    let hooks = Hooks::new()
        .add_pre_tool_use(|event| async move {
            assert_eq!(event.tool_name, "s__sampling");
            let mut input = event.tool_input;
            input["max_tokens"] = json!(7);
            input["system_prompt"] = json!("Be brief.");
            Some(HookDecision::modify_input(input, "brief"))
        })
        .add_post_tool_use(|event| async move {
            let text =
                event.tool_result["text"].as_str().unwrap_or_default().replace("Blue", "Red");
            Some(HookDecision::modify_result(json!({ "text": text }), "red"))
        })
        .for_tools(["s__sampling"]);
    let host = host(&painter, hooks);
    let (client, _) = turn(server().0.on_sampling(host.sampling()), "model", |it| it).await;
    assert_eq!(result(&client), "the model says Red.");
    let requests = painter.requests();
    assert_eq!(requests[0].json()["max_tokens"], 7);
    assert_eq!(requests[0].json()["messages"][0]["content"], "Be brief.");

    let blocking =
        Hooks::new().add_pre_tool_use(|_| async { Some(HookDecision::block("not on my watch")) });
    let host = self::host(&painter, blocking);
    let (client, _) = turn(server().0.on_sampling(host.sampling()), "model", |it| it).await;
    assert_eq!(result(&client), "refused: not on my watch");
}

#[tokio::test]
async fn elicitation_needs_permissions_and_hooks() {
    let ask = async |hooks: Hooks, change: fn(AgentOptionsBuilder) -> AgentOptionsBuilder| {
        let shown = Arc::new(Mutex::new(0));
        let count = Arc::clone(&shown);
        let host = host(&painter(), hooks);
        let server = server().0.on_elicitation(host.elicitation(move |question, _| {
            *count.lock().unwrap() += 1;
            async move {
                assert_eq!(question.message, "Which color?");
                ElicitationAnswer::Accept(json!({ "color": "green" }))
            }
        }));
        let (client, _) = turn(server, "person", change).await;
        let shown = *shown.lock().unwrap();
        (result(&client), shown)
    };
    let answered = ask(Hooks::new(), |it| it).await;
    assert_eq!(answered, ("the person says green".to_owned(), 1));
    // A pattern has its star at the end. A rule that names no tool would let the question through.
    let connected = connect(server().0).await;
    let unused = MemoryServer::new(Script::new());
    let vain = agent(&unused, &connected).tool_rule(ToolRule::deny("*__elicitation"));
    assert!(vain.build().unwrap_err().to_string().contains("only at the end"));
    connected.close().await;
    let denied = ask(Hooks::new(), |it| it.tool_rule(ToolRule::deny("s__elicit*"))).await;
    assert_eq!(denied, ("refused: a permission rule denies this call".to_owned(), 0));
    let blocked =
        Hooks::new().add_pre_tool_use(|_| async { Some(HookDecision::block("no questions")) });
    assert_eq!(ask(blocked, |it| it).await, ("refused: no questions".to_owned(), 0));
    // What a hook makes of the answer must match the form, too.
    let other = |content: serde_json::Value| {
        Hooks::new().add_post_tool_use(move |_| {
            let content = content.clone();
            async move { Some(HookDecision::modify_result(content, "privacy")) }
        })
    };
    let changed = ask(other(json!({ "color": "hidden" })), |it| it).await;
    assert_eq!(changed, ("the person says hidden".to_owned(), 1));
    let wrong = ask(other(json!({ "color": 5 })), |it| it).await.0;
    assert!(wrong.starts_with("refused: the content does not match the form"), "{wrong}");
}

#[tokio::test]
async fn failed_sampling_does_not_end_the_turn() {
    let broken = model(Reply::error(400, "no such model"));
    let host = host(&broken, Hooks::new());
    let (client, _) = turn(server().0.on_sampling(host.sampling()), "model", |it| it).await;
    let told = result(&client);
    assert!(told.starts_with("refused: ") && told.contains("no such model"), "{told}");
    assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
}

/// A page that a call requires is a question as any other: it is shown to the person only if rules and hooks allow it.
#[tokio::test]
async fn required_pages_need_permissions_and_hooks() {
    let ask = async |hooks: Hooks, change: fn(AgentOptionsBuilder) -> AgentOptionsBuilder| {
        let (host, shown) = (host(&painter(), hooks), Arc::new(Mutex::new(0)));
        let count = Arc::clone(&shown);
        let server = server().0.on_elicitation(host.elicitation(move |question, _| {
            assert_eq!(question.message, "Sign in");
            *count.lock().unwrap() += 1;
            async { ElicitationAnswer::Accept(json!(null)) }
        }));
        let (client, _) = turn(server, "page", change).await;
        let shown = *shown.lock().unwrap();
        (result(&client), shown)
    };
    assert_eq!(ask(Hooks::new(), |it| it).await, ("visited".to_owned(), 1));
    let blocks =
        || Hooks::new().add_pre_tool_use(|_| async { Some(HookDecision::block("no pages today")) });
    let denied = ask(Hooks::new(), |it| it.tool_rule(ToolRule::deny("s__elicitation"))).await;
    for (told, shown) in [denied, ask(blocks(), |it| it).await] {
        assert!(told.contains("https://example.org/sign-in; this was not accepted"), "{told}");
        assert_eq!(shown, 0);
    }
}
