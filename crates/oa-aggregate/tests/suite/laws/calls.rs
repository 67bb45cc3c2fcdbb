//! Calls put together from fragments, against a naive port of the fixtures' oracle.

use oa_aggregate::{ContentBlock, Options};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::{Told, finish, run};

/// A fragment as it is sent; none is a member that is missing.
#[derive(Clone, Debug)]
struct Sent {
    index: Option<Value>,
    id: Option<Value>,
    name: Option<Value>,
    /// A value in place of its text, too.
    arguments: Option<Value>,
}

impl Sent {
    fn to_value(&self) -> Value {
        let mut function = json!({});
        let mut call = json!({ "type": "function" });
        let set = |object: &mut Value, name: &str, value: &Option<Value>| {
            if let Some(value) = value {
                object[name] = value.clone();
            }
        };
        set(&mut function, "name", &self.name);
        set(&mut function, "arguments", &self.arguments);
        set(&mut call, "index", &self.index);
        set(&mut call, "id", &self.id);
        call["function"] = function;
        call
    }

    fn index(&self) -> Option<i64> {
        let index = self.index.as_ref()?;
        index.as_i64().or_else(|| index.as_str()?.parse().ok())
    }

    fn id(&self) -> Option<&str> {
        self.id.as_ref()?.as_str().filter(|id| !id.is_empty())
    }

    fn name(&self) -> Option<&str> {
        self.name.as_ref()?.as_str().filter(|name| !name.is_empty())
    }

