//! Failover in order: another server is tried when one cannot answer, but never after any output was delivered.

use std::time::Duration;

use oa_chat::TimeoutKind;
use oa_chat::{Endpoint, RetryConfig};
use oa_client::{AgentOptions, Client, ErrorKind};
use oa_router::{Router, Server};
use oa_testkit::{Cut, MemoryServer, Reply, Script};
use serde_json::json;
use tokio::time::Instant;
use tower::ServiceBuilder;

use crate::{
    ask, ask_meanwhile, client, client_with, counts, down, endpoint, over, saying, server, settle,
    slow,
};

/// Queries two servers, the first with this behavior; returns the result and the request counts.
async fn after(first: Reply) -> (Result<String, oa_client::Error>, [usize; 2]) {
    let (a, b) = (down(first), saying("B"));
    let router = over([&a, &b]).build().expect("it can work");
    let answer = ask(&router).await;
    (answer, counts([&a, &b]))
}

#[tokio::test(start_paused = true)]
async fn first_server_is_preferred() {
    let (a, b) = (saying("A"), saying("B"));
    let router = over([&a, &b]).build().unwrap();
    for _ in 0..10 {
        assert_eq!(ask(&router).await.unwrap(), "A");
    }
    assert_eq!(counts([&a, &b]), [10, 0]);
}

#[tokio::test(start_paused = true)]
async fn failover_at_every_stage_is_immediate() {
    let chunk = json!({ "choices": [{ "delta": { "role": "assistant" } }] });
    let role = format!("data: {chunk}\n\n");
    let reported = r#"data: {"error": {"message": "out of memory"}}"#;
    let stages = [
        ("no connection", Reply::reset()),
        ("before the head", Reply::hang_up()),
        ("not HTTP", Reply::raw("SSH-2.0")),
        ("after the head", Reply::text("Lost.").close_after(0)),
        ("in the first event", Reply::text("Lost.").close_after(9)),
        ("after the role", Reply::sse(format!("{role}data: ...")).close_after(role.len())),
        ("reset after the head", Reply::text("Lost.").reset_after(0)),
        ("an empty success", Reply::body(200, "text/event-stream", "")),
        ("an error in the stream", Reply::sse(format!("{reported}\n\n"))),
        ("an error without its blank line", Reply::sse(reported)),
        ("an error as a document", Reply::body(200, "application/json", &reported[6..])),
        ("a web page", Reply::body(200, "text/html", "<html>Welcome</html>")),
        (
            "an error in the stream, and a break",
            Reply::sse(format!("{reported}\n\nx")).close_after(50),
        ),
    ];
    for (stage, reply) in stages {
        let began = Instant::now();
        let (answer, asked) = after(reply).await;
        assert_eq!((answer.unwrap().as_str(), asked), ("B", [1, 1]), "{stage}");
        assert_eq!(began.elapsed(), Duration::ZERO, "{stage}");
    }
}

#[tokio::test(start_paused = true)]
async fn failover_depends_on_the_status() {
    for status in [301, 401, 402, 403, 404, 408, 409, 425, 429, 500, 501, 502, 503, 504, 529] {
        let (answer, asked) = after(Reply::error(status, "no")).await;
        assert_eq!((answer.unwrap().as_str(), asked), ("B", [1, 1]), "{status}");
    }
    let template = Reply::error(500, "this needs --jinja: requires --jinja");
    assert_eq!(after(template).await.0.unwrap(), "B");
    for status in [400, 405, 413, 415, 422] {
        let (answer, asked) = after(Reply::error(status, "bad")).await;
        let error = answer.unwrap_err();
        assert_eq!((error.status(), asked), (Some(status), [1, 0]), "{error}");
    }
    // A gateway that could not reach the server behind it (QUIRKS row 145).
    let (answer, asked) = after(Reply::error(400, "Failed to get response from provider")).await;
    assert_eq!((answer.unwrap().as_str(), asked), ("B", [1, 1]));
    let overflow = json!({"message": "too long", "code": "context_length_exceeded"});
    for status in [400, 413, 500] {
        let (answer, asked) = after(Reply::error(status, overflow.clone())).await;
        assert_eq!((answer.unwrap_err().kind(), asked), (ErrorKind::ContextOverflow, [1, 0]));
    }
}

