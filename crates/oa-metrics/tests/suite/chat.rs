//! Requests: however they end, each is recorded once.

use std::time::Duration;

use oa_chat::{AnswerDelta, AnswerStream, AnyChat, ChatRequest, Error, Retry, RetryConfig};
use oa_client::AgentOptions;
use oa_types::Message;
use tower::{Layer, Service, ServiceBuilder, service_fn};

use super::*;

const DURATION: &str = "gen_ai.client.operation.duration";
const FIRST_CHUNK: &str = "gen_ai.client.operation.time_to_first_chunk";
const TOKENS: &str = "gen_ai.client.token.usage";
const PER_TOKEN: &str = "open_agent.client.operation.time_per_output_token";

/// Pieces that come a second apart, after a head of two seconds. The first one has a role and no text.
fn slow(reply: Reply) -> Reply {
    reply
        .delay(Duration::from_secs(1))
        .delay_first(Duration::ZERO)
        .delay_head(Duration::from_secs(2))
}

#[tokio::test(start_paused = true)]
async fn complete_answer_records_all_metrics() {
    let lab = Lab::new();
    let server = server(slow(answer("Because of Rayleigh scattering.")));
    client(options(&lab, &server)).ask("Why is the sky blue?").await.unwrap();

    check(
        &lab,
        TOKENS,
        &[
            "{..,gen_ai.response.model=qwen3:8b,gen_ai.token.type=input} 1 x, 9",
            "{..,gen_ai.response.model=qwen3:8b,gen_ai.token.type=output} 1 x, 5",
        ],
    );
    check(&lab, FIRST_CHUNK, &["{..,gen_ai.response.model=qwen3:8b} 1 x, 3"]);
    check(&lab, DURATION, &["{..,gen_ai.response.model=qwen3:8b} 1 x, 9"]);
    check(&lab, PER_TOKEN, &["{..,gen_ai.response.model=qwen3:8b} 1 x, 1.5"]);
}

/// A retry is a request of its own, and the failed one has its error.
#[tokio::test(start_paused = true)]
async fn each_retry_is_a_request() {
    let lab = Lab::new();
    let server =
        server(Script::new().reply(Reply::error(503, "Loading model")).reply(answer("Yes.")));
    let retry = RetryConfig::default();
    client(options(&lab, &server).retry(retry)).ask("Is it?").await.unwrap();
    let lines = lab.lines();
    let durations: Vec<_> = lines.iter().filter(|line| line.starts_with(DURATION)).collect();
    assert_eq!(durations.len(), 2, "{lines:#?}");
    assert!(
        durations[0].contains("{error.type=api,") && durations[0].contains("} 1 x"),
        "{lines:#?}"
    );
    // A server that failed has not answered, by whatever name.
    assert!(!durations[0].contains("gen_ai.response.model"), "{lines:#?}");
    assert!(!durations[1].contains("error.type") && durations[1].contains("} 1 x"), "{lines:#?}");
}

/// Around a service that retries, all attempts are one request.
#[tokio::test(start_paused = true)]
async fn hidden_retries_are_one_request() {
    let lab = Lab::new();
    let server = server(Script::new().reply(answer("No.").close_after(0)).reply(answer("Yes.")));
    let retry = Retry::new(AnyChat::new(endpoint(&server)), RetryConfig::default());
    let mut service = lab.metrics.layer(retry);
    let request = ChatRequest::new("qwen3:8b", vec![Message::user("Is it?")]);
    assert_eq!(service.call(request).await.unwrap().message().await.unwrap().text(), "Yes.");
    assert_eq!(server.requests().len(), 2);
    let lines = lab.lines();
    let durations: Vec<_> = lines.iter().filter(|line| line.starts_with(DURATION)).collect();
    let [line] = durations[..] else { panic!("{lines:#?}") };
    assert!(!line.contains("error.type") && line.contains("} 1 x"), "{line}");
    assert!(lines.iter().any(|line| line.starts_with(FIRST_CHUNK)), "{lines:#?}");
}

/// An answer that breaks in the middle has the time of its first part, and none of its tokens are guessed.
#[tokio::test(start_paused = true)]
async fn broken_answers_record_no_tokens() {
    let lab = Lab::new();
    let server = server(slow(answer("Because of Rayleigh scattering.")).reset_after(400));
    client(options(&lab, &server)).ask("Why?").await.unwrap_err();
    check(&lab, DURATION, &["{error.type=stream,..,gen_ai.response.model=qwen3:8b} 1 x, 4"]);
    check(&lab, FIRST_CHUNK, &["{..,gen_ai.response.model=qwen3:8b} 1 x, 3"]);
    check(&lab, TOKENS, &[]);
    check(&lab, PER_TOKEN, &[]);
}

