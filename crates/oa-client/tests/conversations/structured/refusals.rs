//! Servers that reject the response format.

use oa_chat::{Endpoint, SystemRole};
use oa_client::{
    AgentEvent, AgentOptions, Client, ErrorKind, OutputMode, ResponseFormat, query_for,
};
use oa_testkit::{MemoryServer, Reply, Request, Script};
use oa_types::wire::ToolChoice;
use serde_json::{Value, json};

use super::{OSLO, Place, oslo};
use crate::log::Lines;
use suite::talk::{adder, auto, client, manual, rejections, talk, told};

/// Errors of servers that support `json_object` but not `json_schema`: two versions of DeepSeek, OpenAI's older
/// models, older versions of llama.cpp and vLLM, and a server that rejects a `response_format` of an unknown type.
const REFUSALS: [(u16, &str); 6] = [
    (400, "This response_format type is unavailable now"),
    (
        422,
        "Failed to deserialize the JSON body into the target type: response_format: \
         response_format.type `json_schema` is unavailable now at line 1 column 20",
    ),
    (
        400,
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
    ),
    (500, "response_format type must be one of \"text\" or \"json_object\", but got: json_schema"),
    (
        400,
        "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be \
         'text' or 'json_object'\", 'input': 'json_schema'}]",
    ),
    (400, "This model does not support response format `json_schema`."),
];

const SCHEMA_WORDS: &str =
    "Answer with one JSON object and nothing else. It must match this JSON Schema: {";

/// The type of the response format in a request.
fn form(request: &Request) -> Value {
    request.json()["response_format"]["type"].clone()
}

fn forms(server: &MemoryServer) -> Vec<Value> {
    server.requests().iter().map(form).collect()
}

/// A server that supports only these formats and sends this reply for others.
fn picky(types: &'static [&'static str], rejection: Reply) -> MemoryServer {
    let reply = Reply::by(move |request| {
        let form = form(request);
        if !form.is_null() && !types.iter().any(|taken| form == *taken) {
            return rejection.clone();
        }
        Reply::text(if form.is_null() && types.contains(&"json_object") { "Hi." } else { OSLO })
    });
    MemoryServer::new(Script::new().strict().otherwise(reply))
}

fn system_prompt(request: &Request) -> Option<String> {
    let first = &request.messages()[0];
    (first["role"] == "system").then(|| first["content"].as_str().expect("text").to_owned())
}

/// The rejection is reported once, and remembered by all clients with the same options.
#[tokio::test]
async fn rejected_schemas_fall_back_to_an_object() {
    for (words, rejection) in REFUSALS.into_iter().flat_map(rejections) {
        let server = picky(&["json_object"], rejection);
        let options = manual(&server).system_prompt("Be brief.").build().unwrap();
        let mut client = Client::new(options.clone()).unwrap();
        let mut stream = client.send_for::<Place>("Where?").stream();
        let mut told_of = Vec::new();
        while let Some(event) = stream.next_event().await {
            if let AgentEvent::FormatRefused(why) = event {
                told_of.push(why);
            }
        }
        let answer = stream.finish().await.unwrap();
        assert_eq!((answer.value, answer.tries), (oslo(), 1));
        assert!(matches!(&told_of[..], [why] if why.contains(words)), "{told_of:?}");
        // Known for another prompt, and for another client with the same options.
        assert_eq!(client.send_for::<Place>("And?").await.unwrap().value, oslo());
        assert_eq!(query_for::<Place>("Where?", &options).await.unwrap().value, oslo());
        assert_eq!(talk(&mut client, "Hello.").await, ["Hi."]);
        let requests = server.requests();
        assert_eq!(
            forms(&server),
            [
                json!("json_schema"),
                json!("json_object"),
                json!("json_object"),
                json!("json_object"),
                json!(null)
            ]
        );
        assert_eq!(requests[1].json()["response_format"], json!({"type": "json_object"}));
        let prompts: Vec<_> = requests.iter().map(|r| system_prompt(r).unwrap()).collect();
        assert_eq!((&*prompts[0], &*prompts[4]), ("Be brief.", "Be brief."));
        assert!(prompts[1].starts_with(&format!("Be brief.\n\n{SCHEMA_WORDS}")), "{}", prompts[1]);
        assert!(prompts[1].contains(r#""required":["city"]"#), "{}", prompts[1]);
        assert_eq!(told(client.history()).len(), 6, "it leaves no trace");
    }
}

#[tokio::test]
async fn rejected_formats_fall_back_to_the_prompt() {
    for (status, words) in [
        (400, "'response_format.type' must be 'text'"),
        (405, "json_object response format is not supported for model: any"),
        (501, "structured outputs are not supported"),
    ] {
        let server = picky(&[], Reply::error(status, words));
        let mut client = client(manual(&server));
        for _ in 0..2 {
            assert_eq!(client.send_for::<Place>("Where?").await.unwrap().value, oslo());
        }
        let forms = forms(&server);
        assert_eq!(forms, [json!("json_schema"), json!("json_object"), json!(null), json!(null)]);
        let prompt = system_prompt(&server.requests()[3]).unwrap();
        assert!(prompt.starts_with(SCHEMA_WORDS), "{prompt}");
        // Another model may support it.
        client.set_model("another").unwrap();
        client.send_for::<Place>("Where?").await.unwrap();
        assert_eq!(form(&server.requests()[4]), "json_schema");
    }
    // As a list of problems with the request's members.
    let refusal = json!({ "detail": [{
        "type": "extra_forbidden",
        "loc": ["body", "response_format"],
        "msg": "Extra inputs are not permitted",
    }]});
    let server = MemoryServer::new(
        Script::from([Reply::json(422, refusal.clone()), Reply::json(422, refusal)])
            .strict()
            .reply(Reply::text(OSLO)),
    );
    assert_eq!(client(manual(&server)).send_for::<Place>("Where?").await.unwrap().value, oslo());
    // A server that rejects everything is not asked forever.
    let server = MemoryServer::new(Script::new().otherwise(Reply::error(400, REFUSALS[0].1)));
    let error = client(manual(&server)).send_for::<Place>("Where?").await.unwrap_err();
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Api, 3));
}