/// Some servers say with 400 or 422 that they have no such model, or one that is not capable: another may have one.
#[tokio::test(start_paused = true)]
async fn failover_from_a_server_that_lacks_something() {
    let coded = |code: &str| json!({ "message": "no", "code": code });
    for error in [
        // Ollama, vLLM.
        json!("registry.ollama.ai/library/gemma3:4b does not support tools"),
        json!(
            r#""auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"#
        ),
        // LM Studio (lmstudio-ai/lmstudio-bug-tracker #908), Ollama (ollama/ollama #17301), vLLM
        // (vllm-project/vllm #23402), llama.cpp (ggml-org/llama.cpp #15377).
        json!("Model does not support images. Please use a model that does."),
        json!("this model does not support image input (ref: b8bd630e)"),
        json!("/models/qwen3-8b is not a multimodal model"),
        json!("image input is not supported - hint: you may need to provide the mmproj"),
        // LiteLLM (BerriAI/litellm #9663), OpenRouter (NousResearch/hermes-agent #40087).
        json!("/chat/completions: Invalid model name passed in model=qwen3. Call `/v1/models`"),
        json!("accounts/fireworks/models/deepseek-v4-pro is not a valid model ID"),
        // Copilot (openclaw/openclaw #64840).
        coded("model_not_supported"),
        coded("model_not_found"),
    ] {
        for status in [400, 422] {
            let (answer, asked) = after(Reply::error(status, error.clone())).await;
            assert_eq!((answer.unwrap().as_str(), asked), ("B", [1, 1]), "{status} {error}");
        }
    }
    for message in [
        "messages[2]: the image is not a valid PNG",
        "tools[0].function.name: too long",
        "temperature is not supported",
    ] {
        let (answer, asked) = after(Reply::error(400, message)).await;
        assert_eq!((answer.unwrap_err().status(), asked), (Some(400), [1, 0]), "{message}");
    }
}

