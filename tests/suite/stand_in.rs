//! The examples' stand-in as the model of an agent with tools: its answer is the value of the expression, in
//! whichever way the expression is written.

use examples::Chat;
use examples::stand_in::expression::{Expression, Operator, show};
use examples::stand_in::{EXAMPLES, INTRODUCTION, answer};
use oa_testkit::{MemoryServer, Reply, Request, Script};
use open_agent::{AgentOptions, Client, FnTool, Result, ToolError, json, tool};
use proptest::prelude::*;

fn arithmetic(name: &str, work: fn(f64, f64) -> f64) -> FnTool {
    tool(name, "Arithmetic").param("a", "number").param("b", "number").build(
        move |args| async move {
            let operand = |name: &str| args[name].as_f64().ok_or("no number");
            let (a, b) = (operand("a")?, operand("b")?);
            let result = work(a, b);
            if result.is_finite() { Ok(json!(result)) } else { Err(ToolError::new("not finite")) }
        },
    )
}

fn tools() -> [FnTool; 4] {
    [
        arithmetic("add", |a, b| a + b),
        arithmetic("subtract", |a, b| a - b),
        arithmetic("multiply", |a, b| a * b),
        arithmetic("divide", |a, b| a / b),
    ]
}

/// Returns the agent's final answer and the number of tool rounds.
fn ask(prompt: &str, tools: impl IntoIterator<Item = FnTool>) -> Result<(String, u32)> {
    let reply = Reply::by(|request: &Request| answer(&Chat::of(request)));
    let options = AgentOptions::builder()
        .model("stand-in")
        .transport(MemoryServer::new(Script::new().strict().otherwise(reply)))
        .tools(tools)
        .auto_execute_tools(true)
        .max_tool_iterations(100)
        .final_text_only(true)
        .build()?;
    let mut client = Client::new(options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let reply = runtime.expect("a runtime").block_on(client.ask(prompt))?;
    Ok((reply.text, client.turn_metadata().rounds))
}

#[track_caller]
fn check(prompt: &str, rounds: u32, expected: &str) {
    assert_eq!(
        ask(prompt, tools()).expect("the test is set up"),
        (expected.to_owned(), rounds),
        "{prompt}"
    );
}

#[test]
fn dependent_steps_run_in_sequence() {
    check("What is 25 + 17, times 3?", 2, "(25 + 17) × 3 is 126.");
    check("divide 10 by 4", 1, "10 ÷ 4 is 2.5.");
    check("half of 90", 1, "90 ÷ 2 is 45.");
}

#[test]
fn independent_steps_are_one_round() {
    check("(1 + 2) * (3 + 4)", 2, "(1 + 2) × (3 + 4) is 21.");
    check("What is 3 + 4 and what is 5 * 6?", 1, "3 + 4 is 7; 5 × 6 is 30.");
}

#[test]
fn tool_errors_are_quoted() {
    let quoted = "(1 + 1) ÷ 0 has no answer: not finite, says the tool divide; 2 × 3 is 6.";
    check("What is (1 + 1) / 0 and 2 * 3?", 2, quoted);
}

#[test]
fn only_offered_tools_are_called() {
    let (text, rounds) = ask("3 * 4", [arithmetic("add", |a, b| a + b)]).unwrap();
    let expected = "3 × 4 has no answer: this takes a tool to multiply, and none is offered.";
    assert_eq!((&*text, rounds), (expected, 0));
}

#[test]
fn other_prompts_get_the_introduction() {
    for prompt in ["Why is the sky blue?", "2 ^ 8", "3 and 4"] {
        let (text, _) = ask(prompt, tools()).unwrap();
        assert!(text.starts_with(INTRODUCTION), "{text}");
        assert!(text.contains(EXAMPLES), "{text}");
    }
}

/// An expression, and one of many ways to write it.
#[derive(Clone, Debug)]
struct Written {
    expression: Expression,
    text: String,
}

impl Written {
    /// Writes it as an operand.
    fn operand(&self) -> String {
        if self.expression.is_number() { self.text.clone() } else { format!("({})", self.text) }
    }
}

fn written() -> impl Strategy<Value = Written> {
    let number = (-9999_i32..9999, 0_usize..3).prop_map(|(digits, decimals)| {
        let number = f64::from(digits) / 10_f64.powi(decimals as i32);
        Written { expression: Expression::Number(number), text: number.to_string() }
    });
    number.prop_recursive(4, 24, 2, |inner| {
        let operator = proptest::sample::select(&Operator::ALL[..]);
        (inner.clone(), operator, inner, 0_usize..3).prop_map(|(left, operator, right, style)| {
            let (a, b) = (left.operand(), right.operand());
            let text = match (style, operator) {
                (0, Operator::Add) => format!("{a}+{b}"),
                (0, Operator::Divide) => format!("{a} ÷ {b}"),
                (0, Operator::Multiply) => format!("{a} * {b}"),
                (0, Operator::Subtract) => format!("{a} - {b}"),
                (1, Operator::Add) => format!("{a} plus {b}"),
                (1, Operator::Divide) => format!("{a} divided by {b}"),
                (1, Operator::Multiply) => format!("{a} times {b}"),
                (1, Operator::Subtract) => format!("{a} minus {b}"),
                (_, Operator::Add) => format!("the sum of {a} and {b}"),
                (_, Operator::Divide) => format!("divide {a} by {b}"),
                (_, Operator::Multiply) => format!("multiply {a} by {b}"),
                (_, Operator::Subtract) => format!("subtract {b} from {a}"),
            };
            let expression = Expression::new(operator, left.expression, right.expression);
            Written { expression, text }
        })
    })
}

/// Returns the value, unless an intermediate result is not finite.
fn evaluate(expression: &Expression) -> Option<f64> {
    let operation = match expression {
        Expression::Number(number) => return Some(*number),
        Expression::Operation(operation) => operation,
    };
    let (left, right) = (evaluate(&operation.left)?, evaluate(&operation.right)?);
    let value = match operation.operator {
        Operator::Add => left + right,
        Operator::Divide => left / right,
        Operator::Multiply => left * right,
        Operator::Subtract => left - right,
    };
    Some(value).filter(|value| value.is_finite())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn the_answer_is_the_value(
        (first, second) in (written(), written()).prop_filter("asks something", |(first, second)| {
            !first.expression.is_number() && !second.expression.is_number()
        }),
    ) {
        let prompt = format!("What is {}, times {}?", first.text, second.operand());
        let expression = Expression::new(Operator::Multiply, first.expression, second.expression);
        let (text, _) = ask(&prompt, tools()).unwrap();
        let expected = match evaluate(&expression) {
            Some(value) => format!("{expression} is {}.", show(value)),
            None => format!("{expression} has no answer: not finite, says the tool divide."),
        };
        prop_assert_eq!(text, expected);
    }

    #[test]
    fn any_text_gets_an_answer(prompt in "[ -~]{0,60}|[0-9+*/(), .a-z-]{0,60}") {
        // The client rejects blank prompts.
        prop_assume!(!prompt.trim().is_empty());
        let (text, _) = ask(&prompt, tools()).unwrap();
        prop_assert!(!text.is_empty());
    }
}