#[tokio::test]
async fn corrections_follow_a_format_fallback() {
    let replies = [
        Reply::error(400, REFUSALS[0].1),
        Reply::text(r#"{"city": 5}"#),
        Reply::text(format!("Here it is:\n```json\n{OSLO}\n```")),
        Reply::text("Bye."),
    ];
    let server = MemoryServer::new(Script::from(replies).strict());
    let mut client = client(manual(&server).system_prompt("Brief.").system_role(SystemRole::User));
    let answer = client.send_for::<Place>("Where?").await.unwrap();
    assert_eq!((answer.value, answer.tries), (oslo(), 2));
    talk(&mut client, "Thanks.").await;
    // Without a role for it, the system prompt precedes the first user message.
    let first = |request: usize| {
        server.requests()[request].messages()[0]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!((&*first(0), &*first(3)), ("Brief.\n\nWhere?", "Brief.\n\nWhere?"));
    for request in [1, 2] {
        let opening = first(request);
        assert!(opening.starts_with(&format!("Brief.\n\n{SCHEMA_WORDS}")), "{opening}");
        assert!(opening.ends_with("\n\nWhere?"), "{opening}");
    }
}

#[tokio::test]
async fn chosen_output_modes_do_not_fall_back() {
    let refused = || picky(&["json_object"], Reply::error(REFUSALS[0].0, REFUSALS[0].1));
    let server = refused();
    let mut client = client(manual(&server));
    let error = client.send_for::<Place>("Where?").mode(OutputMode::Format).await.unwrap_err();
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Api, 1));
    // Nor is the option, whose answers are not validated.
    let server = refused();
    let format = ResponseFormat::new("any", json!({"type": "object"}));
    let mut client = self::client(manual(&server).response_format(format));
    assert_eq!(client.ask("Where?").await.unwrap_err().status(), Some(400));
    assert_eq!(server.requests().len(), 1);

    let server = picky(&[], Reply::error(400, "no response_format"));
    for options in [manual(&server), auto(&server).tool(adder())] {
        let mut client = self::client(options);
        let answer = client.send_for::<Place>("Where?").mode(OutputMode::Prompt).await.unwrap();
        assert_eq!(answer.value, oslo());
    }
    for request in server.requests() {
        assert_eq!(form(&request), json!(null));
        assert!(system_prompt(&request).unwrap().starts_with(SCHEMA_WORDS));
    }
    assert!(server.requests()[1].json().get("tools").is_some());
}

