//! A payload that matches a template gives the same result as a full parse.

use std::fs;
use std::path::Path;

use oa_aggregate::{AggregatedAnswer, Decoder, Options, Payload, Problem};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use crate::{Outcome, Told, run};

/// Chunks as servers send them: `@` is what is said, `#` a number that varies, `%` padding. The first
/// [`PLAIN`] of them can all match a template.
const FORMS: &[&str] = &[
    r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":#,"model":"m","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":"@"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"%"}"#,
    r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"@"}}],"created":#,"id":"%","model":"a.gguf","timings":{"n":#,"ms":1.5}}"#,
    r#"{"id": "1", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "@"}, "finish_reason": null}]}"#,
    r#"{"choices":[{"delta":{"content":"@"}}]}"#,
    r#"{"created":#,"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":"@"},"finish_reason":null}]}"#,
    r#"{"id":"g-1","provider":"P","created":#,"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"@","reasoning_details":[]},"finish_reason":null,"native_finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning":"@","reasoning_details":[{"type":"reasoning.text","text":"@","index":0}]}}]}"#,
    r#"{"id":"chatcmpl-1","created":#,"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"@"}}]},"logprobs":null,"finish_reason":null}],"usage":null}"#,
    r#"{"choices":[{"index":1,"delta":{"content":"@"}}],"usage":{"prompt_tokens":#}}"#,
    r#"{"choices":[{"index":#,"delta":{"content":"@"},"finish_reason":null}],"usage":null}"#,
    r#"{"choices":[{"index":0,"text":"@","delta":{"token_id":#,"role":"assistant","content":"@"}}]}"#,
    r#"{"id":"g","choices":[{"index":0,"delta":{"content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.summary","summary":"@","format":null,"index":0}]}}]}"#,
    r#"{"choices":[{"delta":{"reasoning":"@","reasoning_details":[{"index":2,"type":"x","data":"@","id":"d"}]}}]}"#,
    r#"{"choices":[{"delta":{"content":"@"}}],"usage":{"prompt_tokens":25,"completion_tokens":#,"total_tokens":#,"prompt_tokens_details":{"cached_tokens":#,"audio":#},"completion_tokens_details":{"reasoning_tokens":#}}}"#,
    r#"{"choices":[{"delta":{"content":"@"},"usage":{"completion_tokens":#,"total_tokens":1.5}}]}"#,
    r#"{"choices":[{"delta":{"reasoning":"@"}}],"x_groq":{"id":"%","usage":{"total_tokens":#}}}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning_content":"@","reasoning":"@"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning_content":"@","reasoning":"same"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"@"}]}}]}"#,
    r#"{"id":"%","created":#,"choices":[{"index":0,"delta":{"content":null,"tool_calls":[{"index":1,"id":"0","type":"function","function":{"name":"add","arguments":"@"}}]},"finish_reason":null}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"id":"","type":null,"function":{"name":"","arguments":"@"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"function_call":{"arguments":"@"}}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"function_call":{"name":"add","arguments":"@"}}}]}"#,
    r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"@@"},"delta":{"content":"@"}}]}"#,
    r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"@"}}]}"#,
    // Members that come twice: the last one counts.
    r#"{"choices":[{"delta":{"content":"a","content":"@"}}]}"#,
    r#"{"choices":[{"delta":{"content":"@","content":null}}]}"#,
    r#"{"choices":[{"delta":{"content":"@","content":[{"type":"text","text":"@"}]}}]}"#,
    r#"{"choices":[{"delta":{"content":[{"type":"refusal","refusal":"@"}],"content":"@"}}]}"#,
    r#"{"choices":[{"delta":{"refusal":"@","content":"@","refusal":null}}]}"#,
    r#"{"choices":[{"delta":{"content":"@"}}],"choices":[{"message":{"content":"b"}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"@","arguments":{}}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"@","arguments":null}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}],"function_call":{"arguments":"@"}}}]}"#,
    r#"{"choices":[{"delta":{"content":"a"},"delta":{"content":"@"}}]}"#,
    r#"{"choices":[{"index":0,"index":#,"delta":{"content":"@"}}]}"#,
    r#"{"usage":{"total_tokens":#},"choices":[{"delta":{"content":"@"}}],"usage":null}"#,
    r#"{"choices":[{"delta":{"content":"@"}}],"usage":{"total_tokens":1,"total_tokens":#}}"#,
    r#"{"choices":[{"delta":{"reasoning_details":[{"index":0,"text":"@","text":"b"}]}}]}"#,
    // Half a surrogate pair in a detail, beside its words.
    r#"{"choices":[{"delta":{"reasoning":"@","reasoning_details":[{"type":"\ud83d","text":"@","index":0}]}}]}"#,
    // Names of thinking, and what stands beside it.
    r#"{"choices":[{"index":0,"delta":{"content":null,"reasoning_text":"@"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning_content":{"text":"@"},"reasoning":""}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning":[{"text":"@"},"%"],"content":""}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning_content":"@","thinking_blocks":[{"type":"thinking","thinking":"@","signature":null}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"@","extra_content":{"google":{"thought":true}}}}]}"#,
    // No delta.
    r#"{"id":"%","choices":[{"index":0,"text":"@","logprobs":null,"finish_reason":null}]}"#,
    r#"{"object":"%","message":"@","type":"%"}"#,
    r#"{"text":"@","error_code":#}"#,
    r#"{"choices":[{"delta":{"content":"@"},"error":"%"}]}"#,
    r#"{"choices":[{"delta":{"content":"@"},"logprobs":{"content":[{"logprob":-Infinity}]}}]}"#,
    r#"{"choices":[{"delta":{"content":"@"}}],"usage":{"total_tokens":#,"cached_tokens":#,"reasoning_tokens":#}}"#,
    r#"{"choices":[{"delta":{"content":"@"}}],"usage":{"cached_tokens":#,"prompt_tokens_details":{"cached_tokens":#}}}"#,
    // Counts in quotes.
    r#"{"choices":[{"delta":{"content":"@"}}],"usage":{"prompt_tokens":"25","completion_tokens":#}}"#,
    r#"{"choices":[{"index":"0","delta":{"content":"@"},"usage":{"total_tokens":"9"}}]}"#,
];

