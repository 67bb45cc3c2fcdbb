use std::collections::VecDeque;
use std::mem;
use std::ops::Range;

use oa_types::{ContentBlock, ImageBlock, Message, Outcome, ToolUseBlock, ToolUseError, flattened};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::{Call, CallState};
use crate::conversation::Conversation;
use crate::repair::{calls_of, result_message, result_of, unanswered};

/// The calls of one answer, with their results and the part already shown to the caller.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Round {
    pub(crate) calls: Vec<Call>,
    /// The number of the answer among those that had calls.
    pub(crate) number: u64,
    /// The index in history at which the results begin.
    results_at: usize,
    /// True if a limit prevents the calls from running.
    pub(crate) over_limit: bool,
    /// The call that was returned to the driver for a decision or a review.
    pub(crate) handed: Option<usize>,
    /// Results that await review, in order of completion.
    reviews: VecDeque<usize>,
    /// Calls and malformed calls that have not been shown, in the model's order.
    unshown: VecDeque<Piece>,
    /// The number of calls, from the first, whose results have been shown.
    results_shown: usize,
    /// The calls that had a result in an earlier conversation; the result is not shown again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shown_before: Vec<usize>,
    /// True once it was decided whether the turn ends after these calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_checked: bool,
}

/// A part of an answer that is shown to the caller after the text.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Piece {
    /// A call of an earlier conversation, unless the caller has answered it by then.
    Again(usize),
    Call(usize),
    Error(ToolUseError),
}

impl Round {
    pub(crate) fn new(
        calls: Vec<Call>,
        unshown: VecDeque<Piece>,
        results_at: usize,
        number: u64,
    ) -> Self {
        Self { calls, number, results_at, unshown, ..Self::default() }
    }

    /// Creates the round of an answer in an earlier conversation, whose results begin at `results_at`.
    pub(crate) fn restored(calls: Vec<Call>, results_at: usize, number: u64) -> Self {
        let places = |is: fn(&Call) -> bool| {
            let calls = calls.iter().enumerate().filter(move |(_, call)| is(call));
            calls.map(|(place, _)| place)
        };
        // The order of completion is not in history, so results are reviewed in call order.
        let shown_before = places(Call::is_answered).collect();
        let reviews = places(Call::awaits_review).collect();
        Self { calls, number, results_at, reviews, shown_before, ..Self::default() }
    }

    /// Makes allowed calls undecided for which this is true, to show them again once they are decided. Returns true if
    /// there are any.
    pub(crate) fn undecide(&mut self, mut must: impl FnMut(&Call) -> bool) -> bool {
        for (place, call) in self.calls.iter_mut().enumerate() {
            if call.state == CallState::Allowed && must(call) {
                call.state = CallState::Undecided;
                self.unshown.push_back(Piece::Again(place));
            }
        }
        self.has_unshown()
    }

    /// Adjusts the indexes after messages were removed from history, none of which belong to this round.
    pub(crate) fn removed(&mut self, messages: &Range<usize>) {
        if self.results_at >= messages.end {
            self.results_at -= messages.len();
        } else {
            // A round without calls may be that of the removed answer itself.
            self.results_at = self.results_at.min(messages.start);
        }
    }

    /// Returns the call with this id, if its result awaits review.
    pub(crate) fn unreviewed(&self, id: &str) -> Option<&Call> {
        self.calls.iter().find(|call| call.block.id == id && call.awaits_review())
    }

    /// Inserts a result into history at its position in call order.
    pub(crate) fn record(
        &mut self,
        to: &mut Conversation,
        call: usize,
        content: Value,
        images: Vec<ImageBlock>,
        outcome: Outcome,
    ) {
        let (place, content) = (self.place_of(call), flattened(content));
        self.calls[call].images = images;
        to.insert(place, message_of(&self.calls[call], content.clone(), outcome));
        self.calls[call].state = CallState::Answered { content, outcome, reviewed: false };
        self.reviews.push_back(call);
    }

    /// Marks a result as reviewed and sets its final content, and its images unless they stay.
    pub(crate) fn reviewed(
        &mut self,
        to: &mut Conversation,
        call: usize,
        content: Value,
        images: Option<Vec<ImageBlock>>,
    ) {
        let (place, content) = (self.place_of(call), flattened(content));
        let Call { state, images: shown, .. } = &mut self.calls[call];
        let CallState::Answered { content: old, outcome, reviewed } = state else { return };
        *reviewed = true;
        let images = images.filter(|images| images != shown);
        // An unchanged result keeps its message and thereby its revision, so that requests reuse its bytes.
        if *old != content || images.is_some() {
            old.clone_from(&content);
            *shown = images.unwrap_or_else(|| mem::take(shown));
            let outcome = *outcome;
            to.replace(place, message_of(&self.calls[call], content, outcome));
        }
    }

    /// Records the results of refused calls once all calls are decided.
    pub(crate) fn record_refused(&mut self, to: &mut Conversation) {
        // Until then, these calls stay open in history, so that a `resume` has all of them decided again.
        if self.calls.iter().any(|call| call.is_undecided() || call.is_waiting()) {
            return;
        }
        for call in 0..self.calls.len() {
            if let CallState::Refused { content, outcome } = self.calls[call].state.clone() {
                self.record(to, call, content, Vec::new(), outcome);
            }
        }
    }

