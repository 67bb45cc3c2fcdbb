use std::fmt;

/// An arithmetic expression from a prompt.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Number(f64),
    Operation(Box<Operation>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    pub operator: Operator,
    pub left: Expression,
    pub right: Expression,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operator {
    Add,
    Divide,
    Multiply,
    Subtract,
}

impl Expression {
    pub fn new(operator: Operator, left: Self, right: Self) -> Self {
        Self::Operation(Box::new(Operation { operator, left, right }))
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Self::Number(_))
    }

    /// Returns the number of operations.
    pub fn operations(&self) -> usize {
        match self {
            Self::Number(_) => 0,
            Self::Operation(operation) => {
                1 + operation.left.operations() + operation.right.operations()
            }
        }
    }

    /// The binding strength: an operand that binds less than its surroundings needs parentheses.
    fn strength(&self) -> u8 {
        match self {
            Self::Operation(operation) => operation.operator.strength(),
            Self::Number(number) if *number < 0.0 => 0,
            Self::Number(_) => u8::MAX,
        }
    }
}

impl Operator {
    pub const ALL: [Self; 4] = [Self::Add, Self::Divide, Self::Multiply, Self::Subtract];

    /// Returns words found in the names of tools for this operation.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Add => &["add", "plus", "sum"],
            Self::Divide => &["divide", "div", "quotient"],
            Self::Multiply => &["multiply", "mul", "times", "product"],
            Self::Subtract => &["subtract", "sub", "minus", "difference"],
        }
    }

    fn sign(self) -> char {
        match self {
            Self::Add => '+',
            Self::Divide => '÷',
            Self::Multiply => '×',
            Self::Subtract => '−',
        }
    }

    fn strength(self) -> u8 {
        match self {
            Self::Add | Self::Subtract => 1,
            Self::Divide | Self::Multiply => 2,
        }
    }
}

/// Formats with as few parentheses as possible.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => f.write_str(&show(*number)),
            Self::Operation(operation) => operation.fmt(f),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operator, left, right } = self;
        let strength = operator.strength();
        // A negative number may come first without parentheses.
        if left.is_number() || left.strength() >= strength {
            write!(f, "{left}")?;
        } else {
            write!(f, "({left})")?;
        }
        let sign = operator.sign();
        // The right operand is evaluated first only if it is in parentheses.
        if right.strength() > strength {
            write!(f, " {sign} {right}")
        } else {
            write!(f, " {sign} ({right})")
        }
    }
}

/// Formats a number: significant digits only, with powers of ten if it is long. Zero has no sign.
pub fn show(number: f64) -> String {
    let rounded = format!("{number:.11e}").parse().unwrap_or(number) + 0.0;
    if rounded != 0.0 && !(1e-6..1e15).contains(&rounded.abs()) {
        return format!("{rounded:e}");
    }
    rounded.to_string()
}

#[cfg(test)]
mod tests {
    use super::{Expression, Operator, show};

    #[test]
    fn parentheses_appear_only_if_needed() {
        use Operator::{Add, Multiply, Subtract};
        let n = Expression::Number;
        let sum = || Expression::new(Add, n(25.0), n(17.0));
        let check = |expression: Expression, expected: &str| {
            assert_eq!(expression.to_string(), expected);
        };
        check(Expression::new(Multiply, sum(), n(3.0)), "(25 + 17) × 3");
        check(Expression::new(Add, sum(), n(3.0)), "25 + 17 + 3");
        check(Expression::new(Subtract, n(3.0), sum()), "3 − (25 + 17)");
        check(Expression::new(Add, n(-3.0), n(-2.0)), "-3 + (-2)");
    }

    #[test]
    fn rounding_errors_are_not_shown() {
        let shown = [42.0, 0.1 + 0.2, -2.5, 1e300, 1e-9, -0.0, 1e12].map(show);
        assert_eq!(shown, ["42", "0.3", "-2.5", "1e300", "1e-9", "0", "1000000000000"]);
    }
}
