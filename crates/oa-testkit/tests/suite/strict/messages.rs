//! The conversation in a request.

use oa_testkit::Strict;
use serde_json::json;

use super::{
    assistant, bad, call, calls, conversation, full, good, result, system, user, with, without,
};

#[test]
fn nonportable_content_is_rejected() {
    let strict = Strict::new();
    for (path, value, line) in [
        ("/messages/0", json!("Hi"), "messages[0] is not an object"),
        ("/messages/0/content", json!(""), "messages[0].content is empty"),
        ("/messages/0/name", json!("x"), "messages[0].name is not known to every server"),
        ("/messages/1/content", json!(""), "messages[1].content is empty"),
        ("/messages/1/content", json!(null), "messages[1].content is null"),
        (
            "/messages/1/content",
            json!(7),
            "messages[1].content is neither a string nor a list of parts",
        ),
        ("/messages/1/content", json!([]), "messages[1].content is empty"),
        (
            "/messages/1/content",
            json!([{ "type": "text", "text": "Hi" }]),
            "messages[1].content is a list of only text: use a string",
        ),
        (
            "/messages/1/tool_calls",
            json!([]),
            "messages[1].tool_calls is not known to every server",
        ),
        ("/messages/7/content", json!(""), "messages[7].content is empty"),
        ("/messages/7/content", json!(null), "messages[7].content is null"),
        ("/messages/7/tool_calls", json!([]), "messages[7].tool_calls is empty"),
        (
            "/messages/7/reasoning_content",
            json!("hm"),
            "messages[7].reasoning_content is not known to every server",
        ),
        ("/messages/7/refusal", json!(null), "messages[7].refusal is not known to every server"),
        ("/messages/8/content/0/text", json!(""), "messages[8].content[0].text is empty"),
        (
            "/messages/8/content/0/type",
            json!("input_text"),
            "messages[8].content[0].type is \"input_text\": image_url, input_audio, text",
        ),
        (
            "/messages/8/content/0/cache_control",
            json!({}),
            "messages[8].content[0].cache_control is not known to every server",
        ),
        (
            "/messages/8/content/1/image_url",
            json!("https://example.com"),
            "messages[8].content[1].image_url is not an object",
        ),
        (
            "/messages/8/content/1/image_url",
            json!({}),
            "messages[8].content[1].image_url has no url",
        ),
        (
            "/messages/8/content/1/image_url/url",
            json!("file:///a.png"),
            "messages[8].content[1].image_url.url is \"file:///a.png\": data:image/, http://, https://",
        ),
        (
            "/messages/8/content/1/image_url/detail",
            json!("fine"),
            "messages[8].content[1].image_url.detail is \"fine\": auto, high, low",
        ),
        ("/messages/10/content", json!(null), "messages[10].content is not a string"),
        ("/messages/10/content", json!({ "sum": 3 }), "messages[10].content is not a string"),
    ] {
        bad(&strict, &with(full(), path, value), &[line]);
    }
    bad(&strict, &without(full(), "/messages/0/content"), &["messages[0] has no content"]);
    bad(&strict, &without(full(), "/messages/10/content"), &["messages[10] has no content"]);
    let line = "messages[8].content[1] has no image_url";
    bad(&strict, &without(full(), "/messages/8/content/1/image_url"), &[line]);
    let line = "messages[7] has neither content nor calls";
    bad(&strict, &without(full(), "/messages/7/content"), &[line]);

    let parts = |audio| json!([{ "type": "input_audio", "input_audio": audio }]);
    let audio = parts(json!({ "data": "aGk=", "format": "wav" }));
    good(&strict, &with(full(), "/messages/8/content", audio.clone()));
    let line = "messages[0].content[0].type is \"input_audio\": text";
    bad(&strict, &with(full(), "/messages/0/content", audio), &[line]);
    let lines = [
        "messages[8].content[0].input_audio.rate is not known to every server",
        "messages[8].content[0].input_audio has no data",
        "messages[8].content[0].input_audio.format is not a string",
    ];
    let audio = parts(json!({ "format": 3, "rate": 16_000 }));
    bad(&strict, &with(full(), "/messages/8/content", audio), &lines);

    let picture = json!([{ "type": "image_url", "image_url": { "url": "https://example.com/a" } }]);
    let line = "messages[0].content[0].type is \"image_url\": text";
    bad(&strict, &with(full(), "/messages/0/content", picture), &[line]);

    let parts = json!([{ "type": "text", "text": "Hi" }, { "type": "text", "text": "there" }]);
    for path in ["/messages/0/content", "/messages/1/content", "/messages/7/content"] {
        good(&Strict::new().allow_text_parts(), &with(full(), path, parts.clone()));
    }
}