/// An interrupt is recorded before the answer and in it.
#[tokio::test(start_paused = true)]
async fn interrupts_are_recorded_as_errors() {
    for (after, first) in [(1, None), (3, Some("{..,gen_ai.response.model=qwen3:8b} 1 x, 3"))] {
        let lab = Lab::new();
        let server = server(slow(answer("Because of Rayleigh scattering.")));
        let mut client = client(options(&lab, &server));
        let within = Duration::from_millis(after * 1_000 + 500);
        tokio::time::timeout(within, client.ask("Why?")).await.unwrap_err();
        drop(client);
        let seconds = within.as_secs_f64();
        let model = first.map_or("", |_| ",gen_ai.response.model=qwen3:8b");
        check(&lab, DURATION, &[&format!("{{error.type=interrupted,..{model}}} 1 x, {seconds}")]);
        check(&lab, FIRST_CHUNK, first.as_slice());
    }
}

/// A server that reports no usage has none recorded.
#[tokio::test(start_paused = true)]
async fn missing_usage_records_no_tokens() {
    let lab = Lab::new();
    let server = server(Reply::text("Yes.").without_usage());
    client(options(&lab, &server)).ask("Is it?").await.unwrap();
    check(&lab, TOKENS, &[]);
    assert_eq!(lab.lines().iter().filter(|line| line.starts_with(DURATION)).count(), 1);
}

/// The layer goes around any chat service, and knows its errors in a box as well.
#[tokio::test(start_paused = true)]
async fn layer_wraps_any_chat_service() {
    let lab = Lab::new();
    let model = service_fn(|request: ChatRequest| async move {
        match request.messages().last().map(Message::text).unwrap_or_default().as_str() {
            "slow" => tokio::time::sleep(Duration::from_secs(60)).await,
            "fail" => return Err(Error::unavailable("all are busy", None)),
            _ => {}
        }
        let deltas = [Ok::<_, Error>(AnswerDelta::text("Polly"))];
        Ok(AnswerStream::from_deltas(futures(deltas)))
    });
    let limited = ServiceBuilder::new().timeout(Duration::from_secs(5)).service(model);
    let mut service = lab.metrics.layer(limited).provider("parrot");
    for prompt in ["hello", "fail", "slow"] {
        let request = ChatRequest::new("parrot-1", vec![Message::user(prompt)]);
        match service.call(request).await {
            Ok(answer) => assert_eq!(answer.message().await.unwrap().text(), "Polly"),
            Err(_) => assert_ne!(prompt, "hello"),
        }
    }
    let same =
        "gen_ai.operation.name=chat,gen_ai.provider.name=parrot,gen_ai.request.model=parrot-1";
    let lines = lab.lines();
    let durations: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix(DURATION)).collect();
    assert_eq!(
        durations,
        [
            format!("{{error.type=_OTHER,{same}}} 1 x, 5"),
            format!("{{error.type=unavailable,{same}}} 1 x, 0"),
            format!("{{{same}}} 1 x, 0"),
        ]
    );

    // An agent takes it too.
    let options = AgentOptions::builder().model("parrot-1").chat_service(service);
    assert_eq!(client(options).ask("hello").await.unwrap().text, "Polly");
}

fn futures<T: Send + 'static, const N: usize>(
    items: [T; N],
) -> impl futures_core::Stream<Item = T> + Send {
    futures_util::stream::iter(items)
}

/// Nothing that was said is exported, nor a key that the server repeats.
#[tokio::test(start_paused = true)]
async fn text_and_keys_are_not_exported() {
    let lab = Lab::new();
    let server = server(named(&format!("echo {KEY}"), "The answer-word."));
    client(options(&lab, &server).system_prompt("The system-word."))
        .ask("The prompt-word.")
        .await
        .unwrap();
    let exported = lab.exported();
    for hidden in [KEY, "answer-word", "system-word", "prompt-word"] {
        assert!(!exported.contains(hidden), "{hidden} in {exported}");
    }
    assert!(exported.contains("echo "), "{exported}");
}
