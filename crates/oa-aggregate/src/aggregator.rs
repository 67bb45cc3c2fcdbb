use std::borrow::Cow;
use std::mem;

use oa_types::wire::ServerError;
use oa_types::{ContentBlock, FinishReason, TextBlock, ThinkingBlock, ToolUseError, Usage};
use serde_json::{Map, Value};

use crate::answer::Answer;
use crate::blocks::{Part, Voice, Words};
use crate::call::Call;
use crate::calls::Calls;
use crate::chunk::{self, Choice, Chunk, Fragment, Payload, Rare};
use crate::decode::Decoder;
use crate::delta::Delta;
use crate::details::Details;
use crate::error::{Error, ErrorKind, Problem, UncleanEnd, Unreadable, beginning};
use crate::form::{Says, Told};
use crate::forms::Forms;
use crate::ids;
use crate::quirks::{ChoiceIndex, Quirks};
use crate::signed::SignedBlocks;
use crate::speech::Speech;
use crate::template::Template;

/// What a peer may make the aggregator hold.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Arguments of one call, in bytes as the server sent them. 4 MiB by default.
    pub argument_bytes: usize,
    /// Tool calls of one answer. 128 by default.
    pub calls: usize,
    /// How many problems are kept; later ones are dropped, but for the first error of the server. 32 by
    /// default.
    pub problems: usize,
    /// Text, thinking and refusal together, in bytes; and as much again for what only the server
    /// understands and wants back. 16 MiB by default. An answer has 1,024 runs of words at the most, and one more
    /// for every 64 bytes of this: each takes room beside its words.
    pub text_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { argument_bytes: 4 << 20, calls: 128, problems: 32, text_bytes: 16 << 20 }
    }
}

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

    /// Takes a payload of which the framing says that it is an error: the data of an event named `error`,
    /// or what stands in a field of that name (QUIRKS rows 104 and 115).
    ///
    /// What reads as a chunk is taken as one, since some servers name all of their events.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    #[cold]
    pub fn push_error(&mut self, payload: &[u8]) -> Result<Progress, Error> {
        let state = &mut self.state;
        if state.done {
            return Ok(Progress::Done);
        }
        if let Some(error) = state.failed {
            return Err(error);
        }
        match self.decoder.read(payload) {
            Ok(Payload::Chunk(chunk)) if chunk.is_empty() => {}
            Err(_) => {}
            Ok(_) => return self.push(payload),
        }
        let mut error = ServerError::from_body(payload);
        if error.message.is_empty() {
            error.message = "the server reported an error and did not say which".to_owned();
        }
        state.add_problem(Problem::Server(Box::new(error)));
        Ok(Progress::More)
    }

    fn push_what_differs(&mut self, payload: &[u8]) -> Result<Progress, Error> {
        let state = &mut self.state;
        // By reference: a chunk is some 300 bytes that need not move.
        match &self.decoder.read(payload) {
            Ok(Payload::Chunk(chunk)) => {
                state.take(chunk).map(|()| Progress::More).map_err(|error| state.fail(error))
            }
            Ok(Payload::Done) => {
                state.done = true;
                Ok(Progress::Done)
            }
            Err(unreadable) => {
                state.unreadable.get_or_insert_with(|| unreadable.clone());
                state.add_problem(Problem::Unreadable(unreadable.clone()));
                Ok(Progress::More)
            }
        }
    }

    /// Returns the next change to the answer, or `None` when it needs more input.
    #[inline]
    pub fn next_delta(&mut self) -> Option<Delta<'_>> {
        let State { speech, calls, problems, .. } = &mut self.state;
        speech.blocks.next(&calls.list, problems)
    }

    /// Ends the input: what was held back becomes deltas. Ending twice changes nothing.
    ///
    /// # Errors
    ///
    /// What was held back passed the limit of text.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.state.speech.flush()
    }

    /// Ends the input of a stream that did not come to its end, and returns whether the answer is complete
    /// all the same: it is once the server has said that it was through, and a [`Problem`] tells of the rest
    /// (QUIRKS row 120).
    pub fn break_off(&mut self, end: UncleanEnd) -> bool {
        let is_complete = self.is_complete();
        if is_complete {
            self.state.add_problem(Problem::UncleanEnd(end));
        }
        is_complete
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
        let _ = self.state.speech.flush();
        self.state.take_answer()
    }

    /// Whether text, thinking or a call has come.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        !self.state.speech.blocks.parts.is_empty()
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

    /// Returns the first payload that was not JSON.
    #[must_use]
    pub fn unreadable(&self) -> Option<&Unreadable> {
        self.state.unreadable.as_ref()
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
    speech: Speech,
    /// The first thinking came in `thinking_blocks`, and under no other name.
    thinks_in_blocks: bool,
    /// The answer comes as messages, each of which adds to it.
    messages_add: bool,
    calls: Calls,
    finish_reason: FinishReason,
    usage: Option<Usage>,
    problems: Vec<Problem>,
    unreadable: Option<Unreadable>,
    /// The problem that says that the server gave up, until the server has said why.
    unexplained: Option<usize>,
    details: Details,
    signed: SignedBlocks,
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
            speech: Speech::new(options.quirks, options.limits.text_bytes),
            thinks_in_blocks: false,
            messages_add: false,
            calls: Calls::default(),
            finish_reason: FinishReason::Unspecified,
            usage: None,
            problems: Vec::new(),
            unreadable: None,
            unexplained: None,
            details: Details::default(),
            signed: SignedBlocks::default(),
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
            self.meet(template);
        }
        if told.form.index == 0 || self.options.quirks.choice == ChoiceIndex::Any {
            match &told.form.says {
                Says::Nothing => {}
                Says::Text if told.words.is_empty() => {}
                Says::Text => self.speech.add_text(told.words)?,
                Says::Thinking => {
                    let thinking = told.thinking();
                    if !thinking.is_empty() {
                        self.speech.think(thinking)?;
                    }
                }
                Says::Arguments(fragment) => self.add_fragment(fragment, told.words)?,
            }
            if let Some(detail) = told.detail {
                let length = detail.json_length();
                let known = self.details.grow(detail);
                self.keep(length.saturating_sub(known))?;
            }
            if let Some(reason) = &told.form.finish_reason {
                self.end_choice(reason);
            }
        }
        if let Some(usage) = told.usage {
            self.usage.get_or_insert_default().merge(usage);
        }
        Ok(())
    }

    /// Takes id and model from a chunk that is like one of an earlier answer.
    #[cold]
    fn meet(&mut self, template: &Template) {
        if self.id.is_none() {
            self.id = template.id().map(Cow::into_owned);
        }
        if self.model.is_none() {
            self.model = template.model().map(Cow::into_owned);
        }
    }

    /// Takes what a chunk says: an error first, then independent steps for each thing it may bring.
    fn take(&mut self, chunk: &Chunk<'_>) -> Result<(), Error> {
        if let Some(error) = &chunk.error {
            self.add_problem(Problem::Server(error.clone()));
        }
        if let (None, Some(id)) = (&self.id, &chunk.id) {
            self.id = Some(id.as_ref().to_owned());
        }
        if let (None, Some(model)) = (&self.model, &chunk.model) {
            self.model = Some(model.as_ref().to_owned());
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
        if choice.is_message && self.has_streamed()? {
            return self.take_message(choice);
        }
        if let Some(thinking) = &choice.thinking
            && self.is_new(choice)
        {
            self.speech.think(thinking)?;
        }
        if let Some(text) = &choice.text {
            if choice.is_thought() {
                self.speech.add_thought(text)?
            } else {
                self.speech.add_text(text)?
            }
        }
        if let Some(rare) = &choice.rare {
            self.take_rare(rare, detail_form)?;
        }
        for fragment in choice.calls() {
            self.add_fragment(fragment, fragment.arguments.as_deref().unwrap_or_default())?;
        }
        if let Some(reason) = &choice.finish_reason {
            self.end_choice(reason);
        }
        Ok(())
    }

    /// Whether the thinking of a choice is to be said: blocks say once more, often all at once, what has
    /// come under another name (QUIRKS row 108).
    #[inline]
    fn is_new(&mut self, choice: &Choice<'_>) -> bool {
        let in_blocks = choice.rare.as_ref().is_some_and(|rare| rare.thinks_in_blocks);
        self.thinks_in_blocks |= in_blocks && self.speech.blocks.thinking().is_empty();
        !in_blocks || (self.thinks_in_blocks && !self.signed.has_said(choice.thinking_blocks()))
    }

    /// Whether a message is the last word on what deltas have said before it. Of a server that sends nothing
    /// but messages each is a piece (QUIRKS row 36).
    #[cold]
    fn has_streamed(&mut self) -> Result<bool, Error> {
        self.speech.flush()?;
        self.messages_add |= self.speech.blocks.parts.is_empty();
        Ok(!self.messages_add)
    }

    /// Takes a message for what it has beyond the deltas before it (QUIRKS row 117).
    fn take_message(&mut self, choice: &Choice<'_>) -> Result<(), Error> {
        let mut text = choice.text.as_deref().unwrap_or_default().to_owned();
        let mut thinking = choice.thinking.as_deref().unwrap_or_default().to_owned();
        for part in choice.parts() {
            match part {
                chunk::Part::Text(part) => text.push_str(part),
                chunk::Part::Thinking(part) => thinking.push_str(part),
            }
        }
        self.speech.say_rest(Voice::Thinking, &thinking)?;
        self.speech.say_rest(Voice::Text, &text)?;
        self.speech.say_rest(Voice::Refusal, choice.refusal().unwrap_or_default())?;
        if let Some(rare) = &choice.rare {
            let has_details = !self.details.list.is_empty();
            let details = if has_details { &[][..] } else { &rare.details[..] };
            let signed = if self.signed.is_empty() { &rare.thinking_blocks[..] } else { &[] };
            self.keep_for_server(rare, details, signed, 0)?;
        }
        for fragment in choice.calls().filter(|fragment| fragment.name.is_some()) {
            if !self.calls.has(fragment) {
                self.add_fragment(fragment, fragment.arguments.as_deref().unwrap_or_default())?;
            }
        }
        if let Some(reason) = &choice.finish_reason {
            self.end_choice(reason);
        }
        Ok(())
    }

    /// Takes the server's reason. One by which it gives up is an error, whether or not it says more (QUIRKS
    /// row 106).
    #[inline]
    fn end_choice(&mut self, reason: &str) {
        self.finish_reason = FinishReason::from_server(reason);
        if reason == "error" {
            self.give_up();
        }
    }

    #[cold]
    fn give_up(&mut self) {
        if !self.problems.iter().any(|known| matches!(known, Problem::Server(_))) {
            let words =
                "the server ended the answer with the finish reason \"error\" and said no more";
            self.add_problem(Problem::Server(Box::new(ServerError::from_value(words.into()))));
            self.unexplained = Some(self.problems.len() - 1);
        }
    }

    fn take_rare(&mut self, rare: &Rare<'_>, detail_form: u64) -> Result<(), Error> {
        for part in &rare.parts {
            match part {
                chunk::Part::Text(text) if rare.is_thought => self.speech.add_thought(text)?,
                chunk::Part::Text(text) => self.speech.add_text(text)?,
                chunk::Part::Thinking(thinking) => self.speech.think(thinking)?,
            }
        }
        if let Some(refusal) = &rare.refusal {
            self.speech.say(Voice::Refusal, refusal)?;
        }
        self.keep_for_server(rare, &rare.details, &rare.thinking_blocks, detail_form)
    }

    /// Keeps what only the server understands, and wants back, and the error of the choice.
    fn keep_for_server(
        &mut self,
        rare: &Rare<'_>,
        details: &[Value],
        signed: &[Value],
        detail_form: u64,
    ) -> Result<(), Error> {
        if let Some(error) = &rare.error {
            self.add_problem(Problem::Server(error.clone()));
        }
        let known: usize =
            details.iter().map(|detail| self.details.merge(detail, detail_form)).sum();
        self.keep(rare.detail_bytes.saturating_sub(known))?;
        self.keep(rare.block_bytes)?;
        signed.iter().for_each(|block| self.signed.merge(block));
        for (member, value) in &rare.extra {
            self.keep(member.len() + value.to_string().len())?;
            self.extra.insert(member.clone(), value.clone());
        }
        Ok(())
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
                self.speech.flush()?;
                let call = self.calls.begin(fragment);
                self.speech.blocks.call_started(call);
                call
            }
        };
        let assembled = &mut self.calls.list[call];
        if assembled.arguments.len() + arguments.len() > limits.argument_bytes {
            // What came of it may be JSON by chance: it must not run.
            assembled.is_too_long = true;
            self.calls.take(call, fragment, "");
            return Err(Error::new(ErrorKind::ArgumentsTooLong, limits.argument_bytes));
        }
        if let Some(piece) = fragment.name.as_deref()
            && assembled.name.as_deref() != Some(piece)
        {
            let is_late = assembled.is_late(piece);
            self.keep(piece.len())?;
            if is_late {
                self.add_problem(Problem::LateName { call, piece: beginning(piece).to_owned() });
            }
        }
        if let Some(extra) = &fragment.extra {
            self.keep(
                extra.iter().map(|(member, value)| member.len() + value.to_string().len()).sum(),
            )?;
        }
        let (start, end) = self.calls.take(call, fragment, arguments);
        self.speech.blocks.call_grew(call, start, end);
        Ok(())
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

    fn add_problem(&mut self, problem: Problem) {
        let is_error = matches!(problem, Problem::Server(_));
        if let Some(place) = self.unexplained.take_if(|_| is_error) {
            // What the server says now is why it gave up: it stands first, where an error is looked for.
            let last = self.problems.len();
            self.problems.push(problem);
            self.problems.swap(place, last);
            self.speech.blocks.problem_moved(place, last);
            self.speech.blocks.problem(place);
            return;
        }
        // However much else is wrong, that the server gave up is told.
        let is_first_error =
            is_error && !self.problems.iter().any(|known| matches!(known, Problem::Server(_)));
        if is_first_error || self.problems.len() < self.options.limits.problems {
            self.speech.blocks.problem(self.problems.len());
            self.problems.push(problem);
        }
    }

    fn take_answer(&mut self) -> Answer {
        let calls = mem::take(&mut self.calls.list);
        let mut calls = (!calls.is_empty()).then(|| self.finished(calls).into_iter());
        let said = mem::take(&mut self.speech.blocks).parts;
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
        blocks.extend(self.lost_call(&blocks).map(ContentBlock::ToolUseError));
        let signed = mem::take(&mut self.signed).finish();
        if !signed.is_empty() {
            self.extra.insert("thinking_blocks".into(), signed.into());
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
    fn finished(&self, calls: Vec<Call>) -> Vec<ContentBlock> {
        let cut = self.why_an_empty_last_call_is_no_call();
        let last = calls.len() - 1;
        let ids: Vec<String> = calls.iter().filter_map(|call| call.id.clone()).collect();
        let mut ids = ids::MadeUpIds::new(self.options.id_seed, ids);
        let blocks = calls.into_iter().enumerate().map(|(number, call)| {
            let cut = cut.filter(|_| number == last);
            match call.finish(|| ids.next_id(), cut, self.options.quirks.repair) {
                Ok(call) => ContentBlock::ToolUse(call),
                Err(error) => ContentBlock::ToolUseError(error),
            }
        });
        blocks.collect()
    }

    /// The call of an answer that ends by calling tools but has none, where a payload could not be read: the
    /// call was in that (QUIRKS row 121).
    fn lost_call(&self, blocks: &[ContentBlock]) -> Option<ToolUseError> {
        let unreadable = self.unreadable.as_ref()?;
        let is_call = |block: &ContentBlock| {
            matches!(block, ContentBlock::ToolUse(_) | ContentBlock::ToolUseError(_))
        };
        let asks = matches!(self.finish_reason.as_str(), "tool_calls" | "function_call");
        if !asks || blocks.iter().any(is_call) {
            return None;
        }
        let position = unreadable.position();
        let error = format!("the call was lost: its chunk is not JSON at byte {position}");
        let mut lost = ToolUseError::new(error, unreadable.excerpt());
        lost.id = Some(ids::MadeUpIds::new(self.options.id_seed, Vec::new()).next_id());
        Some(lost)
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
