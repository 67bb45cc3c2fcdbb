//! The prompt and context sizes in the error messages of servers.

/// The sizes stated in an error, in tokens.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Sizes {
    pub(super) prompt: Option<u64>,
    pub(super) context: Option<u64>,
}

/// Sentences that servers write, in lower case: `{p}` is the prompt or a part of it, `{c}` the context, `{n}`
/// any other number. The first match wins. Where a server says "about" or "at least", or states how much of a
/// prompt it keeps, the number is not the size of the prompt.
const SENTENCES: [&str; 34] = [
    // OpenAI, vLLM, DeepSeek.
    "maximum context length is {c} tokens. however, you requested {n} tokens ({p} in the messages, {n} in the completion)",
    "maximum context length is {c} tokens. however, you requested {n} tokens ({p} in the messages, {p} in the functions, and {n} in the completion)",
    "maximum context length is {c} tokens, however you requested {n} tokens ({p} in your prompt; {n} for the completion)",
    "maximum context length is {c} tokens. however, your messages resulted in {p} tokens",
    // vLLM, by version.
    "maximum context length is {c} tokens. however, your request has {p} input tokens",
    "maximum context length is {c} tokens and your request has {p} input tokens",
    "you passed {p} input tokens and requested {n} output tokens. however, the model's context length is only {c} tokens",
    "prompt (length {p}) is longer than the maximum model length of {c}",
    "prompt (total length {p}) is too long to fit into the model (context length {c})",
    // llama.cpp, also where a gateway passes its words on.
    "request ({p} tokens) exceeds the available context size ({c} tokens",
    // SGLang.
    "input ({p} tokens) is longer than the model's context length ({c} tokens)",
    "maximum context length of {c} tokens. you requested a total of {n} tokens: {p} tokens from the input messages and {n} tokens for the completion",
    // Mistral, Anthropic and Gemini behind gateways.
    "prompt contains {p} tokens and {n} draft tokens, too large for model with {c} maximum context length",
    "prompt is too long: {p} tokens > {c} maximum",
    "input token count ({p}) exceeds the maximum number of tokens allowed ({c})",
    "exceed context limit: {p} + {n} > {c}",
    // xAI, Copilot, watsonx, text-generation-inference.
    "maximum prompt length is {c} but the request contains {p} tokens",
    "prompt token count of {p} exceeds the limit of {c}",
    "number of input tokens {p} cannot exceed the total tokens limit {c}",
    "must be <= {c}. given: {p} `inputs` tokens and {n} `max_new_tokens`",
    // GitHub's models, Poolside.
    "max size: {c} tokens",
    "input length {p} exceeds the maximum allowed input length of {c} tokens",
    // Moonshot: the prompt and the answer.
    "exceeded model token limit: {c} (requested: {n})",
    // Other local servers.
    "prompt has {p} tokens, but the configured context size is {c} tokens",
    "request ({p} tokens) exceeds context size ({c} tokens",
    "prompt too long: {p} tokens exceeds max context window of {c} tokens",
    "prompt length {p} is greater than max_seq_len {c}",
    "request length {p} + {n} is greater than max_seq_len {c}",
    // LM Studio. The part of the prompt that it keeps may be smaller than the prompt.
    "model is loaded with context length of only {c} tokens",
    "(n_keep: {n}>= n_ctx: {c})",
    "cannot truncate prompt with n_keep ({n}) >= n_ctx ({c})",
    "the input has {p} tokens, but the context length only supports {c} tokens",
    "reached context length of {c} tokens",
    // Servers that state only the context size.
    "maximum context length is {c} tokens",
];

impl Sizes {
    /// Reads the sizes from a server's message.
    pub(super) fn of(message: &str) -> Self {
        let message = message.to_lowercase();
        // In this order: the last sentence is the beginning of the first ones, and tells less.
        let mut found = SENTENCES.iter().filter_map(|sentence| Self::by(sentence, &message));
        found.next().unwrap_or_default()
    }

    fn by(sentence: &str, message: &str) -> Option<Self> {
        let first = sentence.split_once('{').map_or(sentence, |(first, _)| first);
        let mut places = message.match_indices(first);
        places.find_map(|(at, _)| Self::read(sentence, &message[at..]))
    }

    /// Matches `text` against a sentence, from its start.
    fn read(sentence: &str, mut text: &str) -> Option<Self> {
        let mut sizes = Self::default();
        let mut pieces = sentence.split('{');
        text = text.strip_prefix(pieces.next()?)?;
        for piece in pieces {
            let (what, words) = piece.split_once('}')?;
            let (number, rest) = number(text)?;
            text = rest.strip_prefix(words)?;
            match what {
                "c" => sizes.context = Some(number),
                // A prompt of messages and functions has two parts.
                "p" => sizes.prompt = sizes.prompt.unwrap_or_default().checked_add(number),
                _ => {}
            }
        }
        // A size of zero is not a size.
        (sizes.prompt != Some(0) && sizes.context != Some(0)).then_some(sizes)
    }
}

/// Parses an integer at the start of a text. A number with separators or a fraction is rejected.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let mut behind = rest.chars();
    let goes_on = behind.next().is_some_and(|c| matches!(c, ',' | '.' | '_' | '\''))
        && behind.next().is_some_and(|c| c.is_ascii_digit());
    if goes_on {
        return None;
    }
    Some((digits.parse().ok()?, rest))
}
