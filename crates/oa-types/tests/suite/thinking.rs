//! The amount of thinking: what is sent, and what servers say about it.

use oa_types::wire::{Demands, Thinking, ThinkingField};
use serde_json::{Map, Value, json};

fn said(field: ThinkingField, thinking: impl Into<Thinking>, mut given: Value) -> Value {
    let members = given.as_object_mut().expect("an object");
    field.set(&thinking.into(), members);
    given
}

#[test]
fn each_field_has_members_of_its_own() {
    use ThinkingField::{EnableThinking, Reasoning, ReasoningEffort, TemplateArguments, Type};

    let template = |on: bool| json!({"enable_thinking": on, "thinking": on});
    for (field, off, on, low) in [
        (
            EnableThinking,
            json!({"enable_thinking": false}),
            json!({"enable_thinking": true}),
            json!({"enable_thinking": true, "reasoning_effort": "low"}),
        ),
        (
            Reasoning,
            json!({"reasoning": {"enabled": false}}),
            json!({"reasoning": {"enabled": true}}),
            json!({"reasoning": {"effort": "low"}}),
        ),
        (
            ReasoningEffort { on: Some("high") },
            json!({"reasoning_effort": "none"}),
            json!({"reasoning_effort": "high"}),
            json!({"reasoning_effort": "low"}),
        ),
        (
            ReasoningEffort { on: None },
            json!({"reasoning_effort": "none"}),
            json!({}),
            json!({"reasoning_effort": "low"}),
        ),
        (
            TemplateArguments,
            json!({"chat_template_kwargs": template(false)}),
            json!({"chat_template_kwargs": template(true)}),
            json!({
                "chat_template_kwargs": {
                    "enable_thinking": true, "thinking": true, "reasoning_effort": "low",
                },
                "reasoning_effort": "low",
            }),
        ),
        (
            Type,
            json!({"thinking": {"type": "disabled"}}),
            json!({"thinking": {"type": "enabled"}}),
            json!({"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
        ),
    ] {
        assert_eq!(said(field, false, json!({})), off, "{field:?}");
        assert_eq!(said(field, true, json!({})), on, "{field:?}");
        assert_eq!(said(field, "low", json!({})), low, "{field:?}");
        // What is set already is kept, and set once more it stays the same.
        assert_eq!(said(field, false, low.clone()), {
            let mut both = low;
            for (name, value) in off.as_object().into_iter().flatten() {
                both.as_object_mut().expect("an object").entry(name).or_insert(value.clone());
            }
            both
        });
    }
    let xhigh = said(TemplateArguments, "xhigh", json!({}));
    assert_eq!(xhigh["chat_template_kwargs"]["reasoning_effort"], "xhigh");
    assert_eq!(xhigh.get("reasoning_effort"), None, "old versions of vLLM refuse the word");
}

#[test]
fn other_template_arguments_are_kept() {
    let given = json!({"chat_template_kwargs": {"language": "de", "thinking": true}});
    assert_eq!(
        said(ThinkingField::TemplateArguments, false, given),
        json!({"chat_template_kwargs": {"language": "de", "thinking": true, "enable_thinking": false}})
    );
}

/// Asserts what an error says of a request that asks for this amount.
fn learned(message: &str, thinking: &Thinking) -> (bool, bool) {
    let mut demands = Demands::default();
    let is_new = demands.add_thinking(400, message, thinking);
    assert_eq!(is_new, demands != Demands::default(), "{message}");
    assert_eq!(is_new, !demands.allow(thinking), "{message}");
    assert!(!demands.add_thinking(400, message, thinking) || !is_new, "{message}");
    (demands.never_thinks, demands.always_thinks)
}

#[test]
fn models_that_do_not_think_are_recognized() {
    for message in [
        // Ollama (Gitlawb/openclaude #1371, Neurons-AI/crawbot #24).
        "\"qwen3-coder:30b\" does not support thinking",
        "registry.ollama.ai/library/gemma3n:e4b-it-q8_0 does not support thinking",
        // OpenAI, Azure and gateways to them.
        "Unrecognized request argument supplied: reasoning_effort",
        "Unsupported parameter: 'reasoning_effort' is not supported with this model.",
        "litellm.UnsupportedParamsError: openai does not support parameters: ['reasoning_effort'], for \
         model=gpt-4o. Unsupported.",
        // xAI.
        "Argument not supported on this model: reasoningEffort",
        // Gemini.
        "Unable to submit request because thinking is not supported by this model.",
        "Thinking is not enabled for this model.",
        // vLLM with the tokenizers of Mistral (linagora/openrag #559, vllm-project/vllm #38560).
        "chat_template is not supported for Mistral tokenizers.",
        "Kwargs ['reasoning_effort'] are not supported by `MistralCommonTokenizer.apply_chat_template`.",
        // Strict servers.
        "reasoning_effort: Extra inputs are not permitted",
    ] {
        for thinking in [Thinking::Off, Thinking::On, "low".into()] {
            assert_eq!(learned(message, &thinking), (true, false), "{message}, {thinking:?}");
        }
    }
}

#[test]
fn models_that_always_think_are_recognized() {
    for message in [
        // OpenRouter, Gemini, Kimi (Kilo-Org/cloud #3807), Groq, and vLLM before 0.16.
        "Reasoning is mandatory for this endpoint and cannot be disabled.",
        "Budget 0 is invalid. This model only works in thinking mode.",
        "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: \
         'minimal', 'low', 'medium', and 'high'.",
        "`reasoning_effort` must be one of `low`, `medium`, or `high`",
        "[{'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be 'low', 'medium' \
         or 'high'\", 'input': 'none'}]",
    ] {
        assert_eq!(learned(message, &Thinking::Off), (false, true), "{message}");
    }
}

/// Its caller can choose another, but whoever asks for thinking as such has no word to change.
#[test]
fn a_rejected_effort_is_an_error() {
    for message in [
        "think value \"medium\" is not supported for this model",
        "Unsupported value: 'reasoning_effort' does not support 'medium' with this model.",
        "`reasoning_effort` must be one of `none` or `high`",
    ] {
        assert_eq!(
            learned(message, &Thinking::Effort("medium".into())),
            (false, false),
            "{message}"
        );
        assert_eq!(learned(message, &Thinking::On), (true, false), "{message}");
    }
}

#[test]
fn other_errors_say_nothing_about_thinking() {
    for message in [
        "Thinking mode does not support this tool_choice",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 13",
        "Unrecognized request argument supplied: messages[2].reasoning_content",
        "\"gemma:2b\" does not support tools",
        "the prompt is too long: its value is 9000 tokens",
        "streaming cannot be used with this model",
    ] {
        for thinking in [Thinking::Off, Thinking::On, "low".into()] {
            assert_eq!(learned(message, &thinking), (false, false), "{message}, {thinking:?}");
        }
    }
    let mut demands = Demands::default();
    for status in [401, 404, 429, 500, 503] {
        assert!(!demands.add_thinking(
            status,
            "this model does not support thinking",
            &Thinking::On
        ));
    }
}

#[test]
fn only_the_refused_amount_is_left_out() {
    let mut demands = Demands::default();
    assert!(demands.add_thinking(400, "reasoning is mandatory", &Thinking::Off));
    assert!(!demands.allow(&Thinking::Off));
    assert!(demands.allow(&Thinking::On) && demands.allow(&"high".into()));
    let mut members = Map::new();
    ThinkingField::Reasoning.set(&Thinking::Off, &mut members);
    assert_eq!(Value::from(members), json!({"reasoning": {"enabled": false}}));
}
