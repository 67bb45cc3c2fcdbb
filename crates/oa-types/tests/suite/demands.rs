//! Demands in the errors of servers.

use oa_types::wire::{
    Demands, EmptyContent, MessageFormat, ResultNames, ThinkingReplay, TokenLimit,
};

/// Asserts that each of these errors asks for this change, and for nothing else.
fn asks_for(member: fn(&mut Demands) -> &mut bool, errors: &[(u16, &str)]) {
    let mut asked = Demands::default();
    *member(&mut asked) = true;
    for &(status, message) in errors {
        let mut demands = Demands::default();
        assert!(demands.add(status, message), "{message}");
        assert_eq!(demands, asked, "{message}");
        assert!(!demands.add(status, message), "each is new once: {message}");
    }
}

#[test]
fn rejected_names_are_recognized() {
    // OpenCode Go, another gateway, NInfer (NousResearch/hermes-agent #114713, #99254; Neroued/ninfer #110).
    asks_for(
        |demands| &mut demands.nameless_results,
        &[
            (
                400,
                "Error from provider (Console Go): Upstream request failed: [invalid_request_error] messages[4]: \
                 \"name\" is not supported by this endpoint",
            ),
            (400, "{unrecognizedProperty=name}: Request contained an unrecognized field"),
            (
                400,
                "a non-empty message name changes participant identity, which NInfer's chat template cannot represent",
            ),
        ],
    );
}

#[test]
fn rejected_token_limits_are_recognized() {
    asks_for(
        |demands| &mut demands.other_token_limit,
        &[
            // OpenAI behind gateways (anomalyco/opencode #40885, langgenius/dify #24307).
            (
                400,
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' \
                 instead.",
            ),
            // Azure with an old version, and Mistral on Azure (openai/openai-python #1724, pydantic/pydantic-ai #6593).
            (400, "Unrecognized request argument supplied: max_completion_tokens"),
            (422, "max_completion_tokens: Extra inputs are not permitted"),
        ],
    );
}

#[test]
fn missing_thinking_is_recognized() {
    asks_for(
        |demands| &mut demands.thinking,
        &[
            // Moonshot and its hosts (MoonshotAI/kimi-agent-sdk #169, agentscope-ai/QwenPaw #433).
            (
                400,
                "thinking is enabled but reasoning_content is missing in assistant tool call message at index 13",
            ),
            // DeepSeek behind gateways (mnfst/llm-gateway #1862).
            (
                400,
                "Error from provider (DeepSeek): The `reasoning_content` in the thinking mode must be passed back to \
                 the API.",
            ),
        ],
    );
}

#[test]
fn rejected_empty_content_is_recognized() {
    // Claude behind gateways (aliasrobotics/cai #182, anomalyco/opencode #31259), Bedrock (trpc-group/trpc-agent-go
    // #1748), Moonshot (BerriAI/litellm #42186).
    asks_for(
        |demands| &mut demands.absent_content,
        &[
            (
                400,
                "litellm.BadRequestError: AnthropicException - messages: text content blocks must be non-empty",
            ),
            (400, "messages: text content blocks must contain non-whitespace text"),
            (
                400,
                "The text field in the ContentBlock object at messages.3.content.0 is blank. Add text to the text \
                 field, and try again.",
            ),
            (400, "Invalid request: text content is empty"),
        ],
    );
}

#[test]
fn uncompiled_schemas_are_recognized() {
    asks_for(
        |demands| &mut demands.plain_schemas,
        &[
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
        ],
    );
}

#[test]
fn rejected_lists_of_types_are_recognized() {
    asks_for(
        |demands| &mut demands.single_types,
        &[
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
        ],
    );
}

#[test]
fn refusals_to_stream_are_recognized() {
    asks_for(
        |demands| &mut demands.whole_answers,
        &[
            // Bedrock (earendil-works/pi #3739, danny-avila/LibreChat #8877).
            (400, "undefined: This model doesn't support tool use in streaming mode."),
            (400, "The model is unsupported for streaming."),
            // llama.cpp until May 2025 (containers/ramalama #1431).
            (500, "Cannot use tools with stream"),
            // OpenAI, Azure and GitHub (github/gh-models #31, charmbracelet/crush #422).
            (
                400,
                "Unsupported value: 'stream' does not support true with this model. Supported values are: false.",
            ),
            (
                400,
                "Your organization must be verified to stream this model. Please go to: https://platform.openai.com/",
            ),
            // Hugging Face, a proxy to Azure, deltallm (huggingface/chat-ui #426, stulzq/azure-openai-proxy #63).
            (422, "Error in `stream`: `stream` is not supported for this model"),
            (
                400,
                "Streaming completion is not support yet, please remove 'stream' key value in the request payload.",
            ),
            (501, "Streaming is not supported for provider 'bedrock'"),
        ],
    );
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
        (400, "stream_options is not supported"),
        (400, "this model supports only stream mode, please enable the stream parameter"),
        (503, "Streaming is not supported"),
        (500, "the backend went away in streaming mode"),
    ] {
        assert!(!Demands::default().add(status, message), "{message}");
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