const PLAIN: usize = 16;

/// Words: plain, empty, escaped, not ASCII, and what no string may hold.
pub(super) const WORDS: &[&str] = &[
    "Hello",
    " wörld 🙂",
    "",
    r#"\n\t\"\\\/\b\f\r"#,
    r"\u00e9\ud83d\ude42",
    r"\ud83d",
    r"\q",
    r"\u12",
    "\u{1}",
    "a\nb",
    r#"","content":"x"#,
    r"\",
];

pub(super) fn fill(form: &str, words: &str, number: u32) -> String {
    let padding = &"abcdefgh"[..(number as usize) % 9];
    form.replace('@', words).replace('#', &number.to_string()).replace('%', padding)
}

/// Returns what a payload says, and what is left out of it when it is recognized by comparison.
fn show(decoder: &mut Decoder, payload: &[u8]) -> (String, String) {
    match decoder.decode(payload) {
        Ok(Payload::Chunk(chunk)) => {
            let choices: Vec<_> = chunk.choices().collect();
            let says = format!("{choices:?} {:?} {:?}", chunk.error, chunk.usage);
            (says, format!("{:?} {:?}", chunk.id, chunk.model))
        }
        other => (format!("{other:?}"), String::new()),
    }
}

#[track_caller]
pub(super) fn check_list(payloads: &[impl AsRef<[u8]>]) -> u64 {
    let mut decoder = Decoder::new();
    for payload in payloads {
        let payload = payload.as_ref();
        let (_, before) = decoder.hits_and_misses();
        let seen = show(&mut decoder, payload);
        let told = decoder.hits_and_misses().1 == before;
        let read = show(&mut Decoder::new(), payload);
        if seen.0 != read.0 || (!told && seen.1 != read.1) {
            let list: Vec<_> =
                payloads.iter().map(|payload| String::from_utf8_lossy(payload.as_ref())).collect();
            panic!(
                "of {list:#?}\n{}\nsays {}\nand not {}",
                String::from_utf8_lossy(payload),
                read.0,
                seen.0
            );
        }
    }
    decoder.hits_and_misses().0
}

/// Shapes one after the other in a stream: a plain one, then one like it, then the plain one again.
#[track_caller]
fn check_beside(form: &str, other: &[u8]) {
    let other = String::from_utf8_lossy(other);
    let mut list: Vec<String> = (0..3).map(|n| fill(form, WORDS[n as usize], n)).collect();
    list.extend((3..7).map(|n| fill(&other, WORDS[n as usize % 4], n)));
    list.extend((7..9).map(|n| fill(form, "x", n)));
    check_list(&list);
}

#[test]
fn any_text_decodes_the_same_with_templates() {
    for form in FORMS {
        for first in WORDS {
            let list: Vec<String> = [first]
                .into_iter()
                .chain(WORDS)
                .enumerate()
                .map(|(number, words)| fill(form, words, number as u32))
                .collect();
            check_list(&list);
        }
    }
}

#[test]
fn plain_chunks_match_templates() {
    for form in &FORMS[..PLAIN] {
        let list: Vec<String> = (0..100).map(|number| fill(form, "word", number)).collect();
        assert!(check_list(&list) >= 90, "{form}");
    }
}

