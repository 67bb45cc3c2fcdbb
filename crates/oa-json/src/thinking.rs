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

    /// The tags of all models known to leave thinking in the text of some server: Mistral's, Seed-OSS, MiniMax M3,
    /// Hunyuan 3, Solar Open 2, Gemma 4, gpt-oss, Command and Apertus.
    pub const KNOWN: &[Self] = &[
        Self::THINK,
        Self::new("[THINK]", "[/THINK]"),
        Self::new("<seed:think>", "</seed:think>"),
        Self::new("<mm:think>", "</mm:think>"),
        Self::new("<think:opensource>", "</think:opensource>"),
        Self::new("<|think:start|>", "<|think:end|>"),
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

    /// Returns the text behind the thinking at its start, which is empty if the thinking does not end. The opening tag of
    /// the first may be missing before `</think>`, because some templates put it into the prompt.
    ///
    /// ```
    /// use oa_json::ThinkingTags;
    ///
    /// assert_eq!(ThinkingTags::answer_in("<think>Hm.</think>\n\nYes."), "Yes.");
    /// assert_eq!(ThinkingTags::answer_in("Hm.</think>Yes."), "Yes.");
    /// assert_eq!(ThinkingTags::answer_in("Yes. <think> is a tag, and so is </think>.").len(), 42);
    /// assert_eq!(ThinkingTags::answer_in("<think>Hm."), "");
    /// ```
    #[must_use]
    pub fn answer_in(text: &str) -> &str {
        let mut rest = text.trim_start();
        if Self::at_start_of(rest).is_none()
            && let Some((thinking, answer)) = rest.split_once(Self::THINK.close)
            && !thinking.contains(Self::THINK.open)
        {
            rest = answer.trim_start();
        }
        while let Some(tags) = Self::at_start_of(rest) {
            let Some((_, answer)) = rest.split_once(tags.close) else { return "" };
            rest = answer.strip_prefix(tags.bridge).unwrap_or(answer).trim_start();
        }
        rest
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
