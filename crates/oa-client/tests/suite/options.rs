//! Getters of options.

use std::time::Duration;

use oa_aggregate::Quirks;
use oa_chat::{OnBadChunk, Provider, SystemRole, Thinking};
use oa_client::{AgentOptions, AgentOptionsBuilder, Client, ErrorKind};
use oa_context::ContextPolicy;
use oa_executor::{ExecutorOptions, ToolExecutor};
use oa_hooks::{Hooks, Permission, PermissionMode};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::{Registry, tool};
use oa_types::Price;
use oa_types::wire::{ResultImages, ToolChoice};
use serde_json::{Value, json};

fn with_a_tool() -> AgentOptionsBuilder {
    let ready = tool("log", "Returns the log").build(|_| std::future::ready(Ok(json!("a log"))));
    AgentOptions::builder().model("any").tool(ready)
}

fn built(builder: AgentOptionsBuilder) -> AgentOptions {
    builder.build().expect("the options fit")
}

#[test]
fn request_options_can_be_read() {
    let options = built(
        with_a_tool()
            .base_url("http://localhost:1234/v1")
            .provider(Provider::LlamaCpp)
            .system_prompt("Be brief.")
            .system_role(SystemRole::User)
            .api_key("sk-key")
            .header("x-team", "blue")
            .max_tokens(7)
            .temperature(0.5)
            .top_p(0.25)
            .stop("END")
            .seed(11)
            .tool_choice("log")
            .parallel_tool_calls(false)
            .response_format(json!({ "type": "json_object" }))
            .extra_body(json!({ "top_k": 40 }))
            .thinking(Thinking::Off)
            .prompt_progress(true)
            .recognize_calls(true)
            .result_images(ResultImages::Inline)
            .on_bad_chunk(OnBadChunk::Fail)
            .lenient_tool_json(false),
    );
    assert_eq!(options.model(), "any");
    assert_eq!(options.base_url(), "http://localhost:1234/v1");
    assert_eq!(options.provider(), Some(Provider::LlamaCpp));
    assert_eq!(options.system_prompt(), Some("Be brief."));
    assert_eq!(options.system_role(), SystemRole::User);
    assert!(options.api_key().is_some() && !format!("{options:?}").contains("sk-key"));
    assert_eq!((options.header("x-team"), options.header("x-other")), (Some("blue"), None));
    assert_eq!(options.max_tokens(), Some(7));
    assert_eq!((options.temperature(), options.top_p()), (Some(0.5), Some(0.25)));
    assert_eq!((options.stop(), options.seed()), (&["END".to_owned()][..], Some(11)));
    assert_eq!(options.tool_choice(), Some(&ToolChoice::Tool("log".into())));
    assert_eq!(options.parallel_tool_calls(), Some(false));
    assert_eq!(options.response_format(), Some(&json!({ "type": "json_object" })));
    assert_eq!(options.extra_body().get("top_k"), Some(&Value::from(40)));
    assert_eq!(options.thinking(), Some(&Thinking::Off));
    assert!(options.prompt_progress() && options.recognize_calls());
    assert_eq!(options.result_images(), ResultImages::Inline);
    assert_eq!(options.on_bad_chunk(), OnBadChunk::Fail);
    assert!(!options.lenient_tool_json());
    assert_eq!(options.quirks(), Quirks::default());
}

#[test]
fn run_limits_can_be_read() {
    let options = built(
        with_a_tool()
            .auto_execute_tools(true)
            .max_tool_iterations(3)
            .max_turns(4)
            .max_tool_calls(5)
            .max_run_tokens(600)
            .max_tool_calls_per_minute(7)
            .price(1.5, 2.5)
            .max_run_cost(0.25)
            .max_run_time(Duration::from_secs(8))
            .repeat_guard(9)
            .last_answer_without_tools(false)
            .final_text_only(true)
            .max_answer_retries(2),
    );
    assert!(options.auto_execute_tools() && options.final_text_only());
    assert_eq!((options.max_tool_iterations(), options.max_turns()), (3, Some(4)));
    assert_eq!((options.max_tool_calls(), options.max_run_tokens()), (Some(5), Some(600)));
    assert_eq!(options.max_tool_calls_per_minute(), Some(7));
    assert_eq!(options.price(), Price::per_million(1.5, 2.5).ok());
    assert_eq!(options.max_run_cost().map(|cost| cost.to_string()), Some("0.25".into()));
    assert_eq!(options.max_run_time(), Some(Duration::from_secs(8)));
    assert_eq!((options.repeat_guard(), options.max_answer_retries()), (Some(9), 2));
    assert!(!options.last_answer_without_tools());
    let turn = options.turn_options();
    assert_eq!((turn.max_turns, turn.max_answer_retries), (Some(4), 2));
    assert!(options.turn().history().is_empty());
}

