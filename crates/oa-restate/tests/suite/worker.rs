//! A worker for the tests: this program again, with a configuration in its environment. Its model does what the prompt says,
//! which is JSON: `{"rounds": [[{"name": "work", "input": {"ms": 5}}]], "think_ms": 0, "say": "Done."}`. It ends with its
//! standard input, on SIGTERM in good order, and by `kill -9`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oa_client::{AgentOptions, AgentOptionsBuilder};
use oa_context::{ContextPolicy, Overflow};
use oa_executor::ExecutorOptions;
use oa_hooks::ToolRule;
use oa_restate::{AgentWorker, Limits, SessionEvent};
use oa_testkit::{MemoryServer, Reply, Request, Script};
use oa_tools::{FnTool, ToolContext, ToolError, tool};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::store;

#[derive(Clone, Deserialize)]
struct Config {
    port: u16,
    ingress: String,
    /// The file to which starts and ends of tools, requests and events are written.
    effects: String,
    #[serde(default)]
    version: u32,
    #[serde(default)]
    result_bytes: Option<usize>,
    #[serde(default)]
    session_bytes: Option<usize>,
    /// The address of a model; a scripted one by default.
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    events: bool,
    /// True for a hook on prompts, which makes another step.
    #[serde(default)]
    hook: bool,
    #[serde(default)]
    max_run_ms: Option<u64>,
    #[serde(default)]
    max_turns: Option<u32>,
    #[serde(default)]
    wait_ms: Option<u64>,
    /// The rounds of calls of one turn.
    #[serde(default)]
    rounds: Option<u32>,
    /// The tokens that the model takes: longer conversations are shortened.
    #[serde(default)]
    context: Option<usize>,
    /// Tools that a rule of the main agent denies.
    #[serde(default)]
    deny: Vec<String>,
    /// The tokens that a turn of the main agent may spend.
    #[serde(default)]
    max_tokens: Option<u64>,
    /// The calls of a round that run at once.
    #[serde(default)]
    at_once: Option<usize>,
    /// Tools that the main agent does not have.
    #[serde(default)]
    disallow: Vec<String>,
    /// The connection string of a store for conversations.
    #[serde(default)]
    postgres: Option<String>,
    /// True if the first worker that saves a turn is to die right after it.
    #[serde(default)]
    dies_at_save: bool,
}

/// The line of a worker that listens.
pub(crate) const READY: &str = "the worker is ready";

/// The variable with the configuration of a worker.
pub(crate) const VARIABLE: &str = "OPEN_AGENT_TEST_WORKER";

/// Becomes a worker if this process was started as one; otherwise it is no test.
#[test]
fn process() {
    let Ok(config) = std::env::var(VARIABLE) else { return };
    let config: Config = serde_json::from_str(&config).unwrap();
    std::thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        exit(0);
    });
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(serve(config)).unwrap();
}

async fn serve(config: Config) -> io::Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, config.port));
    let listener = AgentWorker::listen(address)?;
    let mut limits = Limits::default();
    if let Some(bytes) = config.session_bytes {
        limits.session_bytes = bytes;
    }
    if let Some(bytes) = config.result_bytes {
        limits.result_bytes = bytes;
    }
    if let Some(wait) = config.wait_ms {
        limits.longest_wait = Duration::from_millis(wait);
    }
    let mut main = builder(&config).disallowed_tools(config.disallow.clone());
    for name in &config.deny {
        main = main.tool_rule(ToolRule::deny(name));
    }
    if let Some(tokens) = config.max_tokens {
        main = main.max_run_tokens(tokens);
    }
    let options = main.build().map_err(io::Error::other)?;
    let helper = builder(&config).build().map_err(io::Error::other)?;
    let mut worker =
        AgentWorker::new(options).agent("helper", helper).limits(limits).ingress(&config.ingress);
    if config.events {
        let effects = config.effects.clone();
        worker =
            worker.events(move |event: SessionEvent| note(&effects, &json!({ "event": event })));
    }
    let effects = config.effects.clone();
    worker = worker.on_warning(move |warning| {
        note(&effects, &json!({ "warning": warning.to_string() }));
    });
    if let Some(url) = &config.postgres {
        let dies_at = config.dies_at_save.then(|| format!("{}.died", config.effects));
        worker = worker.session_store(store::connect(url, dies_at).await?);
    }
    // Not by a macro, whose output tests keep to themselves.
    writeln!(io::stdout(), "{READY}")?;
    worker.serve(listener).await
}

fn builder(config: &Config) -> AgentOptionsBuilder {
    let mut builder = AgentOptions::builder()
        .model("any")
        .tools(tools(config))
        .can_use_tool(|request| async move {
            match &*request.tool_name {
                "danger" => oa_hooks::Permission::Later,
                "helper" if !request.tool_input["depth"].is_null() => oa_hooks::Permission::Later,
                _ => oa_hooks::Permission::Allow,
            }
        })
        .auto_execute_tools(true)
        .max_tool_iterations(config.rounds.unwrap_or(50))
        .repeat_guard(None);
    if config.hook {
        builder = builder.hooks(oa_hooks::Hooks::new().add_user_prompt_submit(|_| async { None }));
    }
    if let Some(limit) = config.max_run_ms {
        builder = builder.max_run_time(Duration::from_millis(limit));
    }
    if let Some(turns) = config.max_turns {
        builder = builder.max_turns(turns);
    }
    if let Some(calls) = config.at_once {
        builder = builder.executor(ExecutorOptions::new().max_parallel(calls));
    }
    if let Some(context) = config.context {
        let policy = ContextPolicy::new(context).with_overflow(Overflow::DropOldest);
        builder = builder.context(policy);
    }
    match &config.model {
        Some(url) => builder.base_url(url),
        None => builder.transport(model(config)),
    }
}

