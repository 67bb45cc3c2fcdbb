//! Advice for what a server lacks, in its vendor's terms.

use oa_chat::Provider;

/// A feature that a server or its model lacks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lack {
    /// Room for a conversation with tools.
    Context,
    /// Thinking separated from text.
    SeparateThinking,
    /// The model.
    Model,
    /// A connection.
    Reach,
    /// Answers that match a schema.
    Schema,
    /// Tool calls.
    Tools,
    /// Token counts.
    Usage,
}

/// Returns advice; without a provider, advice that fits any server.
pub(crate) fn advice(provider: Option<Provider>, lack: Lack) -> &'static str {
    provider.and_then(|provider| specific(provider, lack)).unwrap_or(match lack {
        Lack::Context => {
            "give the model more context where the server is started (llama.cpp: -c, vLLM: \
             --max-model-len, Ollama: OLLAMA_CONTEXT_LENGTH)"
        }
        Lack::SeparateThinking => "set .think_tags(..), or read the profile, which does",
        Lack::Model => {
            "name a model of the list by .model(..) or OPEN_AGENT_MODEL, or load this one"
        }
        Lack::Reach => "start the server, and look at .base_url(..) or OPEN_AGENT_BASE_URL",
        Lack::Schema => "do not rely on response_format: check the answer, or have a tool called",
        Lack::Tools => {
            "take a model that is made for tools, and start the server with its parser of calls \
             (llama.cpp: --jinja, vLLM: --enable-auto-tool-choice --tool-call-parser NAME)"
        }
        Lack::Usage => "count on estimates: budgets in tokens cannot act without numbers",
    })
}

fn specific(provider: Provider, lack: Lack) -> Option<&'static str> {
    Some(match (provider, lack) {
        (Provider::LlamaCpp, Lack::Context) => {
            "start llama-server with -c 16384 or more; its slots (-np) may share that"
        }
        (Provider::LlamaCpp, Lack::SeparateThinking) => {
            "start llama-server with --reasoning-format auto, or set .think_tags(..)"
        }
        (Provider::LlamaCpp, Lack::Reach) => "start it: llama-server -m MODEL.gguf --port 8080",
        (Provider::LlamaCpp, Lack::Tools) => {
            "start llama-server with --jinja (the default since December 2025), and take a model \
             whose chat template knows tools, or give it one by --chat-template-file"
        }
        (Provider::LmStudio, Lack::Context) => {
            "load the model with more context: lms load MODEL --context-length 16384"
        }
        (Provider::LmStudio, Lack::Model) => "load it: lms load MODEL; lms ls lists what there is",
        (Provider::LmStudio, Lack::Reach) => "start its server: lms server start",
        (Provider::LmStudio, Lack::Tools) => "take a model that it marks as trained for tool use",
        (Provider::LmStudio, Lack::Usage) => "update LM Studio to 0.3.18 or later",
        (Provider::Ollama, Lack::Context) => {
            "start it with OLLAMA_CONTEXT_LENGTH=16384 ollama serve: prompts beyond it are cut \
             without a word"
        }
        (Provider::Ollama, Lack::Model) => {
            "fetch it: ollama pull MODEL; ollama list shows what there is"
        }
        (Provider::Ollama, Lack::Reach) => "start it: ollama serve",
        (Provider::Ollama, Lack::Schema) => "update Ollama: it knows schemas since 0.5",
        (Provider::Ollama, Lack::Tools) => {
            "take a model with the capability \"tools\", which ollama show MODEL tells"
        }
        (Provider::TextGenerationWebui, Lack::Context) => "load the model with a larger --ctx-size",
        (Provider::TextGenerationWebui, Lack::Reach) => "start it with --api",
        (Provider::Vllm, Lack::Context) => "start vLLM with a larger --max-model-len",
        (Provider::Vllm, Lack::SeparateThinking) => {
            "start vLLM with --reasoning-parser NAME, the one of this model, or set .think_tags(..)"
        }
        (Provider::Vllm, Lack::Reach) => "start it: vllm serve MODEL",
        (Provider::Vllm, Lack::Tools) => {
            "start vLLM with --enable-auto-tool-choice --tool-call-parser NAME, the one of this model"
        }
        _ => return None,
    })
}
