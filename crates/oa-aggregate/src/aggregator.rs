use std::mem;

use oa_types::{ContentBlock, FinishReason, TextBlock, ThinkingBlock, Usage};
use serde_json::{Map, Value};

use crate::answer::Answer;
use crate::blocks::{Blocks, Part, Voice, Words};
use crate::budget::{Budget, COPIES};
use crate::call::Call;
use crate::calls::Calls;
use crate::chunk::{self, Choice, Chunk, Fragment, Payload, Rare};
use crate::decode::Decoder;
use crate::delta::Delta;
use crate::details::Details;
use crate::error::{Error, ErrorKind, Problem};
use crate::form::{Says, Told};
use crate::forms::Forms;
use crate::ids;
use crate::limits::Limits;
use crate::quirks::{ChoiceIndex, Quirks};
use crate::template::Template;
use crate::text::TextFilter;
use crate::think::Splitter;

/// What an aggregator is to know beforehand.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// What a peer may make it hold.
    pub limits: Limits,
    /// What is known of the server.
    pub quirks: Quirks,
    /// From this, ids are made up for calls that come without one: nine letters and digits. Another
    /// number for each answer keeps them apart within a conversation.
    pub id_seed: u64,
}

/// Whether more is to come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// The server said `[DONE]`: whatever follows is ignored.
    Done,
    /// Push on.
    More,
}

/// Turns the payloads of one stream into deltas as they come, and into blocks at the end.
///
/// Feed it payloads (the data of events, or a body that is plain JSON as a whole) with
/// [`push`](Self::push), take deltas with [`next_delta`](Self::next_delta) until it answers `None`, say
/// that the input has ended with [`finish`](Self::finish), take the deltas that were held back, and
/// take the [`Answer`] with [`into_answer`](Self::into_answer).
///
/// Every transition is in this file; the rules it follows are told, row by row, by the project's list
/// of server quirks.
#[derive(Debug)]
pub struct Aggregator {
    decoder: Decoder,
    state: State,
}

impl Default for Aggregator {
    fn default() -> Self {
        Self::new()
    }
}

