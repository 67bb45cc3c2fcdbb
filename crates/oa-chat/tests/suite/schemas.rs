//! Schemas that a server cannot compile to a grammar.

use oa_chat::{ChatRequest, Endpoint, ErrorKind};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_types::{Message, ToolSpec};
use serde_json::{Value, json};
use tower::ServiceExt as _;

const WORDS: &str = "Failed to initialize samplers: failed to parse grammar";

fn request() -> ChatRequest {
    let day = json!({ "type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$" });
    let schema = json!({ "type": "object", "properties": { "day": day } });
    ChatRequest::new("any", vec![Message::user("Go.")]).with_options(|options| {
        let format = json!({ "name": "stay", "schema": schema });
        let format = json!({ "type": "json_schema", "json_schema": format });
        options.parameters.response_format = Some(format);
        options.parameters.tools = vec![ToolSpec::new("book", "Books a stay", schema)];
    })
}

/// Returns the schemas of `day` in each request: of the tool, and of the response format.
fn days(server: &MemoryServer) -> Vec<[Value; 2]> {
    let day = |request: &Value, at: &str| request.pointer(at).expect("a schema")["day"].clone();
    let both = |request: &Value| {
        [
            day(request, "/tools/0/function/parameters/properties"),
            day(request, "/response_format/json_schema/schema/properties"),
        ]
    };
    server.requests().iter().map(|request| both(request.json())).collect()
}

/// One such tool would make every request of an agent fail (QUIRKS row 133).
#[tokio::test(start_paused = true)]
async fn schemas_that_do_not_compile_are_sent_plain() {
    let in_answer = json!({ "error": { "message": WORDS, "code": 400 } });
    let conversion = "JSON schema conversion failed:\nPattern must start with '^' and end with '$'";
    for rejection in [
        Reply::error(400, WORDS),
        Reply::error(400, conversion),
        Reply::error(500, WORDS),
        Reply::sse(format!("event: error\ndata: {in_answer}\n\n")),
    ] {
        let server = MemoryServer::new([rejection, Reply::text("Hi."), Reply::text("Ho.")]);
        let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server.clone());
        let endpoint = endpoint.build().unwrap();
        for text in ["Hi.", "Ho."] {
            let mut answer = endpoint.clone().oneshot(request()).await.unwrap();
            // What the model must know is in the description, so nobody is told.
            assert_eq!(answer.take_refusals(), []);
            assert_eq!(answer.message().await.unwrap().text(), text);
        }
        let first = json!({ "type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$" });
        let plain = json!({ "type": "string", "description": "(pattern: ^\\d{4}-\\d{2}-\\d{2}$)" });
        let twice = |day: &Value| [day.clone(), day.clone()];
        assert_eq!(days(&server), [twice(&first), twice(&plain), twice(&plain)]);
    }
}

/// The chat template of Gemma 4 cannot render an optional parameter (QUIRKS row 137).
#[tokio::test(start_paused = true)]
async fn templates_get_one_type_for_each_parameter() {
    let words = "Error: Unknown (built-in) filter 'upper' for type Array";
    let in_answer = json!({ "error": { "message": words, "code": 500 } });
    for rejection in [
        Reply::error(500, words),
        Reply::error(400, "Chat template error: Runtime error: upper filter requires string"),
        Reply::sse(format!("data: {in_answer}\n\n")),
    ] {
        let replies = [rejection, Reply::text("Hi."), Reply::text("Ho.")];
        let server = MemoryServer::new(replies);
        let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server.clone());
        let endpoint = endpoint.build().unwrap();
        let nullable = json!({ "type": ["string", "null"] });
        let schema = json!({ "type": "object", "properties": { "day": nullable } });
        for text in ["Hi.", "Ho."] {
            let request = request().with_options(|options| {
                options.parameters.tools[0].parameters = schema.clone();
                let format = options.parameters.response_format.as_mut().unwrap();
                format["json_schema"]["schema"] = schema.clone();
            });
            let mut answer = endpoint.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.take_refusals(), []);
            assert_eq!(answer.message().await.unwrap().text(), text);
        }
        let single = json!({ "type": "string", "nullable": true });
        let later = [single, nullable.clone()];
        assert_eq!(days(&server), [[nullable.clone(), nullable], later.clone(), later]);
    }
}

#[tokio::test(start_paused = true)]
async fn plain_schemas_are_tried_once() {
    let server = MemoryServer::new(Script::new().otherwise(Reply::error(400, WORDS)));
    let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server.clone());
    let error = endpoint.build().unwrap().oneshot(request()).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Api, Some(400)));
    assert!(error.to_string().contains(WORDS), "{error}");
    assert_eq!(server.requests().len(), 2);
}