#[test]
fn tools_gates_and_context_can_be_read() {
    let policy = ContextPolicy::new(2_048);
    let options = built(
        with_a_tool()
            .tool(tool("rm", "Removes").build(|_| std::future::ready(Ok(json!("removed")))))
            .auto_execute_tools(true)
            .context(policy.clone())
            .archive_context(async |_| Ok::<_, std::io::Error>(()))
            .offer_full_results(true)
            .executor(ExecutorOptions::new().max_parallel(3))
            .state(41_u64)
            .hooks(Hooks::new())
            .allowed_tools(["log"])
            .disallowed_tools(["rm"])
            .can_use_tool(async |_| Permission::Allow)
            .permission_mode(PermissionMode::Plan),
    );
    assert!(options.tools().contains("log") && options.tool("log").is_some());
    assert_eq!(format!("{:?}", options.context()), format!("{:?}", Some(policy)));
    assert!(options.archive_context() && options.offer_full_results());
    assert!(options.tool_executor().tools().contains("log"));
    assert_eq!(options.state::<u64>(), Some(&41));
    assert_eq!(options.allowed_tools(), Some(vec!["log"]));
    assert_eq!(options.disallowed_tools(), ["rm"]);
    assert!(options.can_use_tool());
    assert_eq!(options.permission_mode(), PermissionMode::Plan);
}

#[test]
fn timeouts_can_be_read() {
    let seconds = Duration::from_secs;
    let options = built(
        with_a_tool()
            .idle_timeout(seconds(1))
            .content_timeout(seconds(3))
            .first_token_timeout(seconds(4))
            .connect_timeout(seconds(5))
            .total_timeout(seconds(6)),
    );
    // `timeout` is another name of `idle_timeout`.
    let told = [
        options.idle_timeout(),
        options.timeout(),
        options.content_timeout(),
        options.first_token_timeout(),
        options.connect_timeout(),
        options.total_timeout(),
    ];
    assert_eq!(told, [1, 1, 3, 4, 5, 6].map(|time| Some(seconds(time))));
}

#[test]
fn unset_options_read_as_none() {
    let options =
        built(AgentOptions::builder().model("any").transport(MemoryServer::new(Script::new())));
    assert_eq!((options.provider(), options.system_prompt()), (None, None));
    assert_eq!((options.max_tokens(), options.seed()), (None, None));
    assert_eq!((options.max_turns(), options.max_run_tokens()), (None, None));
    assert!(options.context().is_none() && options.allowed_tools().is_none());
    assert!(options.disallowed_tools().is_empty() && !options.can_use_tool());
    assert!(!options.archive_context() && !options.offer_full_results());
    assert_eq!(options.state::<u64>(), None);
}

/// `?` converts the errors of the lower crates, and keeps their kind.
#[test]
fn errors_of_the_executor_are_converted() {
    fn build(options: ExecutorOptions) -> oa_client::Result<ToolExecutor> {
        Ok(ToolExecutor::with_options(Registry::new(), options)?)
    }
    assert_eq!(
        build(ExecutorOptions::new().max_parallel(0)).unwrap_err().kind(),
        ErrorKind::Config
    );
    assert!(build(ExecutorOptions::new()).is_ok());
}

#[tokio::test]
async fn derived_options_change_only_what_they_name() {
    let server = MemoryServer::new(Script::new().otherwise(Reply::text("Fine.")));
    let hidden = AgentOptions::builder().transport(server.clone()).model("").build_without_model();
    assert_eq!(hidden.unwrap_err().kind(), ErrorKind::Config, "an empty name is no missing one");
    let first = with_a_tool().system_prompt("You write.").transport(server.clone());
    let first = built(first.state(1_u8));
    let second = first.with_model("other").unwrap().with_system_prompt("You review.").unwrap();
    let third = second.with_system_prompt("").unwrap().with_state(2_u8);
    assert!(first.with_model(" \n").is_err());
    for options in [&first, &second, &third] {
        Client::new(options.clone()).unwrap().ask("Hi.").await.unwrap();
    }
    let sent: Vec<Value> = server.requests().iter().map(|request| request.json().clone()).collect();
    let of = |n: usize| (sent[n]["model"].as_str(), sent[n]["messages"][0]["content"].as_str());
    assert_eq!(of(0), (Some("any"), Some("You write.")));
    assert_eq!(of(1), (Some("other"), Some("You review.")));
    assert_eq!(of(2), (Some("other"), Some("Hi.")));
    assert!(sent.iter().all(|request| request["tools"] == sent[0]["tools"]));
}
