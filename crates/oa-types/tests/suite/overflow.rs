//! The sizes in servers' overflow errors.

use oa_types::wire::ServerError;
use proptest::prelude::*;

fn error(message: &str) -> ServerError {
    ServerError::from_body(
        serde_json::json!({ "error": { "message": message } }).to_string().as_bytes(),
    )
}

/// Asserts that this is an overflow with these sizes of prompt and context.
#[track_caller]
fn check(message: &str, prompt: impl Into<Option<u64>>, context: impl Into<Option<u64>>) {
    let (error, prompt, context) = (error(message), prompt.into(), context.into());
    assert!(error.is_context_overflow(), "{message}");
    assert_eq!(error.context_size(), context, "{message}");
    assert_eq!(error.context_sizes(), prompt.zip(context), "{message}");
}

#[test]
fn sizes_are_read_from_server_sentences() {
    // vLLM (vllm-project/vllm #20409; ogx-ai/ogx #4534: fits without what is to be generated), OpenAI, DeepSeek.
    check(
        "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens \
         (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.",
        112_946,
        16_384,
    );
    check(
        "This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in \
         the messages, 6048 in the completion). Please reduce the length of the messages or completion.",
        568,
        6048,
    );
    check(
        "This model's maximum context length is 4097 tokens. However, you requested 5563 tokens (1500 in \
         the messages, 63 in the functions, and 4000 in the completion).",
        1563,
        4097,
    );
    check(
        "This model's maximum context length is 4097 tokens, however you requested 4356 tokens (100 in \
         your prompt; 4256 for the completion). Please reduce your prompt; or completion length.",
        100,
        4097,
    );
    check(
        "This model's maximum context length is 4097 tokens. However, your messages resulted in 4932 tokens \
         (4900 in the messages, 32 in the functions). Please reduce the length of the messages.",
        4932,
        4097,
    );
    check(
        "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length is \
         4096 tokens and your request has 200 input tokens (4000 > 4096 - 200).",
        200,
        4096,
    );
    check(
        "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. \
         Please reduce the length of the input messages.",
        5000,
        4096,
    );
    check(
        "You passed 8193 input tokens and requested 1 output tokens. However, the model's context length is \
         only 8192 tokens, resulting in a maximum input length of 8191 tokens.",
        8193,
        8192,
    );
    check(
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that \
         `max_model_len` is no smaller than the number of text tokens.",
        5000,
        4096,
    );
    // llama.cpp behind a gateway: tests/fixtures/live/litellm-error-context.body.
    check(
        "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: \
         OpenAIException - request (24016 tokens) exceeds the available context size (4096 tokens), try \
         increasing it",
        24_016,
        4096,
    );
    // SGLang.
    check(
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        5000,
        4096,
    );
    // Behind gateways.
    check("prompt is too long: 210000 tokens > 200000 maximum", 210_000, 200_000);
    check(
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        40_000,
        32_768,
    );
    check(
        "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
        1_048_577,
        1_048_576,
    );
}

#[test]
fn ambiguous_messages_give_no_sizes() {
    // LM Studio tells how much of a prompt it was to keep (lmstudio-ai/lmstudio-bug-tracker #546).
    check(
        "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded \
         with context length of only 32768 tokens, which is not enough. Try to load the model with a larger \
         context length, or provide a shorter input.",
        None,
        32_768,
    );
    check(
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: \
         5432>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input",
        None,
        4096,
    );
    // Newer versions of LM Studio (anomalyco/opencode #11141; continuedev/continue #11279).
    check("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", None, 7424);
    // GitHub's models count by bytes, too (evalstate/fast-agent #346).
    check("Request body too large for gpt-4o model. Max size: 8000 tokens.", None, 8000);
    // Ollama states no sizes, or only a difference.
    check("the input length exceeds the context length", None, None);
    check("prompt too long; exceeded max context length by 120 tokens", None, None);
    // OpenRouter and newer versions of vLLM guess.
    check(
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 135000 tokens \
         (134000 of text input, 1000 in the output).",
        None,
        131_072,
    );
    check(
        "This model's maximum context length is 4096 tokens. However, you requested 100 output tokens and \
         your prompt contains at least 3997 input tokens, for a total of at least 4097 tokens.",
        None,
        4096,
    );
    // Numbers that may mean something else.
    check("This model's maximum context length is 4,096 tokens.", None, None);
    check("This model's maximum context length is 4.096 tokens.", None, None);
    check("This model's maximum context length is 0 tokens.", None, None);
    check(
        &format!("This model's maximum context length is {} tokens.", "9".repeat(30)),
        None,
        None,
    );
    check("context length exceeded: 5000 of 4096", None, None);
    // Not an overflow, so no sizes.
    let other = error("request (24016 tokens) exceeds your quota (4096 tokens)");
    assert_eq!((other.context_size(), other.context_sizes()), (None, None));
}