/// A stream has status 200, so servers put the real one into the error, mostly beside a type.
#[tokio::test(start_paused = true)]
async fn failover_depends_on_a_reported_status() {
    let reported = |code: serde_json::Value, kind: Option<&str>| {
        let error = json!({ "error": { "message": "no", "type": kind, "code": code } });
        Reply::sse(format!("data: {error}\n\ndata: [DONE]\n\n"))
    };
    for kind in [None, Some("BadRequestError")] {
        for code in [json!(400), json!("422")] {
            let (answer, asked) = after(reported(code, kind)).await;
            let error = answer.unwrap_err();
            assert_eq!((error.kind(), error.status(), asked), (ErrorKind::Api, None, [1, 0]));
        }
        for code in
            [json!(401), json!(404), json!(500), json!("503"), json!("overloaded"), json!(null)]
        {
            let (answer, asked) = after(reported(code.clone(), kind)).await;
            assert_eq!((answer.unwrap().as_str(), asked), ("B", [1, 1]), "{code}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_failover_after_any_output() {
    let delta = |words: &str| {
        format!("data: {}\n\n", json!({ "choices": [{ "delta": { "content": words } }] }))
    };
    let body = delta("Half") + &delta(" of it");
    let thinking = json!({ "choices": [{ "delta": { "reasoning_content": "hm" } }] });
    let thinking = format!("data: {thinking}\n\n{body}");
    let error = r#"data: {"error": {"message": "out of memory"}}"#;
    for (reply, kind) in [
        (Reply::sse(body.clone()).close_after(body.len() - 5), ErrorKind::Stream),
        (Reply::sse(body.clone()).reset_after(body.len() - 5), ErrorKind::Stream),
        (Reply::sse(body.clone()).stall_after(body.len() - 5), ErrorKind::Timeout),
        (Reply::sse(thinking.clone()).close_after(thinking.len() - 5), ErrorKind::Stream),
        (Reply::sse(format!("{body}{error}\n\n")), ErrorKind::Api),
    ] {
        let (answer, asked) = after(reply).await;
        let error = answer.unwrap_err();
        assert_eq!((error.kind(), asked), (kind, [1, 0]), "{error}");
        assert!(!error.is_retryable());
    }
}

/// If words and the error arrive together, the words are not output: the answer of the other server is all of it.
#[tokio::test(start_paused = true)]
async fn failover_drops_what_was_only_parsed() {
    let half = json!({ "choices": [{ "delta": { "content": "Half" } }] });
    let error = r#"{"error": {"message": "out of memory"}}"#;
    let body = format!("data: {half}\n\ndata: {error}\n\ndata: [DONE]\n\n");
    let (a, b) = (down(Reply::sse(body).cut(Cut::Whole)), saying("B"));
    let mut client = client(&over([&a, &b]).build().unwrap());
    client.send("Go.").await.unwrap();
    let mut told = String::new();
    while let Some(block) = client.receive().await.unwrap() {
        told += block.as_text().unwrap_or_default();
    }
    assert_eq!((&*told, &*client.message().unwrap().text()), ("B", "B"));
    assert_eq!(counts([&a, &b]), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn silent_server_times_out_to_the_next() {
    let (a, b) = (down(Reply::silence()), saying("B"));
    let options = || AgentOptions::builder().model("any").first_token_timeout(30);
    let ask = async |options: oa_client::AgentOptionsBuilder| {
        let router = over([&a, &b]).build().unwrap();
        let options = options.retry(RetryConfig::none()).chat_service(router);
        let began = Instant::now();
        let answer = Client::new(options.build().unwrap()).unwrap().ask("Go.").await;
        (answer.map(|answer| answer.text), began.elapsed())
    };
    let (answer, time) = ask(options()).await;
    assert_eq!((answer.unwrap().as_str(), time.as_secs()), ("B", 30));
    // The total time limit belongs to the caller and covers both servers.
    let (answer, time) = ask(options().total_timeout(10)).await;
    assert_eq!((answer.unwrap_err().kind(), time.as_secs()), (ErrorKind::Timeout, 10));
    assert_eq!(counts([&a, &b]), [2, 1]);
    // The same if it expires at the second server.
    let (a, b) = (down(Reply::silence()), down(Reply::silence()));
    let router = over([&a, &b]).build().unwrap();
    let options = options().total_timeout(40).chat_service(router).build().unwrap();
    let began = Instant::now();
    let error = Client::new(options).unwrap().ask("Go.").await.unwrap_err();
    assert_eq!((error.timeout(), began.elapsed().as_secs()), (Some(TimeoutKind::Total), 40));
    assert_eq!(counts([&a, &b]), [1, 1]);
}

/// Also after an early break, when the request waits for the next server.
#[tokio::test(start_paused = true)]
async fn total_timeout_ends_a_late_failover() {
    for retry in [RetryConfig::none(), RetryConfig::new(1)] {
        let (a, b) = (down(Reply::text("Lost.").close_after(0)), slow(1_000_000, "B"));
        let router = over([&a, &b]).cap(1).build().unwrap();
        let _held = ask_meanwhile(&router);
        settle().await;
        let options = AgentOptions::builder().model("any").retry(retry).total_timeout(10);
        let options = options.chat_service(router).build().unwrap();
        let began = Instant::now();
        let error = Client::new(options).unwrap().ask("Go.").await.unwrap_err();
        assert_eq!((error.timeout(), began.elapsed().as_secs()), (Some(TimeoutKind::Total), 10));
    }
}

#[tokio::test(start_paused = true)]
async fn retries_wrap_the_whole_router() {
    let flaky = || server(Script::from(Reply::error(503, "busy")).otherwise(Reply::text("Done.")));
    let (a, b) = (flaky(), down(Reply::hang_up()));
    let router = over([&a, &b]).build().unwrap();
    let answer = client_with(&router, RetryConfig::new(1)).ask("Go.").await.unwrap();
    assert_eq!((answer.text.as_str(), counts([&a, &b])), ("Done.", [2, 1]));

    // The same if answers break after their heads: a, b, a pause, a.
    let lost = || Reply::text("Lost.").close_after(0);
    let a = server(Script::from(lost()).otherwise(Reply::text("Done.")));
    let b = down(lost());
    let router = over([&a, &b]).build().unwrap();
    let answer = client_with(&router, RetryConfig::new(1)).ask("Go.").await.unwrap();
    assert_eq!((answer.text.as_str(), counts([&a, &b])), ("Done.", [2, 1]));
    assert!(router.status().iter().all(|status| status.in_use == 0), "{router:?}");
}

#[tokio::test(start_paused = true)]
async fn failover_carries_the_whole_history() {
    let a = server(
        Script::from([Reply::text("One."), Reply::error(503, "down")])
            .otherwise(Reply::text("Three.")),
    );
    let b = saying("Two.");
    let router = over([&a, &b]).build().unwrap();
    let mut client = client(&router);
    for expected in ["One.", "Two.", "Three."] {
        assert_eq!(client.ask("And?").await.unwrap().text, expected);
    }
    assert_eq!((a.requests()[2].messages().len(), b.requests()[0].messages().len()), (5, 3));
}

#[tokio::test(start_paused = true)]
async fn routers_can_be_nested() {
    let (a, b, cloud) = (down(Reply::error(503, "no")), down(Reply::hang_up()), saying("Cloud"));
    let pool = over([&a, &b]).build().unwrap();
    let router = Router::builder()
        .endpoint(Server::service("pool", pool.clone()))
        .endpoint(endpoint(&cloud))
        .build()
        .unwrap();
    for _ in 0..5 {
        assert_eq!(ask(&router).await.unwrap(), "Cloud");
    }
    // The pool's own circuits opened after three failures, and then its own.
    assert_eq!(counts([&a, &b, &cloud]), [3, 3, 5]);
    assert_eq!(router.status()[0].failed, 3);
    let last = router.status()[0].last_failure.clone().unwrap();
    assert!(last.starts_with("no server answered (2 of 2 tried): a failed"), "{last}");
}

/// A failover inside of a server is not a failure of that server.
#[tokio::test(start_paused = true)]
async fn inner_failover_is_a_success_outside() {
    let (a, b, cloud) = (down(Reply::text("Lost.").close_after(0)), saying("B"), saying("Cloud"));
    let pool = over([&a, &b]).build().unwrap();
    let router = Router::builder()
        .endpoint(Server::service("pool", pool.clone()))
        .endpoint(endpoint(&cloud))
        .build()
        .unwrap();
    for _ in 0..5 {
        assert_eq!(ask(&router).await.unwrap(), "B");
    }
    assert_eq!(counts([&a, &b, &cloud]), [3, 5, 0]);
    let (inner, outer) = (pool.status(), router.status());
    assert_eq!((inner[0].failed, inner[1].answered), (3, 5));
    assert_eq!((outer[0].failed, outer[0].answered), (0, 5));
}

#[tokio::test(start_paused = true)]
async fn tower_layers_wrap_one_server() {
    let (a, b) = (down(Reply::silence()), saying("B"));
    let second = Duration::from_secs(1);
    let impatient = ServiceBuilder::new().timeout(second).service(endpoint(&a));
    let router = Router::builder()
        .endpoint(Server::service("impatient", impatient))
        .endpoint(endpoint(&b))
        .build()
        .unwrap();
    let began = Instant::now();
    assert_eq!(ask(&router).await.unwrap(), "B");
    assert_eq!((began.elapsed(), counts([&a, &b])), (second, [1, 1]));
}

#[tokio::test(start_paused = true)]
async fn each_server_gets_its_own_model_and_key() {
    let (a, b) = (down(Reply::error(503, "down")), saying("B"));
    let of = |server: &MemoryServer, model: &str, key: &str| {
        let endpoint = Endpoint::builder().base_url("http://gpu/v1").model(model).api_key(key);
        endpoint.transport(server.clone()).build().unwrap()
    };
    let router = Router::builder().endpoint(of(&a, "big", "one")).endpoint(of(&b, "small", "two"));
    ask(&router.build().unwrap()).await.unwrap();
    for (server, model, key) in [(&a, "big", "Bearer one"), (&b, "small", "Bearer two")] {
        let request = &server.requests()[0];
        assert_eq!(request.model(), Some(model));
        assert_eq!(request.headers()["authorization"], key);
    }
}
