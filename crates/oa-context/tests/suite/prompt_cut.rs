//! Detection of prompts that a server cut.

use allocation_counter::measure;
use oa_context::{
    Calibration, Costs, Estimator, Observation, PromptCut, PromptCutDetector, SentPrompt,
    TokenCounter,
};
use oa_types::{
    AudioBlock, ContentBlock, ImageBlock, Message, MessageRole, TextBlock, ToolResultBlock,
    ToolSpec, ToolUseBlock, Usage,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use crate::conversation::{conversation, words};

type Detector = PromptCutDetector<u64>;

fn usage(prompt: u64, cached: Option<u64>) -> Usage {
    let mut usage = Usage::default();
    (usage.prompt_tokens, usage.cached_tokens) = (Some(prompt), cached);
    usage
}

fn revisions(messages: &[Message]) -> Vec<u64> {
    (0..messages.len() as u64).collect()
}

/// Checks a request of messages alone, whose length nobody has told.
fn check(detector: &mut Detector, messages: &[Message], usage: &Usage) -> Option<PromptCut> {
    detector.check(&SentPrompt::new(messages, &revisions(messages), &1), usage)
}

fn story(words: usize) -> String {
    "Once upon a time there was a fox. ".repeat(words / 8)
}

fn answer(text: &str) -> Message {
    Message::assistant(vec![TextBlock::new(text).into()])
}

fn specs(count: usize, description: &str) -> Vec<ToolSpec> {
    let spec =
        |number| ToolSpec::new(format!("tool_{number}"), description, json!({"type": "object"}));
    (0..count).map(spec).collect()
}

/// Estimates without images and audio, which models count differently.
fn estimator() -> Estimator {
    let mut costs = Costs::default();
    (costs.image_low, costs.image_auto, costs.image_high, costs.audio) = (0, 0, 0, 0);
    Estimator::new().with_costs(costs)
}

fn estimated(messages: &[Message]) -> usize {
    messages.iter().map(|message| estimator().count_message(message)).sum()
}

fn images(messages: &[Message]) -> usize {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let images = blocks.map(|block| match block {
        ContentBlock::Image(_) => 1,
        ContentBlock::ToolResult(result) => result.images.len(),
        _ => 0,
    });
    images.sum()
}

/// A model reads few tokens for many bytes of audio, and how many differs by model.
#[test]
fn prompt_with_audio_is_not_cut() {
    let audio = AudioBlock::from_base64("A".repeat(1 << 20), "audio/wav").unwrap();
    let history = [Message::user_with_audio("What is said?", audio)];
    for tokens in [20, 200, 20_000] {
        assert_eq!(check(&mut Detector::new(), &history, &usage(tokens, None)), None, "{tokens}");
    }
}

#[test]
fn prompt_read_by_a_quarter_is_cut() {
    let history = [Message::user(story(8_000))];
    let cut = check(&mut Detector::new(), &history, &usage(2_048, None)).expect("it was cut");
    assert_eq!((cut.estimated, cut.reported), (estimated(&history) as u64, 2_048));
    assert_eq!(check(&mut Detector::new(), &history, &usage(8_500, None)), None);
}

#[test]
fn usage_without_prompt_tokens_is_ignored() {
    let history = [Message::user(story(8_000))];
    let mut cached_alone = Usage::default();
    cached_alone.cached_tokens = Some(100);
    for usage in [Usage::default(), cached_alone] {
        assert_eq!(check(&mut Detector::new(), &history, &usage), None);
    }
}

#[test]
fn a_short_prompt_is_never_cut() {
    assert_eq!(check(&mut Detector::new(), &[Message::user("Hello")], &usage(1, Some(1))), None);
    assert_eq!(check(&mut Detector::new(), &[], &usage(1, Some(1))), None);
}

#[test]
fn cached_tokens_were_read() {
    let history = [Message::user(story(8_000))];
    for (cached, is_cut) in [(6_900, false), (10, true)] {
        let cut = check(&mut Detector::new(), &history, &usage(2_048, Some(cached)));
        assert_eq!(cut.map(|cut| cut.reported), is_cut.then_some(2_048 + cached));
    }
}

#[test]
fn the_system_prompt_and_offered_tools_count() {
    let history = [Message::user("What can you do?")];
    let tools = specs(25, &story(400));
    let check = |system_prompt: Option<&str>, tools: &[ToolSpec]| {
        let mut sent = SentPrompt::new(&history, &[1], &1);
        (sent.system_prompt, sent.tools) = (system_prompt, tools);
        Detector::new().check(&sent, &usage(2_048, None)).map(|cut| cut.estimated as usize)
    };
    let prompt = estimated(&history);
    assert_eq!(check(None, &[]), None);
    assert_eq!(check(None, &tools), Some(prompt + estimator().count_tools(&tools) / 2));
    let system = story(8_000);
    let with_system = prompt + estimated(&[Message::system(&system)]);
    assert_eq!(check(Some(&system), &[]), Some(with_system));
    assert_eq!(
        check(Some(&system), &tools),
        Some(with_system + estimator().count_tools(&tools) / 2)
    );
}

#[test]
fn tools_count_only_where_offered() {
    let history = [Message::user(story(2_000))];
    let tools = specs(25, &story(400));
    let mut detector = Detector::new();
    for (revision, offers) in [(1, true), (2, false), (3, true), (4, false)] {
        // Each time the only message is another one, so that nothing is known of the prompt.
        let revisions = [revision];
        let mut sent = SentPrompt::new(&history, &revisions, &1);
        sent.tools = if offers { &tools } else { &[] };
        assert_eq!(detector.check(&sent, &usage(1_500, Some(100))).is_some(), offers);
    }
}

#[test]
fn images_are_not_estimated() {
    let image = || ImageBlock::from_base64("iVBORw0KGgo".repeat(20_000), "image/png").unwrap();
    let history = [Message::user_with_image("What is it?", image())];
    for reported in [64, 256, 3_000] {
        assert_eq!(check(&mut Detector::new(), &history, &usage(reported, None)), None);
    }
    let history = [Message::user_with_image(story(20_000), image())];
    let cut = check(&mut Detector::new(), &history, &usage(1_024, None)).expect("its text was cut");
    assert_eq!(cut.estimated, estimated(&history) as u64);
}

#[test]
fn images_of_results_may_be_uncached() {
    let image = ImageBlock::from_base64("iVBORw0KGgo".repeat(20_000), "image/png").unwrap();
    let mut shot = ToolResultBlock::new("call_1", "A page.".into());
    shot.images = vec![image];
    let call = ToolUseBlock::new("call_1", "look", json!({}));
    let history =
        [Message::user(story(20_000)), Message::assistant(vec![call.into()]), Message::tool(shot)];
    assert_eq!(check(&mut Detector::new(), &history, &usage(2_000, None)), None);
    assert!(check(&mut Detector::new(), &history, &usage(6_000, None)).is_some());
}

#[test]
fn extensions_of_a_cut_prompt_are_cut() {
    let mut detector = Detector::new();
    let mut history = vec![Message::user(story(8_000))];
    let mut last =
        check(&mut detector, &history, &usage(2_048, None)).expect("it was cut").estimated;
    for _ in 0..10 {
        history.extend([answer("A fox."), Message::user(story(200))]);
        // What is new since the last answer has about as many tokens; a prompt that was never cut may be cached.
        let cut = check(&mut detector, &history, &usage(240, None)).expect("it has grown");
        assert!(cut.estimated > last, "{cut:?} after {last}");
        last = cut.estimated;
        assert_eq!(check(&mut Detector::new(), &history, &usage(240, None)), None);
    }
    let whole = estimated(&history) as u64;
    assert!(last.abs_diff(whole) < whole / 20, "{last} of {whole}");
}

#[test]
fn changed_messages_void_the_finding() {
    let mut history =
        vec![Message::user(story(8_000)), answer("A fox."), Message::user(story(200))];
    for (changed, is_cut) in [(None, true), (Some(0), false), (Some(2), false)] {
        let mut detector = Detector::new();
        assert!(check(&mut detector, &history[..1], &usage(2_048, None)).is_some());
        assert!(check(&mut detector, &history, &usage(240, None)).is_some());
        let mut revisions = revisions(&history);
        if let Some(place) = changed {
            revisions[place] = 9;
        }
        let sent = SentPrompt::new(&history, &revisions, &1);
        assert_eq!(detector.check(&sent, &usage(240, None)).is_some(), is_cut, "{changed:?}");
    }
    // So does one that is gone.
    let mut detector = Detector::new();
    assert!(check(&mut detector, &history, &usage(1_000, Some(1))).is_some());
    history.remove(0);
    let sent = SentPrompt::new(&history, &[1, 2], &1);
    assert_eq!(detector.check(&sent, &usage(240, Some(1))), None);
}

#[test]
fn changed_options_void_the_finding() {
    let history = [Message::user(story(8_000)), answer("A fox."), Message::user(story(200))];
    let revisions = revisions(&history);
    for (options, is_cut) in [(1, true), (2, false)] {
        let mut detector = Detector::new();
        assert!(check(&mut detector, &history[..1], &usage(2_048, None)).is_some());
        let sent = SentPrompt::new(&history, &revisions, &options);
        assert_eq!(detector.check(&sent, &usage(240, None)).is_some(), is_cut);
    }
}

/// The system prompt and the tools are estimated again, too.
#[test]
fn other_options_have_another_overhead() {
    let history = [Message::user("Hello")];
    let mut detector = Detector::new();
    for (options, length) in [(1, 8_000), (2, 16_000), (1, 4_000)] {
        let (system, tools) = (story(length), specs(2, &story(length)));
        let mut sent = SentPrompt::new(&history, &[1], &options);
        (sent.system_prompt, sent.tools) = (Some(&*system), &tools);
        let cut = detector.check(&sent, &usage(100, Some(1))).expect("nearly nothing was read");
        let all = estimated(&history) + estimated(&[Message::system(&system)]);
        assert_eq!(cut.estimated as usize, all + estimator().count_tools(&tools) / 2);
    }
}

#[test]
fn outgrown_contexts_stay_cut() {
    let mut history = vec![Message::user("Read the book.")];
    for cached in [None, Some(1)] {
        let mut detector = Detector::new();
        history.truncate(1);
        let mut cuts = Vec::new();
        for _ in 0..30 {
            let reported = estimated(&history).min(4_096) as u64;
            cuts.push(check(&mut detector, &history, &usage(reported, cached)).is_some());
            history.extend([answer("The next page, please."), Message::user(story(600))]);
        }
        let first = cuts.iter().position(|is_cut| *is_cut).expect("it is far too long");
        assert!((12..=16).contains(&first), "{cached:?}: {cuts:?}");
        assert!(cuts[first..].iter().all(|is_cut| *is_cut), "{cached:?}: {cuts:?}");
    }
}

#[test]
fn high_reports_allocate_nothing() {
    let mut history = vec![Message::user(story(800))];
    for _ in 0..50 {
        history.extend([answer("A fox."), Message::user(story(800))]);
    }
    let revisions = revisions(&history);
    let mut sent = SentPrompt::new(&history, &revisions, &1);
    sent.bytes = Some(400_000);
    let mut detector = Detector::new();
    let costs = measure(|| assert_eq!(detector.check(&sent, &usage(66_667, None)), None));
    assert_eq!(costs.count_total, 0);
    // One token less is not enough to know.
    assert!(measure(|| _ = detector.check(&sent, &usage(66_666, None))).count_total > 0);
}

/// The way in which a server's usage reports cached tokens.
#[derive(Clone, Copy, Debug)]
enum Cache {
    /// They are included in the count and not reported separately.
    Counted,
    /// They are left out of the count.
    LeftOut,
    /// They are left out of the count and reported separately.
    Told,
}

/// A server that reads all of a prompt, by some vocabulary: its tokens for each estimated one, in hundredths; the
/// same for tools; the tokens of an image.
#[derive(Clone, Copy, Debug)]
struct Healthy {
    text: usize,
    tools: usize,
    image: usize,
    cache: Cache,
}

impl Healthy {
    fn count(self, messages: &[Message]) -> usize {
        estimated(messages) * self.text / 100 + images(messages) * self.image
    }

    /// Returns the usage of a request of which the first messages, and all before them, may be in the cache.
    fn usage(self, messages: &[Message], overhead: usize, cached: usize) -> Usage {
        let all = overhead + self.count(messages);
        let (old, new) = messages.split_at(cached);
        let new = if cached == 0 { all } else { self.count(new).max(1) };
        let old = if cached == 0 { 0 } else { overhead + self.count(old) };
        match self.cache {
            Cache::Counted => usage(all as u64, None),
            Cache::LeftOut => usage(new as u64, None),
            Cache::Told => usage(new as u64, Some(old as u64)),
        }
    }
}

fn healthy() -> impl Strategy<Value = Healthy> {
    let caches = select(vec![Cache::Counted, Cache::LeftOut, Cache::Told]);
    (65..400_usize, 40..200_usize, 0..2_000_usize, caches)
        .prop_map(|(text, tools, image, cache)| Healthy { text, tools, image, cache })
}

/// A message, and a number that no other message of these has.
type Numbered = (Message, u64);

/// Two conversations, whose messages may be mixed: equal numbers mean equal messages.
fn two_conversations() -> impl Strategy<Value = [Vec<Numbered>; 2]> {
    let numbered = |messages: Vec<Message>, first: u64| messages.into_iter().zip(first..).collect();
    (conversation(), conversation())
        .prop_map(move |(one, other)| [numbered(one, 0), numbered(other, 1_000)])
}

/// The first messages of one conversation, and then those of the other.
fn mixed(of: &[Vec<Numbered>; 2], begin: usize, more: usize) -> (Vec<Message>, Vec<u64>) {
    let [one, other] = of;
    one.iter().take(begin).chain(other.iter().take(more)).cloned().unzip()
}

fn any_usage() -> impl Strategy<Value = Usage> {
    let tokens = || prop_oneof![3 => 0..400_u64, 1 => any::<u64>()];
    (option::weighted(0.9, tokens()), option::of(tokens())).prop_map(|(prompt, cached)| {
        let mut usage = Usage::default();
        (usage.prompt_tokens, usage.cached_tokens) = (prompt, cached);
        usage
    })
}

proptest! {
    /// Any vocabulary, any conversation, and any report about the cache.
    #[test]
    fn complete_prompts_are_never_cut(
        messages in conversation(),
        system in option::of(words()),
        tools in 0..12_usize,
        server in healthy(),
        knows_bytes in any::<bool>(),
    ) {
        let tools = specs(tools, "Does what is wanted");
        let system_message = system.iter().map(Message::system).collect::<Vec<_>>();
        let overhead = server.count(&system_message)
            + estimator().count_tools(&tools) * server.tools / 100;
        let (revisions, mut detector, mut before) = (revisions(&messages), Detector::new(), 0);
        for (place, message) in messages.iter().enumerate() {
            if message.role != MessageRole::Assistant {
                continue;
            }
            // The answer that came next.
            let (sent, revisions) = (&messages[..place], &revisions[..place]);
            let usage = server.usage(sent, overhead, before);
            let mut sent = SentPrompt::new(sent, revisions, &1);
            (sent.system_prompt, sent.tools) = (system.as_deref(), &tools);
            sent.bytes = knows_bytes.then(|| 4 * estimated(sent.messages));
            prop_assert_eq!(detector.check(&sent, &usage), None, "{:?} of {}", usage, place);
            before = place;
        }
    }

    /// Where a server tells cached tokens apart, nothing is left to guess.
    #[test]
    fn estimate_decides_if_cache_is_reported(
        messages in conversation(),
        system in option::of(words()),
        tools in 0..3_usize,
        prompt in 0..400_u64,
        cached in 1..400_u64,
    ) {
        let tools = specs(tools, "Does what is wanted");
        let revisions = revisions(&messages);
        let mut sent = SentPrompt::new(&messages, &revisions, &1);
        (sent.system_prompt, sent.tools) = (system.as_deref(), &tools);
        let system_message = system.iter().map(Message::system).collect::<Vec<_>>();
        let all = estimated(&messages)
            + estimated(&system_message)
            + estimator().count_tools(&tools) / 2;
        let reported = prompt + cached;
        let is_cut = Calibration::new().observe(all, reported) == Observation::CutShort;
        let cut = Detector::new().check(&sent, &usage(prompt, Some(cached)));
        let told = cut.map(|cut| (cut.estimated as usize, cut.reported));
        prop_assert_eq!(told, is_cut.then_some((all, reported)));
    }

    /// Whatever was sent before: messages that were changed, removed or brought back, other prompts and tools.
    #[test]
    fn new_options_start_from_scratch(
        of in two_conversations(),
        past in vec((0..12_usize, 0..12_usize, 1..3_u64, any_usage()), 0..8),
        (begin, more, last) in (0..12_usize, 0..12_usize, any_usage()),
    ) {
        let (systems, tools) = (["", "Be brief.", "Be thorough, please."], specs(3, "Looks"));
        let check = |detector: &mut Detector, begin, more, options: u64, usage: &Usage| {
            let (messages, revisions) = mixed(&of, begin, more);
            let mut sent = SentPrompt::new(&messages, &revisions, &options);
            sent.system_prompt = Some(systems[options as usize % 3]);
            sent.tools = &tools[..options as usize % 3];
            detector.check(&sent, usage)
        };
        let mut detector = Detector::new();
        for (begin, more, options, usage) in &past {
            check(&mut detector, *begin, *more, *options, usage);
        }
        let found = check(&mut detector, begin, more, 3, &last);
        prop_assert_eq!(found, check(&mut Detector::new(), begin, more, 3, &last));
    }

    /// A cut is told of only if less than half of what is told was read.
    #[test]
    fn every_reported_cut_is_plausible(
        of in two_conversations(),
        steps in vec(
            (0..12_usize, 0..12_usize, 0..3_u64, 0..30_usize, option::of(any::<usize>()), any_usage()),
            1..8,
        ),
    ) {
        let mut detector = Detector::new();
        for (begin, more, options, numbered, bytes, usage) in steps {
            let (messages, mut revisions) = mixed(&of, begin, more);
            // There may be too few numbers, or too many.
            revisions.resize(numbered, 5_000);
            let mut sent = SentPrompt::new(&messages, &revisions, &options);
            sent.bytes = bytes;
            let same = detector.clone().check(&sent, &usage);
            let both = messages.len().min(numbered);
            (sent.messages, sent.revisions) = (&messages[..both], &revisions[..both]);
            let found = detector.check(&sent, &usage);
            prop_assert_eq!(same, found, "what has no number is ignored");
            if let Some(PromptCut { estimated, reported, .. }) = found {
                prop_assert!(reported > 0 && reported < estimated.div_ceil(2));
                let told = usage.prompt_tokens.unwrap_or_default();
                let told = told.saturating_add(usage.cached_tokens.unwrap_or_default());
                prop_assert_eq!(reported, told);
            }
        }
    }

    #[test]
    fn high_reports_are_never_a_cut(
        messages in conversation(),
        tokens in 1..400_u64,
        first in any_usage(),
        last in any_usage(),
    ) {
        let revisions = revisions(&messages);
        let sent = SentPrompt::new(&messages, &revisions, &1);
        let mut detector = Detector::new();
        detector.check(&sent, &first);
        let mut other = detector.clone();
        let other_options = 2;
        let mut plenty = SentPrompt::new(&messages[..0], &revisions[..0], &other_options);
        plenty.bytes = Some(6 * tokens as usize);
        prop_assert_eq!(detector.check(&plenty, &usage(tokens, None)), None);
        prop_assert_eq!(detector.check(&sent, &last), other.check(&sent, &last));
    }
}