#[test]
fn changed_byte_decodes_as_without_templates() {
    let bytes = b"\"\\{}[],: 0-.enau\0\x1f\n\x7f\xc3\xff";
    for form in FORMS {
        for at in 0..form.len() {
            let (before, behind) = form.as_bytes().split_at(at);
            check_beside(form, &[before, &behind[1..]].concat());
            check_beside(form, before);
            for &byte in bytes {
                check_beside(form, &[before, &[byte], behind].concat());
                check_beside(form, &[before, &[byte], &behind[1..]].concat());
            }
        }
    }
}

#[test]
fn changed_byte_among_many_is_noticed() {
    for form in FORMS {
        let plain = fill(form, "word", 5);
        for at in 0..plain.len() {
            for byte in [b'"', b'\\', b'0', b'x', b' ', b'\n', 0xc3, 0xff] {
                let mut bytes = plain.clone().into_bytes();
                bytes[at] = byte;
                let like = [fill(form, "some", 3), fill(form, "words", 4)].map(String::into_bytes);
                let [one, two] = like;
                check_list(&[one, two, bytes, plain.clone().into_bytes()]);
            }
        }
    }
}

#[test]
fn changed_value_decodes_as_without_templates() {
    let values = [
        "null",
        "true",
        "0",
        "1",
        "-1.5e3",
        "01",
        r#""""#,
        r#""stop""#,
        r#""@""#,
        r#""a\"b""#,
        r#""\ud83d""#,
        "[]",
        "{}",
        r#"["@"]"#,
        r#"{"a":"@"}"#,
        r#"[{"text":"@"}]"#,
        r#"{"total_tokens":#}"#,
        r#"{"content":"@"}"#,
        r#"{"google":{"thought":true,"a":"%"}}"#,
        "NaN",
        "-Infinity",
        r#""error""#,
        r#"[{"index":1}]"#,
        r#"[{"delta":{"content":"@"}}]"#,
    ];
    for form in FORMS {
        for (at, _) in form.match_indices("\":") {
            let start = at + 2;
            let fits = form.replace('#', "0");
            let mut stream =
                serde_json::Deserializer::from_str(&fits[start..]).into_iter::<Value>();
            if !matches!(stream.next(), Some(Ok(_))) {
                continue;
            }
            let end = start + stream.byte_offset();
            for value in values {
                check_beside(form, format!("{}{value}{}", &form[..start], &form[end..]).as_bytes());
            }
        }
    }
}

#[test]
fn added_member_decodes_as_without_templates() {
    let members = [
        r#""a":#"#,
        r#""a":"%""#,
        r#""a":{"b":[#,"%"]}"#,
        r#""id":"%""#,
        r#""id":"""#,
        r#""model":null"#,
        r#""index":1"#,
        r#""index":null"#,
        r#""name":"sub""#,
        r#""error":"no""#,
        r#""error":null"#,
        r#""error":{}"#,
        r#""usage":{"total_tokens":#}"#,
        r#""usage":{}"#,
        r#""x_groq":{"id":"%","usage":{"total_tokens":#}}"#,
        r#""choices":[]"#,
        r#""choices":null"#,
        r#""choices":[{"message":{"content":"m"}}]"#,
        r#""choices":[{"delta":{"content":"@"}},{"index":1}]"#,
        r#""delta":null"#,
        r#""delta":{}"#,
        r#""delta":{"content":"@"}"#,
        r#""message":{"content":"m"}"#,
        r#""finish_reason":"stop""#,
        r#""finish_reason":"""#,
        r#""finish_reason":#"#,
        r#""content":"@""#,
        r#""content":"""#,
        r#""content":#"#,
        r#""content":[]"#,
        r#""content":["@"]"#,
        r#""reasoning":"@""#,
        r#""reasoning":"""#,
        r#""reasoning_content":"r""#,
        r#""reasoning_details":[{"text":"d"}]"#,
        r#""refusal":"no""#,
        r#""refusal":null"#,
        r#""text":"@""#,
        r#""text":"""#,
        r#""object":"error""#,
        r#""type":"error""#,
        r#""error_code":#"#,
        r#""reasoning_text":"@""#,
        r#""reasoning_opaque":"@""#,
        r#""reasoning_content":{"text":"@"}"#,
        r#""reasoning":[]"#,
        r#""thinking_blocks":[{"type":"thinking","thinking":"@","signature":"s"}]"#,
        r#""extra_content":{"google":{"thought":true}}"#,
        r#""finish_reason":"error""#,
        r#""cached_tokens":#"#,
        r#""reasoning_tokens":null"#,
        r#""a":[NaN,-Infinity]"#,
        r#""tool_calls":[]"#,
        r#""tool_calls":[{}]"#,
        r#""tool_calls":[{"index":3,"function":{"arguments":"@"}}]"#,
        r#""tool_calls":{"function":{"arguments":{"a":#}}}"#,
        r#""function":null"#,
        r#""function":{"arguments":"@"}"#,
        r#""function_call":{"name":"f"}"#,
        r#""function_call":{"arguments":""}"#,
        r#""arguments":"@""#,
        r#""arguments":"""#,
        r#""arguments":null"#,
        r#""arguments":{"a":#}"#,
        r#""extra_content":{"google":"%"}"#,
        r#""\u0063ontent":"@""#,
    ];
    for form in FORMS {
        for (at, _) in form.match_indices('{') {
            for member in members {
                let comma = if form[at + 1..].starts_with('}') { "" } else { "," };
                let (before, behind) = form.split_at(at + 1);
                check_beside(form, format!("{before}{member}{comma}{behind}").as_bytes());
            }
        }
        for (at, _) in form.match_indices('}') {
            for member in members {
                let comma = if form[..at].ends_with('{') { "" } else { "," };
                let (before, behind) = form.split_at(at);
                check_beside(form, format!("{before}{comma}{member}{behind}").as_bytes());
            }
        }
    }
}

