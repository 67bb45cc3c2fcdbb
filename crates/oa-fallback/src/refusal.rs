/// Returns true if an error means that the model, or the server as configured, does not support tools. A text dialect
/// can be used instead.
///
/// `status` is the HTTP status and `message` the server's error message. The check looks for phrases that at least one
/// server is known to use (QUIRKS row 81, and the reports that the tests quote). That the model's chat template fails is one
/// of them (row 140). Errors about something else in a request with tools do not match.
///
/// ```
/// use oa_fallback::says_no_tools;
///
/// assert!(says_no_tools(400, "library/tiny:1b does not support tools"));
/// assert!(!says_no_tools(400, "tools[0].function.name: too long"));
/// ```
#[must_use]
pub fn says_no_tools(status: u16, message: &str) -> bool {
    // 500: some servers report a template without tool support as an internal error.
    if !matches!(status, 400 | 404 | 405 | 422 | 500 | 501) {
        return false;
    }
    let is_quote = |c: char| matches!(c, '"' | '\'' | '`' | '’');
    let message = message.to_lowercase().replace(is_quote, "");
    let says = |words: &str| message.contains(words);
    let asks = says("require") || says("launch");
    let lacks_flag = FLAGS.iter().any(|flag| says(flag)) && asks;
    let denies = |word: &&str| {
        BEFORE.iter().any(|denial| says(&format!("{denial} {word}")))
            || BEHIND.iter().any(|denial| says(&format!("{word} {denial}")))
    };
    lacks_flag || WORDS.iter().any(denies) || SENTENCES.iter().any(|sentence| says(sentence))
}

/// Server flags that enable tools, as named in errors.
const FLAGS: [&str; 3] = ["--jinja", "--enable-auto-tool-choice", "--tool-call-parser"];

const WORDS: [&str; 8] = [
    "function calling",
    "function calls",
    "tool calling",
    "tool calls",
    "tool choice",
    "tool use",
    "tool_choice",
    "tools",
];

const BEFORE: [&str; 6] = [
    "cannot use",
    "doesnt support",
    "dont support",
    "not support",
    "not support the use of",
    "not support use of",
];

const BEHIND: [&str; 4] =
    ["are not supported", "is not enabled", "is not supported", "not supported"];

const SENTENCES: [&str; 8] = [
    // A template may fail for another reason, but without tools it has less to do (QUIRKS row 140).
    "can only get item pairs from a mapping",
    "chat template error",
    "error rendering prompt with jinja template",
    "has no tools",
    "jinja exception",
    "no endpoints found that support tool use",
    "unable to generate parser for this template",
    "unsupported tool_call_parser: none",
];
