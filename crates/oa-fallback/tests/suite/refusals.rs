//! The errors by which servers report that a model does not support tools.

use oa_fallback::says_no_tools;

#[test]
fn known_refusals_are_recognized() {
    for (status, message) in [
        // Ollama (QwenLM, Google and other models without the capability).
        (400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
        (400, "stablelm2:latest does not support tools"),
        (400, "thimble:3b has no tools: \"does not support tools\""),
        // llama.cpp (QUIRKS row 81).
        (500, "tools param requires --jinja flag"),
        (500, "tool_choice param requires --jinja flag"),
        // vLLM (QUIRKS row 81).
        (
            400,
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
        ),
        (400, "tool_choice=\"required\" requires --tool-call-parser to be set"),
        // LMDeploy (InternLM/lmdeploy `lmdeploy/serve/openai/api_server.py`), SGLang (sgl-project/sglang #10184).
        (400, "Please launch the api_server with --tool-call-parser if you want to use tool."),
        (500, "Internal server error: Unsupported tool_call_parser: None"),
        // Gemini's OpenAI endpoint, for Gemma (agno-agi/agno #3505, BerriAI/litellm #10313).
        (400, "Function calling is not enabled for models/gemma-3-12b-it"),
        // OpenRouter.
        (
            404,
            "No endpoints found that support tool use. To learn more about provider routing, visit: ..",
        ),
        // xAI, behind LiteLLM.
        (
            400,
            "Invalid request content: The model does not support tool use or function calling but tools \
             or tool_choice have been specified on the request.",
        ),
        // Others.
        (400, "This model doesn't support tool calling"),
        (400, "This model doesn’t support function calling."),
        (422, "Function calling is not supported for this model"),
        (400, "Tools are not supported by this model."),
        (400, "`tool calling` is not supported with this model"),
        (501, "Tool use not supported"),
        (400, "the chat template does not support the use of tools"),
        // Templates that fail with tools: LM Studio (lmstudio-ai/lmstudio-bug-tracker #2180), llama.cpp, mlx.
        (
            400,
            "Error rendering prompt with jinja template: \"Cannot call something that is not a function: got ObjectValue\"",
        ),
        (
            400,
            "Unable to generate parser for this template. Automatic parser generation failed: JSON schema error at \
             #/properties/a: unrecognized type file",
        ),
        (500, "Error: Jinja Exception: Conversation roles must alternate user/assistant"),
        (400, "Chat template error: Runtime error: upper filter requires string"),
        // Qwen's templates behind LocalAI and PocketLLM (mudler/LocalAI #10256, lvyufeng/PocketLLM #254).
        (500, "TypeError: Can only get item pairs from a mapping."),
    ] {
        assert!(says_no_tools(status, message), "{status} {message}");
    }
}

#[test]
fn other_errors_are_not_refusals() {
    for (status, message) in [
        (400, ""),
        (400, "tools[0].function.parameters: invalid schema"),
        (400, "Invalid tool_choice: no such function"),
        (400, "`tool_choice` is only allowed when `tools` are specified"),
        (400, "tool message must follow a call: tool use ids were found without results"),
        (400, "this model does not support images"),
        (400, "does not support stream_options; tools are fine"),
        (400, "parallel tool calls: at most 8 tools"),
        (400, "--max-model-len must be larger"),
        (404, "model \"thimble:3b\" not found, pull it first"),
        (401, "this key does not support tools"),
        (429, "too many requests: tool use is not supported at this rate"),
        (503, "Loading model"),
        (500, "invalid tool call arguments"),
    ] {
        assert!(!says_no_tools(status, message), "{status} {message}");
    }
}
