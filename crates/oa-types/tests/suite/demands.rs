//! Demands in the errors of servers.

use oa_types::ToolSpec;
use oa_types::wire::{
    ChatParameters, Demands, EmptyContent, MessageFormat, ResultNames, ThinkingReplay, TokenLimit,
};
use serde_json::json;

/// Returns what an error asks for: names, the token limit, thinking, content, schemas.
fn of(status: u16, message: &str) -> [bool; 5] {
    let mut demands = Demands::default();
    let is_new = demands.add(status, message);
    assert!(!demands.add(status, message), "each is new once: {message}");
    let Demands { absent_content, nameless_results, other_token_limit, .. } = demands;
    let Demands { plain_schemas, thinking, .. } = demands;
    assert_eq!(is_new, demands != Demands::default());
    [nameless_results, other_token_limit, thinking, absent_content, plain_schemas]
}

#[test]
fn known_demands_are_recognized() {
    for message in [
        // OpenCode Go, another gateway, NInfer (NousResearch/hermes-agent #114713, #99254; Neroued/ninfer #110).
        "Error from provider (Console Go): Upstream request failed: [invalid_request_error] messages[4]: \"name\" is \
         not supported by this endpoint",
        "{unrecognizedProperty=name}: Request contained an unrecognized field",
        "a non-empty message name changes participant identity, which NInfer's chat template cannot represent",
    ] {
        assert_eq!(of(400, message), [true, false, false, false, false], "{message}");
    }
    for (status, message) in [
        // OpenAI behind gateways (anomalyco/opencode #40885, langgenius/dify #24307).
        (
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' \
             instead.",
        ),
        // Azure with an old version, and Mistral on Azure (openai/openai-python #1724, pydantic/pydantic-ai #6593).
        (400, "Unrecognized request argument supplied: max_completion_tokens"),
        (422, "max_completion_tokens: Extra inputs are not permitted"),
    ] {
        assert_eq!(of(status, message), [false, true, false, false, false], "{message}");
    }
    for message in [
        // Moonshot and its hosts (MoonshotAI/kimi-agent-sdk #169, agentscope-ai/QwenPaw #433).
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 13",
        // DeepSeek behind gateways (mnfst/llm-gateway #1862).
        "Error from provider (DeepSeek): The `reasoning_content` in the thinking mode must be passed back to the API.",
    ] {
        assert_eq!(of(400, message), [false, false, true, false, false], "{message}");
    }
    for message in [
        // Claude behind gateways (aliasrobotics/cai #182, anomalyco/opencode #31259), Bedrock (trpc-group/trpc-agent-go
        // #1748), Moonshot (BerriAI/litellm #42186).
        "litellm.BadRequestError: AnthropicException - messages: text content blocks must be non-empty",
        "messages: text content blocks must contain non-whitespace text",
        "The text field in the ContentBlock object at messages.3.content.0 is blank. Add text to the text field, and \
         try again.",
        "Invalid request: text content is empty",
    ] {
        assert_eq!(of(400, message), [false, false, false, true, false], "{message}");
    }
    for (status, message) in [
        // llama.cpp and LM Studio (ggml-org/llama.cpp #26930, #26596; NousResearch/hermes-agent #71279).
        (
            400,
            "Unable to generate parser for this template. Automatic parser generation failed: JSON schema conversion \
             failed:\nPattern must start with '^' and end with '$'",
        ),
        (400, "Failed to initialize samplers: failed to parse grammar"),
        (
            500,
            "Engine protocol predict request returned 400: {\"error\":{\"message\":\"failed to parse grammar\"}}",
        ),
        // vLLM.
        (400, "The provided JSON schema contains features not supported by xgrammar."),
    ] {
        assert_eq!(of(status, message), [false, false, false, false, true], "{message}");
    }
}

