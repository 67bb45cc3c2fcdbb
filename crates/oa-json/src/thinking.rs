/// The tags between which a model writes its thinking, if the server leaves it in the text.
///
/// ```
/// use oa_json::ThinkingTags;
///
/// let tags = ThinkingTags::at_start_of("[THINK]Hm.[/THINK]Yes.").unwrap();
/// assert_eq!((tags.open, tags.close), ("[THINK]", "[/THINK]"));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ThinkingTags {
    /// The opening tag. No other known tag starts with it, and it has no brace.
    pub open: &'static str,
    /// The closing tag, whose first character it has only once.
    pub close: &'static str,
    /// Follows the closing tag in front of an answer, for models that mark that, too; empty for most.
    pub bridge: &'static str,
}

impl ThinkingTags {
    /// `<think>` and `</think>`, which most models write.
    pub const THINK: Self = Self::new("<think>", "</think>");

    /// The tags of all models known to leave thinking in the text of some server: Mistral's, Seed-OSS, Gemma 4,
    /// gpt-oss, Command and Apertus.
    pub const KNOWN: &[Self] = &[
        Self::THINK,
        Self::new("[THINK]", "[/THINK]"),
        Self::new("<seed:think>", "</seed:think>"),
        Self::new("<|channel>thought", "<channel|>"),
        Self {
            bridge: "<|start|>assistant<|channel|>final<|message|>",
            ..Self::new("<|channel|>analysis<|message|>", "<|end|>")
        },
        Self::new("<|START_THINKING|>", "<|END_THINKING|>"),
        Self::new("<|inner_prefix|>", "<|inner_suffix|>"),
    ];

    /// Creates tags without a bridge.
    #[must_use]
    pub const fn new(open: &'static str, close: &'static str) -> Self {
        Self { open, close, bridge: "" }
    }

    /// Returns the known tags whose opening tag starts this text.
    #[must_use]
    pub fn at_start_of(text: &str) -> Option<Self> {
        Self::KNOWN.iter().find(|tags| text.starts_with(tags.open)).copied()
    }

    /// Returns true if this text is the beginning of a known opening tag, which more text may complete.
    #[must_use]
    pub fn may_start_with(text: &str) -> bool {
        Self::KNOWN.iter().any(|tags| tags.may_open(text))
    }

    /// Returns true if this text is the beginning of the opening tag, which more text may complete.
    #[must_use]
    pub fn may_open(&self, text: &str) -> bool {
        text.len() < self.open.len() && self.open.starts_with(text)
    }
}
