//! The cost of answers.

use std::time::Duration;

use oa_types::{Cost, Price, Usage};
use proptest::prelude::*;

fn usage(prompt: Option<u64>, completion: Option<u64>, total: Option<u64>) -> Usage {
    let mut usage = Usage::default();
    (usage.prompt_tokens, usage.completion_tokens) = (prompt, completion);
    usage.total_tokens = total;
    usage
}

#[test]
fn usage_is_shown_as_far_as_it_is_known() {
    let shown = |prompt, completion, total| usage(prompt, completion, total).to_string();
    assert_eq!(shown(Some(20), Some(5), Some(26)), "26 tokens (20 in, 5 out)");
    assert_eq!(shown(None, Some(5), None), "5 tokens (5 out)");
    assert_eq!(shown(None, None, Some(7)), "7 tokens");
    assert_eq!(shown(None, None, None), "unknown tokens");
    let mut all = usage(Some(20), Some(5), None);
    (all.cached_tokens, all.reasoning_tokens) = (Some(16), Some(3));
    all.generation_time = Some(Duration::from_millis(160));
    all.cost = Some(Cost::new(0.003).unwrap());
    let line = "25 tokens (20 in, 16 of them cached, 5 out, 3 of them reasoning), 31.2 tokens/s, cost 0.003";
    assert_eq!(all.to_string(), line);
}

#[test]
fn tokens_cost_their_price() {
    let price = Price::per_million(0.15, 0.6).unwrap();
    let cost = |prompt, completion, total| {
        price.cost(&usage(prompt, completion, total)).map(|cost| cost.to_string())
    };
    let said = |text: &str| Some(text.to_owned());
    assert_eq!(cost(Some(1), Some(0), None), said("0.00000015"));
    assert_eq!(cost(Some(1_000_000), Some(1_000_000), None), said("0.75"));
    assert_eq!(cost(Some(1_000_000), Some(0), Some(9_000_000)), said("0.15"), "parts win");
    assert_eq!(cost(Some(1_000_000), None, Some(2_000_000)), said("0.75"));
    assert_eq!(cost(None, Some(1_000_000), Some(2_000_000)), said("0.75"));
    assert_eq!(cost(None, None, Some(1_000_000)), said("0.6"), "at the higher price");
    assert_eq!(cost(None, None, None), None);
    assert_eq!(cost(Some(u64::MAX), Some(u64::MAX), None), said("18446744.073709551615"));
}

#[test]
fn negative_or_infinite_amounts_are_rejected() {
    for wrong in [-0.01, f64::NAN, f64::INFINITY] {
        Cost::new(wrong).unwrap_err();
        Price::per_million(wrong, 1.0).unwrap_err();
        Price::per_million(1.0, wrong).unwrap_err();
    }
    assert!(Price::per_million(0.0, 0.0).unwrap().is_free());
    assert!(!Price::per_million(0.0, 0.1).unwrap().is_free());
}

#[test]
fn costs_are_printed_without_needless_digits() {
    let shown = |amount| Cost::new(amount).unwrap();
    assert_eq!(shown(0.0).to_string(), "0");
    assert_eq!(shown(10.0).to_string(), "10");
    assert_eq!(shown(1.25).to_string(), "1.25");
    assert_eq!(format!("{:.2} {:?}", shown(1.256), shown(0.1)), "1.26 Cost(0.1)");
}

proptest! {
    #[test]
    fn costs_add_up_in_any_order_and_are_stored(
        tokens in prop::collection::vec((0_u64..1 << 40, 0_u64..1 << 40), 0..20),
        prices in (0_u32..100_000, 0_u32..100_000),
    ) {
        let price = Price::per_million(f64::from(prices.0) / 1e3, f64::from(prices.1) / 1e3).unwrap();
        let cost = |(input, output): &(u64, u64)| price.cost(&usage(Some(*input), Some(*output), None));
        let sum = |costs: &mut dyn Iterator<Item = Cost>| {
            costs.fold(Cost::ZERO, Cost::saturating_add)
        };
        let ahead = sum(&mut tokens.iter().filter_map(cost));
        prop_assert_eq!(sum(&mut tokens.iter().rev().filter_map(cost)), ahead);
        let mut added = Usage::default();
        for tokens in &tokens {
            let mut one = usage(Some(tokens.0), Some(tokens.1), None);
            one.cost = cost(tokens);
            added += one;
        }
        prop_assert_eq!(added.cost.unwrap_or_default(), ahead);
        let json = serde_json::to_string(&ahead).unwrap();
        prop_assert_eq!(serde_json::from_str::<Cost>(&json).unwrap(), ahead);
    }
}

#[test]
fn inexact_amounts_are_stored_as_digits() {
    let price = Price::per_million(0.000_001, 0.0).unwrap();
    for (tokens, json) in [
        (1_500_000, "1.5e-6"),
        (u64::MAX, "18446744.07370955"),
        ((1 << 53) + 1, r#""9007.199254740993""#),
    ] {
        let cost = price.cost(&usage(Some(tokens), Some(0), None)).unwrap();
        assert_eq!(serde_json::to_string(&cost).unwrap(), json);
        assert_eq!(serde_json::from_str::<Cost>(json).unwrap(), cost);
    }
    assert_eq!(serde_json::from_str::<Cost>("3").unwrap().to_string(), "3");
    for wrong in ["\"\"", "\"1.x\"", "\"-1\"", "\"1.0000000000001\"", "\"99999999999\"", "-1", "[]"]
    {
        assert!(serde_json::from_str::<Cost>(wrong).is_err(), "{wrong}");
    }
}

/// A server may report a total with some answers, and none with one that was cut.
#[test]
fn total_counts_answers_without_a_total() {
    let whole = usage(Some(10), Some(5), Some(15));
    let cut = usage(Some(7), Some(1), None);
    for (mut first, second) in [(whole, cut), (cut, whole)] {
        first.add(&second);
        assert_eq!((first.prompt_tokens, first.total()), (Some(17), Some(23)));
        first.add(&Usage::default());
        assert_eq!(first.total(), Some(23));
    }
    let mut parts = cut;
    parts.add(&cut);
    assert_eq!((parts.total_tokens, parts.total()), (None, Some(16)));
}