    fn arguments(&self) -> String {
        match &self.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Call {
    index: Option<i64>,
    id: Option<String>,
    name: Option<String>,
    parts: Vec<String>,
    /// The id when the call started.
    settled_id: Option<Option<String>>,
    /// It could have started, and waits one fragment for an id.
    waits: bool,
}

impl Call {
    fn arguments(&self) -> String {
        self.parts.concat()
    }

    fn is_whole(&self) -> bool {
        is_json(&self.arguments())
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok()
}

/// `call_for` of the oracle, but that without an index, a new id means nothing unless there is a name.
fn call_for(calls: &[Call], sent: &Sent) -> Option<usize> {
    let same_id =
        sent.id().and_then(|id| calls.iter().position(|call| call.id.as_deref() == Some(id)));
    if let Some(index) = sent.index() {
        let Some(slot) = calls.iter().rposition(|call| call.index == Some(index)) else {
            // A known id under another index still means the same call, without a name or with all of a call that
            // has arguments.
            return same_id.filter(|&same| {
                let (call, arguments) = (&calls[same], sent.arguments());
                sent.name().is_none()
                    || sent.name() == call.name.as_deref()
                        && arguments == call.arguments()
                        && call.is_whole()
                        && arguments.split_whitespace().collect::<String>() != "{}"
            });
        };
        let call = &calls[slot];
        if sent.id().is_none() || call.id.is_none() || sent.id() == call.id.as_deref() {
            // Same slot, no conflicting id. A second name after complete arguments starts a call.
            let again = sent.name().is_some() && sent.id().is_none() && call.name.is_some();
            return (!(again && call.is_whole())).then_some(slot);
        }
        return same_id.or_else(|| sent.name().is_none().then_some(slot));
    }
    if same_id.is_some() || (sent.id().is_some() && sent.name().is_some()) {
        return same_id;
    }
    let last = calls.len().checked_sub(1)?;
    let call = &calls[last];
    // A new id means nothing without a name, unless the arguments before are complete.
    if sent.id().is_some() && !sent.arguments().trim().is_empty() && call.is_whole() {
        return None;
    }
    if let (Some(name), Some(old)) = (sent.name(), &call.name)
        && (name != old || call.is_whole())
    {
        return None;
    }
    Some(last)
}

/// `tool_delta` of the oracle, but that an id which another call has is not taken over, and that the id stays as it
/// is once the call has started: one fragment after its name is settled, if no id has come by then.
fn assemble(fragments: &[Sent]) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for sent in fragments {
        let number = call_for(&calls, sent).unwrap_or_else(|| {
            if let Some(last) = calls.last_mut().filter(|last| last.waits) {
                last.settled_id.get_or_insert_with(|| last.id.clone());
            }
            calls.push(Call { index: sent.index(), ..Call::default() });
            calls.len() - 1
        });
        if let Some(id) = sent.id()
            && calls.iter().all(|call| call.id.as_deref() != Some(id))
        {
            calls[number].id.get_or_insert_with(|| id.to_owned());
        }
        let is_empty = calls[number].arguments().is_empty();
        let call = &mut calls[number];
        match (sent.name(), &mut call.name) {
            (None, _) => {}
            (Some(name), None) => call.name = Some(name.to_owned()),
            (Some(name), Some(old)) if name != old && is_empty => old.push_str(name),
            (Some(_), Some(_)) => {}
        }
        call.parts.push(sent.arguments());
        if call.settled_id.is_none() && call.name.is_some() && !call.arguments().is_empty() {
            if call.id.is_some() || call.waits {
                call.settled_id = Some(call.id.clone());
            }
            call.waits = true;
        }
    }
    for call in &mut calls {
        call.settled_id.get_or_insert_with(|| call.id.clone());
    }
    calls
}

/// `arguments_object` of the oracle, but that null and JSON in a string are unwrapped wherever they
/// stand, and an empty object in front of another one is a placeholder.
fn object(parts: &[String]) -> Option<Value> {
    let raw = parts.concat();
    let raw = raw.trim();
    if raw.is_empty() {
        return Some(json!({}));
    }
    if let Ok(value) = serde_json::from_str(raw) {
        return unwrap(value);
    }
    let parts: Vec<&String> = parts.iter().filter(|part| !part.is_empty()).collect();
    if let [before @ .., last] = &parts[..]
        && !before.is_empty()
        && let Ok(value) = serde_json::from_str(last)
    {
        let extends = parts.windows(2).all(|pair| pair[1].starts_with(&**pair[0]));
        let before: String = before.iter().map(|part| part.as_str()).collect();
        let is_begun = last.starts_with(&before);
        if extends || is_begun || (before.trim() == last.trim() && value != Value::Null) {
            return unwrap(value);
        }
    }
    if let [first, rest @ ..] = &parts[..]
        && first.trim() == "{}"
        && let Ok(value @ Value::Object(_)) =
            serde_json::from_str(&rest.iter().map(|part| part.as_str()).collect::<String>())
    {
        return Some(value);
    }
    let values: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_str(raw).into_iter().collect();
    let mut values = values.unwrap_or_default();
    values.dedup();
    match &values[..] {
        [value] => unwrap(value.clone()),
        [] => unwrap(serde_json::from_str(&oa_json::escape_control_characters(raw)).ok()?),
        _ => None,
    }
}

fn unwrap(value: Value) -> Option<Value> {
    match value {
        Value::Null => Some(json!({})),
        Value::Object(_) => Some(value),
        Value::String(text) if text.trim().is_empty() => Some(json!({})),
        Value::String(text) => serde_json::from_str(&text).ok().filter(Value::is_object),
        _ => None,
    }
}

fn sent() -> impl Strategy<Value = Sent> {
    let index = prop_oneof![
        3 => Just(None),
        1 => Just(Some(Value::Null)),
        4 => Just(Some(json!(0))),
        2 => Just(Some(json!(1))),
        1 => Just(Some(json!(7))),
        1 => Just(Some(json!("0"))),
    ];
    let id = prop_oneof![
        4 => Just(None),
        1 => Just(Some(Value::Null)),
        1 => Just(Some(json!(""))),
        4 => select(vec![json!("a"), json!("b"), json!("c")]).prop_map(Some),
        1 => Just(Some(json!(5))),
    ];
    let name = prop_oneof![
        4 => Just(None),
        1 => Just(Some(Value::Null)),
        1 => Just(Some(json!(""))),
        4 => select(vec![json!("f"), json!("g"), json!("add"), json!("_all")]).prop_map(Some),
    ];
    let text = select(vec![
        "",
        " ",
        "{}",
        "{\"a\":1}",
        "{\"a\":",
        "1}",
        "{\"a\":1,\"b\":2}",
        "{\"b\":2}",
        "null",
        "\"{}\"",
        "\"",
        "[1]",
        "x",
        "1",
        "tr",
        "ue",
        "{\"t\":\"}{\\\"",
        "\"}",
        "\n",
        "{]",
        "\"\"",
        "é",
        "{ }",
    ]);
    let arguments = prop_oneof![
        2 => Just(None),
        1 => Just(Some(Value::Null)),
        8 => text.prop_map(|text| Some(json!(text))),
        1 => select(vec![json!({}), json!({"a": 1}), json!([1]), json!(5), json!(false)]).prop_map(Some),
    ];
    (index, id, name, arguments).prop_map(|(index, id, name, arguments)| Sent {
        index,
        id,
        name,
        arguments,
    })
}

/// Fragments of one server: what it leaves out or repeats, it leaves out or repeats everywhere.
fn stream() -> impl Strategy<Value = Vec<Sent>> {
    let call = (select(vec!["f", "g", "add"]), 0..40_i64, vec(any::<prop::sample::Index>(), 0..6));
    let habits = (0..5_u8, 0..6_u8, 0..4_u8, 0..3_u8);
    (vec(call, 0..4), habits).prop_map(|(calls, (index, id, name, resend))| {
        let mut list = Vec::new();
        for (number, (tool, value, cuts)) in calls.into_iter().enumerate() {
            let whole = json!({ "a": value, "text": "x{\"é}" }).to_string();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len())).collect();
            places.retain(|&at| whole.is_char_boundary(at));
            places.push(whole.len());
            places.sort_unstable();
            let mut start = 0;
            for (piece, end) in places.into_iter().enumerate() {
                let first = piece == 0;
                let from = if resend == 1 { 0 } else { start };
                start = end;
                list.push(Sent {
                    index: match index {
                        0 => None,
                        1 => Some(json!(0)),
                        2 => Some(json!(number + 1)),
                        _ => Some(json!(number)),
                    },
                    id: match id {
                        0 => None,
                        1 => Some(json!(format!("c{number}"))),
                        2 => Some(json!(format!("c{number}-{piece}"))),
                        3 => Some(json!("same")),
                        4 if !first => Some(json!("")),
                        _ => first.then(|| json!(format!("c{number}"))),
                    },
                    name: match name {
                        0 => Some(json!(tool)),
                        1 if !first => Some(json!("")),
                        _ => first.then(|| json!(tool)),
                    },
                    arguments: Some(json!(whole[from..end])),
                });
            }
            if resend == 2
                && let Some(last) = list.last().cloned()
            {
                list.push(Sent { arguments: Some(json!(whole)), ..last });
            }
        }
        list
    })
}

