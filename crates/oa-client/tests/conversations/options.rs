//! Resolution of options: invalid options are rejected, and environment variables fill in what is not set.

use std::process::Command;
use std::time::Duration;

use insta::assert_snapshot;
use oa_aggregate::{ArgumentRepair, ChoiceIndex, Quirks, TextMode, ThinkTags};
use oa_chat::{Endpoint, Provider};
use oa_client::{AgentOptions, AgentOptionsBuilder, Client, ErrorKind};
use oa_context::ContextPolicy;
use oa_executor::{CallRate, ExecutorOptions};
use oa_hooks::{Permission, PermissionMode};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::tool;
use oa_types::{Cost, Price, wire::ToolChoice};
use serde_json::json;

use suite::talk::{adder, auto, client, echo, manual, talk};

type Set = fn(AgentOptionsBuilder) -> AgentOptionsBuilder;

#[track_caller]
fn refused(builder: AgentOptionsBuilder) -> String {
    let error = builder.build().expect_err("these options cannot work");
    assert_eq!(error.kind(), ErrorKind::Config);
    error.to_string()
}

#[test]
fn zero_limits_are_rejected() {
    let numbers: [(&str, Set, Set); 7] = [
        (
            "max_tool_calls_per_minute",
            |set| set.max_tool_calls_per_minute(0),
            |set| set.max_tool_calls_per_minute(1),
        ),
        ("max_run_cost", |set| set.max_run_cost(0.0), |set| set.price(1.0, 2.0).max_run_cost(0.01)),
        ("max_tool_iterations", |set| set.max_tool_iterations(0), |set| set.max_tool_iterations(1)),
        ("max_tool_calls", |set| set.max_tool_calls(0), |set| set.max_tool_calls(1)),
        ("max_run_tokens", |set| set.max_run_tokens(0), |set| set.max_run_tokens(1)),
        ("max_turns", |set| set.max_turns(0), |set| set.max_turns(1)),
        ("repeat_guard", |set| set.repeat_guard(0), |set| set.repeat_guard(1)),
    ];
    let options = || {
        let options = AgentOptions::builder().model("any").tool(echo()).auto_execute_tools(true);
        options.can_use_tool(|_| async { Permission::Allow })
    };
    for (name, zero, one) in numbers {
        let least = if name == "max_run_cost" { "above 0" } else { "at least 1" };
        assert_eq!(refused(zero(options())), format!("{name} must be {least}"));
        one(options()).build().unwrap();
    }
    let times: [(&str, Set, Set, Set); 8] = [
        ("timeout", |set| set.timeout(0), |set| set.timeout(-1), |set| set.timeout(1)),
        (
            "idle_timeout",
            |set| set.idle_timeout(0),
            |set| set.idle_timeout(-1),
            |set| set.idle_timeout(None),
        ),
        (
            "content_timeout",
            |set| set.content_timeout(0),
            |set| set.content_timeout(-1),
            |set| set.content_timeout(1),
        ),
        (
            "first_token_timeout",
            |set| set.first_token_timeout(0),
            |set| set.first_token_timeout(-1),
            |set| set.first_token_timeout(1),
        ),
        (
            "connect_timeout",
            |set| set.connect_timeout(0),
            |set| set.connect_timeout(-1),
            |set| set.connect_timeout(1),
        ),
        (
            "total_timeout",
            |set| set.total_timeout(0),
            |set| set.total_timeout(Duration::ZERO),
            |set| set.total_timeout(Duration::from_nanos(1)),
        ),
        (
            "max_run_time",
            |set| set.max_run_time(0),
            |set| set.max_run_time(-1),
            |set| set.max_run_time(1),
        ),
        (
            "can_use_tool_timeout",
            |set| set.can_use_tool_timeout(Duration::ZERO, Permission::Allow),
            |set| set.can_use_tool_timeout(-1, Permission::Allow),
            |set| set.can_use_tool_timeout(1, Permission::Allow),
        ),
    ];
    for (name, zero, less, more) in times {
        let expected = format!("{name} must be above 0; use None for no limit");
        assert_eq!(refused(zero(options())), expected);
        assert_eq!(refused(less(options())), expected);
        more(options()).build().unwrap();
    }
    let endpoint = Endpoint::builder().base_url("http://gpu/v1").connect_timeout(0);
    assert_eq!(
        endpoint.build().unwrap_err().to_string(),
        "connect_timeout must be above 0; use None for no limit"
    );
}

