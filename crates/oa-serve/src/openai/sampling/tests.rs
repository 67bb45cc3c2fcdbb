use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(members: &Value) -> Result<Sampling, Refusal> {
    Sampling::read(members.as_object().expect("an object"))
}

fn applied(members: &Value, agent: &ChatParameters) -> ChatParameters {
    let mut to = ChatParameters::new("model");
    read(members).expect("it is valid").apply(agent, &mut to);
    to
}

#[test]
fn each_parameter_is_applied() {
    let to = applied(
        &json!({
            "temperature": 0.5, "top_p": 0.9, "max_tokens": 100, "max_completion_tokens": 50, "stop": ["a", "b"],
            "seed": 7, "frequency_penalty": -1, "presence_penalty": 0.1, "logit_bias": {"5": 1}, "n": 1,
            "response_format": {"type": "json_object"}, "logprobs": false, "user": "ada", "tool_choice": "auto",
        }),
        &ChatParameters::new("model"),
    );
    assert_eq!((to.temperature, to.top_p, to.max_tokens), (Some(0.5), Some(0.9), Some(50)));
    assert_eq!((&*to.stop, to.seed), (&["a".to_owned(), "b".to_owned()][..], Some(7)));
    assert_eq!(to.response_format, Some(json!({"type": "json_object"})));
    let others =
        json!({"frequency_penalty": -1.0, "presence_penalty": 0.1, "logit_bias": {"5": 1}});
    assert_eq!(Value::Object(to.extra_body), others);
}

/// They are valid in OpenAI's interface, and front ends send -1.
#[test]
fn negative_seeds_are_forwarded() {
    let mut agent = ChatParameters::new("model");
    agent.seed = Some(4);
    let to = applied(&json!({"seed": -1}), &agent);
    assert_eq!(Value::Object(to.extra_body), json!({"seed": -1}));
}

/// Servers on local machines read it as the lack of a limit.
#[test]
fn a_limit_of_minus_one_is_none() {
    let mut agent = ChatParameters::new("model");
    for own in [None, Some(7)] {
        agent.max_tokens = own;
        let to = applied(&json!({"max_tokens": -1, "max_completion_tokens": -1}), &agent);
        assert_eq!(to.max_tokens, own);
    }
}

#[test]
fn invalid_parameters_are_named() {
    for (name, value) in [
        ("temperature", json!(3)),
        ("temperature", json!("hot")),
        ("top_p", json!(0)),
        ("top_p", json!(1.5)),
        ("max_tokens", json!(0)),
        ("max_completion_tokens", json!(-5)),
        ("stop", json!("")),
        ("stop", json!([1])),
        ("stop", json!(vec!["x"; MOST_STOPS + 1])),
        ("seed", json!(1.5)),
        ("seed", json!("x")),
        ("frequency_penalty", json!(2.5)),
        ("presence_penalty", json!([])),
        ("logit_bias", json!(1)),
        ("response_format", json!({"type": "xml"})),
        ("response_format", json!({"type": "json_schema", "json_schema": {"name": "x"}})),
        ("parallel_tool_calls", json!("yes")),
        ("tool_choice", json!("required")),
        ("n", json!(2)),
        ("logprobs", json!(true)),
        ("audio", json!({})),
    ] {
        let refusal = read(&json!({name: value})).expect_err(name);
        assert_eq!((refusal.param, refusal.status.as_u16()), (Some(name), 400), "{value}");
        assert!(refusal.message.starts_with(name), "{}", refusal.message);
        assert_eq!(read(&json!({name: null})).expect("null is none"), Sampling::default());
    }
}

proptest! {
    /// A client never lifts a limit of the agent, and whoever sets nothing changes nothing.
    #[test]
    fn agent_limits_hold(
        own in prop::option::of(1_u32..100), asked in prop::option::of(1_u32..100), stop in "[a-c]", asked_stop in "[a-c]",
        temperature in prop::option::of(0.0_f32..2.0), seed in prop::option::of(0_u64..9),
    ) {
        let mut agent = ChatParameters::new("model");
        (agent.max_tokens, agent.temperature, agent.seed) = (own, temperature, seed);
        agent.stop = vec![stop.clone()];
        agent.extra_body = Map::from_iter([("top_k".to_owned(), json!(4))]);
        let to = applied(&json!({"max_tokens": asked, "stop": asked_stop}), &agent);
        prop_assert!(own.is_none_or(|own| to.max_tokens.is_some_and(|now| now <= own)));
        prop_assert_eq!(to.max_tokens, most(own, asked));
        prop_assert!(to.stop.contains(&stop) && to.stop.contains(&asked_stop));
        prop_assert_eq!(to.stop.len(), 1 + usize::from(stop != asked_stop));
        prop_assert_eq!(applied(&json!({}), &agent), agent.clone());
        // A second request starts from the agent, and not from the one before.
        let mut twice = to;
        Sampling::default().apply(&agent, &mut twice);
        prop_assert_eq!(twice, agent);
    }

    /// Any JSON is read or refused.
    #[test]
    fn any_json_is_read_or_refused(name in "temperature|top_p|max_tokens|stop|seed|n|response_format|tool_choice", value in any_json()) {
        if let Err(refusal) = read(&json!({&*name: value})) {
            prop_assert_eq!(refusal.param, Some(&*name));
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("type|json_schema|x", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
