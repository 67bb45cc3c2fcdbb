//! Servers that each lack something.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use insta::assert_snapshot;
use oa_chat::{Endpoint, Provider};
use oa_client::{AgentOptions, ErrorKind};
use oa_doctor::{Doctor, Finding, Probe, Verdict, doctor};
use oa_testkit::{MemoryServer, Reply, Script};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::{MODEL, but, has_tools, healthy, is_plain, only, options, report, server, verdict};

/// Flawless except for this.
#[track_caller]
pub(crate) fn others_are_ok(findings: &[Finding], probes: &[Probe]) {
    for finding in findings {
        let is_meant = probes.contains(&finding.probe);
        assert_eq!(finding.verdict != Verdict::Ok, is_meant, "{finding}");
    }
}

pub(crate) const ABOUT_TOOLS: [Probe; 4] =
    [Probe::ForcedCalls, Probe::AutoCalls, Probe::ParallelCalls, Probe::ToolResults];

#[tokio::test(start_paused = true)]
async fn rejected_tools_fail_with_advice() {
    let why = "registry.ollama.ai/library/gemma does not support tools";
    let report =
        report(but(move |request| has_tools(request).then(|| Reply::error(400, why)))).await;
    others_are_ok(&report.findings, &ABOUT_TOOLS);
    assert_eq!(report.profile.tools, Some(false));
    assert_snapshot!(report.finding(Probe::AutoCalls).unwrap(), @r#"
    auto calls      fail     the server answered 400 Bad Request: registry.ollama.ai/library/gemma does
                             not support tools
                             -> use a model with the capability "tools", as listed by ollama show MODEL
    "#);
}

#[tokio::test(start_paused = true)]
async fn missing_server_flags_are_named() {
    for (header, why, flag) in [
        ("llama.cpp", "tools param requires --jinja flag", "--jinja"),
        ("", "\"auto\" tool choice requires --enable-auto-tool-choice", "--tool-call-parser NAME"),
    ] {
        let owner = if header.is_empty() { "vllm" } else { "me" };
        let models =
            json!({ "data": [{ "id": MODEL, "owned_by": owner, "max_model_len": 32768 }] });
        let models = Reply::json(200, models).header("server", header);
        let script = Script::new().get("/v1/models", models).otherwise(Reply::by(move |request| {
            if has_tools(request) { Reply::error(500, why) } else { healthy(request) }
        }));
        let report = report(script).await;
        let finding = report.finding(Probe::AutoCalls).unwrap();
        assert_eq!(finding.verdict, Verdict::Fail);
        assert!(finding.seen.contains(why), "{finding}");
        assert!(finding.advice.as_deref().unwrap().contains(flag), "{finding}");
    }
}

#[tokio::test(start_paused = true)]
async fn models_that_never_call_are_reported() {
    let report =
        report(but(|request| has_tools(request).then(|| Reply::text("Sunny, I guess.")))).await;
    others_are_ok(&report.findings, &ABOUT_TOOLS[..3]);
    assert_eq!(verdict(&report, Probe::ForcedCalls), Verdict::Warn);
    // The server accepts them, so options with tools are valid.
    assert_eq!((report.profile.tools, report.profile.forced_calls), (None, Some(false)));
}

#[tokio::test(start_paused = true)]
async fn calls_left_in_text_fail() {
    let text = "Sure.\n<tool_call>\n{\"name\": \"get_weather\"}\n</tool_call>";
    let finding =
        only(Probe::AutoCalls, but(move |request| has_tools(request).then(|| Reply::text(text))))
            .await;
    assert_snapshot!(finding, @r#"
    auto calls      fail     the call is in the text: <tool_call> {"name": "get_weather"} </tool_call>
                             -> use a model trained for tools, and start the server with its tool call
                                parser (llama.cpp: --jinja, vLLM: --enable-auto-tool-choice
                                --tool-call-parser NAME), or read such calls with .recognize_calls(true)
    "#);
}

#[tokio::test(start_paused = true)]
async fn broken_calls_fail() {
    for (reply, expected) in [
        (Reply::new().call("get_weather", "{\"city\": "), "a broken call"),
        (
            Reply::new().call("get_weather", json!({ "town": "Paris" })),
            "does not match the tool: `city`",
        ),
        (Reply::new().call("weather", json!({})), "it calls \"weather\""),
    ] {
        let script = but(move |request| has_tools(request).then(|| reply.clone()));
        let finding = only(Probe::AutoCalls, script).await;
        assert_eq!(finding.verdict, Verdict::Fail, "{finding}");
        assert!(finding.seen.contains(expected), "{finding}");
    }
    let cut = Reply::new().call("get_weather", "{\"city\": ").finish("length");
    let script = but(move |request| has_tools(request).then(|| cut.clone()));
    assert_eq!(only(Probe::AutoCalls, script).await.verdict, Verdict::Unknown);
}

#[tokio::test(start_paused = true)]
async fn odd_call_fragments_are_described() {
    let call = json!({"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}});
    let chunk = json!({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "stop"}]});
    let sse = format!("data: {chunk}\n\ndata: [DONE]\n\n");
    let script = but(move |request| has_tools(request).then(|| Reply::sse(sse.clone())));
    assert_snapshot!(only(Probe::ForcedCalls, script).await, @r#"
    forced calls    ok       get_weather({"city":"Oslo"}), in 1 fragment, without ids, without indices,
                             with arguments that are not strings, finish reason stop
    "#);
}

#[tokio::test(start_paused = true)]
async fn missing_usage_is_a_warning() {
    let report = report(but(|request| {
        is_plain(request).then(|| Reply::text("one, two, three, four").without_usage())
    }))
    .await;
    others_are_ok(&report.findings, &[Probe::Usage]);
    assert_eq!(report.profile.ask_for_usage, Some(true), "asking does no harm");
    assert_snapshot!(report.finding(Probe::Usage).unwrap(), @r"
    usage           warn     not reported
                             -> rely on estimates: token budgets cannot work without reported usage
    ");
}

#[tokio::test(start_paused = true)]
async fn rejected_stream_options_are_learned() {
    let report = report(but(|request| {
        let is_asked = !request.json()["stream_options"].is_null();
        let why = "Unrecognized request argument: stream_options";
        is_asked.then(|| Reply::error(400, why))
    }))
    .await;
    others_are_ok(&report.findings, &[Probe::Usage]);
    assert_eq!(report.profile.ask_for_usage, Some(false));
    assert_snapshot!(report.finding(Probe::Usage).unwrap(), @"
    usage           warn     cannot be requested: the server answered 400 Bad Request: Unrecognized
                             request argument: stream_options
                             -> rely on estimates: token budgets cannot work without reported usage
    ");
}

#[tokio::test(start_paused = true)]
async fn ignored_response_format_fails() {
    let report = report(but(|request| {
        let has_format = !request.json()["response_format"].is_null();
        has_format.then(|| Reply::text("Paris is a lovely city."))
    }))
    .await;
    others_are_ok(&report.findings, &[Probe::Schema]);
    assert_eq!(report.profile.schema, Some(false));
    assert_snapshot!(report.finding(Probe::Schema).unwrap(), @"
    schema          fail     ignored: Paris is a lovely city.
                             -> update Ollama: schemas need version 0.5 or later
    ");
}

#[tokio::test(start_paused = true)]
async fn json_that_does_not_match_fails() {
    for (text, expected) in [
        (r#"{"city": "Paris"}"#, "not matching the schema"),
        ("```json\n{}\n```", "fence"),
        (r#"{"city": "Paris", "millions": "two"}"#, "`millions`"),
        ("[]", "not matching the schema"),
    ] {
        let finding = only(Probe::Schema, server(move |_| Reply::text(text))).await;
        assert_eq!(finding.verdict, Verdict::Fail, "{finding}");
        assert!(finding.seen.contains(expected), "{finding}");
    }
    for thought in ["<think>A city.</think>", "<|channel|>analysis<|message|>A city.<|end|>"] {
        let text = format!("{thought}{{\"city\": \"Paris\", \"millions\": 2}}");
        let finding = only(Probe::Schema, server(move |_| Reply::text(&*text))).await;
        assert_eq!(finding.verdict, Verdict::Ok, "{finding}");
    }
}

#[tokio::test(start_paused = true)]
async fn buffered_streams_are_a_warning() {
    let held_back = |request: &oa_testkit::Request| {
        let wait = Duration::from_secs(3);
        is_plain(request).then(|| healthy(request).delay(Duration::ZERO).delay_first(wait))
    };
    let report = report(but(held_back)).await;
    others_are_ok(&report.findings, &[Probe::Streaming]);
    assert_snapshot!(report.finding(Probe::Streaming).unwrap(), @r"
    streaming       warn     12 deltas, all at once after 3.0 s
                             -> something buffers the stream: in a proxy such as nginx, set
                                proxy_buffering off
    ");
    assert_snapshot!(report.finding(Probe::Idle).unwrap(), @"idle            ok       silence for 3.0 s before the first token");
    assert_snapshot!(report.finding(Probe::Speed).unwrap(), @"speed           ok       first token after 3.0 s; the others came at once");
}

#[tokio::test(start_paused = true)]
async fn model_loading_is_not_buffering() {
    let loaded = AtomicBool::new(false);
    let finding = only(
        Probe::Streaming,
        server(move |request| {
            let is_first = !loaded.swap(true, Ordering::Relaxed);
            let wait = if is_first { Duration::from_secs(30) } else { Duration::ZERO };
            healthy(request).delay(Duration::from_millis(2)).delay_first(wait)
        }),
    )
    .await;
    assert_eq!(finding.verdict, Verdict::Ok, "{finding}");
}

#[tokio::test(start_paused = true)]
async fn think_tags_are_learned() {
    for (text, expected) in [
        ("<think>Easy.</think>one, two, three", "split"),
        ("Easy.</think>one, two, three", "starts_in_thinking"),
        (" [THINK]Easy.[/THINK]one, two, three", "split"),
    ] {
        let report = report(but(move |request| is_plain(request).then(|| Reply::text(text)))).await;
        others_are_ok(&report.findings, &[Probe::Thinking]);
        assert_eq!(serde_json::to_value(&report.profile).unwrap()["think_tags"], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn thinking_field_is_named() {
    let finding =
        only(Probe::Thinking, server(|_| Reply::new().think("Easy.").say("one, two"))).await;
    assert_snapshot!(finding, @"thinking        ok       apart from the text, in `reasoning_content`");
}

#[tokio::test(start_paused = true)]
async fn silence_warns_unless_comments_arrive() {
    let words = |wait| Reply::text("one, two").delay_first(Duration::from_secs(wait));
    let silent = only(Probe::Idle, server(move |_| words(42))).await;
    assert_snapshot!(silent, @r"
    idle            warn     silence for 42.0 s before the first token
                             -> keep .first_token_timeout(..) well above it; proxies may give up,
                                because no comments arrive
    ");
    let chunk = json!({ "choices": [{ "delta": { "content": "one" } }] });
    let kept_alive = format!(": ping\n\n: ping\n\ndata: {chunk}\n\ndata: [DONE]\n\n");
    let script = server(move |_| {
        Reply::sse(kept_alive.clone()).cut(oa_testkit::Cut::Every(10)).delay(Duration::from_secs(1))
    });
    assert_snapshot!(only(Probe::Idle, script).await, @"idle            ok       2 comments before the first token, the first after 1.0 s");
}

#[tokio::test(start_paused = true)]
async fn token_limit_under_either_name() {
    let long = || Reply::text("number ".repeat(2000)).usage(30, 2000);
    let deaf = only(Probe::TokenLimit, server(move |_| long())).await;
    assert_snapshot!(deaf, @"
    token limit     fail     `max_tokens` is ignored, and `max_completion_tokens` is ignored
                             -> do not rely on .max_tokens(..): limit answers with .total_timeout(..)
    ");
    let newer = report(but(move |request| {
        let why = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
        if !request.json()["max_tokens"].is_null() {
            return Some(Reply::error(400, why));
        }
        let is_short = request.json()["max_completion_tokens"] == 16;
        is_short.then(|| Reply::text("one, two").finish("length").usage(30, 16))
    }))
    .await;
    assert_eq!(newer.verdict(), Verdict::Ok, "{newer}");
    let profile = serde_json::to_value(&newer.profile).unwrap();
    assert_eq!(profile["token_limit"], "max_completion_tokens");
}

#[tokio::test(start_paused = true)]
async fn token_limit_may_be_hidden_under_other_name() {
    let script = server(|request| match request.json()["max_completion_tokens"] == 16 {
        true => Reply::text("one, two").usage(30, 16),
        false => Reply::text("number ".repeat(2000)).usage(30, 2000),
    });
    let doctor = Doctor::new(&options(script)).expect("there is a model");
    let report = doctor.only([Probe::TokenLimit]).examine().await;
    assert_snapshot!(report.findings[0], @"
    token limit     warn     `max_tokens` is ignored, but `max_completion_tokens` works, although the
                             server does not report the cut
                             -> load the profile, which says so, or set the provider
    ");
    let profile = serde_json::to_value(&report.profile).unwrap();
    assert_eq!(profile["token_limit"], "max_completion_tokens");
}

#[tokio::test(start_paused = true)]
async fn dropped_token_limit_probe_starts_again() {
    let script = server(|request| match request.json()["max_completion_tokens"] == 16 {
        true => {
            Reply::text("one, two").finish("length").usage(30, 16).delay(Duration::from_secs(9))
        }
        false => Reply::text("number ".repeat(2000)).usage(30, 2000),
    });
    let doctor = Doctor::new(&options(script)).expect("there is a model");
    let mut doctor = doctor.only([Probe::TokenLimit]);
    let dropped = timeout(Duration::from_secs(5), doctor.next_finding()).await;
    assert!(dropped.is_err(), "it waits for the other name");
    let finding = doctor.next_finding().await.expect("it is the first");
    assert_snapshot!(finding, @"
    token limit     warn     `max_tokens` is ignored, but `max_completion_tokens` works
                             -> load the profile, which says so, or set the provider
    ");
}

#[tokio::test(start_paused = true)]
async fn endless_answers_are_abandoned() {
    let chunk = |number| json!({ "choices": [{ "delta": { "content": format!("{number} ") } }] });
    let endless: String =
        (0..50_000).map(|number| format!("data: {}\n\n", chunk(number))).collect();
    let begun = Instant::now();
    let report = report(server(move |_| Reply::sse(endless.clone()))).await;
    assert_eq!(verdict(&report, Probe::TokenLimit), Verdict::Fail);
    assert_eq!(begun.elapsed(), Duration::ZERO, "nothing was waited for");
}

#[tokio::test(start_paused = true)]
async fn hanging_servers_take_bounded_time() {
    let begun = Instant::now();
    let report = report(server(|_| Reply::silence())).await;
    assert!(begun.elapsed() <= Duration::from_secs(600), "{:?}", begun.elapsed());
    let asked = [Probe::Reach, Probe::Models, Probe::Context];
    for finding in &report.findings {
        let expected = if asked.contains(&finding.probe) { Verdict::Ok } else { Verdict::Unknown };
        assert_eq!(finding.verdict, expected, "{finding}");
    }

    let begun = Instant::now();
    let options = options(server(|_| Reply::silence()));
    let doctor = Doctor::new(&options).unwrap().time_limit(Duration::from_secs(5));
    let report = doctor.total_time_limit(Duration::from_secs(12)).examine().await;
    assert_eq!(begun.elapsed(), Duration::from_secs(12));
    assert_eq!(report.findings.len(), Probe::ALL.len());
    assert_snapshot!(report.finding(Probe::Streaming).unwrap(), @r"
    streaming       unknown  the answer did not end within 5s; 0 bytes arrived
                             -> allow more time with Doctor::time_limit (oa doctor: --time-limit): the
                                model may be loading, or slow
    ");
    assert_snapshot!(report.finding(Probe::Schema).unwrap(), @"schema          unknown  skipped: no time left");
}

#[tokio::test(start_paused = true)]
async fn unreachable_server_skips_the_rest() {
    let options = AgentOptions::builder().model(MODEL).base_url("http://127.0.0.1:9/v1");
    let report = doctor(&options.build().unwrap()).await.unwrap();
    assert_eq!(verdict(&report, Probe::Reach), Verdict::Fail);
    let others = report.findings.iter().skip(1);
    assert!(others.clone().all(|finding| finding.verdict == Verdict::Unknown), "{report}");
    assert!(others.into_iter().all(|finding| finding.seen.contains("no connection")), "{report}");
}

#[tokio::test(start_paused = true)]
async fn garbage_never_panics_or_passes() {
    let garbage: Vec<u8> = (0..=255).cycle().take(5000).collect();
    let html = "<html><h1>It works!</h1></html>";
    for reply in [
        Reply::sse(garbage.clone()),
        Reply::body(200, "text/html", html),
        Reply::json(200, json!([{ "choices": 7, "usage": [], "error": null }])),
        Reply::raw("SSH-2.0-OpenSSH_9.6\r\n"),
        Reply::hang_up(),
        Reply::reset(),
        Reply::sse("data: {\"choices\":[{\"delta\":{\"tool_calls\":{}}}]}\n\n"),
        Reply::body(503, "text/html", html),
        Reply::body(302, "text/html", "").header("location", "/login"),
    ] {
        for has_models in [true, false] {
            let script = Script::new().otherwise(reply.clone());
            let script = if has_models { script } else { script.get("/v1/models", reply.clone()) };
            let report = report(script).await;
            assert_eq!(report.findings.len(), Probe::ALL.len());
            assert!(report.verdict() >= Verdict::Warn, "{report}");
            let usable = [Probe::ForcedCalls, Probe::AutoCalls, Probe::Schema, Probe::ToolResults];
            for probe in usable {
                assert_ne!(verdict(&report, probe), Verdict::Ok, "{reply:?}: {report}");
            }
            assert_ne!(report.profile.tools, Some(true));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unlisted_model_is_a_warning() {
    let names = ["a", "b", "c", "d", "e", "f", "\u{1b}[31mred"];
    let script = Script::new().models(names).otherwise(Reply::error(404, "model not found"));
    assert_snapshot!(only(Probe::Models, script).await, @r"
    models          warn     qwen3:8b is not on the list: a, b, c, d, e and 2 more
                             -> set a model from the list with .model(..) or OPEN_AGENT_MODEL, or load
                                this one
    ");
    // While it is the latest, its name may say so.
    let latest = Script::new().models(["qwen3:8b:latest"]);
    assert_eq!(only(Probe::Models, latest).await.verdict, Verdict::Ok);
}

#[tokio::test(start_paused = true)]
async fn missing_key_is_advised() {
    let refuses = || Reply::error(401, "Invalid API Key");
    let script = Script::new().get("/v1/models", refuses()).otherwise(refuses());
    let report = report(script).await;
    for probe in [Probe::Reach, Probe::Streaming, Probe::AutoCalls] {
        let finding = report.finding(probe).unwrap();
        assert_eq!(finding.verdict, Verdict::Fail, "{finding}");
        assert!(finding.advice.as_deref().unwrap().contains("api_key"), "{finding}");
    }
    assert_eq!(report.profile.tools, None);
}

#[tokio::test(start_paused = true)]
async fn small_context_is_a_warning() {
    let props =
        json!({ "default_generation_settings": { "n_ctx": 4096 }, "build_info": "b6100-abc" });
    let script = Script::new()
        .models([MODEL])
        .get("/props", Reply::json(200, props))
        .otherwise(Reply::by(healthy));
    let report = report(script).await;
    assert_eq!(report.provider, Some(Provider::LlamaCpp));
    assert_eq!(report.version.as_deref(), Some("b6100-abc"));
    assert_eq!(report.profile.context_tokens, Some(4096));
    assert_snapshot!(report.finding(Probe::Reach).unwrap(), @"reach           ok       answers after 0 ms; recognized as llama.cpp by /props");
    assert_snapshot!(report.finding(Probe::Context).unwrap(), @"
    context         warn     4096 tokens: little for tools and their results
                             -> start llama-server with -c 16384 or more; its slots (-np) may share that
    ");
}

/// Ollama and LM Studio tell the size of a context only while its model is loaded.
#[tokio::test(start_paused = true)]
async fn context_is_known_once_the_model_is_loaded() {
    let is_loaded = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_loaded);
    let running = Reply::by(move |_| {
        let loaded = json!([{ "name": MODEL, "context_length": 4096 }]);
        let models = if seen.load(Ordering::Relaxed) { loaded } else { json!([]) };
        Reply::json(200, json!({ "models": models }))
    });
    let script = Script::new()
        .models([MODEL])
        .get("/api/version", Reply::json(200, json!({ "version": "0.11.4" })))
        .get("/api/ps", running)
        .otherwise(Reply::by(move |request| {
            is_loaded.store(true, Ordering::Relaxed);
            healthy(request)
        }));
    let report = report(script).await;
    assert_eq!(report.profile.context_tokens, Some(4096));
    others_are_ok(&report.findings, &[Probe::Context]);
    assert_snapshot!(report.finding(Probe::Context).unwrap(), @"
    context         warn     4096 tokens: little for tools and their results
                             -> start it with OLLAMA_CONTEXT_LENGTH=16384 ollama serve: longer prompts
                                are cut silently
    ");
}

#[tokio::test(start_paused = true)]
async fn wrong_provider_is_a_warning() {
    let server = MemoryServer::new(server(healthy));
    let options = AgentOptions::builder()
        .model(MODEL)
        .provider(Provider::Vllm)
        .transport(server)
        .build()
        .unwrap();
    let report = doctor(&options).await.unwrap();
    assert_snapshot!(report.finding(Probe::Reach).unwrap(), @"
    reach           warn     answers after 0 ms; recognized as Ollama by the owner of its models, but
                             vLLM was configured
                             -> set the right one with .provider(..), unless a gateway is in between
    ");
    assert_eq!(report.profile.provider, Some(Provider::Vllm), "what the user says counts");
}

#[tokio::test(start_paused = true)]
async fn errors_without_message_are_a_warning() {
    let silent = || server(|_| Reply::body(400, "text/plain", ""));
    assert_snapshot!(only(Probe::BadRequest, silent()).await, @"
    bad request     warn     400, without a message
                             -> check the server's log when something fails
    ");
    assert_snapshot!(only(Probe::UnknownModel, silent()).await, @"
    unknown model   warn     400, without a message
                             -> check the server's log when something fails
    ");
    let blames_itself = server(|_| Reply::error(500, "list index out of range"));
    assert_snapshot!(only(Probe::BadRequest, blames_itself).await, @"
    bad request     warn     500: list index out of range
                             -> client errors are reported as server errors, so they may be retried
    ");
    let takes_all = || server(|_| Reply::text("Hello"));
    assert_eq!(only(Probe::BadRequest, takes_all()).await.verdict, Verdict::Warn);
    assert_eq!(only(Probe::UnknownModel, takes_all()).await.verdict, Verdict::Ok);
}

#[tokio::test(start_paused = true)]
async fn errors_for_any_request_say_nothing_about_one() {
    for (status, verdict) in [(401, Verdict::Unknown), (500, Verdict::Unknown), (404, Verdict::Ok)]
    {
        let report = report(server(move |_| Reply::error(status, "no"))).await;
        for probe in [Probe::UnknownModel, Probe::BadRequest] {
            assert_eq!(crate::verdict(&report, probe), verdict, "{status}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_probe_closes_and_can_be_repeated() {
    let memory = MemoryServer::new(server(|_| Reply::silence()));
    let options = AgentOptions::builder().model(MODEL).transport(memory.clone()).build().unwrap();
    let mut doctor = Doctor::new(&options).unwrap().only([Probe::Streaming, Probe::Schema]);
    let pending = timeout(Duration::from_secs(1), doctor.next_finding()).await;
    assert!(pending.is_err(), "it waits");
    memory.wait_for_abort(Duration::from_secs(1)).await;
    // The same probe is repeated.
    assert_eq!(doctor.next_finding().await.map(|finding| finding.probe), Some(Probe::Streaming));
}

#[tokio::test]
async fn chat_services_cannot_be_examined() {
    let endpoint = Endpoint::builder().base_url("http://localhost/v1").build().unwrap();
    let options = AgentOptions::builder().model(MODEL).chat_service(endpoint).build().unwrap();
    let error = doctor(&options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("cannot be examined"), "{error}");
}

#[tokio::test]
async fn options_without_model_are_an_error() {
    let options = AgentOptions::default();
    if options.model().is_empty() {
        let error = doctor(&options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
    }
}

/// Without TLS, which `cargo xtask features` tests, the error says what to do. With it, nothing listens there.
#[tokio::test]
async fn https_without_tls_is_not_a_stopped_server() {
    let options =
        AgentOptions::builder().base_url("https://127.0.0.1:1/v1").model(MODEL).build().unwrap();
    let report = doctor(&options).await.unwrap();
    let reach = report.finding(Probe::Reach).unwrap();
    assert_eq!(reach.verdict, Verdict::Fail);
    let needs_tls = reach.seen.contains("enable the feature `tls` to use https");
    assert_eq!(reach.advice.is_none(), needs_tls, "{reach}");
    for finding in report.findings.iter().filter(|finding| finding.probe != Probe::Reach) {
        assert_eq!(finding.seen, "skipped: no connection", "{finding}");
    }
}
