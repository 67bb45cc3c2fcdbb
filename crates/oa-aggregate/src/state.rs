//! The rules by which an answer grows. Every transition is in this file, or in `message.rs` for whole messages.

mod halves;
mod message;

use std::mem;

use oa_json::beginning;
use oa_types::wire::ServerError;
use oa_types::{
    ContentBlock, FinishReason, MadeUpIds, TextBlock, ThinkingBlock, ToolUseError, Usage,
};
use serde_json::{Map, Value};

use crate::answer::AggregatedAnswer;
use crate::blocks::{Part, Voice, Words};
use crate::budget::{Budget, COPIES, COPIES_OF_CALL};
use crate::call::{Call, json_length};
use crate::calls::Calls;
use crate::chunk::{self, Choice, Chunk, Fragment, Rare};
use crate::error::{Error, ErrorKind, KEPT, Problem, UnreadablePayload};
use crate::opaque::Opaque;
use crate::options::Options;
use crate::place::Place;
use crate::quirks::ChoiceIndex;
use crate::speech::Speech;
use crate::stream_status::StreamStatus;
use crate::template::{Content, Matched};

#[derive(Debug)]
pub(crate) struct State {
    options: Options,
    pub(crate) budget: Budget,
    pub(crate) speech: Speech,
    /// The first thinking arrived in `thinking_blocks`, and under no other name.
    thinks_in_blocks: bool,
    /// The answer arrives as messages, each of which adds to it.
    messages_add: bool,
    pub(crate) calls: Calls,
    /// The first half of a character, and the place where the other one may follow.
    pub(crate) half: Option<(Place, u16)>,
    ids: MadeUpIds,
    pub(crate) finish_reason: FinishReason,
    pub(crate) usage: Option<Usage>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) unreadable: Option<UnreadablePayload>,
    /// The problem that reports that the server gave up, until the server has reported the reason.
    unexplained: Option<usize>,
    opaque: Option<Box<Opaque>>,
    id: Option<String>,
    model: Option<String>,
    pub(crate) done: bool,
    /// The limit that was exceeded: nothing more is accepted.
    pub(crate) failed: Option<Error>,
    pub(crate) is_finished: bool,
    kept_bytes: usize,
}