impl Aggregator {
    /// Creates an aggregator for one stream of a server of which nothing is known.
    ///
    /// Ids that it makes up are the same in each such stream. In a conversation of several answers give each
    /// an [`Options::id_seed`] of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(Options::default())
    }

    /// Creates an aggregator for one stream.
    #[must_use]
    pub fn with_options(options: Options) -> Self {
        Self { decoder: Decoder::new(), state: State::new(options) }
    }

    /// Creates an aggregator for one stream of a server of which it knows the forms of chunk that others
    /// have seen. None are known of a server that is asked for the first time: `Forms::default()`.
    ///
    /// The answer is the same as without them. What this one learns as well,
    /// [`take_forms`](Self::take_forms) tells.
    #[must_use]
    pub fn with_forms(options: Options, forms: Forms) -> Self {
        Self { decoder: Decoder::with_forms(forms), state: State::new(options) }
    }

    /// Gives back the forms that it knows and has learned, for the server's next answer; it has none of
    /// them any more.
    #[must_use = "the forms are for the next answer"]
    pub fn take_forms(&mut self) -> Forms {
        self.decoder.take_forms()
    }

    /// Takes the next payload.
    ///
    /// A payload that is not JSON, or that reports an error, becomes a [`Problem`], and the stream goes
    /// on.
    ///
    /// # Errors
    ///
    /// The answer passed a limit. What came before is kept.
    #[inline]
    pub fn push(&mut self, payload: &[u8]) -> Result<Progress, Error> {
        let state = &mut self.state;
        if state.done {
            return Ok(Progress::Done);
        }
        if let Some(error) = state.failed {
            return Err(error);
        }
        if let Some(told) = self.decoder.tell(payload) {
            return state
                .take_told(&told)
                .map(|()| Progress::More)
                .map_err(|error| state.fail(error));
        }
        self.push_what_differs(payload)
    }

    fn push_what_differs(&mut self, payload: &[u8]) -> Result<Progress, Error> {
        let state = &mut self.state;
        // By reference: a chunk is some 300 bytes that need not move.
        match &self.decoder.read_within(payload, state.budget.left()) {
            Ok(Payload::Chunk(chunk)) => {
                state.take(chunk).map(|()| Progress::More).map_err(|error| state.fail(error))
            }
            Ok(Payload::Done) => {
                state.done = true;
                Ok(Progress::Done)
            }
            Err(unreadable) => state
                .add_problem(Problem::Unreadable(unreadable.clone()))
                .map(|()| Progress::More)
                .map_err(|error| state.fail(error)),
        }
    }

    /// Returns the next change to the answer, or `None` when it needs more input.
    #[inline]
    pub fn next_delta(&mut self) -> Option<Delta<'_>> {
        let State { blocks, calls, problems, .. } = &mut self.state;
        blocks.next(&calls.list, problems)
    }

    /// Ends the input: what was held back becomes deltas. Ending twice changes nothing.
    ///
    /// # Errors
    ///
    /// What was held back passed the limit of text.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.state.flush()
    }

    /// Ends the input, if that has not been said, and makes the answer.
    #[must_use]
    pub fn into_answer(mut self) -> Answer {
        self.take_answer()
    }

    /// Makes the answer as [`into_answer`](Self::into_answer) does, of an aggregator that stays where it
    /// is. Nothing is left to be told, and whatever is pushed after that is ignored.
    #[must_use]
    pub fn take_answer(&mut self) -> Answer {
        // A limit cuts off what was held back; everything before it is in the answer.
        let _ = self.state.flush();
        self.state.take_answer()
    }

    /// Whether text, thinking or a call has come.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        !self.state.blocks.parts.is_empty()
    }

    /// Whether the server said that it was through: by `[DONE]` or a finish reason.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state.done || self.state.finish_reason != FinishReason::Unspecified
    }

    /// Returns why the answer ended, as far as the server has said.
    #[must_use]
    pub fn finish_reason(&self) -> &FinishReason {
        &self.state.finish_reason
    }

    /// Returns what was wrong so far.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.state.problems
    }

    /// Returns usage as reported so far.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.state.usage
    }

    /// Returns the decoder, for what it has counted.
    #[must_use]
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }
}

#[derive(Debug)]
struct State {
    options: Options,
    budget: Budget,
    blocks: Blocks,
    text: TextFilter,
    splitter: Option<Splitter>,
    calls: Calls,
    finish_reason: FinishReason,
    usage: Option<Usage>,
    problems: Vec<Problem>,
    details: Details,
    extra: Map<String, Value>,
    id: Option<String>,
    model: Option<String>,
    done: bool,
    /// The limit that was passed: nothing is taken any more.
    failed: Option<Error>,
    kept_bytes: usize,
}

impl State {
    fn new(options: Options) -> Self {
        Self {
            options,
            budget: Budget::new(options.limits.held_bytes),
            blocks: Blocks::default(),
            text: TextFilter::new(options.quirks.text),
            splitter: Splitter::new(options.quirks.think_tags),
            calls: Calls::default(),
            finish_reason: FinishReason::Unspecified,
            usage: None,
            problems: Vec::new(),
            details: Details::default(),
            extra: Map::new(),
            id: None,
            model: None,
            done: false,
            failed: None,
            kept_bytes: 0,
        }
    }

    /// Takes nothing any more: a limit was passed.
    fn fail(&mut self, error: Error) -> Error {
        self.failed = Some(error);
        error
    }