/// Each in the words of the report that is named.
#[test]
fn overflows_in_many_words_are_recognized() {
    // xAI, Moonshot, GitHub Copilot (earendil-works/pi `packages/ai/src/utils/overflow.ts`).
    check(
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        537_812,
        131_072,
    );
    check(
        "Invalid request: Your request exceeded model token limit: 131072 (requested: 150210)",
        None,
        131_072,
    );
    check("prompt token count of 140211 exceeds the limit of 128000", 140_211, 128_000);
    // Anthropic behind a proxy (openclaw/openclaw #7279).
    check(
        "input length and `max_tokens` exceed context limit: 190100 + 21333 > 200000, decrease input length",
        190_100,
        200_000,
    );
    // watsonx.
    check(
        "Invalid input argument for Model 'meta-llama/llama-2-70b-chat': the number of input tokens 4098 cannot \
         exceed the total tokens limit 4096 for this model",
        4098,
        4096,
    );
    // text-generation-inference (huggingface/llm-vscode #94).
    check(
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3474 `inputs` tokens \
         and 60 `max_new_tokens`",
        3474,
        2048,
    );
    // LM Studio (aaif-goose/goose #11318, lmstudio-ai/lmstudio-bug-tracker #2339).
    check(
        "Input does not fit in context length. The input has 31430 tokens, but the context length only supports \
         30000 tokens.",
        31_430,
        30_000,
    );
    for message in [
        "Context size has been exceeded.",
        // SGLang: the limit on the prompt, which may be below the context (sgl-project/sglang #4048).
        "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
        // TensorRT-LLM (NVIDIA/TensorRT-LLM `tests/unittest/llmapi/test_llm.py`).
        "The sum of prompt length (72417.0), query length (0) should not exceed max_num_tokens (69632)",
        // mistral.rs (EricLBuehler/mistral.rs `mistralrs-core/src/engine/mod.rs`).
        "Prompt sequence length is greater than 4096, perhaps consider using `truncate_sequence`?",
        // Groq and Cerebras, DashScope, Zhipu, Ollama, Bedrock (openclaw/openclaw #58839).
        "Please reduce the length of the messages or completion.",
        "InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
        "Prompt exceeds max length",
        "the prompt is longer than the context length currently available to the model",
        "ValidationException: Input exceeds the max input token limit",
        // llama.cpp, when an answer fills the context (ggml-org/llama.cpp #13577).
        "context shift is disabled",
        // GLM behind gateways (anomalyco/opencode #27628), Cohere.
        "tokens in request more than max tokens allowed",
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs.",
    ] {
        check(message, None, None);
    }
}

#[test]
fn sizes_of_other_local_servers_are_read() {
    // omlx (jundot/omlx #298).
    check(
        "Prompt too long: 36829 tokens exceeds max context window of 32768 tokens",
        36_829,
        32_768,
    );
    // TabbyAPI (SillyTavern/SillyTavern #3543).
    check("Request length 71599 + 2048 is greater than max_seq_len 65536", 71_599, 65_536);
    check("Prompt length 70000 is greater than max_seq_len 65536", 70_000, 65_536);
    // A relay to llama.cpp, and Poolside (llmmllab/llmmllab-api #56; earendil-works/pi #4943).
    check("request (53192 tokens) exceeds context size (50176 tokens)", 53_192, 50_176);
    check(
        "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
        131_393,
        131_040,
    );
}

#[test]
fn rate_limits_are_not_overflows() {
    for message in [
        "ThrottlingException: Too many tokens, please wait before trying again.",
        "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 8123",
        "Rate limit reached: the number of input tokens per minute exceeds the limit of 30000",
        "max_tokens must be at most 8192",
    ] {
        assert!(!error(message).is_context_overflow(), "{message}");
    }
}

#[test]
fn members_take_precedence_over_text() {
    let body = serde_json::json!({ "error": {
        "type": "exceed_context_size_error",
        "message": "request (1 tokens) exceeds the available context size (2 tokens)",
        "n_prompt_tokens": 5120,
        "n_ctx": 4096,
    }});
    let error = ServerError::from_value(body);
    assert_eq!(error.context_sizes(), Some((5120, 4096)));
}

proptest! {
    #[test]
    fn sizes_are_read_amid_other_text(words in "\\PC{0,80}", at in 0_usize..80) {
        let sentence = "maximum context length is 4096 tokens. However, your messages resulted in 4932 tokens";
        let cut = words.char_indices().nth(at).map_or(words.len(), |(at, _)| at);
        let error = error(&format!("{} {sentence} {}", &words[..cut], &words[cut..]));
        prop_assert_eq!(error.context_sizes(), Some((4932, 4096)));
        let end = at.min(sentence.len());
        // A cut message never yields a number that was not there.
        let size = self::error(&sentence[..end]).context_sizes();
        prop_assert!(size.is_none() || end == sentence.len(), "{:?}", size);
    }
}
