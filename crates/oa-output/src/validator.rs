use std::fmt;

use oa_json::{ErrorKind as JsonErrorKind, Limits, ThinkingTags, find_object};
use oa_tools::{Registry, tool};
use oa_types::wire::{ChatParameters, ToolChoice};
use oa_types::{
    AssistantMessage, ContentBlock, FinishReason, TextBlock, ToolUseBlock, ToolUseError,
};
use serde_json::Value;

use crate::error::{Error, ErrorKind};
use crate::format_fallback::{FormatFallback, FormatRequest};
use crate::mode::OutputMode;
use crate::response_format::ResponseFormat;

/// Validates the answers of a turn until one matches.
///
/// It does no I/O: pass it each answer, and act on the [`Validation`] that it returns.
///
/// ```
/// use oa_output::{OutputOptions, OutputValidator, ResponseFormat, Validation};
/// use oa_types::{AssistantMessage, TextBlock};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
/// let format = ResponseFormat::new("count", schema);
/// let check = format.clone();
/// let check = move |value| check.check(value).map(drop).map_err(|error| error.to_string());
/// let mut validator = OutputValidator::new(format, OutputOptions::default(), Box::new(check));
///
/// let mut answer = AssistantMessage::new(vec![TextBlock::new("There are three.").into()]);
/// let Validation::Correct(words) = validator.validate(&mut answer) else { panic!() };
/// assert!(words.starts_with("No answer yet: there is no JSON object in the answer."));
///
/// let mut answer = AssistantMessage::new(vec![TextBlock::new(r#"{"n": 3}"#).into()]);
/// assert_eq!(validator.validate(&mut answer), Validation::Unchanged);
/// assert_eq!(validator.tries(), 2);
/// ```
pub struct OutputValidator {
    format: ResponseFormat,
    options: OutputOptions,
    check: Box<OutputCheck>,
    limits: Limits,
    tries: u32,
    /// True if an earlier answer was cut off, so that the model was asked to be brief.
    was_cut: bool,
    problem: Option<Problem>,
}

/// A check of a value. The model reads its error.
pub type OutputCheck = dyn Fn(Value) -> Result<(), String> + Send + Sync;

/// Options of an [`OutputValidator`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct OutputOptions {
    /// The name of the output tool, if the model answers with a call.
    pub tool: Option<String>,
    /// The first way to request the format, if a fallback to weaker ways is allowed.
    pub first: Option<FormatRequest>,
    /// True if tool calls run automatically, so that the model reads the error as the result of its call. False if the
    /// caller answers calls.
    pub runs_calls: bool,
    /// The maximum number of attempts; at least 1, and 3 by default.
    pub tries: u32,
    /// The maximum size of a value in memory, in bytes.
    pub held_bytes: usize,
}

impl Default for OutputOptions {
    fn default() -> Self {
        let held_bytes = Limits::default().held_bytes;
        Self { tool: None, first: None, runs_calls: false, tries: 3, held_bytes }
    }
}

/// The tools that a request offers beside the output tool.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum OtherTools {
    /// None.
    #[default]
    Absent,
    /// Tools whose calls are part of a response format.
    Constrained,
    /// Tools called through the protocol's function calling.
    Native,
}

impl OutputOptions {
    /// Returns the options for a mode. `tool` names the output tool; the default is `final_answer`.
    ///
    /// ```
    /// use oa_output::{FormatRequest, OtherTools, OutputMode, OutputOptions};
    ///
    /// let options = OutputOptions::of(OutputMode::Auto, None, OtherTools::Native)?;
    /// assert_eq!((options.tool.as_deref(), options.first), (Some("final_answer"), None));
    /// let options = OutputOptions::of(OutputMode::Auto, None, OtherTools::Absent)?;
    /// assert_eq!((options.tool, options.first), (None, Some(FormatRequest::Schema)));
    /// # Ok::<(), oa_output::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Config` if a tool is named but the mode has none.
    pub fn of(mode: OutputMode, tool: Option<String>, others: OtherTools) -> Result<Self, Error> {
        if tool.is_some() && matches!(mode, OutputMode::Format | OutputMode::Prompt) {
            return Err(Error::config("tool_name has no effect where there is no output tool"));
        }
        let by_tool = match mode {
            OutputMode::Auto => others == OtherTools::Native,
            OutputMode::Format | OutputMode::Prompt => false,
            OutputMode::Tool => true,
        };
        let first = match mode {
            OutputMode::Auto if !by_tool => Some(FormatRequest::Schema),
            OutputMode::Prompt => Some(FormatRequest::Prompt),
            _ => None,
        };
        let tool = by_tool.then(|| tool.unwrap_or_else(|| "final_answer".to_owned()));
        Ok(Self { tool, first, ..Self::default() })
    }
}

