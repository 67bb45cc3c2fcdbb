//! The dialect of JSON calls between the tags that models are trained on.

mod bare;
mod code;
mod function;
mod functionary;
mod functools;
mod gemma;
mod glm;
mod harmony;
mod hermes;
mod invoke;
mod kimi;
mod labeled;
mod llama;
mod marked;
mod minimax;
mod mistral;
mod python;
mod roles;
mod tokens;

use std::sync::Arc;

use oa_types::{ToolResultBlock, ToolSpec, ToolUseBlock};
use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::grammar::{Grammar, Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::scanner::Scanner;
use crate::tools::Tools;

/// Calls as JSON between tags, as Hermes and Qwen models are trained to write them:
/// `<tool_call>{"name": .., "arguments": ..}</tool_call>`.
///
/// It writes this format and also reads the formats that other models are trained on:
///
/// | models | format |
/// | --- | --- |
/// | Hermes, Qwen, Granite 4, ERNIE, MiMo, EXAONE | `<tool_call>{"name": .., "arguments": {..}}</tool_call>`; in `<tools>`, `<tool>`, `<response>`, `<json>` or `<xml>` instead, if the tool exists |
/// | Llama | `<\|python_tag\|>{"name": .., "parameters": {..}}`, and the object alone at the start of an answer if a tool of that name exists |
/// | Mistral | `[TOOL_CALLS] [{"name": .., "arguments": {..}}]`, `[TOOL_CALLS]name[ARGS]{..}` |
/// | xLAM | a list of such objects, or `{"tool_calls": [..]}`, at the start of an answer or behind thinking, also in a fence, if the first tool exists |
/// | Phi-4-mini, FireFunction | `functools[{"name": .., "arguments": {..}}]`, if the first tool exists |
/// | InternLM, Intern-S1 | `<\|action_start\|><\|plugin\|>{"name": .., "parameters": {..}}<\|action_end\|>` |
/// | GLM, Laguna, HyperCLOVA X, LongCat, Hunyuan 3 | `<tool_call>name` with `<arg_key>` and `<arg_value>`, also with `longcat_` or `:opensource` in each tag |
/// | Solar Open | `<\|tool_call:begin\|>id<\|tool_call:name\|>name<\|tool_call:args\|>{..}`; from 2 on `<\|tool_call:start\|>name` with `<\|tool_arg:start\|>` and `<\|tool_arg:value\|>` |
/// | Qwen Coder, Seed, Nemotron 3, Step 3.5, Llama, Functionary 3.1 | `<function=name>` with `<parameter=key>`, or with JSON |
/// | MiniMax M2, DeepSeek from V3.2, Step, GigaChat 3.5, dots, Muse | `<invoke name="name">` with `<parameter name="key">`, also with `｜DSML｜` (and other bars), `｜GCML｜`, `steptml:` or `atem:` in each tag; without a mark before it, if the tool exists |
/// | MiniCPM 5 | `<function name="name">` with `<param name="key">`, if the tool exists |
/// | MiniMax M3 | `]<]minimax[>[<invoke name="name">` with a tag for each key |
/// | Kimi K2 | `<\|tool_call_begin\|>functions.name:0<\|tool_call_argument_begin\|>{..}` |
/// | Kimi K3 | `<\|open\|>call tool="name"<\|sep\|>` with `<\|open\|>argument key="key" type="string"<\|sep\|>` |
/// | DeepSeek until V3.1 | `<｜tool▁call▁begin｜>name<｜tool▁sep｜>{..}` |
/// | gpt-oss | `<\|channel\|>commentary to=functions.name <\|constrain\|>json<\|message\|>{..}` |
/// | Inkling | `<\|message_model\|>name<\|content_invoke_tool_json\|>{"name": .., "args": {..}}` |
/// | GigaChat 3 | `<\|function_call\|>{"name": .., "arguments": {..}}`, also after `function call<\|role_sep\|>` |
/// | Functionary 3.2 | `>>>name` and the arguments in the next line, if the tool exists |
/// | FunctionGemma, Gemma 4 | `<start_function_call>call:name{..}`, `<\|tool_call>call:name{..}` |
/// | Granite, Phi, Nemotron 2, Jamba, Hunyuan, Apriel, Command | JSON after `<\|tool_call\|>`, `<TOOLCALL>`, `<tool_calls>`, `<function_call>` or `<\|START_ACTION\|>`; for known tools also after `Action:` |
/// | Apertus | `<\|tools_prefix\|>[{"name": {..}}]` |
/// | LFM2, Olmo, Llama | calls in Python: `<\|tool_call_start\|>[name(key="value")]`, after `<function_calls>` and `<\|python_start\|>`, and the list alone at the start of an answer if the tool exists |
/// | Gemma 3, Llama | calls in Python, one in each line, in a fence named `tool_code` or after `<\|python_tag\|>`, if the tools exist |
///
/// Several calls in a row are read; text after them is dropped. [`recognize`] finds calls that a server left in the
/// text because it has no parser for its model (QUIRKS row 31).
///
/// ```
/// use std::sync::Arc;
/// use oa_fallback::{Dialect, Scanned, TaggedJson};
///
/// let mut scanner = TaggedJson::new().scanner(Arc::new([]));
/// scanner.push("Let me see.\n<tool_call>\n{\"name\": \"clock\", \"arguments\": {\"zone\": \"UTC\"}}\n</tool_call>");
/// assert_eq!(scanner.next_item(), Some(Scanned::Text("Let me see.")));
/// let Some(Scanned::Call(call)) = scanner.next_item() else { panic!("no call") };
/// assert_eq!((&*call.name, &call.input["zone"]), ("clock", &"UTC".into()));
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TaggedJson {}

impl TaggedJson {
    /// Creates the dialect.
    #[must_use]
    pub fn new() -> Self {
        Self {}
    }
}

/// Returns a scanner for calls that a server left in the text of an answer although the request declared its tools
/// natively. It reads every format of [`TaggedJson`] (QUIRKS row 31).
#[must_use]
pub fn recognize(tools: Arc<[ToolSpec]>) -> Scanner {
    TaggedJson::new().scanner(tools)
}

impl Dialect for TaggedJson {
    fn instructions(&self, tools: &[ToolSpec]) -> String {
        if tools.is_empty() {
            return String::new();
        }
        let tools: Vec<String> = tools.iter().map(signature).collect();
        format!(
            "You can use tools. Each line between these tags describes one:\n\n\
             <tools>\n{}\n</tools>\n\n\
             To use one, write its name and its arguments as a JSON object between tags, and stop:\n\n\
             <tool_call>\n{{\"name\": \"tool_name\", \"arguments\": {{\"argument\": \"value\"}}}}\n</tool_call>\n\n\
             For several calls at once, write several such pairs of tags. The next message has the results \
             between <tool_response> tags; never write those yourself. When you need no tool, answer in \
             plain text.",
            tools.join("\n"),
        )
    }

    fn grammar(&self, tools: Arc<[ToolSpec]>) -> Box<dyn Grammar> {
        Box::new(TaggedGrammar { tools: Tools::new(tools) })
    }

    fn write_call(&self, call: &ToolUseBlock) -> String {
        let none = Value::Object(Map::new());
        let input = if call.input.is_object() { &call.input } else { &none };
        let name = Value::from(&*call.name);
        let json = format!("{{\"name\": {name}, \"arguments\": {input}}}");
        format!("<tool_call>\n{}\n</tool_call>", without_tags(&json))
    }

    fn write_result(&self, result: &ToolResultBlock, tool: &str) -> String {
        let kind = if result.is_error { "error" } else { "content" };
        let json = format!("{{\"name\": {}, \"{kind}\": {}}}", Value::from(tool), result.content);
        format!("<tool_response>\n{}\n</tool_response>", without_tags(&json))
    }

    fn stop(&self) -> Vec<String> {
        vec!["<tool_response>".to_owned()]
    }
}

/// Escapes `<`, so that no text in the JSON looks like a tag.
fn without_tags(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// Returns a tool's signature as JSON, with members in the order that models were trained on.
fn signature(tool: &ToolSpec) -> String {
    let [name, description] = [&*tool.name, &*tool.description].map(Value::from);
    let parameters = &tool.parameters;
    let function = format!(
        "{{\"name\": {name}, \"description\": {description}, \"parameters\": {parameters}}}"
    );
    format!("{{\"type\": \"function\", \"function\": {function}}}")
}

#[derive(Debug)]
struct TaggedGrammar {
    tools: Tools,
}

type Style = fn(&mut CallHead<'_>, Position, &Tools) -> Result<Match, NoMatch>;

/// The styles of calls that begin with `<`.
const TAGGED: [Style; 12] = [
    hermes::begin,
    glm::begin,
    function::begin,
    invoke::begin,
    tokens::begin,
    llama::begin,
    harmony::begin,
    gemma::begin,
    kimi::begin,
    roles::begin,
    labeled::between_tags,
    marked::keyed,
];

/// The styles of calls after a mark.
const MARKED: [Style; 7] = [
    hermes::begin,
    glm::begin,
    function::begin,
    invoke::marked,
    tokens::begin,
    kimi::begin,
    marked::begin,
];

/// The styles of calls that begin in another way.
const OTHERS: [Style; 8] = [
    mistral::begin,
    code::begin,
    bare::begin,
    functools::begin,
    roles::begin,
    labeled::action,
    functionary::begin,
    minimax::begin,
];

/// Marks that belong to a call and follow it.
const CLOSING: [&str; 7] = ["</tool_call>", "</function>", "```", "}", "]", ",", ";"];

impl Grammar for TaggedGrammar {
    fn may_begin(&self, byte: u8) -> bool {
        matches!(byte, b'<' | b'[' | b'{' | b'`' | b'f' | b'A' | b'>' | b']')
    }

    fn begin(&self, head: &mut CallHead<'_>, position: Position) -> Result<Match, NoMatch> {
        let styles: &[Style] = match head.peek()? {
            Some('<') if marked::mark(head)? => &MARKED,
            Some('<') => &TAGGED,
            _ => &OTHERS,
        };
        let start = head.at();
        // No text matches two styles, so a match does not have to wait for styles that need more text.
        let mut stop = NoMatch::Mismatch;
        for style in styles {
            head.go_back(start);
            match style(head, position, &self.tools) {
                Ok(found) => return Ok(found),
                Err(NoMatch::Incomplete) => stop = NoMatch::Incomplete,
                Err(NoMatch::Mismatch) => {}
            }
        }
        // Models close what they have opened: the tag, the fence, the list. What is left of it is skipped.
        if position.after_call && stop == NoMatch::Mismatch {
            // The marks of MiniMax begin with one of the brackets.
            for closing in marked::CLOSING.into_iter().chain(CLOSING) {
                head.go_back(0);
                if head.maybe(closing)? {
                    return Ok(Match::Skip);
                }
            }
        }
        Err(stop)
    }
}
