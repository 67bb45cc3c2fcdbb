//! No list of payloads panics, the answer is what the deltas said, and it is the same with what was
//! learned of an answer before.
//!
//! The input is a list of payloads, one per line. What its first byte differs from `{` by, chooses the
//! options.

#![no_main]

use std::collections::{HashMap, HashSet};

use libfuzzer_sys::fuzz_target;
use oa_aggregate::{
    Aggregator, AggregatedAnswer, ArgumentRepair, ChoiceIndex, ContentBlock, Delta, TemplateCache, Options, TextMode,
    ThinkTags,
};

/// A block as the deltas tell it.
#[derive(Debug, PartialEq)]
enum Block {
    Text(String),
    Thinking(String),
    Refusal(String),
}

#[derive(Debug, Default, PartialEq)]
struct Told {
    blocks: Vec<Block>,
    /// The id, the name and the arguments of each call that started.
    calls: HashMap<usize, (String, String, String)>,
    problems: usize,
}

impl Told {
    fn take(&mut self, delta: Delta<'_>) {
        match (delta, self.blocks.last_mut()) {
            (Delta::Text(""), _) | (Delta::Thinking(""), _) | (Delta::Refusal(""), _) => {
                panic!("an empty delta")
            }
            (Delta::Text(more), Some(Block::Text(text)))
            | (Delta::Thinking(more), Some(Block::Thinking(text)))
            | (Delta::Refusal(more), Some(Block::Refusal(text))) => text.push_str(more),
            (Delta::Text(text), _) => self.blocks.push(Block::Text(text.to_owned())),
            (Delta::Thinking(text), _) => self.blocks.push(Block::Thinking(text.to_owned())),
            (Delta::Refusal(text), _) => self.blocks.push(Block::Refusal(text.to_owned())),
            (Delta::CallStart { call, id, name }, _) => {
                let started = (id.to_owned(), name.to_owned(), String::new());
                assert!(self.calls.insert(call, started).is_none(), "a call starts once");
            }
            (Delta::CallArguments { call, fragment }, _) => {
                assert!(!fragment.is_empty());
                self.calls.get_mut(&call).expect("the call has started").2.push_str(fragment);
            }
            (Delta::Problem(_), _) => self.problems += 1,
            (Delta::PromptProgress(_), _) => {}
            _ => unreachable!("a delta this target does not know"),
        }
    }

    fn drain(&mut self, aggregator: &mut Aggregator) {
        while let Some(delta) = aggregator.next_delta() {
            self.take(delta);
        }
    }
}

fn options(flags: u8) -> Options {
    let mut options = Options::default();
    options.quirks.text = match flags & 3 {
        0 | 1 => TextMode::Detect,
        2 => TextMode::Incremental,
        _ => TextMode::Cumulative,
    };
    options.quirks.think_tags = match flags >> 2 & 3 {
        0 | 1 => ThinkTags::Off,
        2 => ThinkTags::Split,
        _ => ThinkTags::StartsInThinking,
    };
    if flags & 0x10 != 0 {
        options.quirks.choice = ChoiceIndex::Any;
    }
    if flags & 0x20 != 0 {
        options.quirks.repair = ArgumentRepair::On;
    }
    if flags & 0x40 != 0 {
        options.limits.argument_bytes = 24;
        options.limits.calls = 2;
        options.limits.problems = 2;
        options.limits.text_bytes = 40;
    }
    options
}

/// The payloads of an answer in reverse order, and then in their own, make the same answers as without
/// what was learned of those before.
fn check_after(templates: TemplateCache, options: Options, data: &[u8], answer: &AggregatedAnswer) {
    let answer_with = |templates, backwards| {
        let mut payloads: Vec<&[u8]> = data.split(|&byte| byte == b'\n').collect();
        if backwards {
            payloads.reverse();
        }
        let mut aggregator = Aggregator::with_templates(options, templates);
        for payload in payloads {
            if aggregator.push(payload).is_err() {
                break;
            }
        }
        let templates = aggregator.take_templates();
        (aggregator.into_answer(), templates)
    };
    let (reversed, templates) = answer_with(templates, true);
    assert_eq!(reversed, answer_with(TemplateCache::default(), true).0);
    let (again, _) = answer_with(templates, false);
    assert_eq!(again, *answer);
}

fuzz_target!(|data: &[u8]| {
    let Some(first) = data.first() else { return };
    let mut data = data.to_vec();
    data[0] = b'{';
    let options = options(first ^ b'{');
    let mut aggregator = Aggregator::with_templates(options, TemplateCache::default());
    let mut told = Told::default();
    let mut within_limits = true;
    for payload in data.split(|&byte| byte == b'\n') {
        if aggregator.push(payload).is_err() {
            within_limits = false;
            break;
        }
        told.drain(&mut aggregator);
    }
    told.drain(&mut aggregator);
    within_limits &= aggregator.finish().is_ok();
    told.drain(&mut aggregator);
    if within_limits {
        aggregator.finish().expect("ending twice changes nothing");
        assert!(aggregator.next_delta().is_none());
    }
    assert_eq!(told.problems, aggregator.problems().len());
    // The first error of the server is kept in any case.
    assert!(told.problems <= options.limits.problems + 1);

    let templates = aggregator.take_templates();
    let answer = aggregator.into_answer();
    check_after(templates, options, &data, &answer);
    let (mut refusal, mut text, mut thinking) = (String::new(), String::new(), String::new());
    let (mut refused, mut said, mut thought) = (String::new(), String::new(), String::new());
    for told in &told.blocks {
        match told {
            Block::Text(more) => text += more,
            Block::Refusal(more) => {
                text += more;
                refusal += more;
            }
            Block::Thinking(more) => thinking += more,
        }
    }
    let mut ids = HashSet::new();
    let mut number = 0;
    for block in &answer.blocks {
        let (id, name) = match block {
            ContentBlock::Text(block) => {
                said += &block.text;
                continue;
            }
            ContentBlock::Thinking(block) => {
                thought += &block.thinking;
                continue;
            }
            ContentBlock::ToolUse(call) => {
                assert!(call.input.is_object());
                assert!(!call.name.is_empty());
                (call.id.clone(), Some(call.name.clone()))
            }
            ContentBlock::ToolUseError(call) => {
                let id = call.id.clone().expect("calls have ids");
                if let Some((.., arguments)) = told.calls.get(&number) {
                    let same = call.raw_data.starts_with(&**arguments)
                        || arguments.starts_with(&*call.raw_data);
                    assert!(same, "{:?} and {arguments:?}", call.raw_data);
                    if within_limits {
                        assert!(arguments.starts_with(&*call.raw_data));
                    }
                }
                (id, call.name.clone())
            }
            block => panic!("{block:?} in an answer"),
        };
        match told.calls.get(&number) {
            Some(started) => assert_eq!((&started.0, Some(&started.1)), (&id, name.as_ref())),
            None => assert!(name.is_none() || !within_limits, "call {number} did not start"),
        }
        assert!(ids.insert(id), "two calls have an id");
        number += 1;
    }
    refused += &answer.refusal.unwrap_or_default();
    assert_eq!((said, thought, refused), (text, thinking, refusal));
});