    /// Answers every call that has no result, of those for which `is_meant` is true.
    pub(crate) fn answer_open(
        &mut self,
        to: &mut Conversation,
        error: &str,
        outcome: Outcome,
        is_meant: impl Fn(&Call) -> bool,
    ) {
        // Before the calls have results: one whose decision was awaited is reviewed in its place among them, and only
        // one whose review has begun comes before the others.
        self.handed = self.handed.filter(|&call| self.calls[call].awaits_review());
        for call in 0..self.calls.len() {
            if self.calls[call].is_open() && is_meant(&self.calls[call]) {
                let content = unanswered(&self.calls[call].block.name, error);
                self.record(to, call, content, Vec::new(), outcome);
            }
        }
        self.record_refused(to);
    }

    pub(crate) fn open_ids(&self) -> Vec<&str> {
        let open = self.calls.iter().filter(|call| call.is_open());
        open.map(|call| &*call.block.id).collect()
    }

    pub(crate) fn open_count(&self) -> u32 {
        self.calls.iter().filter(|call| call.is_open()).count() as u32
    }

    /// Returns the open calls that the driver runs or, if they are external, hands to the caller.
    pub(crate) fn to_run(&self) -> Vec<usize> {
        let calls = self.calls.iter().enumerate().filter(|(_, call)| call.is_to_run());
        calls.map(|(place, _)| place).collect()
    }

    /// Returns the calls that are handed to the caller while others wait for permission.
    pub(crate) fn to_hand_out(&self) -> Vec<usize> {
        let calls = self.calls.iter().enumerate().filter(|(_, call)| call.is_to_hand_out());
        calls.map(|(place, _)| place).collect()
    }

    pub(crate) fn has_open(&self) -> bool {
        self.calls.iter().any(Call::is_open)
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.calls.iter().any(Call::is_waiting)
    }

    /// Returns true if there are calls, and it was not decided whether the turn ends after them.
    pub(crate) fn is_unchecked(&self) -> bool {
        !self.is_checked && !self.calls.is_empty()
    }

    /// Returns true if permission for a call was requested and the turn waits for it.
    pub(crate) fn has_asked(&self) -> bool {
        self.calls.iter().any(|call| call.state == CallState::Asked)
    }

    pub(crate) fn waiting_ids(&self) -> Vec<&str> {
        let waiting = self.calls.iter().filter(|call| call.is_waiting());
        waiting.map(|call| &*call.block.id).collect()
    }

    /// Returns true if calls remain to be shown.
    pub(crate) fn has_unshown(&self) -> bool {
        !self.unshown.is_empty()
    }

    /// Returns the next undecided call, and marks it as handed out.
    pub(crate) fn next_undecided(&mut self) -> Option<usize> {
        self.handed = self.calls.iter().position(Call::is_undecided);
        self.handed
    }

    /// Returns the next result that awaits review, and marks it as handed out.
    pub(crate) fn next_review(&mut self) -> Option<usize> {
        // A call may be queued twice: `take_back` puts one back that `record` has queued already.
        while let Some(call) = self.reviews.pop_front() {
            if self.calls.get(call).is_some_and(Call::awaits_review) {
                self.handed = Some(call);
                return Some(call);
            }
        }
        None
    }

    /// Takes back a call that was handed out, so that its result is reviewed later.
    pub(crate) fn take_back(&mut self) {
        if let Some(call) = self.handed.take()
            && self.calls[call].awaits_review()
        {
            self.reviews.push_front(call);
        }
    }

    /// Marks all calls and results as shown.
    pub(crate) fn hide(&mut self) {
        self.unshown.clear();
        self.results_shown = self.calls.len();
    }

    /// Shows all calls as the model made them.
    pub(crate) fn show_calls(&mut self, out: &mut VecDeque<ContentBlock>) {
        while let Some(piece) = self.unshown.pop_front() {
            out.push_back(match piece {
                Piece::Again(call) | Piece::Call(call) => {
                    ToolUseBlock::clone(&self.calls[call].block).into()
                }
                Piece::Error(error) => error.into(),
            });
        }
    }

    /// Shows calls up to the first undecided one, with the input that they run with, or their errors.
    pub(crate) fn show_decided(&mut self, out: &mut VecDeque<ContentBlock>) {
        while let Some(piece) = self.unshown.front() {
            match piece {
                Piece::Error(error) => out.push_back(error.clone().into()),
                &Piece::Again(call) if self.calls[call].is_answered() => {}
                &Piece::Again(call) | &Piece::Call(call) => match &self.calls[call] {
                    call if call.is_undecided() => return,
                    call if matches!(call.state, CallState::Refused { .. }) => {
                        show_result(call, out);
                    }
                    call => out.push_back(call.block_to_run().into()),
                },
            }
            self.unshown.pop_front();
        }
    }