    /// Takes what a chunk says that was told by comparison, in the order of [`take`](Self::take).
    #[inline]
    fn take_told(&mut self, told: &Told<'_>) -> Result<(), Error> {
        if let Some(template) = told.met {
            self.meet(template)?;
        }
        if told.form.index == 0 || self.options.quirks.choice == ChoiceIndex::Any {
            match &told.form.says {
                Says::Nothing => {}
                Says::Text if told.words.is_empty() => {}
                Says::Text => self.add_text(told.words)?,
                Says::Thinking => {
                    let thinking = told.thinking();
                    if !thinking.is_empty() {
                        self.say(Voice::Thinking, thinking)?;
                    }
                }
                Says::Arguments(fragment) => self.add_fragment(fragment, told.words)?,
            }
            if let Some(detail) = told.detail {
                self.keep(detail.json_length())?;
                self.details.grow(detail, &mut self.budget)?;
            }
            if let Some(reason) = &told.form.finish_reason {
                self.end(reason)?;
            }
        }
        if let Some(usage) = told.usage {
            self.usage.get_or_insert_default().merge(usage);
        }
        Ok(())
    }

    /// Takes id and model from a chunk that is like one of an earlier answer.
    #[cold]
    fn meet(&mut self, template: &Template) -> Result<(), Error> {
        if self.id.is_none() {
            self.id = self.keep_word(template.id().as_deref())?;
        }
        if self.model.is_none() {
            self.model = self.keep_word(template.model().as_deref())?;
        }
        Ok(())
    }

    /// Takes a word of which there is one in the answer.
    fn keep_word(&mut self, word: Option<&str>) -> Result<Option<String>, Error> {
        let Some(word) = word else { return Ok(None) };
        self.budget.hold(COPIES * word.len())?;
        Ok(Some(word.to_owned()))
    }

    /// Takes the reason why the answer ended, which may be given more than once.
    fn end(&mut self, reason: &str) -> Result<(), Error> {
        // It is told at every stage from here to the caller.
        let copies = 2 * COPIES;
        self.budget.hold(copies * reason.len())?;
        let old = mem::replace(&mut self.finish_reason, FinishReason::from_server(reason));
        if old != FinishReason::Unspecified {
            self.budget.release(copies * old.as_str().len());
        }
        Ok(())
    }

    /// Takes what a chunk says: an error first, then independent steps for each thing it may bring.
    fn take(&mut self, chunk: &Chunk<'_>) -> Result<(), Error> {
        if let Some(error) = &chunk.error {
            self.add_problem(Problem::Server(error.clone()))?;
        }
        if chunk.is_cut {
            let limit = self.options.limits.held_bytes;
            return Err(Error::new(ErrorKind::AnswerTooLarge, limit));
        }
        if self.id.is_none() {
            self.id = self.keep_word(chunk.id.as_deref())?;
        }
        if self.model.is_none() {
            self.model = self.keep_word(chunk.model.as_deref())?;
        }
        for choice in chunk.choices() {
            self.take_choice(choice, chunk.detail_form)?;
        }
        if let Some(usage) = &chunk.usage {
            self.usage.get_or_insert_default().merge(usage);
        }
        Ok(())
    }

    fn take_choice(&mut self, choice: &Choice<'_>, detail_form: u64) -> Result<(), Error> {
        if choice.index != 0 && self.options.quirks.choice == ChoiceIndex::Zero {
            return Ok(());
        }
        if let Some(thinking) = &choice.thinking {
            self.say(Voice::Thinking, thinking)?;
        }
        if let Some(text) = &choice.text {
            self.add_text(text)?;
        }
        if let Some(rare) = &choice.rare {
            self.take_rare(rare, detail_form)?;
        }
        for fragment in choice.calls() {
            self.add_fragment(fragment, fragment.arguments.as_deref().unwrap_or_default())?;
        }
        if let Some(reason) = &choice.finish_reason {
            self.end(reason)?;
        }
        Ok(())
    }

