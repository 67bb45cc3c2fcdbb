use std::fmt;

use serde_json::{Value, json};

use super::expression::{Expression, Operator, show};
use crate::chat::Call;

/// Evaluates expressions with tools: uses the results so far and finds the next possible steps.
pub(crate) struct Plan<'a> {
    tools: &'a [Value],
    calls: &'a [Call<'a>],
    /// The steps whose operands are known, each once.
    pub(crate) steps: Vec<Step>,
}

/// A call to make.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    /// The step in readable form.
    text: String,
}

/// The progress of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Progress {
    Done(f64),
    /// It cannot be evaluated, for this reason.
    Failed(String),
    Open,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(tools: &'a [Value], calls: &'a [Call<'a>]) -> Self {
        Self { tools, calls, steps: Vec::new() }
    }

    pub(crate) fn follow(&mut self, expression: &Expression) -> Progress {
        let operation = match expression {
            Expression::Number(number) => return Progress::Done(*number),
            Expression::Operation(operation) => operation,
        };
        // Both, so that independent steps are requested in parallel.
        let (left, right) = match (self.follow(&operation.left), self.follow(&operation.right)) {
            (Progress::Done(left), Progress::Done(right)) => (left, right),
            (Progress::Failed(why), _) | (_, Progress::Failed(why)) => {
                return Progress::Failed(why);
            }
            _ => return Progress::Open,
        };
        let Some(tool) = Tool::that_does(operation.operator, self.tools) else {
            let verb = operation.operator.names()[0];
            return Progress::Failed(format!("this takes a tool to {verb}, and none is offered"));
        };
        let operands = [(tool.left, left), (tool.right, right)];
        let is_answer = |call: &&Call<'_>| {
            call.name == tool.name
                && operands.iter().all(|(name, value)| call.input[*name].as_f64() == Some(*value))
        };
        let text = Expression::new(
            operation.operator,
            Expression::Number(left),
            Expression::Number(right),
        );
        match self.calls.iter().rfind(is_answer).map(|call| &call.result) {
            Some(Ok(result)) => match number(result) {
                Some(number) => Progress::Done(number),
                None => Progress::Failed(format!("the tool {} returned no number", tool.name)),
            },
            Some(Err(error)) => Progress::Failed(format!("{error}, says the tool {}", tool.name)),
            None => {
                let arguments = json!({ tool.left: shortest(left), tool.right: shortest(right) });
                let step = Step { tool: tool.name.to_owned(), arguments, text: text.to_string() };
                if !self.steps.contains(&step) {
                    self.steps.push(step);
                }
                Progress::Open
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(number) => write!(f, "is {}", show(*number)),
            Self::Failed(why) => write!(f, "has no answer: {why}"),
            Self::Open => f.write_str("is not known yet"),
        }
    }
}

/// A tool with two numeric operands.
struct Tool<'a> {
    name: &'a str,
    left: &'a str,
    right: &'a str,
}

impl<'a> Tool<'a> {
    fn that_does(operator: Operator, tools: &'a [Value]) -> Option<Self> {
        tools.iter().find_map(|tool| {
            let function = &tool["function"];
            let name = function["name"].as_str()?;
            let does = |word: &str| operator.names().contains(&word);
            if !name.to_lowercase().split(['_', '-']).any(does) {
                return None;
            }
            // The required parameters are in order.
            let mut operands = function["parameters"]["required"].as_array()?.iter();
            let (left, right) = (operands.next()?.as_str()?, operands.next()?.as_str()?);
            Some(Self { name, left, right })
        })
    }
}

/// Returns the number in a result: the result itself, or its only numeric member.
fn number(result: &Value) -> Option<f64> {
    match result {
        Value::Object(members) => {
            let mut numbers = members.values().filter_map(Value::as_f64);
            numbers.next().filter(|_| numbers.next().is_none())
        }
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    }
}

/// Writes an integer without a decimal point, as models do.
fn shortest(number: f64) -> Value {
    let whole = number as i64;
    if whole as f64 == number && whole.abs() < 1 << 53 { json!(whole) } else { json!(number) }
}

#[cfg(test)]
mod tests {
    use open_agent::json;

    use super::{Operator, Tool, number};

    #[test]
    fn tools_are_found_by_their_names() {
        let tool = |name: &str| json!({ "function": { "name": name, "parameters": { "required": ["x", "y"] } } });
        let tools = [tool("address"), tool("add_numbers"), tool("divide")];
        let found = |operator| Tool::that_does(operator, &tools).map(|tool| tool.name);
        assert_eq!(Operator::ALL.map(found), [Some("add_numbers"), Some("divide"), None, None]);
    }

    #[test]
    fn results_with_one_number_are_read() {
        assert_eq!(number(&json!(2)), Some(2.0));
        assert_eq!(number(&json!({ "sum": 2.5, "unit": "m" })), Some(2.5));
        assert_eq!(number(&json!("3")), Some(3.0));
        assert_eq!(number(&json!({ "a": 1, "b": 2 })), None);
    }
}
