//! Demands in the errors of servers.

use oa_types::wire::{
    Demands, EmptyContent, MessageFormat, ResultNames, ThinkingReplay, TokenLimit,
};

/// Returns what an error asks for: names, the token limit, thinking, content, plain schemas, single types.
fn of(status: u16, message: &str) -> [bool; 6] {
    let mut demands = Demands::default();
    let is_new = demands.add(status, message);
    assert!(!demands.add(status, message), "each is new once: {message}");
    let Demands { absent_content, nameless_results, other_token_limit, .. } = demands;
    let Demands { plain_schemas, single_types, thinking, .. } = demands;
    assert_eq!(is_new, demands != Demands::default());
    [nameless_results, other_token_limit, thinking, absent_content, plain_schemas, single_types]
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
        assert_eq!(of(400, message), [true, false, false, false, false, false], "{message}");
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
        assert_eq!(of(status, message), [false, true, false, false, false, false], "{message}");
    }
    for message in [
        // Moonshot and its hosts (MoonshotAI/kimi-agent-sdk #169, agentscope-ai/QwenPaw #433).
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 13",
        // DeepSeek behind gateways (mnfst/llm-gateway #1862).
        "Error from provider (DeepSeek): The `reasoning_content` in the thinking mode must be passed back to the API.",
    ] {
        assert_eq!(of(400, message), [false, false, true, false, false, false], "{message}");
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
        assert_eq!(of(400, message), [false, false, false, true, false, false], "{message}");
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
        // llama.cpp b11549.
        (
            400,
            "Automatic parser generation failed: JSON schema error at #/properties/a: schema must be an object",
        ),
        (
            400,
            "JSON schema error at #/properties/a: unsupported $ref #, only references into the same document are supported",
        ),
        (
            400,
            "JSON schema error at #/properties/a: cannot resolve $ref #/$defs/B~1x, B~1x not found",
        ),
        // vLLM.
        (400, "The provided JSON schema contains features not supported by xgrammar."),
    ] {
        assert_eq!(of(status, message), [false, false, false, false, true, false], "{message}");
    }
    for (status, message) in [
        // llama.cpp until April 2026, LM Studio, mlx (ggml-org/llama.cpp #21347; theroyallab/YALS #24;
        // HazAT/pi-parallel #4), with the template of Gemma 4.
        (500, "Error: Unknown (built-in) filter 'upper' for type Array"),
        (400, "Cannot apply filter \"upper\" to type: UndefinedValue"),
        (400, "Chat template error: Runtime error: upper filter requires string"),
        // Gemini (Oaklight/llm-rosetta #78; vercel/ai #14369).
        (400, "Schema.ref 'QuestionOption' was set alongside unsupported fields."),
        (
            400,
            "Invalid JSON payload received. Unknown name \"$ref\" at 'tools[0].function_declarations[0]'",
        ),
        (400, "Proto field is not repeating, cannot start list."),
    ] {
        assert_eq!(of(status, message), [false, false, false, false, false, true], "{message}");
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
        (503, "filter 'upper'"),
        (400, "the content filter stopped it: see the upper limit"),
        (400, "unsupported $ref https://h/s, only references into the same document are supported"),
        (400, "JSON schema error at #: unrecognized type no-such-type"),
    ] {
        assert_eq!(of(status, message), [false; 6], "{message}");
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
