/// Returns whether an error says that the model, or the server as it was started, takes no tools, so that
/// a text dialect is the way out.
///
/// `status` is the HTTP status and `message` the server's own words. It goes by words that at least one
/// server is known to use (QUIRKS row 81, and the reports that the tests quote). An error about something
/// else in a request that happens to have tools, such as a bad schema, is not one of them.
///
/// ```
/// use oa_fallback::says_no_tools;
///
/// assert!(says_no_tools(400, "library/tiny:1b does not support tools"));
/// assert!(!says_no_tools(400, "tools[0].function.name: too long"));
/// ```
#[must_use]
pub fn says_no_tools(status: u16, message: &str) -> bool {
    // 500: some servers take a template that cannot do it for a fault of their own.
    if !matches!(status, 400 | 404 | 405 | 422 | 500 | 501) {
        return false;
    }
    let message: String = message.to_lowercase().replace(['’', '`'], "'");
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let of_tools = [
        "tools",
        "tool use",
        "tool call",
        "tool-call",
        "tool_call",
        "tool choice",
        "tool_choice",
        "function call",
        "function-call",
    ];
    // Flags that the server was started without.
    if has(&["--jinja", "--enable-auto-tool-choice", "--tool-call-parser"]) {
        return has(&["require", "needs", "must"]);
    }
    ["does not support", "doesn't support", "do not support", "don't support", "cannot use"]
        .iter()
        .any(|denial| {
            message.match_indices(denial).any(|(at, _)| {
                let object = message[at + denial.len()..].trim_start();
                let object = object.strip_prefix("the ").unwrap_or(object);
                let object = object.strip_prefix("use of ").unwrap_or(object);
                of_tools.iter().any(|word| object.starts_with(word))
            })
        })
        || [" is not supported", " are not supported", " not supported", " is not available"]
            .iter()
            .any(|denial| {
                message.match_indices(denial).any(|(at, _)| {
                    let subject = &message[..at];
                    let ends = ["tools", "tool use", "tool calling", "tool calls"];
                    let more = ["function calling", "function calls"];
                    ends.iter().chain(&more).any(|word| subject.ends_with(word))
                })
            })
        || has(&[
            "no endpoints found that support tool use",
            "does not have tools",
            "has no tools",
            "no tool support",
            "not support tool",
            "does not advertise tools",
        ])
}