/// Without the position, which white space moves.
fn without_places(mut outcome: Outcome) -> Outcome {
    let hide = |problem: &Problem| matches!(problem, Problem::Unreadable(_));
    outcome.told.retain(|told| !matches!(told, Told::Problem(problem) if hide(problem)));
    let AggregatedAnswer { problems, .. } = &mut outcome.answer;
    problems.retain(|problem| !hide(problem));
    outcome
}

/// The same payloads, none of which is like one before it: they end in white space, each in more.
fn unlike(payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let spaced = |(count, payload): (usize, &Vec<u8>)| {
        let mut payload = payload.clone();
        payload.resize(payload.len() + count, b' ');
        payload
    };
    payloads.iter().enumerate().map(spaced).collect()
}

#[track_caller]
fn check_answers(payloads: &[Vec<u8>]) {
    check_answers_with(Options::default(), payloads);
}

#[track_caller]
pub(super) fn check_answers_with(options: Options, payloads: &[Vec<u8>]) {
    let unlike = unlike(payloads);
    let told = without_places(run(options, payloads));
    let read = without_places(run(options, &unlike));
    assert_eq!(told, read);
    let mut decoder = Decoder::new();
    for payload in &unlike {
        let _ = decoder.decode(payload);
    }
    assert_eq!((decoder.hits_and_misses().0, decoder.deltas_read()), (0, 0), "all is read in full");
}

/// The payloads of each fixture; none in a package by itself.
pub(super) fn fixtures() -> Vec<Vec<Vec<u8>>> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let mut all = Vec::new();
    for folder in ["made", "own", "live"] {
        let Ok(files) = fs::read_dir(fixtures.join(folder)) else { continue };
        for file in files {
            let path = file.expect("a folder can be read").path();
            if path.extension().is_none_or(|extension| extension != "sse") {
                continue;
            }
            let body = fs::read(path).expect("a file that was listed can be read");
            let lines = body.split(|byte| matches!(byte, b'\n' | b'\r'));
            let payloads = lines.filter_map(|line| line.strip_prefix(b"data:"));
            all.push(payloads.map(|data| data.trim_ascii().to_vec()).collect());
        }
    }
    all
}

#[test]
fn fixtures_decode_as_without_templates() {
    for payloads in fixtures() {
        check_list(&payloads);
        check_answers(&payloads);
    }
}

/// A form with up to three places changed.
pub(super) fn form() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), 0..4_u8, any::<u8>());
    let byte = prop_oneof![select(b"@#%\"\\{}[],:0".to_vec()), any::<u8>()];
    (select(FORMS), vec((change, byte), 0..3)).prop_map(|(form, changes)| {
        let mut form = form.as_bytes().to_vec();
        for ((at, kind, _), byte) in changes {
            let at = at.index(form.len());
            match kind {
                0 => drop(form.remove(at)),
                1 => form.insert(at, byte),
                2 => form[at] = byte,
                _ => form.truncate(at + 1),
            }
        }
        form
    })
}

pub(super) fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        select(WORDS).prop_map(str::to_owned),
        "[ -~]{0,12}",
        any::<String>().prop_map(|text| {
            let json = Value::from(text).to_string();
            json[1..json.len() - 1].to_owned()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn payloads_decode_as_without_templates(
        forms in vec(form(), 1..4),
        list in vec((any::<prop::sample::Index>(), words(), 0..20_u32), 0..24),
    ) {
        let payloads: Vec<Vec<u8>> = list
            .iter()
            .map(|(form, words, number)| {
                let form = &forms[form.index(forms.len())];
                match str::from_utf8(form) {
                    Ok(form) => fill(form, words, *number).into_bytes(),
                    Err(_) => form.clone(),
                }
            })
            .collect();
        check_list(&payloads);
        check_answers(&payloads);
    }
}
