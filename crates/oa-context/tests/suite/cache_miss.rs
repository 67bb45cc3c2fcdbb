//! Prompts that a server had to process again.

use oa_context::{CacheMiss, CacheMissDetector, ChangedPart, SentPrefix};
use oa_types::Usage;
use proptest::collection::vec;
use proptest::prelude::*;

fn usage(prompt: u64, cached: Option<u64>) -> Usage {
    let mut usage = Usage::default();
    (usage.prompt_tokens, usage.cached_tokens) = (Some(prompt), cached);
    usage
}

/// Returns what is told of the second of two requests.
fn told(
    first: (&str, u8, &[u64], Option<u64>),
    second: (&str, u8, &[u64], Option<u64>),
) -> Option<CacheMiss> {
    let mut detector = CacheMissDetector::default();
    let mut check = |(model, before, revisions, cached): (&str, u8, &[u64], Option<u64>)| {
        detector.check(SentPrefix::new(model, before, revisions), &usage(5_000, cached))
    };
    assert_eq!(check(first), None, "there is nothing to compare with");
    check(second)
}

#[test]
fn the_first_part_that_differs_is_named() {
    let before = ("a", 1, &[1, 2, 3][..], Some(4_000));
    let changed = |before, revisions: &[u64]| {
        told(("a", 1, &[1, 2, 3], Some(4_000)), ("a", before, revisions, Some(100)))
            .map(|miss| miss.first_changed)
    };
    assert_eq!(changed(2, &[1, 2, 3, 4]), Some(Some(ChangedPart::BeforeMessages)));
    assert_eq!(changed(1, &[1, 9, 3, 4]), Some(Some(ChangedPart::Message(1))));
    assert_eq!(changed(1, &[9, 2, 3, 4]), Some(Some(ChangedPart::Message(0))));
    assert_eq!(changed(1, &[1, 2]), Some(Some(ChangedPart::Message(2))));
    // Nothing has changed: the server has dropped its cache.
    assert_eq!(changed(1, &[1, 2, 3, 4]), Some(None));
    let miss = told(before, ("a", 1, &[1, 2, 3, 4], Some(100))).unwrap();
    assert_eq!((miss.cached_before, miss.cached_now), (4_000, 100));
    let json = serde_json::to_string(&miss).unwrap();
    assert_eq!(json, r#"{"cached_before":4000,"cached_now":100}"#);
}

#[test]
fn incomparable_requests_are_not_reported() {
    let before = ("a", 1, &[1, 2, 3][..], Some(4_000));
    assert_eq!(told(before, ("b", 1, &[1, 2, 3, 4], Some(0))), None, "another model");
    assert_eq!(told(before, ("a", 1, &[7, 8], Some(0))), None, "another conversation");
    assert_eq!(told(before, ("a", 1, &[1, 2, 3, 4], None)), None, "not reported");
    assert_eq!(told(("a", 1, &[1], None), ("a", 1, &[1, 2], Some(0))), None, "not reported");
}

#[test]
fn small_losses_are_not_reported() {
    let before = ("a", 1, &[1, 2, 3][..], Some(4_000));
    assert_eq!(told(before, ("a", 1, &[1, 2, 3, 4], Some(2_000))), None);
    assert!(told(before, ("a", 1, &[1, 2, 3, 4], Some(1_999))).is_some());
    let before = ("a", 1, &[1, 2, 3][..], Some(300));
    assert_eq!(told(before, ("a", 1, &[1, 2, 3, 4], Some(45))), None);
    assert!(told(before, ("a", 1, &[1, 2, 3, 4], Some(44))).is_some());
    // A short prompt has few tokens that could be cached.
    let mut detector = CacheMissDetector::default();
    detector.check(SentPrefix::new("a", (), &[1, 2, 3]), &usage(5_000, Some(4_000)));
    assert_eq!(detector.check(SentPrefix::new("a", (), &[1]), &usage(300, Some(45))), None);
}

proptest! {
    #[test]
    fn growing_caches_are_never_reported(
        steps in vec((0..3_usize, 0..2_000_u64, 0..2_000_u64), 1..20),
    ) {
        let mut detector = CacheMissDetector::default();
        let (mut revisions, mut cached) = (vec![1_u64], 0);
        for (messages, more, uncached) in steps {
            let next = revisions.len() as u64;
            revisions.extend((1..=messages as u64).map(|message| next + message));
            cached += more;
            let usage = usage(cached + uncached, Some(cached));
            prop_assert_eq!(detector.check(SentPrefix::new("a", (), &revisions), &usage), None);
        }
    }

    #[test]
    fn misses_name_the_first_changed_message(
        length in 1..40_usize,
        more in 0..5_usize,
        changed in any::<Option<prop::sample::Index>>(),
        cached in 512..100_000_u64,
        left in 0..100_u64,
    ) {
        let revisions: Vec<u64> = (1..=length as u64).collect();
        let mut now: Vec<u64> = (1..=(length + more) as u64).collect();
        let place = changed.map(|changed| changed.index(length));
        if let Some(place) = place {
            now[place] = 1_000;
        }
        let cached_now = cached * left / 201;
        prop_assume!(cached - cached_now >= 256);
        let mut detector = CacheMissDetector::default();
        detector.check(SentPrefix::new("a", (), &revisions), &usage(cached, Some(cached)));
        let miss = detector.check(SentPrefix::new("a", (), &now), &usage(cached + 300, Some(cached_now)));
        if length == 1 && place.is_some() && more == 0 {
            prop_assert_eq!(miss, None, "a new conversation");
        } else if length > 1 || place.is_none() {
            let miss = miss.expect("it collapsed");
            prop_assert_eq!(miss.first_changed, place.map(ChangedPart::Message));
            prop_assert_eq!((miss.cached_before, miss.cached_now), (cached, cached_now));
        }
    }
}