    fn take_rare(&mut self, rare: &Rare<'_>, detail_form: u64) -> Result<(), Error> {
        for part in &rare.parts {
            match part {
                chunk::Part::Text(text) => self.add_text(text)?,
                chunk::Part::Thinking(thinking) => self.say(Voice::Thinking, thinking)?,
            }
        }
        if let Some(refusal) = &rare.refusal {
            self.say(Voice::Refusal, refusal)?;
        }
        self.keep(rare.detail_bytes)?;
        for detail in &rare.details {
            self.details.merge(detail, detail_form, &mut self.budget)?;
        }
        for (member, value) in &rare.extra {
            self.keep(member.len() + value.to_string().len())?;
            self.budget.hold_value(member, value)?;
            self.extra.insert(member.clone(), value.clone());
        }
        Ok(())
    }

    #[inline]
    fn add_text(&mut self, text: &str) -> Result<(), Error> {
        let Self { blocks, budget, text: filter, splitter, options, .. } = self;
        let limit = options.limits.text_bytes;
        if filter.held() + splitter.as_ref().map_or(0, Splitter::held) + text.len() > limit {
            return Err(Error::new(ErrorKind::TextTooLong, limit));
        }
        if let Err(error) = filter.reserve(text, budget) {
            let is_too_long = blocks.text_bytes() + text.len() > limit;
            return Err(if is_too_long {
                Error::new(ErrorKind::TextTooLong, limit)
            } else {
                error
            });
        }
        filter.push(text, &mut |text| match splitter {
            None => blocks.say(Voice::Text, text, limit, budget),
            Some(splitter) => {
                splitter.reserve(text, budget)?;
                splitter.push(text, &mut |voice, words| blocks.say(voice, words, limit, budget))
            }
        })
    }

    #[inline]
    fn say(&mut self, voice: Voice, words: &str) -> Result<(), Error> {
        self.flush_text()?;
        self.blocks.say(voice, words, self.options.limits.text_bytes, &mut self.budget)
    }

    /// Takes a fragment of a call, and apart from it the piece of arguments that it has.
    #[inline]
    fn add_fragment(&mut self, fragment: &Fragment<'_>, arguments: &str) -> Result<(), Error> {
        let limits = self.options.limits;
        let call = match self.calls.find(fragment) {
            Some(call) => call,
            None if self.calls.list.len() >= limits.calls => {
                return Err(Error::new(ErrorKind::TooManyCalls, limits.calls));
            }
            None => {
                // Text that is held back came before this call.
                self.flush()?;
                let call = self.calls.begin(fragment);
                self.blocks.call_started(call, &mut self.budget)?;
                call
            }
        };
        let held = self.calls.hold(call, fragment, &mut self.budget);
        let assembled = &mut self.calls.list[call];
        let fits = if assembled.arguments.len() + arguments.len() > limits.argument_bytes {
            Err(Error::new(ErrorKind::ArgumentsTooLong, limits.argument_bytes))
        } else {
            assembled.arguments.reserve(arguments, &mut self.budget)
        };
        if held.is_err() || fits.is_err() {
            // What came of it may be JSON by chance: it must not run.
            assembled.is_too_long = true;
            held?;
            self.calls.take(call, fragment, "");
            return fits;
        }
        if fragment.name.as_deref() != assembled.name.as_deref() {
            self.keep(fragment.name.as_deref().map_or(0, str::len))?;
        }
        if let Some(extra) = &fragment.extra {
            self.keep(
                extra.iter().map(|(member, value)| member.len() + value.to_string().len()).sum(),
            )?;
        }
        let place = self.calls.take(call, fragment, arguments);
        self.blocks.call_grew(call, place, &mut self.budget)
    }

    /// Counts what is kept beside words and arguments: all of it is bounded together with the text.
    fn keep(&mut self, bytes: usize) -> Result<(), Error> {
        self.kept_bytes += bytes;
        let limit = self.options.limits.text_bytes;
        if self.kept_bytes > limit {
            return Err(Error::new(ErrorKind::TextTooLong, limit));
        }
        Ok(())
    }

    fn add_problem(&mut self, problem: Problem) -> Result<(), Error> {
        // However much else is wrong, that the server gave up is told.
        let is_first_error = matches!(problem, Problem::Server(_))
            && !self.problems.iter().any(|known| matches!(known, Problem::Server(_)));
        if is_first_error || self.problems.len() < self.options.limits.problems {
            self.budget.hold(problem.held())?;
            self.blocks.problem(self.problems.len(), &mut self.budget)?;
            self.problems.push(problem);
        }
        Ok(())
    }

