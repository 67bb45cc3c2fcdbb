//! Blocks of thinking with their signatures, which go back to the server (QUIRKS row 108).

use std::mem;

use oa_json::held;
use serde_json::Value;

use crate::budget::{Budget, COPIES};
use crate::error::Error;

/// The blocks as they grow.
#[derive(Debug, Default)]
pub(crate) struct SignedBlocks {
    list: Vec<Value>,
}

impl SignedBlocks {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns true if this repeats the last block, next to its signature.
    pub(crate) fn has_said(&self, blocks: &[Value]) -> bool {
        let [block] = blocks else { return false };
        let said = self.list.last().map_or("", |last| member(last, THINKING));
        !signature(block).is_empty() && !said.is_empty() && said == member(block, THINKING)
    }

    /// Adds a fragment. One of type `thinking` continues the last block unless that is signed: its text grows, and a
    /// signature ends it. A fragment with a signature may repeat all of the text.
    pub(crate) fn merge(&mut self, fragment: &Value, budget: &mut Budget) -> Result<(), Error> {
        if !is_thinking(fragment) {
            return self.push(fragment, budget);
        }
        let (words, signature) = (member(fragment, THINKING), signature(fragment));
        if words.is_empty() && signature.is_empty() {
            return Ok(());
        }
        let Some(last) = self.list.last_mut().filter(|last| is_thinking(last)) else {
            return self.push(fragment, budget);
        };
        let known = self::signature(last);
        if !known.is_empty() {
            // A repeated last block adds nothing.
            let is_again =
                known == signature && (words.is_empty() || words == member(last, THINKING));
            return if is_again { Ok(()) } else { self.push(fragment, budget) };
        }
        if let Some(Value::String(text)) = last.get_mut(THINKING) {
            // Beside the signature, all of the text is a repeat. Without one, equal words were said twice.
            if signature.is_empty() || *text != words {
                budget.append(text, words)?;
            }
        } else {
            set(last, THINKING, words, budget)?;
        }
        if !signature.is_empty() {
            set(last, SIGNATURE, signature, budget)?;
        }
        Ok(())
    }

    fn push(&mut self, block: &Value, budget: &mut Budget) -> Result<(), Error> {
        budget.reserve_one(&mut self.list)?;
        // A block without text gets an empty member for it at the end.
        let words = if is_thinking(block) { held::member(THINKING) } else { 0 };
        budget.hold(COPIES * (held::by_value(block) + words))?;
        self.list.push(block.clone());
        Ok(())
    }

    /// Returns the blocks that a server accepts back: thinking without a signature is left out.
    pub(crate) fn finish(&mut self) -> Vec<Value> {
        let mut list = mem::take(&mut self.list);
        list.retain(|block| !is_thinking(block) || !signature(block).is_empty());
        for block in &mut list {
            if is_thinking(block)
                && let Some(members) = block.as_object_mut()
            {
                let signature = members.remove(SIGNATURE_DELTA).filter(|delta| !delta.is_null());
                if let Some(signature) = signature {
                    members.entry(SIGNATURE).or_insert(signature);
                }
                members.entry(THINKING).or_insert_with(|| "".into());
            }
        }
        list
    }
}

const THINKING: &str = "thinking";
const SIGNATURE: &str = "signature";
/// The name that LiteLLM used originally.
const SIGNATURE_DELTA: &str = "signature_delta";

fn is_thinking(block: &Value) -> bool {
    match block.get("type").and_then(Value::as_str) {
        Some(kind) => kind == THINKING,
        None => block.get(THINKING).is_some(),
    }
}

fn signature(block: &Value) -> &str {
    match member(block, SIGNATURE) {
        "" => member(block, SIGNATURE_DELTA),
        signature => signature,
    }
}

fn set(block: &mut Value, name: &str, words: &str, budget: &mut Budget) -> Result<(), Error> {
    budget.hold(COPIES * (held::member(name) + words.len()))?;
    block[name] = words.into();
    Ok(())
}

fn member<'v>(block: &'v Value, name: &str) -> &'v str {
    block.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(fragments: &[Value]) -> Vec<Value> {
        let mut blocks = SignedBlocks::default();
        let mut budget = Budget::new(1 << 20);
        for fragment in fragments {
            blocks.merge(fragment, &mut budget).unwrap();
        }
        blocks.finish()
    }

    fn part(thinking: &str, signature: Option<&str>) -> Value {
        json!({ "type": "thinking", "thinking": thinking, "signature": signature })
    }

    #[test]
    fn fragments_form_the_signed_block() {
        let signed = [part("Two and two.", Some("sig"))];
        assert_eq!(
            merged(&[part("Two ", None), part("and two.", None), part("", Some("sig"))]),
            signed
        );
        // All of the text once more, beside the signature, and the whole block again.
        let again = [
            part("Two ", None),
            part("and two.", None),
            part("Two and two.", Some("sig")),
            signed[0].clone(),
        ];
        assert_eq!(merged(&again), signed);
    }

    #[test]
    fn a_signature_ends_a_block() {
        let redacted = json!({ "type": "redacted_thinking", "data": "x" });
        let blocks =
            [part("One.", Some("a")), part("", Some("b")), redacted, part("Two.", Some("c"))];
        assert_eq!(merged(&blocks), blocks);
    }

    #[test]
    fn unsigned_thinking_is_not_sent_back() {
        assert_eq!(merged(&[part("One.", Some("a")), part("Tw", None)]), [part("One.", Some("a"))]);
        assert_eq!(merged(&[part("", None)]), [] as [Value; 0]);
    }

    #[test]
    fn signature_delta_is_a_signature() {
        let old = json!({ "type": "thinking", "thinking": "One.", "signature_delta": "a" });
        assert_eq!(merged(&[old]), [part("One.", Some("a"))]);
    }
}
