//! Requests that the server rejects, and failures in the middle of an answer.

use open_agent::{
    AgentOptions, AudioBlock, Client, Error, ErrorKind, ImageBlock, Message, json, query,
};

use crate::answer::{Answer, ask};
use crate::server::{Server, Wanted, check, lacking};

const PROMPT: &str = "Say something.";

/// Returns the error with which the server rejects a request with these members.
async fn refusal(server: &Server, members: serde_json::Value) -> Option<Error> {
    let options = server.options().extra_body(members).build().expect("an object");
    ask(&options, PROMPT).await.err()
}

#[test]
fn stream_errors_follow_earlier_output() {
    check(Wanted::Broken, async |server| {
        let parameters =
            json!({ "type": "object", "properties": { "city": { "type": "string" } } });
        let tool = json!({ "name": "get_weather", "parameters": parameters });
        let members = json!({
            "tools": [{ "type": "function", "function": tool }],
            "chat_template_kwargs": { "enable_thinking": true },
        });
        let options = server.options().seed(1).extra_body(members).build().unwrap();
        let answer = Answer::read(query("Weather?", &options).await.unwrap()).await;
        assert!(!answer.thinking().is_empty(), "{answer:#?}");
        assert!(answer.calls().is_empty(), "{answer:#?}");
        let error = answer.error.expect("it breaks off");
        assert_eq!(error.kind(), ErrorKind::Api, "{error:?}");
        assert!(error.to_string().contains("does not match the expected"), "{error}");
        assert!(!error.is_retryable(), "something of the answer was delivered");
        assert_eq!(error.status(), None, "the status was 200");
        assert!(error.received() > Some(0));
        println!("{error}");
    });
}

#[test]
fn long_prompts_are_context_overflows() {
    check(Wanted::Tiny, async |server| {
        let options = server.options().max_tokens(10).build().unwrap();
        let error = ask(&options, &"word ".repeat(6000)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ContextOverflow, "{error:?}");
        assert!(!error.is_retryable());
        assert_eq!(error.status(), Some(400));
        assert!(error.to_string().contains("exceeds the available context size"), "{error}");
        println!("{error}");
    });
}

/// The conversation goes on without the prompt that the model cannot see or hear (QUIRKS row 148).
#[test]
fn media_need_an_encoder() {
    check(Wanted::Tiny, async |server| {
        let image = ImageBlock::from_bytes(b"GIF89a").unwrap();
        let audio = AudioBlock::from_bytes(b"RIFF\x24\0\0\0WAVEfmt ").unwrap();
        let mut client = Client::new(server.options().max_tokens(4).build().unwrap()).unwrap();
        for (prompt, media) in [
            (Message::user_with_image(PROMPT, image), "image"),
            (Message::user_with_audio(PROMPT, audio), "audio"),
        ] {
            let error = client.ask(prompt).await.unwrap_err();
            assert_eq!((error.kind(), error.status()), (ErrorKind::Api, Some(500)), "{error:?}");
            assert!(!error.is_retryable());
            assert!(
                error.to_string().contains(&format!("{media} input is not supported")),
                "{error}"
            );
            assert!(client.history().is_empty());
            println!("{error}");
        }
        assert!(!client.ask(PROMPT).await.unwrap().text.is_empty());
    });
}

#[test]
fn requests_without_the_key_are_401() {
    check(Wanted::Keyed, async |server| {
        let options = || {
            AgentOptions::builder().base_url(&server.base_url).model(&server.model).max_tokens(4)
        };
        let right = options().api_key(&server.key).build().unwrap();
        assert!(!ask(&right, PROMPT).await.unwrap().text().is_empty());

        let wrong_key = "sk-wrong-but-none-of-your-business";
        let wrong = options().api_key(wrong_key).build().unwrap();
        for (options, key) in [(options().build().unwrap(), None), (wrong, Some(wrong_key))] {
            let error = ask(&options, PROMPT).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Api, "{error:?}");
            assert_eq!(error.status(), Some(401));
            assert!(!error.is_retryable());
            assert!(error.to_string().contains("Invalid API Key"), "{error}");
            let shown = format!("{error} {error:?} {error:#?} {options:?} {options:#?}");
            for secret in [key.unwrap_or(wrong_key), &server.key] {
                assert!(!shown.contains(secret), "a key shows");
            }
        }
        assert!(!format!("{right:?}").contains(&server.key), "a key shows");
    });
}

#[test]
fn a_wrong_path_is_404() {
    check(Wanted::Any, async |server| {
        let wrong = server.beside("/nowhere");
        let options = server.options().base_url(&wrong).build().unwrap();
        let error = ask(&options, PROMPT).await.expect_err("nothing answers there");
        println!("{error}");
        if server.is_tiny {
            assert_eq!((error.kind(), error.status()), (ErrorKind::Api, Some(404)), "{error:?}");
            assert!(error.to_string().contains("File Not Found"), "{error}");
            assert!(!error.is_retryable());
        } else if error.status() != Some(404) {
            lacking(&format!("404 ({error:?})"));
        }
    });
}

#[test]
fn a_member_of_the_wrong_type_is_400() {
    check(Wanted::Any, async |server| {
        let Some(error) = refusal(server, json!({ "temperature": "hot" })).await else {
            assert!(!server.is_tiny, "a text is a temperature");
            return lacking("a look at the types of members");
        };
        println!("{error}");
        assert_eq!(error.kind(), ErrorKind::Api, "{error:?}");
        if server.is_tiny {
            assert_eq!(error.status(), Some(400));
            assert!(error.to_string().contains("type must be number"), "{error}");
            assert!(!error.is_retryable());
        }
    });
}

#[test]
fn errors_with_500_keep_their_message() {
    check(Wanted::Tiny, async |server| {
        let error =
            refusal(server, json!({ "tools": { "a": 1 } })).await.expect("no list of tools");
        assert_eq!((error.kind(), error.status()), (ErrorKind::Api, Some(500)), "{error:?}");
        assert!(error.to_string().contains("Expected 'tools' to be an array"), "{error}");
        println!("{error}");
    });
}
