use super::cursor::Cursor;
use super::expression::{Expression, Operator};
use super::token::{Token, tokens};

/// The largest number of tokens in a prompt.
const LENGTH: usize = 512;
/// The deepest nesting of a prompt.
const DEPTH: usize = 64;
/// The largest number of operations repeated by "that" and "squared".
const REPEATED: usize = 256;

/// The reason why a prompt cannot be evaluated.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Misread {
    /// It is not about arithmetic.
    NoArithmetic,
    /// It is arithmetic but ambiguous.
    Unclear,
    /// It is arithmetic with an unknown word.
    Word(String),
}

/// Parses the expressions in a prompt.
///
/// Parses the whole prompt or nothing, because skipping unknown parts would give wrong answers.
pub(crate) fn parse(text: &str) -> Result<Vec<Expression>, Misread> {
    let is_arithmetic = text.contains(|c: char| c.is_ascii_digit());
    let tokens = tokens(text).map_err(|word| match is_arithmetic {
        true => Misread::Word(word),
        false => Misread::NoArithmetic,
    })?;
    if !tokens.iter().any(|token| matches!(token, Token::Number(_))) {
        return Err(Misread::NoArithmetic);
    }
    if tokens.len() > LENGTH {
        return Err(Misread::Unclear);
    }
    let cursor = Cursor::new(tokens);
    let mut parser =
        Parser { cursor, depth: 0, repeats: REPEATED, previous: None, has_gone_back: false };
    parser.questions().ok_or(Misread::Unclear)
}

/// A recursive descent parser. `None` means that the prompt cannot be parsed.
struct Parser {
    cursor: Cursor,
    depth: usize,
    repeats: usize,
    /// The last expression, which "it" and ", times 3" refer to.
    previous: Option<Expression>,
    /// True if something referred to it.
    has_gone_back: bool,
}

impl Parser {
    fn questions(&mut self) -> Option<Vec<Expression>> {
        let mut questions: Vec<Expression> = Vec::new();
        loop {
            let breaks = self.cursor.skip(|token| {
                matches!(token, Token::And | Token::Comma | Token::Stop | Token::Then | Token::To)
            });
            let Some(next) = self.cursor.peek() else { break };
            // After a period, a minus belongs to the following number.
            let is_sign = matches!(next, Token::Operator(Operator::Subtract))
                && breaks.contains(&Token::Stop)
                && !breaks.contains(&Token::Then);
            self.has_gone_back = false;
            let question = match next {
                Token::Operator(_) | Token::Squared if !is_sign && !questions.is_empty() => {
                    let previous = self.go_back()?;
                    self.sum(Some(previous))?
                }
                _ => self.sum(None)?,
            };
            if self.has_gone_back {
                questions.pop();
            }
            self.previous = Some(question.clone());
            questions.push(question);
        }
        // A number alone is not a question but a leftover.
        let is_whole = !questions.is_empty() && !questions.iter().any(Expression::is_number);
        is_whole.then_some(questions)
    }

    fn sum(&mut self, left: Option<Expression>) -> Option<Expression> {
        let mut left = self.product(left)?;
        while let Some(Token::Operator(operator @ (Operator::Add | Operator::Subtract))) =
            self.cursor.peek()
        {
            self.cursor.next();
            left = Expression::new(operator, left, self.product(None)?);
        }
        Some(left)
    }

    fn product(&mut self, left: Option<Expression>) -> Option<Expression> {
        let mut left = match left {
            Some(left) => self.squared(left)?,
            None => self.operand()?,
        };
        while let Some(Token::Operator(operator @ (Operator::Divide | Operator::Multiply))) =
            self.cursor.peek()
        {
            self.cursor.next();
            self.cursor.eat(Token::By); // divided by
            left = Expression::new(operator, left, self.operand()?);
        }
        Some(left)
    }