    /// Lets go of text that may have been a repeat: something else was said.
    fn flush_text(&mut self) -> Result<(), Error> {
        let Self { blocks, budget, text: filter, splitter, options, .. } = self;
        let limit = options.limits.text_bytes;
        filter.flush(&mut |text| match splitter {
            None => blocks.say(Voice::Text, text, limit, budget),
            Some(splitter) => {
                splitter.reserve(text, budget)?;
                splitter.push(text, &mut |voice, words| blocks.say(voice, words, limit, budget))
            }
        })
    }

    /// Lets go of all text that is held back, half a tag too.
    fn flush(&mut self) -> Result<(), Error> {
        self.flush_text()?;
        let Self { blocks, budget, splitter, options, .. } = self;
        let limit = options.limits.text_bytes;
        match splitter {
            None => Ok(()),
            Some(splitter) => {
                splitter.flush(&mut |voice, words| blocks.say(voice, words, limit, budget))
            }
        }
    }

    fn take_answer(&mut self) -> Answer {
        let calls = mem::take(&mut self.calls.list);
        let mut calls = (!calls.is_empty()).then(|| self.finished(calls).into_iter());
        let said = mem::take(&mut self.blocks).parts;
        let mut blocks = Vec::with_capacity(said.len());
        let mut refusal: Option<String> = None;
        for part in said {
            match part {
                Part::Words(Words { voice: Voice::Thinking, text }) => {
                    blocks.push(ContentBlock::Thinking(ThinkingBlock::new(text)));
                }
                Part::Words(Words { voice, text }) => {
                    if voice == Voice::Refusal {
                        refusal.get_or_insert_default().push_str(&text);
                    }
                    blocks.push(ContentBlock::Text(TextBlock::new(text)));
                }
                Part::Call => blocks.extend(calls.as_mut().and_then(Iterator::next)),
            }
        }
        let details = mem::take(&mut self.details).list;
        if !details.is_empty() {
            self.extra.insert("reasoning_details".into(), details.into());
        }
        Answer {
            blocks,
            refusal,
            finish_reason: mem::replace(&mut self.finish_reason, FinishReason::Unspecified),
            usage: self.usage.take(),
            problems: mem::take(&mut self.problems),
            done: mem::replace(&mut self.done, true),
            id: self.id.take(),
            model: self.model.take(),
            extra: mem::take(&mut self.extra),
        }
    }

    /// Makes blocks of calls.
    #[cold]
    fn finished(&mut self, calls: Vec<Call>) -> Vec<ContentBlock> {
        let cut = self.why_an_empty_last_call_is_no_call();
        let last = calls.len() - 1;
        let ids: Vec<String> = calls.iter().filter_map(|call| call.id.clone()).collect();
        let mut ids = ids::MadeUpIds::new(self.options.id_seed, ids);
        let blocks = calls.into_iter().enumerate().map(|(number, call)| {
            let cut = cut.filter(|_| number == last);
            let repair = self.options.quirks.repair;
            match call.finish(|| ids.next_id(), cut, repair, &mut self.budget) {
                Ok(call) => ContentBlock::ToolUse(call),
                Err(error) => ContentBlock::ToolUseError(error),
            }
        });
        blocks.collect()
    }

    /// A call that was cut off before its first argument must not run with none (QUIRKS row 24).
    fn why_an_empty_last_call_is_no_call(&self) -> Option<&'static str> {
        if self.failed.is_some() {
            Some("the answer passed a limit before the call's arguments")
        } else if self.finish_reason.is_length() {
            Some("the call was cut off by the token limit before its arguments")
        } else if !self.done && self.finish_reason == FinishReason::Unspecified {
            Some("the stream broke off before the call's arguments")
        } else {
            None
        }
    }
}