fn tools(config: &Config) -> Vec<FnTool> {
    let version = config.version;
    let effects = config.effects.clone();
    let work = move |input: Value, cx: ToolContext| work(effects.clone(), input, cx);
    let mut tools: Vec<FnTool> = ["work", "danger"]
        .map(|name| {
            tool(name, "Takes a time").param("ms", "integer").build_with_context(work.clone())
        })
        .into();
    tools.push(tool("big", "Says much").param("bytes", "integer").build(|input| async move {
        let bytes = usize::try_from(input["bytes"].as_u64().unwrap_or_default());
        Ok("x".repeat(bytes.unwrap_or_default()).into())
    }));
    tools.push(tool("panic", "Panics").build(|_| async { panic!("the tool is broken") }));
    tools.push(
        tool("version", "Tells the version").build(move |_| async move { Ok(json!(version)) }),
    );
    tools.push(tool("ask_user", "Asks the user").param("question", "string").external());
    tools.push(
        tool("helper", "Asks another agent")
            .param("prompt", "string")
            .param_with("depth", json!({ "enum": ["low", "high"], "optional": true }))
            .build(|_| async { Err(ToolError::new("the worker runs it as an agent")) }),
    );
    tools
}

/// Takes a time, and writes down when it starts and ends. Its result names this run.
async fn work(effects: String, input: Value, cx: ToolContext) -> Result<Value, ToolError> {
    static RUNS: AtomicU64 = AtomicU64::new(0);

    let run = format!("{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let key = cx.idempotency_key().unwrap_or_default().to_owned();
    note(&effects, &json!({ "start": key, "run": run }));
    let mut ended = Ended { effects, key, run, is_done: false };
    sleep(Duration::from_millis(input["ms"].as_u64().unwrap_or_default())).await;
    ended.is_done = true;
    Ok(json!({ "key": ended.key, "run": ended.run }))
}

/// Writes down the end of a run, also of one that is dropped.
struct Ended {
    effects: String,
    key: String,
    run: String,
    is_done: bool,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let Self { effects, key, run, is_done } = self;
        let how = if *is_done { "end" } else { "cancelled" };
        note(effects, &json!({ how: key, "run": run }));
    }
}

/// Adds a line to a file, at once.
fn note(file: &str, line: &Value) {
    let Ok(mut file) = File::options().create(true).append(true).open(file) else { return };
    let _ = file.write_all(format!("{line}\n").as_bytes());
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wish {
    rounds: Vec<Vec<Value>>,
    think_ms: u64,
    /// The answers after all rounds; after these, or without them, it says `say`.
    says: Vec<String>,
    say: Option<String>,
    /// The finish reason of the answers after all rounds.
    finish: Option<String>,
    /// The tokens of each answer.
    tokens: Option<u64>,
    /// True if the server fails after all rounds.
    fails: bool,
}

fn model(config: &Config) -> MemoryServer {
    let (effects, version) = (config.effects.clone(), config.version);
    let rule = move |request: &Request| {
        let body = request.json();
        let tools = body["tools"].as_array().into_iter().flatten();
        let tools: Vec<&Value> = tools.map(|tool| &tool["function"]["name"]).collect();
        let asked = request.messages().len();
        note(&effects, &json!({ "asked": asked, "version": version, "tools": tools }));
        reply(request)
    };
    MemoryServer::new(Script::new().otherwise(Reply::by(rule)))
}

/// Returns what the model says to a request.
pub(crate) fn reply(request: &Request) -> Reply {
    let messages = request.messages();
    let wish = |message: &Value| {
        let is_user = message["role"] == "user";
        let text = message["content"].as_str().filter(|_| is_user)?;
        serde_json::from_str::<Wish>(text).ok()
    };
    let wished = messages.iter().enumerate().rev();
    let found = wished.filter_map(|(place, message)| Some((place, wish(message)?))).next();
    let (place, wish) = found.unwrap_or_default();
    let answers = messages[place..].iter().filter(|message| message["role"] == "assistant").count();
    let think = Duration::from_millis(wish.think_ms);
    let is_last = wish.rounds.get(answers).is_none();
    if is_last && wish.fails {
        return Reply::error(400, "no such model");
    }
    let mut reply = match wish.rounds.get(answers) {
        Some(calls) => calls.iter().fold(Reply::new().say("Calling."), |reply, call| {
            let name = call["name"].as_str().unwrap_or_default();
            reply.call(name, call["input"].clone())
        }),
        None => {
            let say = wish.says.get(answers - wish.rounds.len()).or(wish.say.as_ref());
            Reply::text(say.map_or("Done.", String::as_str))
        }
    };
    if let Some(finish) = wish.finish.filter(|_| is_last) {
        reply = reply.finish(finish);
    }
    if let Some(tokens) = wish.tokens {
        reply = reply.usage(0, tokens);
    }
    // A slow model says its first word at once.
    if wish.think_ms > 0 { reply.delay(think) } else { reply }
}
