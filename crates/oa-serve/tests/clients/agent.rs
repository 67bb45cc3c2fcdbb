//! The agent behind the server: its tools and counters.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::routing::get;
use axum::{Json, Router};
use oa_chat::RetryConfig;
use oa_client::AgentOptions;
use oa_hooks::ToolRule;
use oa_serve::Conversations;
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::{Progress, ToolError, tool};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::model::answer;

/// The number of starts of each tool, and the paths that were "deleted".
#[derive(Clone, Debug, Default)]
pub(crate) struct CallCounts(Arc<Mutex<Counts>>);

#[derive(Clone, Debug, Default)]
struct Counts {
    tools: BTreeMap<&'static str, u64>,
    deleted: Vec<String>,
}

impl CallCounts {
    fn started(&self, tool: &'static str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.tools.entry(tool).or_default() += 1;
    }

    fn deleted(&self, path: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).deleted.push(path.to_owned());
    }
}

/// Returns the route by which the checks ask what the server did.
pub(crate) fn check_route(conversations: Conversations, counts: CallCounts) -> Router {
    let check = move || async move {
        let Counts { tools, deleted } =
            counts.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Json(json!({"active": conversations.running(), "tools": tools, "deleted": deleted}))
    };
    Router::new().route("/_check", get(check))
}

fn sum(args: &Value) -> Value {
    json!({"sum": args["a"].as_i64().unwrap_or_default() + args["b"].as_i64().unwrap_or_default()})
}

/// Returns the agent. `has_color` declares the tool that has no code on the server.
pub(crate) fn agent(has_color: bool, counts: &CallCounts) -> AgentOptions {
    let started = |name: &'static str| {
        let counts = counts.clone();
        move || counts.started(name)
    };
    let (add, slow_add, fail, odd) =
        (started("add"), started("slow_add"), started("fail"), started("odd"));
    let (count, delete_file, set_title, wait) =
        (started("count"), started("delete_file"), started("set_title"), started("wait"));
    let deleted = counts.clone();
    let model = MemoryServer::new(Script::new().otherwise(Reply::by(answer)));
    let mut options = AgentOptions::builder()
        .model("scripted")
        .transport(model)
        .auto_execute_tools(true)
        .retry(RetryConfig::none())
        .tool_rule(ToolRule::ask("delete_file"))
        .tool(tool("add", "Adds").param("a", "integer").param("b", "integer").build(move |args| {
            add();
            async move { Ok(sum(&args)) }
        }))
        .tool(tool("slow_add", "Adds, slowly").param("a", "integer").param("b", "integer").build(
            move |args| {
                slow_add();
                async move {
                    sleep(Duration::from_millis(300)).await;
                    Ok(sum(&args))
                }
            },
        ))
        .tool(tool("fail", "Fails").param("why", "string").build(move |args| {
            fail();
            async move {
                let why = args["why"].as_str().unwrap_or_default().to_owned();
                Err::<Value, _>(ToolError::new(why))
            }
        }))
        .tool(tool("odd", "Returns odd keys").build(move |_| {
            odd();
            async move { Ok(json!({"__proto__": {"a": 1}, "ok": true})) }
        }))
        .tool(tool("count", "Counts").param("to", "integer").build_with_context(
            move |args, context| {
                count();
                async move {
                    let to = args["to"].as_u64().unwrap_or_default();
                    for done in 1..=to {
                        sleep(Duration::from_millis(50)).await;
                        context.emit_progress(Progress::new(done, Some(to)));
                    }
                    Ok(json!({"counted": to}))
                }
            },
        ))
        .tool(tool("delete_file", "Deletes a file").param("path", "string").build(move |args| {
            delete_file();
            deleted.deleted(args["path"].as_str().unwrap_or_default());
            async move { Ok(json!({"deleted": args["path"]})) }
        }))
        .tool(tool("set_title", "Sets the title").param("title", "string").build_with_context(
            move |args, context| {
                set_title();
                async move {
                    context.emit("state", json!({"title": args["title"]}));
                    Ok(json!("ok"))
                }
            },
        ))
        .tool(tool("wait", "Waits").param("seconds", "integer").build(move |args| {
            wait();
            async move {
                sleep(Duration::from_secs(args["seconds"].as_u64().unwrap_or_default())).await;
                Ok(json!("waited"))
            }
        }));
    if has_color {
        let color = tool("pick_color", "Lets the user pick a color").param("palette", "string");
        options = options.tool(color.external());
    }
    options.build().unwrap_or_else(|error| panic!("{error}"))
}
