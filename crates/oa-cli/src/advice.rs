//! Advice that names servers.

/// Advice without a server.
pub(crate) const NO_SERVER: &str = "\
Start one of these, and load a model:
  LM Studio    https://lmstudio.ai          `lms server start`
  Ollama       https://ollama.com           `ollama serve`, then `ollama pull qwen3:4b`
  llama.cpp    https://llama.app            `llama-server -hf ggml-org/gemma-3-4b-it-GGUF --jinja`
  vLLM         https://docs.vllm.ai         `vllm serve Qwen/Qwen3-4B`
A server elsewhere: --base-url http://HOST:PORT/v1. To try everything without a server: --stand-in.";
