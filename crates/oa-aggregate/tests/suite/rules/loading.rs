//! Rules of proxies that load a model: their notices, and their signs of life (QUIRKS rows 149 and 150).

use super::*;

const NOTICE: [&str; 9] = [
    "━━━━━",
    "\n",
    "llama",
    "-swap loading model: a",
    "\n",
    "...",
    "\nDone! (2s)\n",
    "━━━━━\n",
    " \n",
];

/// A chunk of thinking, with or without an id.
fn thinking(id: Option<&str>, words: &str) -> String {
    let mut chunk = json!({"model": "a", "choices": [{"delta": {"reasoning_content": words}}]});
    if let Some(id) = id {
        chunk["id"] = id.into();
    }
    chunk.to_string()
}

fn text_of(id: &str, text: &str) -> String {
    json!({"id": id, "model": "b", "choices": [{"delta": {"content": text}}]}).to_string()
}

fn notice(id: Option<&str>) -> Vec<String> {
    NOTICE.iter().map(|words| thinking(id, words)).collect()
}

#[test]
fn a_notice_is_no_part_of_the_answer() {
    for id in [None, Some("n")] {
        let mut aggregator = Aggregator::new();
        for payload in notice(id) {
            aggregator.push(payload.as_bytes()).unwrap();
            assert_eq!(aggregator.next_delta(), None);
            assert!(!aggregator.has_begun() && aggregator.held_back() == 0);
        }
        let mut payloads = notice(id);
        payloads.extend([thinking(Some("s"), "Hm."), text_of("s", "Yes."), finish("stop")]);
        let outcome = plain(&payloads);
        assert_eq!(outcome.blocks(), "thinking \"Hm.\"\ntext \"Yes.\"");
        // Text alone, and a call alone.
        payloads = notice(id);
        payloads.extend([text_of("s", "Yes."), finish("stop")]);
        assert_eq!(plain(&payloads).blocks(), "text \"Yes.\"");
        payloads = notice(id);
        payloads.push(fragment(r#""id":"c","function":{"name":"f","arguments":"{}"}"#));
        assert_eq!(plain(&payloads).blocks(), "call c f {}");
    }
}

/// Its end is lost if the model is ready while a remark is being written.
#[test]
fn another_id_ends_a_notice() {
    for id in [None, Some("n")] {
        let mut payloads = notice(id);
        payloads.truncate(6);
        let of_server = |words| {
            let delta = json!({"reasoning_content": words});
            json!({"id": "s", "object": "o", "model": "b", "choices": [{"delta": delta}]})
                .to_string()
        };
        payloads.extend(["The ", "user.\n", "━━━━━\n", "Hm."].map(of_server));
        let outcome = plain(&payloads);
        assert_eq!(outcome.blocks(), "thinking \"The user.\\n━━━━━\\nHm.\"");
        assert_eq!(outcome.answer.id.as_deref(), Some("s"));
        // The chunks match templates of an earlier answer.
        let mut first = Aggregator::new();
        payloads.iter().for_each(|it| _ = first.push(it.as_bytes()).unwrap());
        let mut second = Aggregator::with_templates(Options::default(), first.take_templates());
        payloads.iter().for_each(|it| _ = second.push(it.as_bytes()).unwrap());
        assert_eq!(second.into_answer(), outcome.answer);
    }
    // In the form of the notice's chunks, as long as the notice did not come in templates of an earlier answer.
    let mut payloads = notice(Some("n"));
    payloads.truncate(6);
    payloads.push(thinking(Some("s"), "Hm."));
    assert_eq!(plain(&payloads).blocks(), "thinking \"Hm.\"");
}

#[test]
fn thinking_like_a_notice_stays() {
    let payloads = ["━━━", "━━\n", "llama"].map(|words| thinking(Some("s"), words));
    assert_eq!(plain(&payloads).blocks(), "thinking \"━━━━━\\nllama\"");
    let payloads = [thinking(Some("s"), "━━━"), text_of("s", "Yes.")];
    assert_eq!(plain(&payloads).blocks(), "thinking \"━━━\"\ntext \"Yes.\"");
    let payloads = [thinking(Some("s"), "━━━"), thinking(Some("t"), "Hm.")];
    assert_eq!(plain(&payloads).blocks(), "thinking \"━━━Hm.\"");
}

#[test]
fn a_sign_of_life_names_no_model() {
    let sign = json!({
        "id": "chatcmpl-keepalive", "created": 0, "model": "keepalive",
        "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": null}],
    });
    let sign = sign.to_string();
    let payloads = [&sign, &sign, &text_of("s", "Yes"), &sign, &text_of("s", ".")];
    let outcome = plain(&payloads);
    assert_eq!(outcome.blocks(), "text \"Yes.\"");
    assert_eq!(outcome.answer.id.as_deref(), Some("s"));
    assert_eq!(outcome.answer.model.as_deref(), Some("b"));
}
