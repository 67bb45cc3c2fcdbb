//! Calibration from reported usage.

use oa_context::{Calibration, Corrected, Estimator, Observation, TokenCounter, estimate_tokens};
use oa_types::{Message, ToolSpec, Usage};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

fn after(reports: &[(usize, u64)]) -> Calibration {
    let mut calibration = Calibration::new();
    for (estimated, reported) in reports {
        calibration.observe(*estimated, *reported);
    }
    calibration
}

#[test]
fn one_report_alone_changes_nothing() {
    assert!((after(&[(1_000, 3_000)]).ratio() - 1.0).abs() < 1e-9);
    assert!((after(&[(1_000, 1_500); 3]).ratio() - 1.5).abs() < 1e-9);
}

#[test]
fn single_outlier_changes_nothing() {
    let mut reports = vec![(1_000, 1_200); 8];
    reports.insert(4, (1_000, 1_000_000));
    assert!((after(&reports).ratio() - 1.2).abs() < 1e-9);
}

#[test]
fn old_reports_are_forgotten() {
    let mut reports = vec![(1_000, 1_400); 20];
    reports.extend([(1_000, 900); 5]);
    assert!((after(&reports).ratio() - 0.9).abs() < 1e-9);
}

#[test]
fn unusable_reports_are_not_learned() {
    let mut calibration = Calibration::new();
    assert_eq!(calibration.observe(10_000, 4_096), Observation::CutShort);
    assert_eq!(calibration.observe(10_000, 0), Observation::Ignored);
    assert_eq!(calibration.observe(0, 10), Observation::Ignored);
    assert_eq!(calibration.observe(49, 98), Observation::Ignored);
    assert_eq!(calibration.observe(50, 98), Observation::Learned);
    assert!((calibration.ratio() - 1.0).abs() < 1e-9);
}

/// Everything is corrected, also what is counted alone; the overhead itself is not, because no server counts it.
#[test]
fn each_count_is_corrected() {
    let plain = Estimator::new();
    let mut corrected = Corrected::new(Estimator::new());
    let message = Message::user("one two three ".repeat(100));
    let (messages, tools) = ([message.clone()], [ToolSpec::new("t", "T", json!({}))]);
    let sent = plain.count_messages(&messages) + plain.count_tools(&tools);
    let mut usage = Usage::default();
    usage.prompt_tokens = Some(2 * sent as u64);
    for _ in 0..3 {
        assert_eq!(corrected.observe(&messages, &tools, &usage), Observation::Learned);
    }
    let counts = |counter: &dyn TokenCounter| {
        let value = json!({ "text": "one two three" });
        [
            counter.count_text("one two three"),
            counter.count_json(&value),
            counter.count_message(&message),
            counter.count_messages(&messages),
            counter.count_tools(&tools),
        ]
    };
    assert_eq!(counts(&corrected), counts(&plain).map(|count| 2 * count));
    assert_eq!(corrected.costs(), plain.costs());
}

#[test]
fn corrected_counts_match_the_server() {
    let messages = [Message::user("Tell me about bees, please. ".repeat(30))];
    let tools = [ToolSpec::new("look", "Looks it up.", json!({"type": "object"}))];
    let mut counter = Corrected::new(Estimator::new());
    let estimated = counter.count_messages(&messages) + counter.count_tools(&tools);
    let mut usage = Usage::default();
    assert_eq!(counter.observe(&messages, &tools, &usage), Observation::Ignored);
    usage.prompt_tokens = Some(estimated as u64 * 5 / 4);
    for _ in 0..4 {
        assert_eq!(counter.observe(&messages, &tools, &usage), Observation::Learned);
    }
    let corrected = counter.count_messages(&messages) + counter.count_tools(&tools);
    assert!(corrected.abs_diff(estimated * 5 / 4) <= 1);
    // It learns from uncorrected estimates only.
    assert!((counter.calibration().ratio() - 1.25).abs() < 0.01);
    assert_eq!(counter.get_ref().count_messages(&messages), estimate_tokens(&messages));
}

proptest! {
    #[test]
    fn the_ratio_is_bounded_and_keeps_order(
        reports in vec((any::<u32>(), any::<u64>()), 0..30),
        small in 0..1_000_000_usize,
        more in 0..1_000_usize,
    ) {
        let reports: Vec<_> = reports.into_iter().map(|(e, r)| (e as usize, r)).collect();
        let calibration = after(&reports);
        prop_assert!((Calibration::MIN..=Calibration::MAX).contains(&calibration.ratio()));
        prop_assert!(calibration.correct(small) <= calibration.correct(small + more));
        prop_assert_eq!(calibration.correct(0), 0);
    }
}