impl State {
    // Created in place, to avoid a move.
    #[inline]
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            budget: Budget::new(options.limits.held_bytes),
            speech: Speech::new(options.quirks, options.limits.text_bytes),
            thinks_in_blocks: false,
            messages_add: false,
            calls: Calls::default(),
            half: None,
            ids: MadeUpIds::new(options.id_seed, Vec::new()),
            finish_reason: FinishReason::Unspecified,
            usage: None,
            problems: Vec::new(),
            unreadable: None,
            unexplained: None,
            opaque: None,
            id: None,
            model: None,
            done: false,
            failed: None,
            is_finished: false,
            kept_bytes: 0,
        }
    }

    /// Returns the status after a payload. An error is a limit that was exceeded: nothing more is accepted.
    #[inline]
    pub(crate) fn status(&mut self, taken: Result<(), Error>) -> Result<StreamStatus, Error> {
        if let Err(error) = taken {
            self.failed = Some(error);
        }
        taken.map(|()| StreamStatus::More)
    }

    /// Takes the content of a chunk that matched a template, in the order of [`take`](Self::take).
    #[inline]
    pub(crate) fn take_matched(&mut self, matched: &Matched<'_>) -> Result<(), Error> {
        if matched.has_identity() {
            self.take_identity(matched.id().as_deref(), matched.model().as_deref())?;
        }
        let shape = matched.shape;
        if matched.index == 0 || self.options.quirks.choice == ChoiceIndex::Any {
            match &shape.content {
                Content::NoChoice => {}
                Content::Text if matched.words.is_empty() => {}
                Content::Text => self.speech.add_text(matched.words, &mut self.budget)?,
                Content::Thinking => {
                    let thinking = matched.thinking();
                    if !thinking.is_empty() {
                        self.speech.think(thinking, &mut self.budget)?;
                    }
                }
                Content::Arguments(fragment) => self.add_fragment(fragment, matched.words)?,
            }
            if let Some(detail) = matched.detail {
                let length = detail.json_length();
                let opaque = self.opaque.get_or_insert_default();
                let known = opaque.details.grow(detail, &mut self.budget)?;
                self.keep(length.saturating_sub(known))?;
            }
            if let Some(reason) = &shape.finish_reason {
                self.end_choice(reason)?;
            }
        }
        if let Some(usage) = matched.usage {
            self.usage.get_or_insert_default().merge(usage);
        }
        Ok(())
    }

    /// Takes the id and the model, unless they are known.
    #[inline(never)]
    fn take_identity(&mut self, id: Option<&str>, model: Option<&str>) -> Result<(), Error> {
        if self.speech.notice.is_open() && id != self.id.as_deref() {
            // The proxy's notice may lack its end, but the server's answer has an id of its own.
            let known = [self.id.take(), self.model.take()];
            self.budget.release(COPIES * known.iter().flatten().map(String::len).sum::<usize>());
            self.speech.flush(&mut self.budget)?;
        }
        // A sign of life has neither of the answer's (QUIRKS row 150).
        let is_answer = model != Some("keepalive");
        for (known, word) in [(&mut self.id, id), (&mut self.model, model)] {
            if let (None, Some(word), true) = (&known, word, is_answer) {
                self.budget.hold(COPIES * word.len())?;
                *known = Some(word.to_owned());
            }
        }
        Ok(())
    }

    /// Takes the content of a chunk: an error first, then each kind of content independently.
    pub(crate) fn take(&mut self, chunk: &Chunk<'_>) -> Result<(), Error> {
        if let Some(error) = &chunk.error {
            self.add_problem(Problem::Server(error.clone()))?;
        }
        if chunk.is_cut {
            let limit = self.options.limits.held_bytes;
            return Err(Error::new(ErrorKind::AnswerTooLarge, limit));
        }
        self.take_identity(chunk.id.as_deref(), chunk.model.as_deref())?;
        if let Some(progress) = &chunk.prompt_progress {
            self.speech.blocks.progress(progress, &mut self.budget)?;
        }
        for choice in chunk.choices() {
            self.take_choice(choice, chunk.detail_shape)?;
        }
        if let Some(usage) = &chunk.usage {
            self.usage.get_or_insert_default().merge(usage);
        }
        Ok(())
    }

    fn take_choice(&mut self, choice: &Choice<'_>, detail_shape: u64) -> Result<(), Error> {
        if choice.index != 0 && self.options.quirks.choice == ChoiceIndex::Zero {
            return Ok(());
        }
        if choice.is_message && self.has_streamed()? {
            return self.take_message(choice);
        }
        // Independent of each other (QUIRKS row 29). Thinking is first, because text may repeat it (row 111).
        if let Some(thinking) = &choice.thinking
            && self.is_new(choice)
        {
            let thinking = self.join(Place::Thinking, thinking, choice.halves[1])?;
            match &choice.text {
                _ if thinking.is_empty() => {}
                None => self.speech.think(&thinking, &mut self.budget)?,
                Some(_) => self.speech.think_beside(&thinking, &mut self.budget)?,
            }
        }
        if let Some(text) = &choice.text {
            let text = self.join(Place::Text, text, choice.halves[0])?;
            if text.is_empty() {
                // Half a character.
            } else if choice.is_thought() {
                self.speech.add_thought(&text, &mut self.budget)?;
            } else {
                self.speech.add_text(&text, &mut self.budget)?;
            }
        }
        if let Some(rare) = &choice.rare {
            self.take_rare(rare, detail_shape)?;
        }
        if choice.is_message {
            self.add_calls(choice)?;
        } else {
            for fragment in choice.calls() {
                let arguments = self.join_arguments(fragment)?;
                self.add_fragment(fragment, &arguments)?;
            }
        }
        if let Some(reason) = &choice.finish_reason {
            self.end_choice(reason)?;
        }
        Ok(())
    }

    /// Returns true if the thinking of a choice is new: blocks often repeat that of another name (QUIRKS row 108).
    #[inline]
    fn is_new(&mut self, choice: &Choice<'_>) -> bool {
        let in_blocks = choice.rare.as_ref().is_some_and(|rare| rare.thinks_in_blocks);
        self.thinks_in_blocks |= in_blocks && self.speech.blocks.thinking().is_empty();
        let has_said = |opaque: &Opaque| opaque.signed.has_said(choice.thinking_blocks());
        !in_blocks || (self.thinks_in_blocks && !self.opaque.as_deref().is_some_and(has_said))
    }

    /// Takes the server's finish reason, which may arrive more than once. A reason that means failure is an error,
    /// with or without details (QUIRKS row 106).
    #[inline]
    fn end_choice(&mut self, reason: &str) -> Result<(), Error> {
        // Counted for every copy on its way to the caller.
        let copies = 2 * COPIES;
        let new = FinishReason::from_server(reason);
        // `"null"` takes back nothing (QUIRKS row 49).
        if new == FinishReason::Unspecified {
            return Ok(());
        }
        self.budget.hold(copies * reason.len())?;
        let old = mem::replace(&mut self.finish_reason, new);
        if old != FinishReason::Unspecified {
            self.budget.release(copies * old.as_str().len());
        }
        if self.finish_reason.is_failure() { self.give_up(reason) } else { Ok(()) }
    }

    #[cold]
    fn give_up(&mut self, reason: &str) -> Result<(), Error> {
        if !self.problems.iter().any(|known| matches!(known, Problem::Server(_))) {
            let words = format!(
                "the server ended the answer with the finish reason {reason:?} and no details"
            );
            self.add_problem(Problem::Server(Box::new(ServerError::from_value(words.into()))))?;
            // Just pushed: `add_problem` drops no first error.
            self.unexplained = Some(self.problems.len() - 1);
        }
        Ok(())
    }

    fn take_rare(&mut self, rare: &Rare<'_>, detail_shape: u64) -> Result<(), Error> {
        for part in &rare.parts {
            match part {
                chunk::Part::Text(text) if rare.is_thought => {
                    self.speech.add_thought(text, &mut self.budget)?;
                }
                chunk::Part::Text(text) => self.speech.add_text(text, &mut self.budget)?,
                chunk::Part::Thinking(thinking) if rare.parts.len() > 1 => {
                    self.speech.think_beside(thinking, &mut self.budget)?;
                }
                chunk::Part::Thinking(thinking) => self.speech.think(thinking, &mut self.budget)?,
            }
        }
        if let Some(refusal) = &rare.refusal {
            self.speech.say(Voice::Refusal, refusal, &mut self.budget)?;
        }
        self.keep_for_server(rare, &rare.details, &rare.thinking_blocks, detail_shape)
    }

    /// Keeps members that only the server understands, and expects back, and the error of the choice.
    fn keep_for_server(
        &mut self,
        rare: &Rare<'_>,
        details: &[Value],
        signed: &[Value],
        detail_shape: u64,
    ) -> Result<(), Error> {
        if let Some(error) = &rare.error {
            self.add_problem(Problem::Server(error.clone()))?;
        }
        let mut known = 0;
        for detail in details {
            let opaque = self.opaque.get_or_insert_default();
            known += opaque.details.merge(detail, detail_shape, &mut self.budget)?;
        }
        self.keep(rare.detail_bytes.saturating_sub(known))?;
        self.keep(rare.block_bytes)?;
        for block in signed {
            let opaque = self.opaque.get_or_insert_default();
            opaque.signed.merge(block, &mut self.budget)?;
        }
        for (member, value) in &rare.extra {
            let opaque = self.opaque.get_or_insert_default();
            let known = opaque.members.get(member).map_or(0, |old| json_length(member, old));
            self.keep_instead(json_length(member, value), known)?;
            self.budget.hold_value(member, value)?;
            let opaque = self.opaque.get_or_insert_default();
            if let Some(old) = opaque.members.insert(member.clone(), value.clone()) {
                self.budget.release_value(member, &old);
            }
        }
        Ok(())
    }

    /// Takes a fragment of a call, and separately its piece of arguments.
    #[inline]
    fn add_fragment(&mut self, fragment: &Fragment<'_>, arguments: &str) -> Result<(), Error> {
        let limits = self.options.limits;
        let call = match self.calls.find(fragment, arguments) {
            Some(call) => call,
            None => self.begin_call(fragment)?,
        };
        // Most fragments have only a piece of arguments and known values.
        let assembled = &mut self.calls.list[call];
        if !assembled.knows_all_but_arguments(fragment) {
            return self.add_to_call(call, fragment, arguments);
        }
        if assembled.arguments.len() + arguments.len() > limits.argument_bytes {
            assembled.is_too_long = true;
            return Err(Error::new(ErrorKind::ArgumentsTooLong, limits.argument_bytes));
        }
        match assembled.arguments.append(arguments, &mut self.budget) {
            Ok(place) if assembled.has_started => {
                self.speech.blocks.call_grew(call, place, &mut self.budget)
            }
            Ok(_) => self.start_call(call),
            Err(error) => {
                assembled.is_too_long = true;
                Err(error)
            }
        }
    }

    /// Begins a call, to which its first fragment is still to be added.
    #[inline(never)]
    fn begin_call(&mut self, fragment: &Fragment<'_>) -> Result<usize, Error> {
        let limit = self.options.limits.calls;
        if self.calls.list.len() >= limit {
            return Err(Error::new(ErrorKind::TooManyCalls, limit));
        }
        // Held-back text arrived before this call.
        self.flush()?;
        self.start_waiting()?;
        self.calls.list.push(Call::new(fragment));
        self.speech.blocks.call_began(&mut self.budget)?;
        Ok(self.calls.list.len() - 1)
    }

    /// Takes a fragment with new values for its call, and its piece of arguments.
    #[inline(never)]
    fn add_to_call(
        &mut self,
        call: usize,
        fragment: &Fragment<'_>,
        arguments: &str,
    ) -> Result<(), Error> {
        let limits = self.options.limits;
        let known = self.calls.list[call].name.as_deref();
        let new_piece = fragment.name.as_deref().filter(|piece| known != Some(piece));
        // Everything is counted before anything is taken.
        let held = self.calls.hold(call, fragment, new_piece, &mut self.budget);
        let assembled = &mut self.calls.list[call];
        let fits = if assembled.arguments.len() + arguments.len() > limits.argument_bytes {
            Err(Error::new(ErrorKind::ArgumentsTooLong, limits.argument_bytes))
        } else {
            assembled.arguments.reserve(arguments, &mut self.budget)
        };
        if held.is_err() || fits.is_err() {
            // The truncated text may be JSON by chance, but the call must not run.
            assembled.is_too_long = true;
            held?;
            // With its id and name, the block of the error tells which call it was.
            self.calls.take(call, fragment, "");
            return fits;
        }
        if let Some(piece) = new_piece {
            let is_late = assembled.is_late(piece);
            self.keep(piece.len())?;
            if is_late {
                let piece = beginning(piece, KEPT).to_owned();
                self.add_problem(Problem::LateName { call, piece })?;
            }
        }
        if let Some(extra) = &fragment.extra {
            let known = self.calls.list[call].length_of_known(extra);
            let new = extra.iter().map(|(member, value)| json_length(member, value)).sum();
            self.keep_instead(new, known)?;
        }
        let place = self.calls.take(call, fragment, arguments);
        if self.calls.list[call].has_started {
            return self.speech.blocks.call_grew(call, place, &mut self.budget);
        }
        self.start_call(call)
    }

    /// Adds the start of a call to the deltas, and the arguments so far, once its name is settled.
    #[inline(never)]
    fn start_call(&mut self, call: usize) -> Result<(), Error> {
        if self.calls.list[call].can_start() { self.start_now(call) } else { Ok(()) }
    }

    fn start_now(&mut self, call: usize) -> Result<(), Error> {
        self.calls.settle_id(call, &mut self.ids);
        self.calls.list[call].start();
        self.speech.blocks.call_started(call, &mut self.budget)?;
        let arguments = (0, self.calls.list[call].arguments.len());
        self.speech.blocks.call_grew(call, arguments, &mut self.budget)
    }

    /// Starts the last call if it still waits for an id, because the next one begins.
    fn start_waiting(&mut self) -> Result<(), Error> {
        let waits =
            self.calls.list.last().is_some_and(|call| call.waits_for_id && !call.has_started);
        if waits { self.start_now(self.calls.list.len() - 1) } else { Ok(()) }
    }

    /// Ends the input: text that was held back and calls without arguments become deltas.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        // What is still held back after an error has no deltas: the answer must not have it either.
        if mem::replace(&mut self.is_finished, true) {
            return Ok(());
        }
        self.flush()?;
        for call in 0..self.calls.list.len() {
            let assembled = &self.calls.list[call];
            if !assembled.has_started && assembled.name.is_some() {
                self.start_now(call)?;
            }
        }
        Ok(())
    }

    /// Counts members other than text and arguments: apart from the text, but with the same limit.
    fn keep(&mut self, bytes: usize) -> Result<(), Error> {
        self.kept_bytes += bytes;
        let limit = self.options.limits.text_bytes;
        if self.kept_bytes > limit {
            return Err(Error::new(ErrorKind::TextTooLong, limit));
        }
        Ok(())
    }

    /// Counts members that replace others, which are no longer kept: some servers repeat them in each chunk.
    fn keep_instead(&mut self, new: usize, known: usize) -> Result<(), Error> {
        self.kept_bytes = self.kept_bytes.saturating_sub(known);
        self.keep(new)
    }

    /// Releases all held-back text, also if there is no room for the half of a character behind it.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        let half = self.flush_half();
        self.speech.flush(&mut self.budget).and(half)
    }

    /// Takes a payload that is not JSON; the first is also kept apart from the problems.
    pub(crate) fn add_unreadable(&mut self, unreadable: &UnreadablePayload) -> Result<(), Error> {
        if self.unreadable.is_none() {
            // The error of a call that was lost in it quotes it.
            let quoted = COPIES_OF_CALL * unreadable.excerpt().len();
            self.budget.hold(unreadable.payload().len() + quoted)?;
            self.unreadable = Some(unreadable.clone());
        }
        self.add_problem(Problem::Unreadable(unreadable.clone()))
    }

    pub(crate) fn add_problem(&mut self, problem: Problem) -> Result<(), Error> {
        let is_error = matches!(problem, Problem::Server(_));
        let last = self.problems.len();
        let explained = self.unexplained.filter(|_| is_error);
        // The server's failure is reported, however many problems there are.
        let is_first_error =
            is_error && !self.problems.iter().any(|known| matches!(known, Problem::Server(_)));
        if explained.is_none() && !is_first_error && last >= self.options.limits.problems {
            return Ok(());
        }
        self.budget.hold(problem.held())?;
        self.problems.push(problem);
        // This is the reason why the server gave up. It comes first, where errors are looked up.
        let place = explained.unwrap_or(last);
        // Deltas of problems are positions, so one that was not taken yet moves with its problem.
        if explained.is_some() {
            self.unexplained = None;
            self.problems.swap(place, last);
            self.speech.blocks.problem_moved(place, last);
        }
        self.speech.blocks.problem(place, &mut self.budget)
    }

    pub(crate) fn take_answer(&mut self) -> AggregatedAnswer {
        // Also calls that never started, such as one without a name: their error blocks have ids, too.
        for call in 0..self.calls.list.len() {
            self.calls.settle_id(call, &mut self.ids);
        }
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
        AggregatedAnswer {
            blocks,
            refusal,
            finish_reason: mem::replace(&mut self.finish_reason, FinishReason::Unspecified),
            usage: self.usage.take(),
            problems: mem::take(&mut self.problems),
            done: mem::replace(&mut self.done, true),
            id: self.id.take(),
            model: self.model.take(),
            extra: self.opaque.take().map_or_else(Map::new, |mut opaque| opaque.finish()),
        }
    }

    /// Converts calls into blocks.
    #[cold]
    fn finished(&mut self, calls: Vec<Call>) -> Vec<ContentBlock> {
        let last = calls.len() - 1;
        let cut = self.why_an_empty_last_call_is_no_call(&calls[last]);
        let blocks = calls.into_iter().enumerate().map(|(number, call)| {
            let cut = cut.filter(|_| number == last);
            let repair = self.options.quirks.repair;
            match call.finish(cut, repair, &mut self.budget) {
                Ok(call) => ContentBlock::ToolUse(call),
                Err(error) => ContentBlock::ToolUseError(error),
            }
        });
        blocks.collect()
    }

    /// Returns the call of an answer that ends with calls but has none (QUIRKS rows 121, 128 and 132).
    fn lost_call(&mut self, blocks: &[ContentBlock]) -> Option<ToolUseError> {
        let is_call = |block: &ContentBlock| {
            matches!(block, ContentBlock::ToolUse(_) | ContentBlock::ToolUseError(_))
        };
        let mut texts = blocks.iter().filter_map(ContentBlock::as_text);
        let (why, raw) = match &self.unreadable {
            _ if blocks.iter().any(is_call) => return None,
            _ if self.finish_reason.is_malformed_call() => {
                ("the server could not read what the model wrote".to_owned(), "")
            }
            _ if !self.finish_reason.is_tool_calls() => return None,
            Some(unreadable) => {
                let position = unreadable.position();
                (format!("its chunk is not JSON at byte {position}"), unreadable.excerpt())
            }
            None if texts.any(|text| !text.trim().is_empty()) => return None,
            None => ("the server announced it, but did not send it".to_owned(), ""),
        };
        let mut lost = ToolUseError::new(format!("the call was lost: {why}"), raw);
        lost.id = Some(self.ids.next_id());
        Some(lost)
    }

    /// Returns why a call that was cut off before its first argument must not run (QUIRKS row 24).
    fn why_an_empty_last_call_is_no_call(&self, last: &Call) -> Option<&'static str> {
        let is_open = !self.done && self.finish_reason == FinishReason::Unspecified;
        if self.failed.is_some() {
            Some("the answer passed a limit before the call's arguments")
        } else if self.finish_reason.is_length() {
            Some("the call was cut off by the token limit before its arguments")
        } else if self.finish_reason.is_filtered() {
            Some("a content filter stopped the answer before the call's arguments")
        } else if self.finish_reason.is_malformed_call() {
            Some("the server could not read the call's arguments")
        } else if is_open && !last.is_in_message {
            Some("the stream broke off before the call's arguments")
        } else {
            None
        }
    }
}
