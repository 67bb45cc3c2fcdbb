use std::sync::Arc;

use oa_types::{
    AudioBlock, ContentBlock, ImageBlock, ImageDetail, Message, TextBlock, ThinkingBlock,
    ToolResultBlock, ToolUseBlock, ToolUseError,
};
use serde_json::{Map, Value, json};

use crate::append::Append;
use crate::contract::expect;
use crate::contract::fixture::{at, create};
use crate::contract::random::Random;
use crate::store::SessionStore;

/// Returns a valid conversation of up to thirty messages, determined by the seed: every kind of block,
/// arbitrary text, arbitrary JSON, server-specific members.
#[must_use]
pub fn conversation(seed: u64) -> Vec<Message> {
    let mut random = Random::new(seed);
    let mut messages = Vec::new();
    for _ in 0..random.below(8) {
        exchange(&mut random, &mut messages);
    }
    messages
}

/// Checks that messages are loaded exactly as they were stored.
pub(super) async fn check(open: &mut dyn FnMut() -> Arc<dyn SessionStore>) {
    for seed in 0..24 {
        let store = open();
        let mut info = create(&*store, &format!("conversation/{seed}")).await;
        let mut messages = Vec::new();
        for part in [conversation(seed), large(seed), conversation(seed + 1_000)] {
            messages.extend(part.clone());
            let append = Append::new(info.revision, part, at(2));
            info = expect::ok("append", store.append(&info.id, append).await);
        }
        drop(store);
        let loaded = expect::stored(&*open(), &info).await.messages;
        assert!(loaded == messages, "the conversation of seed {seed} has changed in the store");
    }
}

/// For some seeds, returns messages too large for a single buffer.
fn large(seed: u64) -> Vec<Message> {
    match seed {
        3 => vec![Message::user("long ☂\n".repeat(1 << 18))],
        5 => {
            let data = "QUJD".repeat(1 << 18);
            let image = ImageBlock::from_base64(data, "image/png").expect("it is base64");
            vec![Message::user_with_image("What is this?", image)]
        }
        7 => (0..600).map(|number| Message::user(format!("message {number}"))).collect(),
        _ => Vec::new(),
    }
}

fn exchange(random: &mut Random, messages: &mut Vec<Message>) {
    match random.below(8) {
        0 => messages.push(Message::system(text(random))),
        1 => {
            let image = ImageBlock::from_url(format!("https://host/{}.png", random.next()));
            let detail = [ImageDetail::Auto, ImageDetail::High, ImageDetail::Low][random.below(3)];
            let image = image.expect("it is an address").with_detail(detail);
            messages.push(Message::user_with_image(text(random), image));
        }
        2 => messages.push(Message::user_with_blocks(Vec::new())),
        3 => {
            let audio = AudioBlock::from_base64("UklGRg==", "audio/wav").expect("it is base64");
            messages.push(Message::user_with_audio(text(random), audio));
        }
        _ => messages.push(Message::user(text(random))),
    }
    let mut content: Vec<ContentBlock> = Vec::new();
    if random.flip() {
        content.push(ThinkingBlock::new(text(random)).into());
    }
    if random.flip() {
        content.push(TextBlock::new(text(random)).into());
    }
    if random.below(6) == 0 {
        let mut error = ToolUseError::new("cut off", text(random));
        error.name = random.flip().then(|| text(random));
        content.push(error.into());
    }
    let calls = random.below(4);
    for number in 0..calls {
        let mut call = ToolUseBlock::new(format!("call_{number}"), text(random), json!({}));
        call.input = Value::Object(members(random, 3));
        if random.flip() {
            call.extra = members(random, 1).into();
        }
        content.push(call.into());
    }
    let mut answer = Message::assistant(content);
    answer.interrupted = random.below(4) == 0;
    if random.flip() {
        answer.extra = members(random, 2).into();
    }
    messages.push(answer);
    for number in 0..calls {
        let mut result = ToolResultBlock::new(format!("call_{number}"), value(random, 3));
        result.is_error = random.flip();
        result.name = random.flip().then(|| text(random).into());
        if random.below(4) == 0 {
            result.images.extend(ImageBlock::from_url(format!("https://host/{number}.png")));
        }
        messages.push(Message::tool(result));
    }
}

fn text(random: &mut Random) -> String {
    let length = random.below(24);
    let character = |random: &mut Random| match random.below(4) {
        0 => char::from_u32(u32::try_from(random.below(0x0011_0000)).unwrap_or_default()),
        1 => ['\0', '\n', '"', '\\', '\u{2028}', '\u{feff}', '☂', '\u{1f600}']
            .get(random.below(8))
            .copied(),
        _ => char::from_u32(32 + u32::try_from(random.below(95)).unwrap_or_default()),
    };
    (0..length).filter_map(|_| character(random)).collect()
}

fn members(random: &mut Random, depth: usize) -> Map<String, Value> {
    (0..random.below(4)).map(|_| (text(random), value(random, depth))).collect()
}

fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => random.flip().into(),
        2 => random.next().into(),
        3 => random.next().cast_signed().into(),
        // Non-finite numbers have no JSON form and become null.
        4 => f64::from_bits(random.next()).into(),
        5 => text(random).into(),
        6 => (0..random.below(4)).map(|_| value(random, depth - 1)).collect(),
        _ => Value::Object(members(random, depth - 1)),
    }
}