/// The words of DeepSeek, Qwen on DashScope and OpenRouter (QUIRKS row 130).
#[tokio::test]
async fn rejected_tool_choices_are_left_out() {
    for (status, words) in [
        (400, "deepseek-reasoner does not support this tool_choice"),
        (
            400,
            "The tool_choice parameter does not support being set to required or object in thinking mode",
        ),
        (404, "No endpoints found that support the provided 'tool_choice' value."),
    ] {
        let reply = Reply::by(move |request| match request.json().get("tool_choice") {
            Some(_) => Reply::error(status, words),
            None => Reply::new().call_with_id("1", "final_answer", OSLO),
        });
        let server = MemoryServer::new(Script::new().strict().otherwise(reply));
        let options = auto(&server).tool(adder());
        let mut client = client(options);
        let mut stream = client.send_for::<Place>("Where?").stream();
        let mut refusals = 0;
        while let Some(event) = stream.next_event().await {
            refusals +=
                usize::from(matches!(event, AgentEvent::FormatRefused(why) if why.contains(words)));
        }
        assert_eq!((stream.finish().await.unwrap().value, refusals), (oslo(), 1));
        assert_eq!(client.send_for::<Place>("And?").await.unwrap().value, oslo());
        let choices: Vec<_> =
            server.requests().iter().map(|request| request.json()["tool_choice"].clone()).collect();
        assert_eq!(choices, [json!("required"), json!(null), json!(null)], "remembered");
        assert!(server.requests().iter().all(|request| request.json()["tools"].is_array()));

        // A choice of one's own is not left out.
        let mut client = self::client(auto(&server).tool(adder()).tool_choice("required"));
        assert_eq!(client.ask("Where?").await.unwrap_err().status(), Some(status));
        let error = client.send_for::<Place>("Where?").await.unwrap_err();
        assert_eq!((error.status(), server.requests().len()), (Some(status), 5));
    }
}

/// The choice of structured output is left out for a model that is known to reject it; that of a step is sent.
#[tokio::test]
async fn tool_choices_of_steps_are_not_left_out() {
    let reply = Reply::by(|request| {
        if request.json()["tool_choice"] == "required" {
            return Reply::error(400, "deepseek-reasoner does not support this tool_choice");
        }
        let is_called = request.messages().last().is_some_and(|last| last["role"] == "tool");
        match request.json().get("tool_choice") {
            Some(_) if !is_called => Reply::new().call_with_id("1", "add", json!({"a": 1, "b": 2})),
            _ => Reply::new().call_with_id("2", "final_answer", OSLO),
        }
    });
    let server = MemoryServer::new(Script::new().strict().otherwise(reply));
    let options = auto(&server).tool(adder()).before_step(|step| async move {
        if step.history().len() == 3 {
            step.tool_choice(ToolChoice::Auto);
        }
    });
    let mut client = client(options);
    for _ in 0..2 {
        assert_eq!(client.send_for::<Place>("Where?").await.unwrap().value, oslo());
    }
    let choices: Vec<_> =
        server.requests().iter().map(|request| request.json()["tool_choice"].clone()).collect();
    assert_eq!(choices, [json!("required"), json!(null), json!("auto"), json!(null)]);
}

#[tokio::test]
async fn schema_errors_are_returned() {
    let words = "Invalid schema for response_format 'Place': 'additionalProperties' is required.";
    let server = MemoryServer::new(Reply::error(400, words));
    let mut client = client(manual(&server));
    let error = client.send_for::<Place>("Where?").await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn fallbacks_are_remembered_per_server() {
    let (poor, rich) = (
        picky(&[], Reply::error(400, "no response_format")),
        picky(&["json_schema"], Reply::error(400, "no")),
    );
    let endpoint = |server: &MemoryServer| {
        let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server.clone());
        endpoint.build().unwrap()
    };
    let endpoints = [endpoint(&poor), endpoint(&rich)];
    for _ in 0..2 {
        for endpoint in &endpoints {
            let options = AgentOptions::builder().model("any").chat_service(endpoint.clone());
            let answer = client(options).send_for::<Place>("Where?").await.unwrap();
            assert_eq!(answer.value, oslo());
        }
    }
    assert_eq!(forms(&rich), [json!("json_schema"), json!("json_schema")]);
    let poor = forms(&poor);
    assert_eq!(poor, [json!("json_schema"), json!("json_object"), json!(null), json!(null)]);
}

#[tokio::test]
async fn fallbacks_are_logged_once() {
    let lines = Lines::default();
    let _listening = lines.listen();
    let server = picky(&["json_object"], Reply::error(REFUSALS[0].0, REFUSALS[0].1));
    let mut client = client(manual(&server));
    for _ in 0..2 {
        client.send_for::<Place>("Where?").await.unwrap();
    }
    insta::assert_snapshot!(lines.take_lines().join("\n"), @"WARN message=the server rejected the format or the tool choice: using a weaker one");
}