    fn operand(&mut self) -> Option<Expression> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let operand = match self.cursor.next()? {
            Token::Function(operator) => self.function(operator)?,
            Token::Multiple(operator, factor) => {
                self.cursor.eat(Token::Of);
                let of = if self.is_operand() { self.operand()? } else { self.go_back()? };
                Expression::new(operator, of, Expression::Number(factor))
            }
            Token::Number(number) if self.cursor.eat(Token::Percent) => {
                self.cursor.eat(Token::Of).then_some(())?;
                let of = Expression::new(
                    Operator::Multiply,
                    self.operand()?,
                    Expression::Number(number),
                );
                Expression::new(Operator::Divide, of, Expression::Number(100.0))
            }
            Token::Number(number) => Expression::Number(number),
            Token::Open => {
                let inner = self.sum(None)?;
                self.cursor.eat(Token::Close).then_some(inner)?
            }
            Token::Operator(Operator::Subtract) => match self.operand()? {
                Expression::Number(number) => Expression::Number(-number),
                other => Expression::new(Operator::Subtract, Expression::Number(0.0), other),
            },
            // "The result of" adds nothing.
            Token::Previous if self.cursor.eat(Token::Of) => self.operand()?,
            Token::Previous => self.go_back()?,
            Token::Verb(operator) => self.verb(operator)?,
            _ => return None,
        };
        self.depth -= 1;
        self.squared(operand)
    }

    fn squared(&mut self, mut operand: Expression) -> Option<Expression> {
        while self.cursor.eat(Token::Squared) {
            operand = Expression::new(Operator::Multiply, self.repeat(&operand)?, operand);
        }
        Some(operand)
    }

    /// "The sum of 1, 2 and 3".
    fn function(&mut self, operator: Operator) -> Option<Expression> {
        self.cursor.eat(Token::Of).then_some(())?;
        let mut value = self.operand()?;
        let mut count = 1;
        loop {
            let start = self.cursor.place();
            let (comma, and) = (self.cursor.eat(Token::Comma), self.cursor.eat(Token::And));
            if !(comma || and) || !self.is_operand() {
                self.cursor.go_to(start);
                break;
            }
            value = Expression::new(operator, value, self.operand()?);
            count += 1;
            if and {
                break;
            }
        }
        let is_list = matches!(operator, Operator::Add | Operator::Multiply);
        (count == 2 || (is_list && count > 2)).then_some(value)
    }

    /// "Add 3 to 4", "divide it by 2", and "multiply by 5", which continues the previous expression.
    fn verb(&mut self, operator: Operator) -> Option<Expression> {
        let is_scaling = matches!(operator, Operator::Divide | Operator::Multiply);
        if is_scaling && self.cursor.eat(Token::By) {
            let previous = self.go_back()?;
            return Some(Expression::new(operator, previous, self.operand()?));
        }
        let first = self.sum(None)?;
        let start = self.cursor.place();
        let joint = self.cursor.next();
        if let Some(joint) = joint
            && self.is_operand()
        {
            match (operator, joint) {
                (Operator::Add, Token::To) | (Operator::Subtract, Token::From) => {
                    return Some(Expression::new(operator, self.operand()?, first));
                }
                (Operator::Add | Operator::Multiply, Token::And)
                | (Operator::Add | Operator::Divide | Operator::Multiply, Token::By) => {
                    return Some(Expression::new(operator, first, self.operand()?));
                }
                _ => {}
            }
        }
        self.cursor.go_to(start);
        if is_scaling {
            return None;
        }
        Some(Expression::new(operator, self.go_back()?, first))
    }

    fn go_back(&mut self) -> Option<Expression> {
        self.has_gone_back = true;
        let previous = self.previous.clone()?;
        self.repeat(&previous)
    }

    /// Copies an expression, within a limit: a few words could double it again and again.
    fn repeat(&mut self, expression: &Expression) -> Option<Expression> {
        self.repeats = self.repeats.checked_sub(expression.operations())?;
        Some(expression.clone())
    }

    /// Returns true if a value is next.
    fn is_operand(&self) -> bool {
        let minus = Token::Operator(Operator::Subtract);
        self.cursor.peek().is_some_and(|token| {
            matches!(token, Token::Function(_) | Token::Number(_) | Token::Open | Token::Previous)
                || token == minus
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Misread, parse};

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let read = parse(text).map(|questions| {
            let questions: Vec<_> = questions.iter().map(ToString::to_string).collect();
            questions.join("; ")
        });
        assert_eq!(read.as_deref(), Ok(expected), "{text}");
    }

    #[test]
    fn operators_are_signs_or_words() {
        check("What is 25 + 17, times 3?", "(25 + 17) × 3");
        check("25 + 17 times 3", "25 + 17 × 3");
        check("I want to know what 7 minus 2 is", "7 − 2");
        check("(3+4)*5", "(3 + 4) × 5");
        check("How much is three hundred five divided by -5?", "305 ÷ (-5)");
        check("-5 - -3", "-5 − (-3)");
        check("-(3 + 4)", "0 − (3 + 4)");
        check("1,000 x 2.5 = ?", "1000 × 2.5");
    }

    #[test]
    fn verbs_and_functions_are_parsed() {
        check("divide 10 by 4", "10 ÷ 4");
        check("Please subtract 2 from 7.", "7 − 2");
        check("add 3 and 4", "3 + 4");
        check("add 3 to 4", "4 + 3");
        check("the sum of 1, 2 and 3", "1 + 2 + 3");
        check("the difference between 9 and 4, squared", "(9 − 4) × (9 − 4)");
        check("half of 90", "90 ÷ 2");
        check("double the sum of 2 and 3", "(2 + 3) × 2");
        check("20% of 50", "50 × 20 ÷ 100");
        check("divide 10 + 2 by 4", "(10 + 2) ÷ 4");
    }

    #[test]
    fn steps_and_questions_are_chained() {
        check("Take 10, add 5 and multiply by 2, then halve it.", "(10 + 5) × 2 ÷ 2");
        check("3 + 4. Then subtract 1", "3 + 4 − 1");
        check("5 * 6, then divide that by 3 and then minus 1", "5 × 6 ÷ 3 − 1");
        check("What is 3 + 4 and what is 5 * 6?", "3 + 4; 5 × 6");
        check("84 / 2? -7 / 0?", "84 ÷ 2; -7 ÷ 0");
    }

    #[test]
    fn partly_parsed_prompts_are_rejected() {
        for text in ["Why is the sky blue?", "", "hello", "What is two point oh?"] {
            assert_eq!(parse(text), Err(Misread::NoArithmetic), "{text}");
        }
        for text in
            ["3 and 4", "1 + 2 and 5", "3 4", "(3 + 4", "times 3", "5 +", "3 + 4 = 7", "multiply 3"]
        {
            assert_eq!(parse(text), Err(Misread::Unclear), "{text}");
        }
        assert_eq!(parse("5 mod 3"), Err(Misread::Word("mod".to_owned())));
        assert_eq!(parse(&format!("{}1+1", "(".repeat(100_000))), Err(Misread::Unclear));
        assert_eq!(parse(&format!("1{}", "+1".repeat(100_000))), Err(Misread::Unclear));
        assert_eq!(parse(&format!("3 + 4{}", ", squared".repeat(40))), Err(Misread::Unclear));
        assert_eq!(parse(&format!("3 + 4{}", ", that + that".repeat(40))), Err(Misread::Unclear));
    }
}
