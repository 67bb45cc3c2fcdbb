//! Streams made to one pattern.

use bytes::Bytes;

/// Chunks of some 250 bytes, as llama.cpp's server writes them.
pub(crate) fn text_chunks(escapes: bool, ticks: bool, usage: bool) -> Vec<Bytes> {
    let words = [" the", " quick", " brown", " fox", " jumps", " over", " a", " lazy", " dog", "."];
    let chunk = |number: usize| {
        let word = words[number * 7 % words.len()];
        let word = if escapes { format!("{word}\\n\\\"") } else { word.to_owned() };
        let usage = match usage {
            true => format!(
                r#","usage":{{"completion_tokens":{number},"prompt_tokens":25,"total_tokens":{}}}"#,
                number + 25
            ),
            false => String::new(),
        };
        let created = if ticks { number / 30 } else { 0 };
        format!(
            r#"{{"choices":[{{"finish_reason":null,"index":0,"delta":{{"content":"{word}"}}}}],"created":{},"id":"chatcmpl-2kHw4Z24inpMWrdzHVKC5bVLcGmWzvKX","model":"tinystories-260k-chat-q8.gguf","system_fingerprint":"b0-unknown","object":"chat.completion.chunk"{usage}}}"#,
            1_795_226_850 + created,
        )
    };
    (0..2_000).map(|number| chunk(number).into()).collect()
}

/// One call whose arguments come four bytes at a time.
pub(crate) fn call_chunks(fragments: usize, named: bool) -> Vec<Bytes> {
    let chunk = |delta: String, reason: &str| {
        Bytes::from(format!(
            r#"{{"choices":[{{"finish_reason":{reason},"index":0,"delta":{{{delta}}}}}],"created":1795226850,"id":"chatcmpl-2kHw4Z24inpMWrdzHVKC5bVLcGmWzvKX","model":"tiny","system_fingerprint":"b0-unknown","object":"chat.completion.chunk"}}"#,
        ))
    };
    let function = |name: &str, arguments: &str| {
        let arguments = arguments.replace('"', "\\\"");
        format!(r#""tool_calls":[{{"index":0,"function":{{{name}"arguments":"{arguments}"}}}}]"#)
    };
    let item = r#"{"name": "lamp", "count": 25, "where": "the far end of the hall"}, "#;
    let mut arguments = String::from(r#"{"items": ["#);
    while arguments.len() + item.len() < 4 * fragments {
        arguments.push_str(item);
    }
    arguments.truncate(arguments.len() - 2);
    arguments.push_str("]}");
    // White space behind the value makes the number of fragments come out.
    arguments.push_str(&" ".repeat(4 * fragments - arguments.len()));
    let begin = r#""tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"store","arguments":""}}]"#;
    let mut chunks = vec![chunk(begin.to_owned(), "null")];
    let name = if named { r#""name":"store","# } else { "" };
    chunks.extend((0..fragments).map(|number| {
        let fragment = &arguments[4 * number..4 * number + 4];
        chunk(function(name, fragment), "null")
    }));
    chunks.push(chunk(String::new(), r#""tool_calls""#));
    chunks
}
