//! Calls as text, with a server that is offered no tools.

use open_agent::{Client, FinishReason, ToolMode, json};

use crate::loops::{check_pairing, options, read};
use crate::server::{Wanted, check};

/// Makes the server generate exactly one call, because its model knows no dialect.
const GRAMMAR: &str = r#"root ::= "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"unit\": \"celsius\"}}\n</tool_call>""#;

#[test]
fn tagged_json_runs_a_whole_turn() {
    check(Wanted::Tiny, async |server| {
        let runs = std::sync::Arc::default();
        let in_text = || options(server, &runs).tool_mode(ToolMode::TaggedJson).seed(3);
        let forced = in_text().extra_body(json!({ "grammar": GRAMMAR })).max_tool_iterations(2);
        let mut client = Client::new(forced.build().unwrap()).unwrap();
        client.send("What is the weather in Paris?").await.unwrap();
        let (text, calls, results) = read(&mut client).await.unwrap();
        assert_eq!(
            (&*text, calls, results),
            ("", 3, 3),
            "two run, and the limit answers the third"
        );
        assert_eq!(runs.load(std::sync::atomic::Ordering::Relaxed), 2);
        assert_eq!(client.finish_reason(), Some(&FinishReason::MaxToolIterations));
        check_pairing(client.history());

        // The same conversation continues as text, and with function calling.
        let history = client.history().to_vec();
        for options in [in_text(), options(server, &runs)] {
            let options = options.build().unwrap();
            let mut client = Client::with_history(options, history.clone()).unwrap();
            client.send("Thank you. [text]").await.unwrap();
            let (text, calls, _) = read(&mut client).await.unwrap();
            assert!(!text.is_empty() && calls == 0, "{text}");
            assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
        }
    });
}