/// The reason why the last answer is invalid.
struct Problem {
    kind: ProblemKind,
    words: String,
    said: String,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum ProblemKind {
    /// It calls tools, but nothing runs them.
    Calls,
    /// A token limit cut it off.
    CutOff,
    Refused,
    Unfit,
}

/// The next step after validating an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use = "it says what to do next"]
#[expect(clippy::exhaustive_enums, reason = "each of them needs an answer from the caller")]
pub enum Validation {
    /// The answer matches, or no further attempt is possible: continue the turn as usual.
    Unchanged,
    /// The answer does not match. The model reads the error as the result of its call.
    Failed,
    /// The answer does not match. Send the model this user message.
    Correct(String),
}

impl Validation {
    /// Returns the user message for the model, if there is one.
    #[must_use]
    pub fn into_correction(self) -> Option<String> {
        match self {
            Self::Correct(words) => Some(words),
            Self::Failed | Self::Unchanged => None,
        }
    }
}

/// The output to validate: the arguments of the output tool's call, or the text of the answer.
enum Candidate {
    Object(Value),
    Broken { error: String, raw: String },
}

/// Maximum sizes, in characters: of the error that the model reads, of a schema in it, and of the stored answer.
const WORDS: usize = 500;
const SCHEMA: usize = 4000;
const KEPT: usize = 2000;

/// The advice to a model whose answer was cut off.
const TOO_LONG: &str = "the answer was too long and was cut off before its end; be brief: write short texts and \
                        short lists";

impl OutputValidator {
    /// Creates a validator for a format.
    #[must_use]
    pub fn new(format: ResponseFormat, options: OutputOptions, check: Box<OutputCheck>) -> Self {
        let mut limits = Limits::default();
        limits.held_bytes = options.held_bytes;
        Self { format, options, check, limits, tries: 0, was_cut: false, problem: None }
    }

    /// Returns the format.
    #[must_use]
    pub fn format(&self) -> &ResponseFormat {
        &self.format
    }

    /// Returns the name of the output tool, if the model answers with a call.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        self.options.tool.as_deref()
    }

    /// Returns the fallback for servers that reject the format.
    #[must_use]
    pub fn fallback(&self) -> Option<FormatFallback> {
        self.options.first.map(|first| FormatFallback::new(first, self.format.schema()))
    }

    /// Returns the number of answers validated so far.
    #[must_use]
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// Adds the format or the output tool to a request that offers `tools`.
    ///
    /// # Errors
    ///
    /// `Config` if `tries` is 0, if the schema does not describe an object, if `extra_body` sets the same field, or if
    /// the output tool cannot be offered.
    pub fn offer(&self, tools: &Registry, request: &mut ChatParameters) -> Result<(), Error> {
        if self.options.tries == 0 {
            return Err(Error::config("tries must be at least 1"));
        }
        if !self.format.is_of_object() {
            let name = self.format.name();
            let message = format!("the schema of {name} does not describe an object");
            return Err(Error::config(message));
        }
        let taken = if self.tool().is_some() { "tools" } else { "response_format" };
        if request.extra_body.contains_key(taken) {
            let message = format!("extra_body may not set {taken:?} with structured output");
            return Err(Error::config(message));
        }
        let Some(name) = self.tool() else {
            request.response_format = Some(self.format.clone().into());
            return Ok(());
        };
        if tools.get(name).is_some() {
            let message = format!("a tool has the same name as the output tool: {name}");
            return Err(Error::config(message));
        }
        let description = "Gives the final answer and ends the conversation. Call it alone, once \
                           nothing else is to be done.";
        // Only its description is needed: its calls are answers and never run.
        let tool = tool(name, description).schema(self.format.schema().clone());
        let tool = tool.build(|_| async { Ok(Value::Null) });
        tool.check().map_err(|error| Error::config(error.to_string()))?;
        request.tools.push(tool.spec());
        request.response_format = None;
        if request.tool_choice != Some(ToolChoice::Auto) {
            request.tool_choice = Some(ToolChoice::Required);
        }
        Ok(())
    }