    /// Shows results in call order, up to the first that is not final.
    pub(crate) fn show_results(&mut self, out: &mut VecDeque<ContentBlock>) {
        while let Some(call) = self.calls.get(self.results_shown) {
            // `results_shown` counts calls, so a call that was shown in an earlier conversation is passed
            // over.
            if !self.shown_before.contains(&self.results_shown) {
                if !call.is_answered() || call.awaits_review() {
                    return;
                }
                show_result(call, out);
            }
            self.results_shown += 1;
        }
    }

    /// Shows the available results, in call order, if the others come from the caller.
    pub(crate) fn show_results_so_far(&mut self, out: &mut VecDeque<ContentBlock>) {
        while let Some(call) = self.calls.get(self.results_shown) {
            if call.is_answered() && !self.shown_before.contains(&self.results_shown) {
                show_result(call, out);
            }
            self.results_shown += 1;
        }
    }

    /// Returns the index of the answer that made these calls.
    pub(crate) fn answer_place(&self) -> Option<usize> {
        self.results_at.checked_sub(1).filter(|_| !self.calls.is_empty())
    }

    /// Adjusts the indexes after messages moved from index `from` to index `to`. Returns false if the calls belong to
    /// an earlier message.
    pub(crate) fn shift(&mut self, from: usize, to: usize) -> bool {
        if self.results_at > from {
            self.results_at = self.results_at - from + to;
            return true;
        }
        self.results_at = 0;
        self.calls.is_empty()
    }

    /// Returns the answer that made these calls.
    pub(crate) fn answer_in<'a>(&self, history: &'a [Message]) -> Option<&'a Message> {
        history.get(self.results_at.checked_sub(1)?)
    }

    /// Checks that the calls and their results are in this history, and that all indexes are valid. Returns the index
    /// at which the results end.
    pub(crate) fn check(&self, history: &[Message]) -> Result<usize, &'static str> {
        let Self { calls, handed, reviews, unshown, results_at, results_shown, .. } = self;
        let is_call = |place: &usize| *place < calls.len();
        let mut shown = unshown.iter().filter_map(|piece| match piece {
            Piece::Again(place) | Piece::Call(place) => Some(place),
            Piece::Error(_) => None,
        });
        if !reviews.iter().all(is_call) || !shown.all(is_call) || *results_shown > calls.len() {
            return Err("a call is missing");
        }
        if let Some(place) = handed
            && !calls.get(*place).is_some_and(|call| call.is_undecided() || call.awaits_review())
        {
            return Err("the call that was handed out is already decided");
        }
        // As `place_of` assumes: one message for each answered call, in call order.
        let answered: Vec<&Call> = calls.iter().filter(|call| call.is_answered()).collect();
        let results = history.get(*results_at..).and_then(|rest| rest.get(..answered.len()));
        let Some(results) = results else { return Err("results are missing") };
        let fits = |(call, message): (&&Call, &Message)| {
            result_of(message).is_some_and(|result| result.tool_use_id == call.block.id)
        };
        if !answered.iter().zip(results).all(fits) {
            return Err("the results do not match the calls");
        }
        if !calls.is_empty() {
            let Some(answer) = self.answer_in(history) else { return Err("the answer is missing") };
            // The calls that run are those that the model made and history tells.
            if !calls.iter().map(|call| &*call.block).eq(calls_of(answer)) {
                return Err("the calls do not match those of the answer");
            }
        }
        if calls.iter().any(|call| call.waits_for_result() && !call.is_external) {
            return Err("a call that is not external waits for a result");
        }
        Ok(results_at + answered.len())
    }

    fn place_of(&self, call: usize) -> usize {
        // Only answered calls have a message, in call order. With `a` and `c` of three calls answered:
        //     history: .. answer, result of a, result of c
        //     place of b: results_at + 1, between the two
        self.results_at + self.calls[..call].iter().filter(|call| call.is_answered()).count()
    }
}

/// Shows the result as the model sees it. An error precedes it if the call failed or was blocked.
fn show_result(call: &Call, out: &mut VecDeque<ContentBlock>) {
    let (CallState::Answered { content, outcome, .. } | CallState::Refused { content, outcome }) =
        &call.state
    else {
        return;
    };
    // A malformed call was shown as an error before; one that was not run has not failed.
    if !matches!(outcome, Outcome::Cancelled | Outcome::Malformed | Outcome::NotRun | Outcome::Ok) {
        let why = |key: &str| content.get(key).and_then(Value::as_str);
        let error = match (why("error"), why("reason")) {
            (Some(error), Some(reason)) => format!("{error}: {reason}"),
            (Some(error), None) => error.to_owned(),
            _ => outcome.to_string(),
        };
        let mut error = ToolUseError::new(error, call.input.to_string());
        (error.id, error.name) = (Some(call.block.id.clone()), Some(call.block.name.clone()));
        out.push_back(error.into());
    }
    let message = message_of(call, content.clone(), *outcome);
    out.extend(message.content);
}

/// Returns the message of a call's result, with its images.
fn message_of(call: &Call, content: Value, outcome: Outcome) -> Message {
    let mut message = result_message(&call.block, content, outcome.is_error());
    if let [ContentBlock::ToolResult(result)] = &mut message.content[..] {
        result.images.clone_from(&call.images);
    }
    message
}