fn check(fragments: &[Sent], per_chunk: usize) {
    let mut payloads: Vec<String> = fragments
        .chunks(per_chunk)
        .map(|some| {
            let calls: Vec<Value> = some.iter().map(Sent::to_value).collect();
            json!({ "choices": [{ "delta": { "tool_calls": calls } }] }).to_string()
        })
        .collect();
    // An announced call that never came is an error (QUIRKS row 132).
    payloads.push(finish(if assemble(fragments).is_empty() { "stop" } else { "tool_calls" }));
    let outcome = run(Options::default(), &payloads);

    let expected: Vec<String> = assemble(fragments)
        .into_iter()
        .map(|call| {
            let settled = call.settled_id.clone().flatten();
            let (id, name) = (settled.as_deref(), call.name.as_deref());
            match object(&call.parts).filter(|_| call.name.is_some()) {
                Some(input) => format!("call {id:?} {name:?} {input}"),
                None => format!("error {id:?} {name:?} {:?}", call.arguments()),
            }
        })
        .collect();
    let known = |id: &str| (id.len() != 9).then(|| id.to_owned());
    let seen: Vec<String> = outcome
        .answer
        .blocks
        .iter()
        .map(|block| match block {
            ContentBlock::ToolUse(call) => {
                format!("call {:?} {:?} {}", known(&call.id), Some(&call.name), call.input)
            }
            ContentBlock::ToolUseError(call) => {
                let id = call.id.as_deref().and_then(known);
                format!("error {id:?} {:?} {:?}", call.name.as_deref(), call.raw_data)
            }
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(seen, expected, "{payloads:#?}");

    let starts = outcome.check_starts();
    let mut arguments = vec![String::new(); expected.len()];
    for told in &outcome.told {
        if let Told::CallArguments(call, fragment) = told {
            arguments[*call].push_str(fragment);
        }
    }
    let told = |(call, all): (usize, &Call)| {
        if starts.contains(&call) { all.arguments() } else { String::new() }
    };
    let all: Vec<String> = assemble(fragments).iter().enumerate().map(told).collect();
    assert_eq!(arguments, all, "all fragments of calls with a name are told");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8_000))]

    #[test]
    fn any_fragments_match_the_oracle(
        fragments in vec(sent(), 0..9),
        per_chunk in 1..4_usize,
    ) {
        check(&fragments, per_chunk);
    }

    #[test]
    fn server_fragments_match_the_oracle(
        fragments in stream(),
        per_chunk in 1..4_usize,
    ) {
        check(&fragments, per_chunk);
    }
}