    /// Validates an answer. If it calls the output tool, the call is replaced by the answer as text.
    pub fn validate(&mut self, message: &mut AssistantMessage) -> Validation {
        // First answers that still call other tools, which are no attempt; then the check; then what follows
        // from a failure: the result of a call, a user message, or the end.
        let (tool, is_auto) = (self.options.tool.clone(), self.options.runs_calls);
        let is_own = |block: &ContentBlock| tool.is_some() && name_of(block) == tool.as_deref();
        let is_call = |block: &&ContentBlock| match block {
            ContentBlock::ToolUse(_) => true,
            // The turn treats it as a call and reports the error to the model.
            ContentBlock::ToolUseError(error) => {
                is_auto && error.name.is_some() && error.id.is_some()
            }
            _ => false,
        };
        if message.content.iter().filter(is_call).any(|block| !is_own(block)) {
            // An answer given together with calls was written without their results.
            for block in message.content.iter_mut().filter(|block| is_own(block)) {
                refuse(block, "not accepted: call it alone, after the other tools have returned");
            }
            let words = "the model called tools, which do not run automatically here: answer its \
                         calls and continue, or set auto_execute_tools";
            self.fails(ProblemKind::Calls, words.to_owned(), message.text());
            return Validation::Unchanged;
        }
        self.tries += 1;
        let own: Vec<&ContentBlock> =
            message.content.iter().filter(|block| is_own(block)).collect();
        let (candidate, is_text) = match own[..] {
            [] => (Candidate::of_text(&message.text(), self.limits), true),
            // A call of the output tool counts, and text beside it does not.
            [first, ..] => (Candidate::of_calls(first, &own, self.limits), false),
        };
        let (error, raw) = match candidate {
            Candidate::Object(object) => {
                let raw = object.to_string();
                match (self.check)(object) {
                    Ok(()) => {
                        self.problem = None;
                        if !is_text {
                            stand_for(message, raw);
                        }
                        return Validation::Unchanged;
                    }
                    Err(error) => (error, raw),
                }
            }
            Candidate::Broken { error, raw } => (error, raw),
        };
        let kind = match &message.finish_reason {
            reason if reason.is_length() => ProblemKind::CutOff,
            FinishReason::Refusal => ProblemKind::Refused,
            reason if reason.is_filtered() => ProblemKind::Refused,
            _ => ProblemKind::Unfit,
        };
        // The place where the answer was cut off does not explain the error.
        let error = match kind {
            ProblemKind::CutOff => TOO_LONG.to_owned(),
            _ => bounded(&error, WORDS),
        };
        let said = if is_text { message.text() } else { raw.clone() };
        self.fails(kind, error.clone(), said);
        let is_hopeless = match kind {
            // A model that ignores one request to be brief rarely follows a second.
            ProblemKind::CutOff => std::mem::replace(&mut self.was_cut, true),
            ProblemKind::Unfit => false,
            ProblemKind::Calls | ProblemKind::Refused => true,
        };
        let is_over = is_hopeless || self.tries >= self.options.tries;
        // Other broken calls may stand beside it, and its own may have lost its id, so that it gets no result.
        let is_answered = |block: &ContentBlock| is_own(block) && is_call(&block);
        if !is_over && is_auto && message.content.iter().any(is_answered) {
            if let Some(block) = message.content.iter_mut().find(|block| is_answered(block)) {
                refuse(block, &error);
            }
            let mut first = true;
            // Several calls were judged as one, so only the first gets a result.
            let stays = |block: &ContentBlock| {
                !is_own(block) || is_answered(block) && std::mem::take(&mut first)
            };
            message.content.retain(stays);
            return Validation::Failed;
        }
        // No result will follow the call, so history gets its arguments as text.
        if !is_text {
            stand_for(message, raw);
        }
        if is_over { Validation::Unchanged } else { Validation::Correct(self.correction(&error)) }
    }

    /// Returns the correction to send to the model.
    fn correction(&self, error: &str) -> String {
        // Without a second period.
        let error = if error.ends_with("...") { error } else { error.trim_end_matches('.') };
        let schema = self.format.schema();
        match self.tool() {
            Some(tool) => format!("No answer yet: {error}. Call {tool} with the answer."),
            None if schema.to_string().chars().count() > SCHEMA => {
                format!("No answer yet: {error}. Answer with one JSON object and nothing else.")
            }
            None => format!("No answer yet: {error}. {}", FormatFallback::instructions_for(schema)),
        }
    }

    fn fails(&mut self, kind: ProblemKind, words: String, said: String) {
        self.problem = Some(Problem { kind, words, said });
    }

