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
        Lack::SeparateThinking => "set .think_tags(..), or load the profile, which does",
        Lack::Model => {
            "set a model from the list with .model(..) or OPEN_AGENT_MODEL, or load this one"
        }
        Lack::Reach => "start the server, and check .base_url(..) or OPEN_AGENT_BASE_URL",
        Lack::Schema => "do not rely on response_format: validate the answer, or use a tool call",
        Lack::Tools => {
            "use a model trained for tools, and start the server with its tool call parser \
             (llama.cpp: --jinja, vLLM: --enable-auto-tool-choice --tool-call-parser NAME)"
        }
        Lack::Usage => "rely on estimates: token budgets cannot work without reported usage",
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
            "start llama-server with --jinja (the default since December 2025), and use a model \
             whose chat template supports tools, or pass one with --chat-template-file"
        }
        (Provider::LmStudio, Lack::Context) => {
            "load the model with more context: lms load MODEL --context-length 16384"
        }
        (Provider::LmStudio, Lack::Model) => "load it: lms load MODEL; lms ls lists all models",
        (Provider::LmStudio, Lack::Reach) => "start its server: lms server start",
        (Provider::LmStudio, Lack::Tools) => "use a model that it marks as trained for tool use",
        (Provider::LmStudio, Lack::Usage) => "update LM Studio to 0.3.18 or later",
        (Provider::Ollama, Lack::Context) => {
            "start it with OLLAMA_CONTEXT_LENGTH=16384 ollama serve: longer prompts are cut \
             silently"
        }
        (Provider::Ollama, Lack::Model) => {
            "fetch it: ollama pull MODEL; ollama list shows all models"
        }
        (Provider::Ollama, Lack::Reach) => "start it: ollama serve",
        (Provider::Ollama, Lack::Schema) => "update Ollama: schemas need version 0.5 or later",
        (Provider::Ollama, Lack::Tools) => {
            "use a model with the capability \"tools\", as listed by ollama show MODEL"
        }
        (Provider::TextGenerationWebui, Lack::Context) => "load the model with a larger --ctx-size",
        (Provider::TextGenerationWebui, Lack::Reach) => "start it with --api",
        (Provider::Vllm, Lack::Context) => "start vLLM with a larger --max-model-len",
        (Provider::Vllm, Lack::SeparateThinking) => {
            "start vLLM with --reasoning-parser NAME, the parser of this model, or set .think_tags(..)"
        }
        (Provider::Vllm, Lack::Reach) => "start it: vllm serve MODEL",
        (Provider::Vllm, Lack::Tools) => {
            "start vLLM with --enable-auto-tool-choice --tool-call-parser NAME, the parser of this model"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The manual's table of servers says what the doctor advises.
    #[test]
    fn advice_is_in_the_manual() {
        const ROWS: [(&str, Lack); 5] = [
            ("the server does not answer", Lack::Reach),
            ("the model is missing", Lack::Model),
            ("the context is too small", Lack::Context),
            ("no tool calls", Lack::Tools),
            ("thinking in the text", Lack::SeparateThinking),
        ];
        const COLUMNS: [Provider; 4] =
            [Provider::LmStudio, Provider::Ollama, Provider::LlamaCpp, Provider::Vllm];

        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../open-agent/src/guide/servers.md");
        let page = std::fs::read_to_string(page).unwrap();
        let table: Vec<Vec<&str>> = page
            .lines()
            .skip_while(|line| !line.starts_with("| provider |"))
            .take_while(|line| line.starts_with('|'))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        let (names, rows) = table.split_first().unwrap();
        for (provider, cell) in COLUMNS.iter().zip(&names[1..]) {
            assert!(cell.starts_with(&format!("[`Provider::{provider:?}`]")), "{cell}");
        }
        // No row is there that nothing holds.
        assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ROWS.map(|(name, _)| name));
        for (row, (name, lack)) in rows.iter().zip(ROWS) {
            assert_eq!(row.len(), COLUMNS.len() + 1, "{name}");
            for (provider, cell) in COLUMNS.iter().zip(&row[1..]) {
                let advised = advice(Some(*provider), lack);
                assert!(
                    !cell.is_empty() || specific(*provider, lack).is_none(),
                    "{name}: {advised}"
                );
                for shown in cell.split('`').skip(1).step_by(2) {
                    assert!(
                        advised.contains(shown),
                        "{name}, {provider:?}: {shown:?} in {advised:?}"
                    );
                }
            }
        }
        assert!(advice(Some(Provider::Ollama), Lack::Context).contains("cut silently"));
        assert!(page.contains("Ollama cuts longer prompts silently"));
        assert_eq!(Provider::ALL.len() - COLUMNS.len(), 9);
        assert!(page.contains("There are nine more providers"));
    }
}