#[test]
fn other_errors_demand_nothing() {
    for (status, message) in [
        (400, ""),
        (400, "tools[0].function.name: unknown format"),
        (400, "messages[2].name is required"),
        (400, "unsupported model: name one of those listed"),
        (400, "'max_tokens' or 'max_completion_tokens' is too large: 4000"),
        (400, "messages[1].reasoning_content: Extra inputs are not permitted"),
        (401, "messages[1]: \"name\" is not supported"),
        (500, "reasoning_content is missing"),
        (503, "failed to parse grammar"),
        (400, "JSON schema error at #: unrecognized type no-such-type"),
    ] {
        assert_eq!(of(status, message), [false; 5], "{message}");
    }
}

#[test]
fn demands_change_the_form() {
    let mut demands = Demands::default();
    let mut format = MessageFormat::default();
    demands.apply(&mut format);
    assert_eq!(format, MessageFormat::default());
    assert_eq!(demands.token_limit(TokenLimit::MaxTokens), TokenLimit::MaxTokens);

    (demands.absent_content, demands.nameless_results) = (true, true);
    (demands.other_token_limit, demands.thinking) = (true, true);
    demands.apply(&mut format);
    assert_eq!(format.empty_content, EmptyContent::Absent);
    assert_eq!(format.result_names, ResultNames::Absent);
    assert_eq!(format.thinking, ThinkingReplay::RequiredReasoningContent);
    assert_eq!(demands.token_limit(TokenLimit::MaxTokens), TokenLimit::MaxCompletionTokens);
    assert_eq!(demands.token_limit(TokenLimit::MaxCompletionTokens), TokenLimit::MaxTokens);
}

/// The client still checks what the schema of a request no longer says.
#[test]
fn plain_schemas_describe_their_restrictions() {
    let schema = json!({
        "type": "object",
        "description": "A stay",
        "properties": {
            "pattern": { "type": "string", "pattern": "\\S", "description": "The name" },
            "format": { "enum": [{ "maximum": 1 }, "minLength"], "default": { "pattern": "x" } },
            "nights": { "type": "integer", "maximum": 30 },
            "guests": {
                "type": "array",
                "minItems": 1,
                "items": { "anyOf": [{ "type": "string", "maxLength": 2000 }, { "$ref": "#/$defs/date" }] },
            },
            "extra": { "additionalProperties": { "type": "string", "format": "uri" } },
        },
        "required": ["pattern"],
        "additionalProperties": false,
        "$defs": { "date": { "type": "string", "format": "date-time" } },
    });
    let plain = json!({
        "type": "object",
        "description": "A stay",
        "properties": {
            "pattern": { "type": "string", "description": "The name (pattern: \\S)" },
            "format": { "enum": [{ "maximum": 1 }, "minLength"], "default": { "pattern": "x" } },
            "nights": { "type": "integer", "description": "(maximum: 30)" },
            "guests": {
                "type": "array",
                "description": "(minItems: 1)",
                "items": {
                    "anyOf": [
                        { "type": "string", "description": "(maxLength: 2000)" },
                        { "$ref": "#/$defs/date" },
                    ],
                },
            },
            "extra": { "additionalProperties": { "type": "string", "description": "(format: uri)" } },
        },
        "required": ["pattern"],
        "additionalProperties": false,
        "$defs": { "date": { "type": "string", "description": "(format: date-time)" } },
    });
    let mut parameters = ChatParameters::new("any");
    parameters.tools = vec![ToolSpec::new("book", "Books a stay", schema.clone())];
    parameters.response_format =
        Some(json!({ "type": "json_schema", "json_schema": { "name": "stay", "schema": schema } }));
    let before = parameters.clone();
    let mut demands = Demands::default();
    demands.apply_to_schemas(&mut parameters);
    assert_eq!(parameters, before);

    demands.plain_schemas = true;
    demands.apply_to_schemas(&mut parameters);
    assert_eq!(parameters.tools[0].parameters, plain);
    let format = parameters.response_format.as_ref().unwrap();
    assert_eq!(format["json_schema"]["schema"], plain);
    // Another time changes nothing, and a schema of any depth is no problem.
    let once = parameters.clone();
    demands.apply_to_schemas(&mut parameters);
    assert_eq!(parameters, once);
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "items": inner }));
    parameters.tools[0].parameters = deep.clone();
    demands.apply_to_schemas(&mut parameters);
    assert_eq!(parameters.tools[0].parameters, deep);
}