    /// Returns the error for a turn that ended without a valid answer.
    pub fn error(&mut self, reason: &FinishReason) -> Error {
        let (message, said) = match self.problem.take() {
            _ if *reason == FinishReason::Interrupted => {
                let message = "interrupted before a valid answer";
                return Error::new(ErrorKind::Interrupted, message);
            }
            Some(Problem { kind: ProblemKind::CutOff, said, .. }) => {
                let message = "the answer was cut off by the token limit: bound the strings and lists in its \
                               schema (maxLength, maxItems), or raise max_tokens";
                (message.to_owned(), Some(said))
            }
            Some(Problem { kind: ProblemKind::Refused, said, .. }) => {
                ("the model refused to answer".to_owned(), Some(said))
            }
            Some(Problem { kind: ProblemKind::Calls, words, said }) if !self.options.runs_calls => {
                (words, Some(said))
            }
            problem if *reason == FinishReason::ApprovalPending => {
                let words = "calls wait for approval, so there is no answer yet: approve or deny them, \
                             then call continue_turn";
                (words.to_owned(), problem.map(|problem| problem.said))
            }
            problem if *reason == FinishReason::WaitsForResults => {
                let words = "calls wait for results, so there is no answer yet: add their results, then call \
                             continue_turn";
                (words.to_owned(), problem.map(|problem| problem.said))
            }
            Some(problem) if problem.kind == ProblemKind::Calls || reason.is_limit() => {
                (format!("the turn ended before a valid answer: {reason}"), Some(problem.said))
            }
            Some(Problem { words, said, .. }) => {
                let tries = if self.tries == 1 {
                    "1 attempt".to_owned()
                } else {
                    format!("{} attempts", self.tries)
                };
                (format!("no valid answer after {tries}: {words}"), Some(said))
            }
            None => (format!("the turn ended before a valid answer: {reason}"), None),
        };
        let said = said.filter(|said| !said.is_empty()).map(|said| bounded(&said, KEPT));
        Error { model_output: said, ..Error::new(ErrorKind::Output, message) }
    }
}

impl fmt::Debug for OutputValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputValidator")
            .field("format", &self.format)
            .field("options", &self.options)
            .field("tries", &self.tries)
            .finish_non_exhaustive()
    }
}

impl Candidate {
    fn of_text(text: &str, limits: Limits) -> Self {
        let found = find_object(text, limits).or_else(|error| {
            // Thinking whose opening tag is in the template of the prompt, and which drafts the answer: that follows
            // its end. Only after an error, because a text in the answer may hold the tag.
            let answer = text.rsplit_once(ThinkingTags::THINK.close);
            answer.and_then(|(_, answer)| find_object(answer, limits).ok()).ok_or(error)
        });
        match found {
            Ok(object) => Self::Object(object),
            Err(error) => {
                // In words for the model.
                let error = match error.kind() {
                    JsonErrorKind::Missing => "there is no JSON object in the answer".to_owned(),
                    JsonErrorKind::Ambiguous => error.to_string(),
                    _ => format!("this is not JSON: {error}"),
                };
                Self::Broken { error, raw: text.to_owned() }
            }
        }
    }

    /// Merges several calls of the output tool if they are equal.
    fn of_calls(first: &ContentBlock, all: &[&ContentBlock], limits: Limits) -> Self {
        match first {
            ContentBlock::ToolUseError(ToolUseError { error, raw_data, .. }) => {
                Self::Broken { error: error.clone(), raw: raw_data.clone() }
            }
            ContentBlock::ToolUse(ToolUseBlock { input, .. }) => {
                let same = |other: &&ContentBlock| match other {
                    ContentBlock::ToolUse(other) => other.input == *input,
                    _ => false,
                };
                if all.iter().all(same) {
                    return Self::Object(input.clone());
                }
                let error = "called more than once, with different arguments".to_owned();
                Self::Broken { error, raw: input.to_string() }
            }
            other => Self::of_text(other.as_text().unwrap_or_default(), limits),
        }
    }
}

fn name_of(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::ToolUse(call) => Some(&call.name),
        ContentBlock::ToolUseError(error) => error.name.as_deref(),
        _ => None,
    }
}

/// Replaces a call by one that cannot run.
fn refuse(block: &mut ContentBlock, why: &str) {
    let error = match block {
        ContentBlock::ToolUse(call) => {
            let mut error = ToolUseError::new(why, bounded(&call.input.to_string(), KEPT));
            (error.id, error.name) = (Some(call.id.clone()), Some(call.name.clone()));
            error
        }
        ContentBlock::ToolUseError(error) => {
            why.clone_into(&mut error.error);
            return;
        }
        _ => return,
    };
    *block = error.into();
}

/// Replaces the call of the output tool by text.
fn stand_for(message: &mut AssistantMessage, text: String) {
    message.content.retain(|block| matches!(block, ContentBlock::Thinking(_)));
    message.content.push(TextBlock::new(text).into());
}

fn bounded(words: &str, most: usize) -> String {
    match words.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &words[..end]),
        None => words.to_owned(),
    }
}
