//! The server's answers: events as llama.cpp's server writes them, of some 250 bytes.

use std::sync::LazyLock;

/// A fragment of a call's arguments.
pub(crate) const WORD: &str = " word";
/// The argument of a round's call.
pub(crate) const PAGE: &str = "page";

pub(crate) const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The prompt tokens that an answer reports by default.
pub(crate) const PROMPT: usize = 25;

/// The number of bytes of chunks that are written at once.
const BURST: usize = 64 << 10;

/// The events of an answer.
pub(crate) struct Answer {
    pub(crate) begin: Vec<String>,
    pub(crate) pieces: Vec<String>,
    pub(crate) end: Vec<String>,
    reason: &'static str,
}

/// The way events are split into HTTP chunks, and chunks into writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Framing {
    /// Each event is a chunk, and many are written at once.
    Bursts,
    /// Chunks of 16 KiB.
    Large,
    /// Each event is a chunk, written alone.
    Single,
}

impl Answer {
    /// Sets the number of prompt tokens that is reported.
    pub(crate) fn reporting(self, prompt: usize) -> Self {
        Self { end: end(self.reason, prompt), ..self }
    }

    pub(crate) fn parts(self, framing: Framing) -> Vec<Vec<u8>> {
        let Self { begin, pieces, end, .. } = self;
        let events = [begin, pieces, end].concat();
        let body = match framing {
            Framing::Bursts => chunks(&events),
            Framing::Large => events.concat().as_bytes().chunks(16 << 10).flat_map(chunk).collect(),
            Framing::Single => {
                let mut parts = vec![HEAD.to_vec()];
                parts.extend(events.iter().map(|event| chunk(event.as_bytes())));
                parts.push(LAST_CHUNK.to_vec());
                return parts;
            }
        };
        [HEAD, &body, LAST_CHUNK].concat().chunks(BURST).map(<[u8]>::to_vec).collect()
    }
}

/// Returns an answer of text, in this many pieces.
pub(crate) fn text(number: usize) -> Answer {
    let begin = vec![delta(r#""role":"assistant","content":null"#)];
    let reason = "stop";
    Answer { begin, pieces: pieces(number), end: end(reason, PROMPT), reason }
}

/// Returns this many pieces of text.
pub(crate) fn pieces(number: usize) -> Vec<String> {
    let words = [" the", " quick", " brown", " fox", " jumps", " over", " a", " lazy", " dog", "."];
    let word = |place| words[place * 7 % words.len()];
    (0..number).map(|place| delta(&format!(r#""content":"{}""#, word(place)))).collect()
}

/// Returns a call whose arguments are this many words, in one fragment each.
pub(crate) fn call(words: usize) -> Answer {
    call_of(
        "write",
        "call_1",
        [r#"{"text":""#].into_iter().chain(vec![WORD; words]).chain([r#""}"#]),
    )
}

/// Returns the call of a round: its arguments differ from those of other rounds.
pub(crate) fn round(number: usize) -> Answer {
    let fragments = [r#"{""#, PAGE, r#"":"#, &format!(" {number}"), "}"];
    call_of("read", &format!("call_{number}"), fragments)
}

/// Returns the result of a round's tool: 1 KiB of text, made once.
pub(crate) fn page() -> String {
    static PAGE: LazyLock<String> = LazyLock::new(|| {
        let line = "The quick brown fox said \"hello\" to the lazy dog, who did not answer it.\n";
        line.chars().cycle().take(1 << 10).collect()
    });
    PAGE.clone()
}

/// Returns events as HTTP chunks, one each.
pub(crate) fn chunks(events: &[String]) -> Vec<u8> {
    events.iter().flat_map(|event| chunk(event.as_bytes())).collect()
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

fn call_of<'a>(name: &str, id: &str, fragments: impl IntoIterator<Item = &'a str>) -> Answer {
    let piece = |members: &str| delta(&format!(r#""tool_calls":[{{"index":0,{members}}}]"#));
    let head =
        format!(r#""id":"{id}","type":"function","function":{{"name":"{name}","arguments":""}}"#);
    let fragments = fragments.into_iter().map(|fragment| {
        let fragment = serde_json::to_string(fragment).expect("a string can be written");
        piece(&format!(r#""function":{{"arguments":{fragment}}}"#))
    });
    let begin = vec![delta(r#""role":"assistant","content":null"#), piece(&head)];
    let reason = "tool_calls";
    Answer { begin, pieces: fragments.collect(), end: end(reason, PROMPT), reason }
}

fn end(reason: &str, prompt: usize) -> Vec<String> {
    let usage = format!(
        r#","usage":{{"completion_tokens":100,"prompt_tokens":{prompt},"total_tokens":{}}}"#,
        prompt + 100,
    );
    let reason = format!(r#"{{"finish_reason":"{reason}","index":0,"delta":{{}}}}"#);
    vec![event(&reason, ""), event("", &usage), "data: [DONE]\n\n".to_owned()]
}

fn delta(members: &str) -> String {
    event(&format!(r#"{{"finish_reason":null,"index":0,"delta":{{{members}}}}}"#), "")
}

fn event(choices: &str, usage: &str) -> String {
    format!(
        "data: {{\"choices\":[{choices}],\"created\":1795226850,\"id\":\"chatcmpl-2kHw4Z24inpMWrdzHVKC5bVLcGmWzvKX\",\"model\":\"tiny-stories.gguf\",\"system_fingerprint\":\"b0-unknown\",\"object\":\"chat.completion.chunk\"{usage}}}\n\n",
    )
}
