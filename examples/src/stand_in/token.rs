use super::expression::Operator;

/// A meaningful part of a prompt. Filler words ("what is", "please") produce no tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token {
    And,
    By,
    Close,
    Comma,
    From,
    /// A noun before its operands: "the sum of", "the product of".
    Function(Operator),
    /// "Half", "double", "a third of": a number to multiply or divide by.
    Multiple(Operator, f64),
    Number(f64),
    Of,
    Open,
    Operator(Operator),
    Percent,
    /// "It", "that", "the result": the previous expression.
    Previous,
    /// "Squared", after a number.
    Squared,
    /// The end of a sentence.
    Stop,
    Then,
    To,
    /// "Add", "divide": an operator before its operands.
    Verb(Operator),
}

/// Splits a prompt into tokens, or returns the first unknown word: nothing is skipped silently.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let next = rest[first.len_utf8()..].chars().next();
        let length = if first.is_ascii_digit() || (first == '.' && next.is_some_and(is_digit)) {
            let digits = number_length(rest);
            let number =
                rest[..digits].replace(',', "").parse().ok().filter(|n: &f64| n.is_finite());
            tokens.push(Token::Number(number.ok_or_else(|| rest[..digits].to_owned())?));
            digits
        } else if first.is_alphabetic() {
            let is_part = |c: char| c.is_alphabetic() || c == '\'' || c == '’' || c == '-';
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let phrase = rest[..end].trim_end_matches('-');
            read_words(phrase, &mut tokens)?;
            phrase.len()
        } else {
            if !first.is_whitespace() {
                tokens.extend(sign(first).ok_or_else(|| first.to_string())?);
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    Ok(tokens)
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// Returns the length of a number, which may contain commas before three digits and a decimal point.
fn number_length(text: &str) -> usize {
    let run = |text: &str| text.len() - text.trim_start_matches(is_digit).len();
    let mut end = run(text);
    while text[end..].starts_with(',') && run(&text[end + 1..]) == 3 {
        end += 4;
    }
    if text[end..].starts_with('.') {
        let decimals = run(&text[end + 1..]);
        end += if decimals > 0 { 1 + decimals } else { 0 };
    }
    end
}

fn sign(sign: char) -> Option<Option<Token>> {
    Some(Some(match sign {
        '+' => Token::Operator(Operator::Add),
        '-' | '−' | '–' => Token::Operator(Operator::Subtract),
        '*' | '×' | '·' => Token::Operator(Operator::Multiply),
        '/' | '÷' => Token::Operator(Operator::Divide),
        '(' | '[' => Token::Open,
        ')' | ']' => Token::Close,
        ',' => Token::Comma,
        '%' => Token::Percent,
        '.' | '!' | '?' | ';' => Token::Stop,
        '=' | ':' | '"' | '“' | '”' => return Some(None),
        _ => return None,
    }))
}

/// Reads a word, or several joined by hyphens: "twenty-five".
fn read_words(phrase: &str, tokens: &mut Vec<Token>) -> Result<(), String> {
    for word in phrase.split('-') {
        let word = word.to_lowercase().replace('’', "'");
        if let Some(value) = number_word(&word) {
            push_number_word(value, tokens);
        } else {
            tokens.extend(token(&word).ok_or_else(|| word.clone())?);
        }
    }
    Ok(())
}

fn token(word: &str) -> Option<Option<Token>> {
    Some(Some(match word {
        "plus" => Token::Operator(Operator::Add),
        "minus" | "negative" => Token::Operator(Operator::Subtract),
        "times" | "x" | "multiplied" => Token::Operator(Operator::Multiply),
        "over" | "divided" => Token::Operator(Operator::Divide),
        "add" => Token::Verb(Operator::Add),
        "subtract" => Token::Verb(Operator::Subtract),
        "multiply" => Token::Verb(Operator::Multiply),
        "divide" => Token::Verb(Operator::Divide),
        "sum" => Token::Function(Operator::Add),
        "difference" => Token::Function(Operator::Subtract),
        "product" => Token::Function(Operator::Multiply),
        "quotient" => Token::Function(Operator::Divide),
        "half" | "halve" => Token::Multiple(Operator::Divide, 2.0),
        "third" => Token::Multiple(Operator::Divide, 3.0),
        "quarter" => Token::Multiple(Operator::Divide, 4.0),
        "double" | "twice" => Token::Multiple(Operator::Multiply, 2.0),
        "triple" => Token::Multiple(Operator::Multiply, 3.0),
        "squared" => Token::Squared,
        "percent" => Token::Percent,
        "it" | "that" | "result" | "this" => Token::Previous,
        "and" => Token::And,
        "by" | "with" => Token::By,
        "from" => Token::From,
        "of" | "between" => Token::Of,
        "then" => Token::Then,
        "to" => Token::To,
        _ if FILLERS.contains(&word) => return Some(None),
        _ => return None,
    }))
}

/// Words that do not affect the arithmetic.
const FILLERS: &[&str] = &[
    "a",
    "all",
    "also",
    "an",
    "answer",
    "are",
    "calculate",
    "can",
    "compute",
    "could",
    "do",
    "does",
    "equal",
    "equals",
    "evaluate",
    "finally",
    "find",
    "first",
    "for",
    "get",
    "give",
    "hello",
    "hey",
    "hi",
    "how",
    "i",
    "is",
    "just",
    "know",
    "let's",
    "like",
    "make",
    "makes",
    "many",
    "me",
    "much",
    "my",
    "need",
    "next",
    "now",
    "number",
    "numbers",
    "ok",
    "okay",
    "out",
    "please",
    "solve",
    "start",
    "take",
    "tell",
    "thanks",
    "the",
    "us",
    "want",
    "we",
    "what",
    "what's",
    "work",
    "would",
    "you",
];

fn number_word(word: &str) -> Option<f64> {
    const UNITS: [&str; 20] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: [&str; 8] =
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    let place = |words: &[&str]| words.iter().position(|other| *other == word);
    match word {
        "hundred" => Some(100.0),
        "thousand" => Some(1e3),
        "million" => Some(1e6),
        _ => place(&UNITS)
            .map(|units| units as f64)
            .or_else(|| place(&TENS).map(|tens| 10.0 * (tens + 2) as f64)),
    }
}

/// Joins "three" and "hundred", "twenty" and "five"; "two three" are two numbers.
fn push_number_word(value: f64, tokens: &mut Vec<Token>) {
    let scale = value >= 100.0;
    if let Some(Token::Number(before)) = tokens.last_mut() {
        if scale && *before > 0.0 && *before < value {
            *before *= value;
            return;
        }
        // The added number must fit into the trailing zeros.
        let room = [100.0, 10.0].into_iter().find(|room| *before % room == 0.0 && *before >= *room);
        if !scale && room.is_some_and(|room| 0.0 < value && value < room) && *before != 10.0 {
            *before += value;
            return;
        }
    }
    tokens.push(Token::Number(value));
}

#[cfg(test)]
mod tests {
    use super::{Token, tokens};

    #[track_caller]
    fn check(text: &str, expected: &[f64]) {
        let numbers = tokens(text).unwrap().into_iter().filter_map(|token| match token {
            Token::Number(number) => Some(number),
            _ => None,
        });
        assert_eq!(numbers.collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn numbers_are_digits_or_words() {
        check("1,000 and 25, 3.5.", &[1000.0, 25.0, 3.5]);
        check("twenty-five, three hundred five", &[25.0, 305.0]);
        check("two three ten five", &[2.0, 3.0, 10.0, 5.0]);
        check("two thousand and seventy one", &[2000.0, 71.0]);
        check("3x4, .5", &[3.0, 4.0, 0.5]);
    }

    #[test]
    fn unknown_tokens_are_returned() {
        assert_eq!(tokens("What is 5 mod 3?").unwrap_err(), "mod");
        assert_eq!(tokens("2^8").unwrap_err(), "^");
        assert_eq!(tokens(&"9".repeat(400)).unwrap_err().len(), 400);
    }
}