#[test]
fn tool_choice_must_name_an_offered_tool() {
    let options = |name: &str| {
        let choice = ToolChoice::Tool(name.to_owned());
        AgentOptions::builder().model("any").tool(echo()).tool(adder()).tool_choice(choice)
    };
    assert!(options("add").build().is_ok());
    assert_snapshot!(refused(options("sub")), @r#"tool_choice names the tool "sub", which does not exist"#);
    assert_snapshot!(refused(options("add").disallowed_tools(["add"])), @r#"tool_choice names the tool "add", which is not allowed"#);
    assert_snapshot!(refused(options("add").allowed_tools(["echo"])), @r#"tool_choice names the tool "add", which is not allowed"#);
    let own = json!({"tools": [{"type": "function", "function": {"name": "sub"}}]});
    assert!(options("sub").extra_body(own).build().is_ok(), "those count");
}

#[tokio::test]
async fn connect_timeout_needs_our_transport() {
    let server = MemoryServer::new(Script::new().otherwise(Reply::text("Hello.")));
    let options = || AgentOptions::builder().model("any");
    let waits = || options().connect_timeout(1);
    assert_snapshot!(refused(waits().transport(server.clone())), @"connect_timeout has no effect on your own transport");
    let error = Client::with_transport(waits().build().unwrap(), server.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_snapshot!(error, @"connect_timeout has no effect on your own transport");
    Client::with_transport(options().build().unwrap(), server).unwrap();
}

#[test]
fn thinking_requires_a_provider() {
    let options = AgentOptions::builder().model("any").thinking(true);
    assert_snapshot!(refused(options), @"thinking requires a provider, because each has its own member for it; extra_body can set it, too");
}

#[tokio::test(start_paused = true)]
async fn can_use_tool_timeout_can_be_removed() {
    let server =
        MemoryServer::new([Reply::new().call("echo", json!({"say": "x"})), Reply::text("Done.")]);
    let asked = |_| async {
        tokio::time::sleep(Duration::from_secs(1_000_000)).await;
        Permission::Allow
    };
    let options = auto(&server).tool(echo()).can_use_tool(asked);
    let options = options.can_use_tool_timeout(5, Permission::deny("late"));
    let options = options.can_use_tool_timeout(None, Permission::deny("late"));
    let mut client = client(options);
    talk(&mut client, "Go.").await;
    let last = server.requests().pop().unwrap();
    assert!(!last.messages().last().unwrap().to_string().contains("late"), "{}", server.story());
}

#[test]
fn permission_mode_can_be_read() {
    let options = || AgentOptions::builder().model("any").tool(echo()).auto_execute_tools(true);
    let mode = |options: AgentOptionsBuilder| options.build().unwrap().permission_mode();
    assert_eq!(mode(options()), PermissionMode::AllowAll);
    assert_eq!(mode(options().permission_mode(PermissionMode::Plan)), PermissionMode::Plan);
    let asked = options().can_use_tool(|_| async { Permission::Allow });
    assert_eq!(mode(asked), PermissionMode::Ask);
    let mut client = Client::new(options().build().unwrap()).unwrap();
    client.set_permission_mode(PermissionMode::AllowReads).unwrap();
    assert_eq!(client.options().permission_mode(), PermissionMode::AllowReads);
}

#[test]
fn timeout_is_a_name_for_idle_timeout() {
    let options = || AgentOptions::builder().model("any");
    let bound = |options: AgentOptionsBuilder| {
        let options = options.build().unwrap();
        assert_eq!(options.timeout(), options.idle_timeout());
        options.idle_timeout()
    };
    assert_eq!(bound(options()), Some(Duration::from_secs(60)));
    assert_eq!(bound(options().timeout(7)), Some(Duration::from_secs(7)));
    assert_eq!(bound(options().timeout(7).idle_timeout(8)), Some(Duration::from_secs(8)));
    assert_eq!(bound(options().idle_timeout(None)), None);
}

/// Text in pieces, with the index of the choice that each belongs to.
fn pieces(pieces: &[(u64, &str)]) -> MemoryServer {
    let body = |(index, text): &(u64, &str)| {
        let choice = json!({"index": index, "delta": {"content": text}});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let body = pieces.iter().map(body).collect::<String>() + "data: [DONE]\n\n";
    MemoryServer::new(Script::new().otherwise(Reply::sse(body)))
}

#[tokio::test]
async fn quirks_set_choice_and_text_modes() {
    let numbered = pieces(&[(1, "One"), (2, " two"), (3, " three")]);
    let repeated = pieces(&[(0, "One"), (0, "One two")]);
    let (mut any, mut cumulative) = (Quirks::default(), Quirks::default());
    any.choice = ChoiceIndex::Any;
    cumulative.text = TextMode::Cumulative;
    assert!(client(manual(&numbered)).ask("Go.").await.is_err(), "nothing is choice 0");
    assert_eq!(client(manual(&repeated)).ask("Go.").await.unwrap().text, "OneOne two");
    for (server, quirks, text) in
        [(numbered, any, "One two three"), (repeated, cumulative, "One two")]
    {
        let reply = client(manual(&server).quirks(quirks)).ask("Go.").await.unwrap();
        assert_eq!(reply.text, text);
        let endpoint = Endpoint::builder().base_url("http://gpu/v1").quirks(quirks);
        let endpoint = endpoint.transport(server).build().unwrap();
        let options = || AgentOptions::builder().model("any").chat_service(endpoint.clone());
        assert_eq!(client(options()).ask("Go.").await.unwrap().text, text);
        let why = "quirks has no effect with chat_service: set it there";
        assert_eq!(refused(options().quirks(quirks)), why);
        // As an endpoint, it is known.
        let options = || AgentOptions::builder().model("any").endpoint(endpoint.clone());
        assert_eq!(client(options()).ask("Go.").await.unwrap().text, text);
        assert_eq!(options().build().unwrap().base_url(), "http://gpu/v1");
        let why = "quirks has no effect with endpoint: set it there";
        assert_eq!(refused(options().quirks(quirks)), why);
    }
}

#[test]
fn options_can_be_set_and_unset_by_values() {
    let built = |tokens: Option<u32>, temperature: Option<f32>| {
        let options = AgentOptions::builder().model("any").max_tokens(7).temperature(0.5);
        let options = options.max_tokens(tokens).temperature(temperature).top_p(None).seed(None);
        options.max_turns(None).max_tool_calls(3).max_tool_calls(None).max_run_tokens(None)
    };
    let set = built(Some(9), Some(1.0)).build().unwrap();
    assert_eq!((set.max_tokens(), set.temperature()), (Some(9), Some(1.0)));
    let unset = built(None, None).build().unwrap();
    assert_eq!((unset.max_tokens(), unset.temperature()), (None, None));
    assert_eq!(refused(built(None, Some(2.5))), "temperature must be from 0 to 2, not 2.5");
    assert_eq!(
        refused(built(None, None).top_p(f32::NAN)),
        "top_p must be above 0 and at most 1, not NaN"
    );
    assert_eq!(refused(built(None, None).max_turns(0)), "max_turns must be at least 1");
}

#[test]
fn precedence_is_option_quirks_provider() {
    let mut quirks = Quirks::default();
    quirks.think_tags = ThinkTags::StartsInThinking;
    quirks.repair = ArgumentRepair::On;
    let options = || AgentOptions::builder().model("any").provider(Provider::Vllm);
    let bare = options().build().unwrap();
    assert_eq!((bare.think_tags(), bare.lenient_tool_json()), (ThinkTags::Split, false));
    let said = options().quirks(quirks).build().unwrap();
    assert_eq!((said.think_tags(), said.lenient_tool_json()), (quirks.think_tags, true));
    assert_eq!(said.quirks(), quirks);
    let named = options().quirks(quirks).think_tags(ThinkTags::Off).lenient_tool_json(false);
    let named = named.build().unwrap();
    assert_eq!((named.think_tags(), named.lenient_tool_json()), (ThinkTags::Off, false));
    assert_eq!(named.quirks(), Quirks::default());
    let defaults = options().quirks(Quirks::default()).build().unwrap();
    assert_eq!(defaults.think_tags(), ThinkTags::Split);
}

#[test]
fn providers_parse_from_their_names() {
    for provider in Provider::ALL {
        assert_eq!(provider.to_string().parse::<Provider>().unwrap(), *provider);
        assert_eq!(provider.name().to_uppercase().parse::<Provider>().unwrap(), *provider);
    }
    // As `open-agent-sdk` spelled them, and as people write them.
    for (name, provider) in [
        ("lmstudio", Provider::LmStudio),
        ("lm-studio", Provider::LmStudio),
        ("lm_studio", Provider::LmStudio),
        ("llamacpp", Provider::LlamaCpp),
        ("llama-cpp", Provider::LlamaCpp),
        ("vllm", Provider::Vllm),
        ("text_generation_webui", Provider::TextGenerationWebui),
    ] {
        assert_eq!(name.parse::<Provider>().unwrap(), provider, "{name}");
    }
    assert!("".parse::<Provider>().is_err() && "-".parse::<Provider>().is_err());
    let error = "llama".parse::<Provider>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(
        error.to_string().starts_with("unknown provider \"llama\": use one of Azure OpenAI"),
        "{error}"
    );
}

/// The environment variable that marks a child process of this test, so that it does not spawn another.
const CHILD: &str = "OPEN_AGENT_TEST_CHILD";

/// Returns the resolved options in this process, one case per line.
fn come_to() -> String {
    let line = |options: &AgentOptions| {
        let server = MemoryServer::new(Script::new().otherwise(Reply::text("Hello.")));
        let mut client = Client::with_transport(options.clone(), server).expect("any options do");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let asked = runtime.expect("a runtime").block_on(client.ask("Go."));
        let usable = asked.map_or_else(|error| error.to_string(), |_| "usable".to_owned());
        format!("{:?} at {:?}: {usable}", options.model(), options.base_url())
    };
    let built = |builder: AgentOptionsBuilder| match builder.build() {
        Ok(options) => line(&options),
        Err(error) => format!("no options: {error}"),
    };
    let builder = AgentOptions::builder;
    [
        line(&AgentOptions::default()),
        built(builder()),
        built(builder().model("named")),
        built(builder().base_url("http://named:1/v1")),
        built(builder().provider(Provider::Ollama)),
    ]
    .join("\n")
}

/// Returns the output of [`come_to`] in a child process with these variables.
fn come_to_with(variables: &[(&str, &str)]) -> String {
    let mut child = Command::new(std::env::current_exe().expect("this process has a file"));
    let test = concat!(module_path!(), "::environment_fills_in_unset_options");
    let (_, test) = test.split_once("::").expect("a test is in a crate");
    child.args(["--exact", test, "--nocapture"]).env(CHILD, "1");
    child.env_remove("OPEN_AGENT_MODEL").env_remove("OPEN_AGENT_BASE_URL");
    let output = child.envs(variables.iter().copied()).output().expect("it can be started");
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = output.split_once("<told>").and_then(|(_, told)| told.split_once("</told>"));
    told.unwrap_or_else(|| panic!("{output}")).0.to_owned()
}

#[test]
fn environment_fills_in_unset_options() {
    if std::env::var_os(CHILD).is_some() {
        return println!("<told>{}</told>", come_to());
    }
    let (url, model) = ("OPEN_AGENT_BASE_URL", "OPEN_AGENT_MODEL");
    assert_snapshot!(come_to_with(&[]), @r#"
    "" at "http://localhost:1234/v1": no model: set one with .model() or OPEN_AGENT_MODEL
    no options: no model: set one with .model() or OPEN_AGENT_MODEL
    "named" at "http://localhost:1234/v1": usable
    no options: no model: set one with .model() or OPEN_AGENT_MODEL
    no options: no model: set one with .model() or OPEN_AGENT_MODEL
    "#);
    assert_snapshot!(come_to_with(&[(url, " http://env:1/v1/ "), (model, "env-model")]), @r#"
    "env-model" at "http://env:1/v1": usable
    "env-model" at "http://env:1/v1": usable
    "named" at "http://env:1/v1": usable
    "env-model" at "http://named:1/v1": usable
    "env-model" at "http://localhost:11434/v1": usable
    "#);
    assert_snapshot!(come_to_with(&[(url, "no address"), (model, "env-model")]), @r#"
    "" at "http://localhost:1234/v1": the base URL contains whitespace or control characters: "no address"
    no options: the base URL contains whitespace or control characters: "no address"
    no options: the base URL contains whitespace or control characters: "no address"
    "env-model" at "http://named:1/v1": usable
    "env-model" at "http://localhost:11434/v1": usable
    "#);
    assert_snapshot!(come_to_with(&[(model, "env\nmodel")]), @r#"
    "" at "http://localhost:1234/v1": the model name contains control characters
    no options: the model name contains control characters
    "named" at "http://localhost:1234/v1": usable
    no options: the model name contains control characters
    no options: the model name contains control characters
    "#);
}

#[test]
fn useless_rates_and_prices_are_rejected() {
    let options = || AgentOptions::builder().model("any").tool(echo()).auto_execute_tools(true);
    let executor = ExecutorOptions::new().rate(CallRate::per_minute(3));
    assert_snapshot!(refused(options().max_run_cost(0.5)), @"max_run_cost has no effect without a price");
    assert_snapshot!(refused(options().max_run_cost(0.5).price(0.0, 0.0)), @"max_run_cost has no effect without a price");
    assert_snapshot!(refused(options().max_run_cost(f64::NAN)), @"max_run_cost: a cost must be a finite number of 0 or more, not NaN");
    assert_snapshot!(refused(options().price(-1.0, 2.0)), @"a price per million tokens must be a finite number of 0 or more, not -1");
    assert_snapshot!(refused(options().executor(executor.clone()).max_tool_calls_per_minute(3)), @"max_tool_calls_per_minute has no effect when the executor has its own rate");
    let executor = options().executor(executor).build().unwrap();
    assert_eq!(executor.max_tool_calls_per_minute(), Some(3));
    let set = options().max_tool_calls_per_minute(4).price(0.5, 1.5).max_run_cost(2.0);
    let set = set.build().unwrap();
    assert_eq!(set.max_tool_calls_per_minute(), Some(4));
    assert_eq!(set.price(), Some(Price::per_million(0.5, 1.5).unwrap()));
    assert_eq!(set.max_run_cost(), Some(Cost::new(2.0).unwrap()));
    assert_snapshot!(refused(options().tool(tool("x", "").max_parallel(0).build(|_| async { Ok(json!(0)) }))), @"tool x: max_parallel must be at least 1");
}

#[test]
fn useless_context_policies_are_rejected() {
    let with = |policy| AgentOptions::builder().model("any").context(policy);
    let policy = || ContextPolicy::new(1_000);
    assert_snapshot!(refused(with(ContextPolicy::new(0))), @"the limit of a context must be at least 1 token");
    for part in [80.0, -0.1, f64::NAN, f64::INFINITY] {
        insta::allow_duplicates! {
            assert_snapshot!(refused(with(policy().with_trigger(part))), @"the trigger of a context must be from 0 to 1");
            assert_snapshot!(refused(with(policy().with_target(part))), @"the target of a context must be from 0 to 1");
        }
    }
    for part in [0.0, 1.0] {
        with(policy().with_trigger(part).with_target(part)).build().unwrap();
    }
}

#[test]
fn response_formats_are_objects() {
    for format in [json!(null), json!("json_object"), json!([])] {
        let options = AgentOptions::builder().model("any").response_format(format);
        assert_eq!(refused(options), "response_format must be a JSON object");
    }
}

#[test]
fn permissions_can_be_read() {
    let bare = AgentOptions::builder().model("any").build().unwrap();
    assert_eq!((bare.allowed_tools(), bare.disallowed_tools()), (None, Vec::new()));
    assert!(!bare.can_use_tool());
    let set = AgentOptions::builder().model("any").auto_execute_tools(true).tool(echo());
    let set = set.tool(adder()).allowed_tools(["echo", "a*"]).disallowed_tools(["add"]);
    let set = set.can_use_tool(|_| async { Permission::Allow }).build().unwrap();
    assert_eq!(set.allowed_tools(), Some(vec!["echo", "a*"]));
    assert_eq!((set.disallowed_tools(), set.can_use_tool()), (vec!["add"], true));
}

#[test]
fn tool_choice_accepts_words() {
    let options = |choice: &str| {
        AgentOptions::builder().model("any").tool(echo()).tool_choice(choice).build()
    };
    for (word, choice) in [
        ("auto", ToolChoice::Auto),
        ("none", ToolChoice::None),
        ("required", ToolChoice::Required),
        ("echo", ToolChoice::Tool("echo".to_owned())),
    ] {
        assert_eq!(options(word).unwrap().tool_choice(), Some(&choice));
    }
    let error = options("ecko").unwrap_err().to_string();
    assert_snapshot!(error, @r#"tool_choice names the tool "ecko", which does not exist"#);
}
