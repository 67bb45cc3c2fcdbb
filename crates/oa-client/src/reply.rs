use oa_types::{AssistantMessage, FinishReason, Usage};

/// The answer to a prompt, as [`Client::ask`](crate::Client::ask) returns it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    /// All text of the turn, from every round.
    pub text: String,
    /// The last answer.
    pub message: Option<AssistantMessage>,
    /// Usage of the last answer: tokens if the server reported them, and time.
    pub usage: Option<Usage>,
    /// Why the turn ended. In manual mode a reply may end with calls that wait for results.
    pub finish_reason: FinishReason,
}

/// True if the model finished its answer, in any server's spelling (QUIRKS row 50). Without a finish reason the
/// answer may have broken off.
pub(crate) fn is_whole(reason: &FinishReason) -> bool {
    match reason {
        FinishReason::Stop => true,
        FinishReason::Other(word) => {
            matches!(&**word, "end_turn" | "eos_token" | "stop_sequence")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_if_the_server_says_so() {
        let whole = |word: &str| is_whole(&FinishReason::from_server(word));
        for word in ["stop", "end_turn", "eos_token", "stop_sequence"] {
            assert!(whole(word), "{word}");
        }
        for word in
            ["", "length", "model_length", "content_filter", "tool_calls", "refusal", "error"]
        {
            assert!(!whole(word), "{word}");
        }
        for reason in
            [FinishReason::Interrupted, FinishReason::MaxRunTime, FinishReason::RepeatedToolCall]
        {
            assert!(!is_whole(&reason), "{reason}");
        }
    }
}