#[test]
fn calls_are_whole() {
    let strict = Strict::new();
    let at = "messages[2].tool_calls[0]";
    for (path, value, line) in [
        ("type", json!("tool"), "type is \"tool\": function"),
        ("index", json!(0), "index is not known to every server"),
        ("function/name", json!(7), "function.name is not a string"),
        ("function/arguments", json!({}), "function.arguments is not a string"),
        (
            "function/arguments",
            json!("[1]"),
            "function.arguments is \"[1]\", which is not an object",
        ),
        (
            "function/arguments",
            json!("null"),
            "function.arguments is \"null\", which is not an object",
        ),
        (
            "function/arguments",
            json!(""),
            "function.arguments is \"\", which is not JSON: EOF while parsing a value at line 1 column 0",
        ),
        (
            "function/arguments",
            json!("{\"a\": "),
            "function.arguments is \"{\"a\": \", which is not JSON: EOF while parsing a value at line 1 column 6",
        ),
        (
            "function/arguments",
            json!(r#"{"a": 1, "b": [{"c": 1}, {"c": 1, "c": 2}], "\u0061": 1}"#),
            "function.arguments has \"b[1].c\" twice",
        ),
    ] {
        let mut lines = vec![format!("{at}.{line}")];
        if line.contains("b[1].c") {
            lines.push(format!("{at}.function.arguments has \"a\" twice"));
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let path = format!("/messages/2/tool_calls/0/{path}");
        bad(&strict, &with(full(), &path, value), &lines);
    }
    for (path, line) in [
        ("type", "has no type"),
        ("function", "has no function"),
        ("function/arguments", ".function has no arguments"),
        ("function/name", ".function has no name"),
    ] {
        let space = if line.starts_with('.') { "" } else { " " };
        let request = without(full(), &format!("/messages/2/tool_calls/0/{path}"));
        bad(&strict, &request, &[&format!("{at}{space}{line}")]);
    }
    bad(
        &strict,
        &without(full(), "/messages/2/tool_calls/0/id"),
        &[
            &format!("{at} has no id"),
            "messages[3].tool_call_id is \"a\", which no earlier call has",
        ],
    );
}

#[test]
fn every_call_is_answered_once_and_in_order() {
    let strict = Strict::new();
    let pair = || calls(json!([call("a", "add", "{}"), call("b", "sub", "{}")]));
    let (a, b) = (|| result("a", "add"), || result("b", "sub"));
    for (messages, lines) in [
        (json!([user(), pair(), a(), b()]), &[][..]),
        (
            json!([user(), pair(), b(), a()]),
            &["messages[2].tool_call_id is \"b\", but \"a\" must come first"],
        ),
        (json!([user(), pair(), a()]), &["messages[1].tool_calls[1] is not answered"]),
        (
            json!([user(), pair(), user()]),
            &[
                "messages[1].tool_calls[0] is not answered",
                "messages[1].tool_calls[1] is not answered",
            ],
        ),
        (
            json!([user(), pair(), a(), user(), b()]),
            &[
                "messages[1].tool_calls[1] is not answered",
                "messages[4].tool_call_id is \"b\", which no earlier call has",
            ],
        ),
        (
            json!([user(), pair(), a(), b(), b()]),
            &["messages[4].tool_call_id is \"b\", which was already answered"],
        ),
        (
            json!([user(), pair(), a(), a(), b()]),
            &["messages[3].tool_call_id is \"a\", which was already answered"],
        ),
        (json!([user(), a()]), &["messages[1].tool_call_id is \"a\", which no earlier call has"]),
        (json!([a()]), &["messages[0].tool_call_id is \"a\", which no earlier call has"]),
        (
            json!([user(), pair(), a(), result("b", "add")]),
            &["messages[3].name is \"add\", but \"sub\" was called"],
        ),
        (
            json!([
                user(),
                calls(json!([call("a", "add", "{}"), call("a", "add", "{}")])),
                a(),
                a()
            ]),
            &["messages[1].tool_calls[1].id is \"a\", which is already used"],
        ),
    ] {
        let request = conversation(messages);
        match lines {
            [] => good(&strict, &request),
            _ => bad(&strict, &request, lines),
        }
    }
    bad(
        &strict,
        &without(full(), "/messages/10/tool_call_id"),
        &["messages[10] has no tool_call_id", "messages[9].tool_calls[0] is not answered"],
    );
    bad(&strict, &without(full(), "/messages/10/name"), &["messages[10] has no name"]);
    let nameless = Strict::new().allow_nameless_results();
    good(&nameless, &without(full(), "/messages/10/name"));
    let line = "messages[10].name is \"sub\", but \"add\" was called";
    bad(&nameless, &with(full(), "/messages/10/name", json!("sub")), &[line]);
}

#[test]
fn call_ids_are_checked_and_unique() {
    let asks = |id: &str| {
        let calls = calls(json!([call(id, "add", "{}")]));
        conversation(json!([user(), calls, result(id, "add")]))
    };
    let check = |rules: &Strict, id: &str, what: Option<&str>| match what {
        None => good(rules, &asks(id)),
        Some(what) => {
            let lines = ["messages[1].tool_calls[0].id", "messages[2].tool_call_id"];
            let lines = lines.map(|path| format!("{path} {what}"));
            bad(rules, &asks(id), &[&lines[0], &lines[1]]);
        }
    };
    let strict = Strict::new();
    check(&strict, "functions.add:0", None);
    check(&strict, &"é".repeat(64), None);
    check(&strict, "", Some("has 0 characters: 1 to 64"));
    check(&strict, &"x".repeat(65), Some("has 65 characters: 1 to 64"));
    check(&Strict::new().allow_long_ids(), &"x".repeat(65), None);
    let nine = Strict::new().require_nine_letter_ids();
    check(&nine, "abcDEF123", None);
    check(&nine, "abcDEF12", Some("is \"abcDEF12\": nine letters or digits"));
    check(&nine, "abcDEF12_", Some("is \"abcDEF12_\": nine letters or digits"));

    let again = || [calls(json!([call("a", "add", "{}")])), result("a", "add")];
    let ([one, two], [three, four]) = (again(), again());
    let request = conversation(json!([user(), one, two, three, four]));
    bad(&strict, &request, &["messages[3].tool_calls[0].id is \"a\", which is already used"]);
    good(&Strict::new().allow_repeated_ids(), &request);
    let twice = calls(json!([call("a", "add", "{}"), call("a", "add", "{}")]));
    let request = conversation(json!([user(), twice, result("a", "add"), result("a", "add")]));
    let line = "messages[1].tool_calls[1].id is \"a\", which is already used";
    bad(&Strict::new().allow_repeated_ids(), &request, &[line]);
}

#[test]
fn role_order_is_checked() {
    let strict = Strict::new();
    for (messages, line) in [
        (
            json!([user(), system(), user()]),
            "messages[1].role is system, which is allowed only first",
        ),
        (
            json!([system(), system(), user()]),
            "messages[1].role is system, which is allowed only first",
        ),
        (json!([system()]), "messages[0].role is system: there is nothing to answer"),
        (json!([user(), assistant()]), "messages[1].role is assistant: there is nothing to answer"),
        (
            json!([user(), user()]),
            "messages[1].role is that of the previous message: merge the two",
        ),
        (
            json!([user(), assistant(), assistant(), user()]),
            "messages[2].role is that of the previous message: merge the two",
        ),
        (json!([assistant(), user()]), "messages[0].role is assistant before any user message"),
        (
            json!([system(), assistant(), user()]),
            "messages[1].role is assistant before any user message",
        ),
        (
            json!([{ "role": "developer", "content": "Hi" }, user()]),
            "messages[0].role is \"developer\": assistant, system, tool, user",
        ),
        (json!([{ "content": "Hi" }]), "messages[0] has no role"),
    ] {
        bad(&strict, &conversation(messages), &[line]);
    }

    let first = Strict::new().allow_assistant_first();
    good(&first, &conversation(json!([system(), assistant(), user()])));
    let line = "messages[1].role is that of the previous message: merge the two";
    bad(&first, &conversation(json!([assistant(), assistant(), user()])), &[line]);

    let repeated = Strict::new().allow_repeated_roles();
    let messages = json!([system(), assistant(), assistant(), user(), user()]);
    good(&repeated, &conversation(messages));
    let line = "messages[1].role is system, which is allowed only first";
    bad(&repeated, &conversation(json!([user(), system(), user()])), &[line]);

    let call = || calls(json!([call("a", "add", "{}")]));
    let messages = json!([user(), call(), result("a", "add"), user()]);
    let line =
        "messages[3].role is user right after tool: an assistant message must come between them";
    for rules in [Strict::new(), Strict::new().allow_repeated_roles()] {
        good(&rules, &conversation(messages.clone()));
        bad(&rules.refuse_user_after_tool(), &conversation(messages.clone()), &[line]);
    }
}

#[test]
fn blank_text_is_rejected() {
    let strict = Strict::new();
    let blank = |role: &str| json!({ "role": role, "content": " \n" });
    let line = "messages[0].content is blank";
    bad(&strict, &conversation(json!([blank("user")])), &[line]);
    bad(&strict, &conversation(json!([blank("system"), user()])), &[line]);
    let line = "messages[1].content is blank";
    bad(&strict, &conversation(json!([user(), blank("assistant"), user()])), &[line]);
    let mut asks = calls(json!([call("a", "add", "{}")]));
    asks["content"] = json!("\n\n");
    bad(&strict, &conversation(json!([user(), asks, result("a", "add")])), &[line]);
}
