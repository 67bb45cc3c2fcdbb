//! An answer in one message is the same as in deltas.

use oa_aggregate::{ContentBlock, Options};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::{Outcome, delta, finish, run};

/// The words and calls of an answer, and the places at which its server cuts them into pieces.
#[derive(Clone, Debug)]
struct Said {
    thinking: String,
    text: String,
    refusal: String,
    /// Names and arguments.
    calls: Vec<(String, Value)>,
    reason: &'static str,
    cuts: Vec<Index>,
}

fn said() -> impl Strategy<Value = Said> {
    let words = || "[a-d é🙂,.\n\"\\\\]{0,40}";
    let call = ("[a-z_]{1,12}", prop::collection::btree_map("[a-c]", "[a-z\"]{0,8}", 0..3));
    let call = call.prop_map(|(name, arguments)| (name, json!(arguments)));
    let reason = prop::sample::select(vec!["stop", "tool_calls"]);
    let parts = (words(), words(), words(), vec(call, 0..3), reason, vec(any::<Index>(), 0..6));
    parts.prop_map(|(thinking, text, refusal, calls, reason, cuts)| Said {
        thinking,
        text,
        refusal,
        calls,
        reason,
        cuts,
    })
}

impl Said {
    fn call(&self, number: usize, name: Value, arguments: &str) -> Value {
        let id = (!name.is_null()).then(|| format!("call_{number}"));
        json!({"index": number, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    }

    /// The members of the message, or of a single delta.
    fn members(&self) -> Value {
        let calls = self.calls.iter().enumerate();
        let calls: Vec<Value> = calls
            .map(|(number, (name, arguments))| {
                self.call(number, json!(name), &arguments.to_string())
            })
            .collect();
        json!({
            "role": "assistant", "reasoning_content": self.thinking, "content": self.text,
            "refusal": self.refusal, "tool_calls": calls
        })
    }

    fn message(&self) -> String {
        json!({"choices": [{"index": 0, "message": self.members(), "finish_reason": self.reason}]})
            .to_string()
    }

    /// The pieces of a text.
    fn cut<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
        places.push(text.len());
        let mut cuts: Vec<usize> =
            self.cuts.iter().map(|cut| places[cut.index(places.len())]).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect()
    }

    fn deltas(&self) -> Vec<String> {
        let mut deltas = Vec::new();
        for (member, words) in [
            ("reasoning_content", &self.thinking),
            ("content", &self.text),
            ("refusal", &self.refusal),
        ] {
            deltas
                .extend(self.cut(words).iter().map(|piece| format!("{member:?}:{}", json!(piece))));
        }
        for (number, (name, arguments)) in self.calls.iter().enumerate() {
            let arguments = arguments.to_string();
            let begin = self.call(number, json!(name), "");
            deltas.push(format!("\"tool_calls\":[{begin}]"));
            for piece in self.cut(&arguments) {
                let more = self.call(number, Value::Null, piece);
                deltas.push(format!("\"tool_calls\":[{more}]"));
            }
        }
        let mut deltas: Vec<String> = deltas.iter().map(|members| delta(members)).collect();
        deltas.push(finish(self.reason));
        deltas
    }
}

/// Texts that follow each other, joined: where one block ends does not matter.
fn essence(outcome: &Outcome) -> (String, String, Option<String>, Vec<ContentBlock>, String) {
    let answer = &outcome.answer;
    let is_text = |block: &&ContentBlock| block.as_text().is_some();
    let text = answer.blocks.iter().filter_map(ContentBlock::as_text).collect();
    let others = answer.blocks.iter().filter(|block| !is_text(block)).cloned().collect();
    let reason = answer.finish_reason.as_str().to_owned();
    assert_eq!(answer.problems, []);
    (outcome.thinking(), text, answer.refusal.clone(), others, reason)
}

proptest! {
    #[test]
    fn message_equals_its_deltas(said in said()) {
        let whole = run(Options::default(), [said.message()]);
        let pieces = run(Options::default(), said.deltas());
        let single = json!({"choices": [{"delta": said.members(), "finish_reason": said.reason}]});
        let single = run(Options::default(), [single.to_string()]);
        prop_assert_eq!(essence(&whole), essence(&pieces));
        prop_assert_eq!(essence(&whole), essence(&single));
        // A message at the end of the deltas repeats them.
        let mut repeated = said.deltas();
        repeated.push(said.message());
        prop_assert_eq!(essence(&pieces), essence(&run(Options::default(), repeated)));
    }
}
